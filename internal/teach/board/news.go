package board

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

// News is what the page does not know of the board, and of what else there is to say of it.
// From now on it does.
func (b *Board) News(told *Told, more map[string]any) map[string]any {
	maps.Copy(more, map[string]any{"rows": b.Clients, "counters": b.counters, "banners": b.Banners, "store": b.Store})
	news := told.Changes(more)
	b.nodes.tell(news, "nodes", told)
	b.watches.tell(news, "watches", told)
	b.frames.tell(news, "frames", told)
	b.log.tell(news, "log", told)
	return news
}
