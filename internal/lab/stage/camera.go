package stage

import (
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/actor"
	"zklock/internal/lang"
	"zklock/internal/wiretap"
)

// A Camera records clients of this process, each of which has a gate on its line. It holds
// every frame for a moment, so that it is seen on its way: what it records is drawn, and
// neither counted nor timed.
type Camera struct {
	server *zk.Conn // the camera's own, to look at what is there
	began  time.Time

	mu       sync.Mutex
	recorder *Recorder
}

// onItsWay is for how long a frame is held.
const onItsWay = 2 * time.Millisecond

// Film begins to record what happens to a lock: to one znode, or in a directory.
func Film(server *zk.Conn, dir string, isZnode bool) *Camera {
	r := New()
	r.Dir, r.Path, r.Znode = dir, dir, isZnode
	return &Camera{server: server, began: time.Now(), recorder: r}
}

func (c *Camera) now() int { return int(time.Since(c.began).Microseconds()) }

// do does something with the recorder, at a moment.
func (c *Camera) do(what func(r *Recorder, now int)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	what(c.recorder, c.now())
}

// Follow follows a client, which has not connected yet: what passes on its line, and, if its calls
// are the actor's, its states.
func (c *Camera) Follow(name lang.Text, tap *wiretap.Tap) (seen *Figure, calls *actor.Client) {
	c.do(func(r *Recorder, now int) {
		seen = r.Add(now)
		seen.Called, seen.Process = name, Running
		seen.shown = nil // it connects before the story begins
	})
	tap.GateOnRecord(func(f wiretap.Frame) { c.passes(seen, tap, f) })
	return seen, actor.NewClient(func(is actor.State) { c.Becomes(seen, is) })
}

// passes returns when a frame may go on.
func (c *Camera) passes(seen *Figure, tap *wiretap.Tap, f wiretap.Frame) {
	tellsOfAChange := f.Kind == wiretap.Notification || f.Op == wiretap.GetChildren
	if tellsOfAChange && f.Kind != wiretap.Request {
		c.Look() // before the client knows of it
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

// Look looks at what there is at the server. If that does not answer, it is seen the next time.
func (c *Camera) Look() { c.recorder.Look(&c.mu, c.now, c.server) }

// Becomes notes a new state of a client.
func (c *Camera) Becomes(seen *Figure, is actor.State) {
	c.do(func(r *Recorder, now int) { r.Hears(now, seen, is) })
}

// Phase begins a part of the story, which begins with the first.
func (c *Camera) Phase(title lang.Text) {
	c.do(func(r *Recorder, now int) { r.Phase(now, title) })
}

// Sum ends the present part. If it isWindow, it has gone on until now, whether or not
// anything has happened.
func (c *Camera) Sum(sum lang.Text, isWindow bool) {
	c.do(func(r *Recorder, now int) {
		p := &r.phases[len(r.phases)-1]
		p.Over, p.Sum, p.window = now, sum, isWindow
	})
}

// Forget takes all parts out of the story until now.
func (c *Camera) Forget() { c.do(func(r *Recorder, _ int) { r.phases = nil }) }

// Replay is what was recorded, with the clients in the order of the queue.
func (c *Camera) Replay() (s Replay) {
	c.Look()
	c.do(func(r *Recorder, now int) { s = r.Replay(now) })
	s.Seat()
	return s
}
