package board

// A store is what the lock protects. It checks tokens as a store should: it refuses
// one that is less than the greatest it has seen. A lock without tokens leaves
// it nothing to check.
type store struct {
	Token int64   `json:"token"` // the greatest
	Log   []write `json:"log"`   // newest first
}

type write struct {
	Client int    `json:"client"`
	Token  int64  `json:"token"`
	OK     bool   `json:"ok"`
	Text   string `json:"text"`
}

// Put writes to the store.
func (b *Board) Put(now int, c *Client, token int64) {
	s := &b.Store
	w := write{c.Number, token, token == 0 || token >= s.Token, "accepted"}
	switch {
	case token == 0:
		w.Text = "accepted, for it bears no token that could be checked"
	case w.OK:
		s.Token = token
	default:
		w.Text = "refused: a later holder has written"
	}
	s.Log = append([]write{w}, s.Log...)
	s.Log = s.Log[:min(len(s.Log), keptWrites)]
	b.Say(now, "%d writes to the store with the token %d: %s.", c.Number, token, w.Text)
}
