package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/goleak"

	"zklock/internal/process"
	"zklock/internal/wiretap"
)

// The clients, in their processes.
const (
	processes  = 3
	perProcess = 4
	clients    = processes * perProcess
)

// hung is how long a call may take before the client behind it is given up.
const hung = time.Minute

// A Worker is one of the processes, with four clients. The conductor calls its
// exported methods.
type Worker struct {
	conductor process.Call
	before    goleak.Option // the goroutines that run before there are clients
	servers   []string
	finishing atomic.Bool
	leaving   atomic.Bool
	loops     sync.WaitGroup
	lines     map[int][]*line // by client, in the order of kinds
}

// A line is what one client has of one lock: a session over a network of its
// own, in which faults happen.
type line struct {
	client, kind int
	tap          *wiretap.Tap
	server       atomic.Value           // the only one that the client can reach; "": it can reach all
	inHold       chan (<-chan struct{}) // the end of a fault that is for the next hold
	lock         atomic.Pointer[lock]
}

func begin(conductor process.Call) *Worker {
	return &Worker{conductor: conductor, lines: map[int][]*line{}}
}

// A Place is a process's in the storm.
type Place struct {
	Process int
	Seed    uint64
	Servers []string
}

// Begin opens all sessions, and lets the clients go to work.
func (w *Worker) Begin(place Place, _ *[]Turn) error {
	w.servers, w.before = place.Servers, goleak.IgnoreCurrent()
	go w.watchForStalls(place)
	for c := place.Process * perProcess; c < (place.Process+1)*perProcess; c++ {
		for k, kind := range kinds {
			l := &line{client: c, kind: k, tap: wiretap.New(), inHold: make(chan (<-chan struct{}))}
			lock, err := w.open(l)
			if err != nil {
				return fmt.Errorf("client %d opens %s: %w", c, kind.Name, err)
			}
			l.lock.Store(lock)
			w.lines[c] = append(w.lines[c], l)
			for i := range kind.loops {
				random := rand.New(rand.NewPCG(place.Seed, uint64(c<<16+k<<8+i)))
				w.loops.Go(func() { w.loop(l, random) })
			}
		}
	}
	return nil
}

// Finish returns when all clients have come to rest.
func (w *Worker) Finish(Place, *[]Turn) error {
	w.finishing.Store(true)
	w.loops.Wait()
	return nil
}

// Leave closes all sessions and looks for goroutines that stay.
func (w *Worker) Leave(place Place, left *[]Turn) error {
	w.leaving.Store(true)
	for _, lines := range w.lines {
		for _, l := range lines {
			if !within(10*time.Second, l.lock.Load().session.Close) {
				*left = append(*left, Turn{l.kind, l.client, time.Now(), "Close did not come back"})
			}
		}
	}
	err := goleak.Find(w.before)
	for late := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(late); {
		err = goleak.Find(w.before)
	}
	if err != nil {
		*left = append(*left, Turn{-1, place.Process * perProcess, time.Now(), err.Error()})
	}
	return nil
}

// call calls the conductor.
func (w *Worker) call(method string, args, reply any) {
	if err := w.conductor(method, args, reply); err != nil {
		os.Exit(1) // it is gone
	}
}

func (w *Worker) tell(method string, args any) { w.call(method, args, new(bool)) }
func (w *Worker) note(r Record)                { w.tell("Note", r) }

func (w *Worker) open(l *line) (*lock, error) {
	return kinds[l.kind].open(w.servers, l.dial)
}

func (l *line) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	if only, _ := l.server.Load().(string); only != "" {
		address = only
	}
	return l.tap.Dial(network, address, timeout)
}

// replace gives the client another lock in the place of one that is stuck,
// unless its other goroutine has done so.
func (w *Worker) replace(l *line, stuck *lock) {
	for l.lock.Load() == stuck && !w.finishing.Load() {
		fresh, err := w.open(l)
		switch {
		case err != nil:
		case l.lock.CompareAndSwap(stuck, fresh):
			go stuck.session.Close()
		default:
			fresh.session.Close()
		}
	}
}

// watchForStalls tells when this process did not run for a while.
func (w *Worker) watchForStalls(place Place) {
	for last := time.Now(); !w.leaving.Load(); {
		time.Sleep(5 * time.Millisecond)
		now := time.Now()
		if now.Sub(last) > 50*time.Millisecond {
			w.note(Record{Stalls: []Stall{{place.Process, last, now}}})
		}
		last = now
	}
}

