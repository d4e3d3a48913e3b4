package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/rpc"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/goleak"

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

// A worker is one of the processes, with four clients.
type worker struct {
	process   int
	servers   []string
	store     *rpc.Client
	random    *rand.Rand
	finishing atomic.Bool
	leaving   atomic.Bool
	loops     sync.WaitGroup

	lines map[[2]int]*line // by client and kind
}

// A line is what one client has of one lock: a session over a network of its
// own, in which faults happen.
type line struct {
	client, kind int
	tap          *wiretap.Tap
	server       atomic.Value           // the only one that the client can reach; "": it can reach all
	inHold       chan (<-chan struct{}) // the end of a fault that is for the next hold

	mu   sync.Mutex
	lock *lock
}

// work is a client process's life. It ends when the conductor says so.
func work(servers, args []string) {
	process, _ := strconv.Atoi(args[0])
	seed, _ := strconv.ParseUint(args[1], 10, 64)
	store, err := rpc.Dial("tcp", args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "reach the store:", err)
		os.Exit(1)
	}
	w := &worker{
		process: process, servers: servers, store: store,
		random: rand.New(rand.NewPCG(seed, uint64(process))), lines: map[[2]int]*line{},
	}
	go w.watchForStalls()
	for c := process * perProcess; c < (process+1)*perProcess; c++ {
		for k, kind := range kinds {
			l := &line{client: c, kind: k, tap: wiretap.New(), inHold: make(chan (<-chan struct{}))}
			if l.lock, err = w.open(l); err != nil {
				fmt.Fprintf(os.Stderr, "client %d opens %s: %v\n", c, kind.name, err)
				os.Exit(1)
			}
			w.lines[[2]int{c, k}] = l
			for range kind.loops {
				random := rand.New(rand.NewPCG(w.random.Uint64(), 0))
				w.loops.Go(func() { w.loop(l, random) })
			}
		}
	}
	w.obey()
}

func (w *worker) call(method string, args, reply any) {
	if err := w.store.Call("Storm."+method, args, reply); err != nil {
		os.Exit(1) // the conductor is gone
	}
}

func (w *worker) tell(method string, args any) {
	var nothing bool
	w.call(method, args, &nothing)
}

func (w *worker) open(l *line) (*lock, error) {
	return kinds[l.kind].open(w.servers, l.dial, kinds[l.kind].dir)
}

func (l *line) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	if only, _ := l.server.Load().(string); only != "" {
		address = only
	}
	return l.tap.Dial(network, address, timeout)
}

// present is the lock that the client uses now.
func (l *line) present() *lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lock
}

// replace gives the client another lock in the place of one that is stuck,
// unless its other goroutine has done so.
func (w *worker) replace(l *line, stuck *lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lock != stuck {
		return
	}
	go stuck.close()
	for !w.finishing.Load() {
		if lock, err := w.open(l); err == nil {
			l.lock = lock
			return
		}
	}
}

// watchForStalls tells when this process did not run for a while.
func (w *worker) watchForStalls() {
	for last := time.Now(); !w.leaving.Load(); {
		time.Sleep(5 * time.Millisecond)
		now := time.Now()
		if now.Sub(last) > 50*time.Millisecond {
			w.tell("Stalled", Stall{w.process, last, now})
		}
		last = now
	}
}

// loop takes the lock, again and again, as a user would.
func (w *worker) loop(l *line, random *rand.Rand) {
	named := int64(0)
	for !w.finishing.Load() {
		lock := l.present()
		if id := lock.conn.SessionID(); id != named {
			w.tell("Session", Name{l.client, id})
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
func (w *worker) turn(l *line, lock *lock, random *rand.Rand) bool {
	wish := wish{read: random.IntN(3) == 0 && l.kind == 2, cohort: random.IntN(2) == 0, again: random.IntN(10) == 0}
	if random.IntN(10) == 0 {
		wish.wait = time.Duration(1+random.IntN(200)) * time.Millisecond
	}
	asked := time.Now()
	var grip *grip
	var err error
	if !within(hung, func() { grip, err = lock.take(wish) }) {
		w.tell("TurnedAway", Turn{l.kind, l.client, "a call did not come back"})
		return false
	}
	switch {
	case errors.Is(err, errGaveUp):
		w.tell("TurnedAway", Turn{l.kind, l.client, ""})
		return true
	case err != nil:
		if l.present() == lock { // and not closed by replace
			w.tell("TurnedAway", Turn{l.kind, l.client, err.Error()})
		}
		return true
	}
	session := lock.conn.SessionID()
	h := Hold{Kind: l.kind, Client: l.client, Read: wish.read, Waited: time.Since(asked)}
	w.work(l, &h, grip, random)
	h.Unlocked = time.Now()
	lived := false
	back := within(hung, func() {
		err = grip.release()
		for range 2 { // a user tries again, and then gives up
			if err != nil && !trusted(l.kind) {
				err = grip.release()
			}
		}
		lived = lock.conn.SessionID() == session && (err == nil || lock.lives(session))
	})
	h.Lived = back && lived
	if !h.From.IsZero() {
		w.tell("Done", h)
	}
	failure := ""
	switch {
	case !back:
		failure = "a release did not come back"
	case !trusted(l.kind):
	case err != nil && !lost(err):
		failure = "a release failed: " + err.Error()
	case err == nil && h.Lost:
		failure = "the release of a lock that was lost does not say so"
	}
	if failure != "" {
		w.tell("TurnedAway", Turn{l.kind, l.client, failure})
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
func (w *worker) work(l *line, h *Hold, g *grip, random *rand.Rand) {
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
	var value Value
	ask := func(method string) bool {
		value = Value{}
		w.call(method, access, &value)
		if value.Refused && alive() {
			h.RefusedAlive = h.Until
		}
		return !value.Refused
	}
	if !ask("Read") {
		return
	}
	access.Base = value.Number

	var over <-chan struct{}
	select {
	case over = <-l.inHold:
	default:
	}
	for until := time.Now().Add(time.Duration(random.IntN(10)) * time.Millisecond); ; time.Sleep(time.Millisecond) {
		if !alive() {
			break
		}
		if over != nil {
			select {
			case <-over:
				over = nil
			default:
			}
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
		h.Wrote = ask("Write")
	}
	alive()
}

// obey carries out orders until there are no more.
func (w *worker) obey() {
	for {
		var o Order
		w.call("Next", w.process, &o)
		switch o.What {
		case finish:
			w.finishing.Store(true)
			go func() {
				w.loops.Wait()
				w.tell("Idle", w.process)
			}()
		case leave:
			w.leave()
			return
		default:
			go w.fault(o)
		}
	}
}

// leave closes all sessions and looks for goroutines that stay.
func (w *worker) leave() {
	w.leaving.Store(true)
	var closing sync.WaitGroup
	for _, l := range w.lines {
		closing.Go(func() {
			if !within(10*time.Second, l.lock.close) {
				w.tell("Left", Turn{l.kind, l.client, "Close did not come back"})
			}
		})
	}
	closing.Wait()
	for deadline := time.Now().Add(10 * time.Second); ; {
		err := goleak.Find(goleak.IgnoreAnyFunction("net/rpc.(*Client).input"),
			goleak.IgnoreAnyFunction("zklock/internal/zktest.Child.func1"))
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			w.tell("Left", Turn{-1, w.process * perProcess, err.Error()})
			return
		}
	}
}
