package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/goleak"

	"zklock/internal/server/process"
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
	finishing atomic.Bool
	leaving   atomic.Bool
	loops     sync.WaitGroup
	lines     map[int][]*line // by client, in the order of kinds
}

func begin(conductor process.Call) *Worker {
	return &Worker{conductor: conductor, lines: map[int][]*line{}}
}

// An Assignment is a process's in the storm.
type Assignment struct {
	Process int
	Seed    uint64
	Servers []string
}

// Begin opens all sessions, and lets the clients go to work.
func (w *Worker) Begin(place Assignment, _ *[]Turn) error {
	w.before = goleak.IgnoreCurrent()
	go w.watchForStalls(place)
	for c := place.Process * perProcess; c < (place.Process+1)*perProcess; c++ {
		for k, kind := range kinds {
			l, err := open(place.Servers, c, k)
			if err != nil {
				return fmt.Errorf("client %d opens %s: %w", c, kind.Name, err)
			}
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
func (w *Worker) Finish(Assignment, *[]Turn) error {
	w.finishing.Store(true)
	w.loops.Wait()
	return nil
}

// Leave closes all sessions and looks for goroutines that stay.
func (w *Worker) Leave(place Assignment, left *[]Turn) error {
	w.leaving.Store(true)
	for _, lines := range w.lines {
		for _, l := range lines {
			if !within(10*time.Second, l.session.Close) {
				*left = append(*left, Turn{Kind: l.at, Client: l.client, Failure: "Close did not come back"})
			}
		}
	}
	err := goleak.Find(w.before)
	for late := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(late); {
		err = goleak.Find(w.before)
	}
	if err != nil {
		*left = append(*left, Turn{Kind: -1, Client: place.Process * perProcess, Failure: err.Error()})
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

// watchForStalls tells when this process did not run for a while.
func (w *Worker) watchForStalls(place Assignment) {
	for last := time.Now(); !w.leaving.Load(); {
		time.Sleep(5 * time.Millisecond)
		now := time.Now()
		if now.Sub(last) > 50*time.Millisecond {
			w.note(Record{Stalls: []Stall{{place.Process, last, now}}})
		}
		last = now
	}
}

// loop takes the lock, again and again, as a user would, unless a call never comes back.
func (w *Worker) loop(l *line, random *rand.Rand) {
	for back := true; back && !w.finishing.Load(); {
		w.note(Record{Sessions: map[int64]int{l.session.Conn().SessionID(): l.client}})
		t := Turn{Kind: l.at, Client: l.client}
		back = w.turn(l, &t, random)
		t.At = time.Now()
		w.note(Record{Turns: []Turn{t}})
		time.Sleep(time.Duration(random.IntN(10)) * time.Millisecond)
	}
}

// turn takes the lock once, works and releases it. It returns false if the lock
// never came back from a call.
func (w *Worker) turn(l *line, t *Turn, random *rand.Rand) (back bool) {
	wish := wish{other: l.oneIn > 0 && random.IntN(l.oneIn) == 0, again: random.IntN(10) == 0}
	if random.IntN(10) == 0 {
		wish.wait = time.Duration(1+random.IntN(200)) * time.Millisecond
	}
	t.Read = wish.other && l.at == 2
	asked := time.Now()
	var grip *grip
	var err error
	if !within(hung, func() { grip, err = l.take(wish) }) {
		t.Failure = "a call did not come back"
		return false
	}
	t.Waited = time.Since(asked)
	if err != nil {
		if t.GaveUp = wish.gaveUp(err); !t.GaveUp {
			t.Failure = err.Error()
		}
		return true
	}
	session := l.session.Conn().SessionID()
	w.work(l, t, grip, random)
	t.Unlocked = time.Now()
	lived := false
	if !within(hung, func() {
		err = grip.release()
		for range 2 { // a user tries again, and then gives up
			if err != nil && !trusted(l.at) {
				err = grip.release()
			}
		}
		if l.session.Conn().SessionID() == session {
			lived = err == nil || l.lives(session)
		}
	}) {
		t.Failure = "a release did not come back"
		return false
	}
	t.Lived = lived
	switch {
	case !trusted(l.at):
	case err != nil && !lost(err):
		t.Failure = fmt.Sprintf("a release failed: %v", err)
	case err == nil && t.Lost:
		t.Failure = "the release of a lock that was lost does not say so"
	}
	return true
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

// A plan is what a client does while it holds the lock: the dice are thrown before.
type plan struct {
	length   time.Duration // of the work, if no fault comes
	lingers  bool          // when it has been told of the loss, it stays until the fault is over
	rest     time.Duration // and then, since its session may live, so much longer
	careless bool          // it writes even though it has been told
}

func newPlan(random *rand.Rand) plan {
	return plan{
		length:   time.Duration(random.IntN(10)) * time.Millisecond,
		lingers:  random.IntN(4) > 0,
		rest:     time.Duration(random.Int64N(int64(sessionTimeout / 2))),
		careless: random.IntN(2) == 0,
	}
}

// alive tells whether a holder may take the lock for its own, and notes when.
func (t *Turn) alive(g *grip) bool {
	now := time.Now()
	if g.held.Err() != nil {
		return false
	}
	if t.From.IsZero() {
		t.From = now
	}
	t.Until = now
	return true
}

// work adds one to the number, for a while. A fault may come meanwhile: then the
// work takes until the fault is over, or the holder is told that the lock is
// lost.
func (w *Worker) work(l *line, t *Turn, g *grip, random *rand.Rand) {
	does := newPlan(random)
	defer func() { t.Lost = g.held.Err() != nil }()
	if !t.alive(g) {
		return
	}
	access := Access{Kind: t.Kind, Client: t.Client, Read: t.Read, Token: g.token}
	if !w.use(&access, t, g) {
		return
	}
	over := l.fault()
	t.untilDone(g, does.length, over)
	if !t.alive(g) {
		if over != nil && does.lingers {
			<-over
		}
		time.Sleep(does.rest)
	}
	mayWrite := does.careless || t.alive(g)
	if mayWrite && !t.Read {
		access.Write = true
		t.Wrote = w.use(&access, t, g)
	}
	t.alive(g)
}

// use reads the number, or writes one more than was read, and tells whether the store
// has accepted that.
func (w *Worker) use(access *Access, t *Turn, g *grip) (accepted bool) {
	var value Value
	w.call("Use", *access, &value)
	if value.Refused && t.alive(g) {
		t.RefusedAlive = t.Until
	}
	access.Base = value.Number
	return !value.Refused
}

// fault is closed at the end of the fault that is for this hold; nil: none is.
func (l *line) fault() (over <-chan struct{}) {
	select {
	case over = <-l.inHold:
	default:
	}
	return over
}

// untilDone returns when the work is done, and the fault over that came meanwhile, if one
// did; or when the holder has been told that the lock is lost.
func (t *Turn) untilDone(g *grip, length time.Duration, over <-chan struct{}) {
	for done := time.Now().Add(length); t.alive(g); time.Sleep(time.Millisecond) {
		if over != nil {
			select {
			case <-over:
				over = nil
			default:
			}
		}
		if over == nil && time.Now().After(done) {
			return
		}
	}
}
