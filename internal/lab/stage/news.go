package stage

import (
	"encoding/json"
	"maps"
)

// A Told notes what a page knows.
type Told struct {
	parts map[string]string
	upTo  map[string]int // by the name of a shelf: the last change that the page knows
}

// Nothing returns the Told of a page that has just been opened, which knows nothing.
func Nothing() *Told { return &Told{map[string]string{}, map[string]int{}} }

// Changes returns the parts that differ from what the page knows. From then on they count as known.
func (t *Told) Changes(parts map[string]any) map[string]any {
	news := map[string]any{}
	for name, part := range parts {
		text, err := json.Marshal(part)
		if err != nil {
			panic(err) // our own types can be marshalled
		}
		if t.parts[name] != string(text) {
			t.parts[name], news[name] = string(text), json.RawMessage(text)
		}
	}
	return news
}

// News returns what the page does not know of the recorder, and of the parts in more. From then on
// all this counts as known.
func (r *Recorder) News(told *Told, more map[string]any) map[string]any {
	maps.Copy(more, map[string]any{"rows": r.Clients, "counters": r.counters, "banners": r.Banners, "store": r.Store})
	news := told.Changes(more)
	r.nodes.tell(news, "nodes", told)
	r.watches.tell(news, "watches", told)
	r.frames.tell(news, "frames", told)
	r.log.tell(news, "log", told)
	return news
}
