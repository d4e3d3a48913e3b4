package stage

import (
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/actor"
	"zklock/internal/lang"
	"zklock/internal/wiretap"
)

// A Camera records clients of this process. Each client has a gate on its connection. The camera
// holds each frame of the lock there for a moment, so that a viewer sees it on its way. For this
// reason, what a camera records is drawn, but neither counted nor timed.
type Camera struct {
	server *zk.Conn // lists the znodes that exist
	began  time.Time

	mu       sync.Mutex
	recorder *Recorder
}

// onItsWay is how long a frame is held.
const onItsWay = 2 * time.Millisecond

// Film begins to record what happens to a lock. dir is the path of its directory, or, if isZnode is
// set, of its single znode.
func Film(server *zk.Conn, dir string, isZnode bool) *Camera {
	r := New()
	r.Dir, r.Path, r.Znode = dir, dir, isZnode
	return &Camera{server: server, began: time.Now(), recorder: r}
}

func (c *Camera) now() int { return int(time.Since(c.began).Microseconds()) }

// do calls the function what while it holds mu. what receives the recorder and the present moment.
func (c *Camera) do(what func(r *Recorder, now int)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	what(c.recorder, c.now())
}

// Follow begins to record a client that has not connected yet. It records the frames on the
// client's connection and, if the client's calls are made through calls, its states.
func (c *Camera) Follow(name lang.Text, tap *wiretap.Tap) (seen *Figure, calls *actor.Client) {
	c.do(func(r *Recorder, now int) {
		seen = r.Add(now)
		seen.Called, seen.Process = name, Running
		seen.shown = nil // the client connects before the story begins
	})
	tap.GateOnRecord(func(f wiretap.Frame) { c.passes(seen, tap, f) })
	return seen, actor.NewClient(func(is actor.State) { c.Becomes(seen, is) })
}

// passes returns when a frame may continue on its way.
func (c *Camera) passes(seen *Figure, tap *wiretap.Tap, f wiretap.Frame) {
	tellsOfAChange := f.Kind == wiretap.Notification || f.Op == wiretap.GetChildren
	if tellsOfAChange && f.Kind != wiretap.Request {
		c.Look() // before the client learns of it
	}
	hold := func() {
		if f.Class() == wiretap.OfLock {
			c.mu.Unlock()
			time.Sleep(onItsWay)
			c.mu.Lock()
		}
	}
	c.do(func(r *Recorder, _ int) { r.Passes(c.now, seen, actor.Seen(tap, f), hold) })
}

// Ends notes that the server has ended the session of a client.
func (c *Camera) Ends(seen *Figure) {
	c.Look()
	c.do(func(r *Recorder, now int) { r.Unwatched(now, seen) })
}

// Look asks the server which znodes exist. If the server does not answer, a later Look sees what
// has changed.
func (c *Camera) Look() { c.recorder.Look(&c.mu, c.now, c.server) }

// Becomes notes a new state of a client.
func (c *Camera) Becomes(seen *Figure, is actor.State) {
	c.do(func(r *Recorder, now int) { r.Hears(now, seen, is) })
}

// Phase begins a part of the story. The story begins with its first part.
func (c *Camera) Phase(title lang.Text) {
	c.do(func(r *Recorder, now int) { r.Phase(now, title) })
}

// Sum ends the present part with a summary. If isWindow is set, the part has lasted until now,
// whether or not anything has happened.
func (c *Camera) Sum(sum lang.Text, isWindow bool) {
	c.do(func(r *Recorder, now int) {
		p := &r.phases[len(r.phases)-1]
		p.Over, p.Sum, p.window = now, sum, isWindow
	})
}

// Forget removes all parts so far from the story.
func (c *Camera) Forget() { c.do(func(r *Recorder, _ int) { r.phases = nil }) }

// Replay returns what was recorded, with the clients in the order of the queue.
func (c *Camera) Replay() (s Replay) {
	c.Look()
	c.do(func(r *Recorder, now int) { s = r.Replay(now) })
	s.Seat()
	return s
}
