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

// Follow follows a client, which has not connected yet.
func (c *Camera) Follow(name lang.Text, tap *wiretap.Tap) (seen *Figure) {
	c.do(func(r *Recorder, now int) {
		seen = r.Add(now)
		seen.Called, seen.Process = name, Running
		seen.shown = nil // it connects before the story begins
	})
	pass := func(f wiretap.Frame) { c.passes(seen, tap, f) }
	tap.GateOnRecord(pass)
	return seen
}

// passes returns when a frame may go on.
func (c *Camera) passes(seen *Figure, tap *wiretap.Tap, f wiretap.Frame) {
	tellsOfAChange := f.Kind == wiretap.Notification || f.Op == wiretap.GetChildren
	if tellsOfAChange && f.Kind != wiretap.Request {
		c.Look() // before the client knows of it
	}
	at := actor.Frame{Frame: f}
	if f.Op == wiretap.SetWatches {
		at.Watched = tap.Watched()
	}
	i := -1
	c.do(func(r *Recorder, now int) { i = r.Departs(now, seen, at) })
	if i < 0 {
		return
	}
	if f.Class() == wiretap.OfLock {
		time.Sleep(onItsWay)
	}
	c.do(func(r *Recorder, now int) { r.Arrives(now, i, seen, f) })
}

// Ends notes that the server has ended the session of a client.
func (c *Camera) Ends(seen *Figure) {
	c.Look()
	c.do(func(r *Recorder, now int) { r.Unwatched(now, seen) })
}

// Look looks at what there is at the server.
func (c *Camera) Look() {
	asked := 0
	c.do(func(_ *Recorder, now int) { asked = now })
	isKnown := func(path string) (known bool) {
		c.do(func(r *Recorder, _ int) { known = r.Knows(path) })
		return known
	}
	sessions, err := actor.Znodes(c.server, c.recorder.Dir, c.recorder.Znode, isKnown)
	if err != nil {
		return // then it is seen the next time
	}
	c.do(func(r *Recorder, now int) { r.Looked(asked, now, sessions) })
}

// Becomes notes a new state of a client.
func (c *Camera) Becomes(seen *Figure, state string) {
	c.do(func(r *Recorder, now int) { r.Hears(now, seen, actor.State{Name: state}) })
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
