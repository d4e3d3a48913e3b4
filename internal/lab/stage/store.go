package stage

// A store is what the lock protects. It checks tokens as a store should: it refuses
// one that is less than the greatest it has seen. A lock without tokens leaves
// it nothing to check.
type store struct {
	Token int64   `json:"token"` // the greatest
	Log   []write `json:"log"`   // newest first
}

// A write is refused if a later holder has written. One without a token is accepted: there
// is nothing to check.
type write struct {
	Client int   `json:"client"`
	Token  int64 `json:"token"`
	OK     bool  `json:"ok"`
}

// Put writes to the store.
func (r *Recorder) Put(now int, c *Client, token int64) {
	s := &r.Store
	w := write{Client: c.Number, Token: token, OK: token == 0 || token >= s.Token}
	if w.OK {
		s.Token = max(s.Token, token)
	}
	s.Log = append([]write{w}, s.Log...)
	s.Log = s.Log[:min(len(s.Log), keptWrites)]
	r.Say(Event{At: now, What: Wrote, Clients: []int{c.Number}, Write: &w})
}
