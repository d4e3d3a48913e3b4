package stage

import "time"

// LastHeard is when the server has heard of the client's session last; 0: never.
func (c *Figure) LastHeard() int {
	if len(c.beats) == 0 {
		return 0
	}
	return c.beats[len(c.beats)-1]
}

// MayBeOver tells whether the server may have ended the client's session: it has not heard
// of the client for nearly as long as a session lasts.
func (c *Figure) MayBeOver(now int) bool {
	const nearly = int(Timeout * 8 / 10 / time.Microsecond)
	isSilent := c.LastHeard() > 0 && now-c.LastHeard() > nearly
	return isSilent && c.Over == 0
}

// Ends notes that the server has ended a client's session, of which no znode tells it.
func (r *Recorder) Ends(now int, c *Figure) {
	c.Over = now
	r.Unwatched(now, c)
	r.Say(Event{At: now, What: Expired, Clients: []int{c.Number}})
}
