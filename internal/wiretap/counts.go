package wiretap

import (
	"slices"
	"time"
)

// Counts sums up the frames of a lock and the proofs of a lease. It leaves out the frames of the
// session and of a test.
type Counts struct {
	Requests      map[Op]int
	Asked         []string // the requests, in order
	Sent          int      // bytes to the server
	Received      int      // bytes from the server, notifications included
	Notifications int
	Names         int // names in all lists received
}

// All is the number of requests of every kind.
func (c Counts) All() int {
	n := 0
	for _, count := range c.Requests {
		n += count
	}
	return n
}

// Writes is the number of requests that the servers must agree on.
func (c Counts) Writes() (n int) {
	for op, count := range c.Requests {
		if op.IsWrite() {
			n += count
		}
	}
	return n
}

// Count sums up frames, also those of several clients.
func Count(frames ...[]Frame) Counts {
	c := Counts{Requests: map[Op]int{}}
	for _, f := range slices.Concat(frames...) {
		if class := f.Class(); class == OfSession || class == OfTest {
			continue
		}
		switch f.Kind {
		case Request:
			c.Requests[f.Op]++
			c.Asked = append(c.Asked, f.Op.String())
			c.Sent += f.Bytes
		case Notification:
			c.Notifications++
			c.Received += f.Bytes
		case Reply:
			c.Received += f.Bytes
			c.Names += f.Names
		}
	}
	return c
}

// Unpaused counts how often a client that polls has sent the same request again without a pause: each request
// since the time before was sent right after a reply had arrived. It counts this for the request that it sent most.
// A client that polls well may send several requests, and then pauses.
func Unpaused(frames []Frame) (again, times int) {
	const pause = 2 * time.Millisecond // after a reply, at least: a client that polls at once takes less
	type request struct {
		op   Op
		path string
	}
	type count struct {
		again, times int
		pauses       int // so far, when it was last sent
	}
	counts := map[request]count{}
	pauses := 0
	var answered time.Time
	for _, f := range frames {
		switch {
		case f.Class() != OfLock:
		case f.Kind == Reply:
			answered = f.At
		case f.Kind == Request:
			if f.At.Sub(answered) >= pause {
				pauses++
			}
			this := request{f.Op, f.Path}
			c := counts[this]
			hasNotPaused := c.times > 0 && c.pauses == pauses
			if hasNotPaused {
				c.again++
			}
			c.times++
			c.pauses = pauses
			counts[this] = c
		}
	}
	for _, c := range counts {
		if c.times > times || c.times == times && c.again > again {
			again, times = c.again, c.times
		}
	}
	return again, times
}

// Frames is a copy of all that has passed so far, in order.
func (t *Tap) Frames() []Frame { return t.Since(0) }

// Mark is a place in the record: the number of frames so far.
func (t *Tap) Mark() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.frames)
}

// Since is a copy of all that has passed since a Mark, in order.
func (t *Tap) Since(mark int) []Frame {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.frames[mark:])
}

// Done lists the paths that the server has created, deleted and so on for the client, by a kind of
// request, in order.
func (t *Tap) Done(op Op) (paths []string) {
	for _, f := range t.Frames() {
		succeeded := f.Kind == Reply && f.Err == OK
		if succeeded && f.Op == op {
			paths = append(paths, f.Path)
		}
	}
	return paths
}

// Unanswered counts the client's requests of a kind that may have reached the server, and whose replies nobody has seen.
func (t *Tap) Unanswered(op Op) (n int) {
	for _, f := range t.Frames() {
		switch {
		case f.Op != op:
		case f.Kind == Reply:
			n--
		case !f.Lost:
			n++
		}
	}
	return n
}

// Handshakes counts how often the client has connected before the first fault that a test caused.
func (t *Tap) Handshakes() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	frames := t.frames
	if t.touched {
		frames = frames[:t.before]
	}
	for _, f := range frames {
		if f.Kind == Request && f.Op == Connect {
			n++
		}
	}
	return n
}

// Watched lists the paths that the server watches for the client's present
// connection, one entry a watch.
func (t *Tap) Watched() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	paths := []string{}
	for w := range t.armed {
		paths = append(paths, w.path)
	}
	slices.Sort(paths)
	return paths
}

// Idle reports whether all requests of the client are answered.
func (t *Tap) Idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.conns {
		if len(c.asked) > 0 {
			return false
		}
	}
	return true
}

// Waiting reports how the client waits at this moment, judged by the record since a Mark. Silently: its last
// request was a read and has been answered, what it has read is watched, and no frame waits before a gate. An
// earlier call may have set the watch, since calls can share one. Polling: its last request was sent three times,
// and from the first of these on it has set no watch.
func (t *Tap) Waiting(mark int) (silently, polling bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var last Frame
	made := 0 // how often the last request was sent
	for i := len(t.frames) - 1; i >= mark && made < 3; i-- {
		f := t.frames[i]
		if f.Kind != Request || f.Class() != OfLock {
			continue
		}
		if made == 0 {
			last = f
		}
		if f.Watch {
			break
		}
		if f.Op == last.Op && f.Path == last.Path {
			made++
		}
	}
	onTheWay := 0
	for c := range t.conns {
		onTheWay += len(c.asked) + c.before
	}
	isRead := last.Op == GetData || last.Op == GetChildren || last.Op == Exists
	silently = isRead && onTheWay == 0 && t.armed[watch{last.Path, last.Op == GetChildren}]
	return silently, made == 3
}
