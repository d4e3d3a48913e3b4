package stage

import "time"

// LastHeard returns when the server last heard from the client's session, or 0 if it never has.
func (c *Figure) LastHeard() int {
	if len(c.beats) == 0 {
		return 0
	}
	return c.beats[len(c.beats)-1]
}

// MayBeOver reports whether the server may have ended the client's session, although the recorder
// has not seen it end: the server has not heard from the client for nearly as long as a session
// lasts.
func (c *Figure) MayBeOver(now int) bool {
	const nearly = int(Timeout * 8 / 10 / time.Microsecond)
	isSilent := c.LastHeard() > 0 && now-c.LastHeard() > nearly
	return isSilent && c.Over == 0
}

// Ends notes that the server has ended a client's session, if no list has shown this. A notification
// of its deleted znode may have shown it before now.
func (r *Recorder) Ends(now int, c *Figure) {
	soonest := c.LastHeard() + int(r.Lasts/time.Microsecond)
	for _, n := range r.nodes.kept {
		endsWithIt := n.Owner == c.Number && !r.Znode && n.To >= soonest
		if endsWithIt {
			now = min(now, n.To)
		}
	}
	c.Over = now
	r.Unwatched(now, c)
	r.Say(Event{At: now, What: Expired, Clients: []int{c.Number}})
}
