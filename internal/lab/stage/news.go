package stage

import (
	"encoding/json"
	"maps"
)

// Told is what a page knows.
type Told struct {
	parts map[string]string
	upTo  map[string]int // of a shelf's changes
}

// Nothing is what a page knows that has just been opened.
func Nothing() *Told { return &Told{map[string]string{}, map[string]int{}} }

// Changes are those of the parts that the page does not know as they are. From now on it does.
func (t *Told) Changes(parts map[string]any) map[string]any {
	news := map[string]any{}
	for name, part := range parts {
		text, err := json.Marshal(part)
		if err != nil {
			panic(err) // it is ours
		}
		if t.parts[name] != string(text) {
			t.parts[name], news[name] = string(text), json.RawMessage(text)
		}
	}
	return news
}

// News is what the page does not know of the recorder, and of what else there is to say of
// it. From now on it does.
func (r *Recorder) News(told *Told, more map[string]any) map[string]any {
	maps.Copy(more, map[string]any{"rows": r.Clients, "counters": r.counters, "banners": r.Banners, "store": r.Store})
	news := told.Changes(more)
	r.nodes.tell(news, "nodes", told)
	r.watches.tell(news, "watches", told)
	r.frames.tell(news, "frames", told)
	r.log.tell(news, "log", told)
	return news
}
