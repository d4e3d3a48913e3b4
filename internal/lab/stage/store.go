package stage

import "fmt"

// A store is what the lock protects. It checks tokens as a store should: it refuses a token that is
// less than the greatest it has seen. If the lock gives no tokens, the store has nothing to check.
type store struct {
	Token int64   `json:"token"` // the greatest
	Log   []write `json:"log"`   // newest first
}

// A write is refused if a later holder has written. A write without a token is accepted, because
// there is nothing to check.
type write struct {
	At     int   `json:"at"`
	Client int   `json:"client"`
	Token  int64 `json:"token"`
	OK     bool  `json:"ok"`
	Late   bool  `json:"late"` // its client has no znode, so it does not hold the lock
}

// Put writes to the store.
func (r *Recorder) Put(now int, c *Figure, token int64) {
	s := &r.Store
	w := write{
		At:     now,
		Client: c.Number,
		Token:  token,
		OK:     token == 0 || token >= s.Token,
		Late:   r.newest(c.Number) == nil,
	}
	if w.OK {
		s.Token = max(s.Token, token)
	}
	s.Log = append([]write{w}, s.Log...)
	s.Log = s.Log[:min(len(s.Log), keptWrites)]
	r.Say(Event{At: now, What: Wrote, Clients: []int{c.Number}, Write: &w})
}

// ShortToken returns a token in short form. Of a long token it is the end, where tokens differ.
func ShortToken(token int64) string {
	const tail = 1000
	if token >= tail {
		return fmt.Sprintf("…%03d", token%tail)
	}
	return fmt.Sprint(token)
}