// loop takes the lock, again and again, as a user would.
func (w *Worker) loop(l *line, random *rand.Rand) {
	named := int64(0)
	for !w.finishing.Load() {
		lock := l.lock.Load()
		if id := lock.session.Conn().SessionID(); id != named {
			w.note(Record{Sessions: []Session{{l.client, id}}})
			named = id
		}
		if !w.turn(l, lock, random) {
			w.replace(l, lock)
		}
		time.Sleep(time.Duration(random.IntN(10)) * time.Millisecond)
	}
}

// turn takes the lock once, works and releases it. It returns false if the lock
// never came back from a call.
func (w *Worker) turn(l *line, lock *lock, random *rand.Rand) (back bool) {
	noHold := func(failure string) {
		w.note(Record{Turns: []Turn{{l.kind, l.client, time.Now(), failure}}})
	}
	wish := wish{other: lock.kind.other > 0 && random.IntN(lock.kind.other) == 0, again: random.IntN(10) == 0}
	if random.IntN(10) == 0 {
		wish.wait = time.Duration(1+random.IntN(200)) * time.Millisecond
	}
	asked := time.Now()
	var grip *grip
	var err error
	if !within(hung, func() { grip, err = lock.take(wish) }) {
		noHold("a call did not come back")
		return false
	}
	if err != nil {
		switch {
		case wish.gaveUp(err):
			noHold("")
		case l.lock.Load() == lock: // and not closed by replace
			noHold(err.Error())
		}
		return true
	}
	session := lock.session.Conn().SessionID()
	h := Hold{Kind: l.kind, Client: l.client, Read: wish.other && l.kind == 2, Waited: time.Since(asked)}
	w.work(l, &h, grip, random)
	h.Unlocked = time.Now()
	lived := false
	back = within(hung, func() {
		err = grip.release()
		for range 2 { // a user tries again, and then gives up
			if err != nil && !trusted(l.kind) {
				err = grip.release()
			}
		}
		lived = lock.session.Conn().SessionID() == session && (err == nil || lock.lives(session))
	})
	h.Lived = back && lived
	if !h.From.IsZero() {
		w.note(Record{Holds: []Hold{h}})
	}
	switch {
	case !back:
		noHold("a release did not come back")
	case !trusted(l.kind):
	case err != nil && !lost(err):
		noHold("a release failed: " + err.Error())
	case err == nil && h.Lost:
		noHold("the release of a lock that was lost does not say so")
	}
	return back
}

// within tells whether f comes back in time. If not, it goes on alone.
func within(d time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}

// work adds one to the number, for a while. A fault may come meanwhile: then the
// work takes until the fault is over, or the holder is told that the lock is
// lost.
func (w *Worker) work(l *line, h *Hold, g *grip, random *rand.Rand) {
	alive := func() bool { // it was, at the moment noted
		now := time.Now()
		if g.held.Err() != nil {
			return false
		}
		if h.From.IsZero() {
			h.From = now
		}
		h.Until = now
		return true
	}
	defer func() { h.Lost = g.held.Err() != nil }()
	if !alive() {
		return
	}
	access := Access{Kind: h.Kind, Client: h.Client, Read: h.Read, Token: g.token}
	use := func() (accepted bool) {
		var value Value
		w.call("Use", access, &value)
		if value.Refused && alive() {
			h.RefusedAlive = h.Until
		}
		access.Base = value.Number
		return !value.Refused
	}
	if !use() {
		return
	}
	access.Write = true

	var over <-chan struct{} // nil for ever: no fault comes
	select {
	case over = <-l.inHold:
	default:
	}
	for until := time.Now().Add(time.Duration(random.IntN(10)) * time.Millisecond); alive(); time.Sleep(time.Millisecond) {
		select {
		case <-over:
			over = nil
		default:
		}
		if over == nil && time.Now().After(until) {
			break
		}
	}
	if !alive() { // it is told, and does not stop at once: while its session lives, it has the time
		if over != nil && random.IntN(4) > 0 {
			<-over
		}
		time.Sleep(time.Duration(random.Int64N(int64(sessionTimeout / 2))))
	}
	careless := random.IntN(2) == 0 // writes even though it has been told
	if !h.Read && (careless || alive()) {
		h.Wrote = use()
	}
	alive()
}
