package storm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/process"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
	"zklock/leased"
)

const role = "client of the storm"

// Client turns this process into a client process if a storm has started it as one. In any other process
// it does nothing.
func Client() {
	process.Role(role, func(conductor process.Call) any {
		return &worker{conductor: conductor, lines: map[int][]*line{}}
	})
}

// A worker is a client process. The conductor calls its exported methods.
type worker struct {
	conductor process.Call
	finishing atomic.Bool
	running   sync.WaitGroup
	lines     map[int][]*line // by client
	pulse     pulse
}

// A line is one client's session for one lock, over a network of its own, in which faults happen.
type line struct {
	lock
	at, client int // the lock, as an index in locks; and the client
	tap        *wiretap.Tap
	session    zktest.Session
	way        zktest.Way
	users      atomic.Int32 // goroutines that use it
}

// An Assignment gives a client process its number and its servers.
type Assignment struct {
	Process int
	Seed    uint64
	Servers []string
}

// Begin opens all sessions, and starts the clients.
func (w *worker) Begin(me Assignment, _ *[]int) error {
	go w.pulse.beat()
	random := rand.New(rand.NewPCG(me.Seed, uint64(100+me.Process)))
	for i := range perProcess {
		client := me.Process*perProcess + i
		for at, lock := range locks {
			l := &line{lock: lock, at: at, client: client, tap: wiretap.New()}
			session, err := lock.Open(me.Servers, sessionTimeout, l.tap.Dial)
			if err != nil {
				return fmt.Errorf("client %d opens %s: %w", client, lock.Name, err)
			}
			l.session = session
			l.way, _ = lock.Ways(session, directory(at))
			w.lines[client] = append(w.lines[client], l)
			for range lock.users {
				its := rand.New(rand.NewPCG(random.Uint64(), 0))
				l.users.Add(1)
				w.running.Go(func() { w.use(l, its) })
			}
		}
	}
	return nil
}

// Fault makes a fault of a client.
func (w *worker) Fault(f Fault, _ *bool) error {
	for _, l := range w.lines[f.Client] {
		for _, kind := range clientFaults {
			if kind.name == f.Name {
				kind.strike(l.tap)
			}
		}
	}
	time.Sleep(f.For)
	for _, l := range w.lines[f.Client] {
		l.tap.Restore()
	}
	return nil
}

// Finish returns when all clients have ended. It returns the locks whose calls have not returned.
func (w *worker) Finish(_ bool, hung *[]int) error {
	w.finishing.Store(true)
	atRest := make(chan bool)
	go func() {
		w.running.Wait()
		close(atRest)
	}()
	select {
	case <-atRest:
	case <-time.After(time.Minute):
	}
	for _, lines := range w.lines {
		for _, l := range lines {
			for range l.users.Load() {
				*hung = append(*hung, l.at)
			}
		}
	}
	return nil
}

// tell calls the conductor.
func (w *worker) tell(method string, args, answer any) {
	if err := w.conductor(method, args, answer); err != nil {
		os.Exit(1) // the conductor has ended
	}
}

// A Turn is one call of Lock and, if the call succeeds, the hold, as the client saw it.
type Turn struct {
	Lock, Client int
	Called       time.Time // Lock was called
	Failure      string    // of Lock
	From, Until  time.Time // at both times it held the lock, as far as it could know; zero: it never did
	Ended        time.Time // after Until: it no longer holds the lock; zero: this is not known
	Told         time.Time // when it was notified that the lock was lost; zero: it was not
	Why          string    // the reason that the lock gave
	Lived        bool      // its session had not ended when Unlock was called

	Base         int64 // the number that it has read,
	Read, Wrote  time.Time
	RefusedAlive bool // the store refused it although it held the lock, as far as it could know
}

// use takes the lock repeatedly until the storm is over.
func (w *worker) use(l *line, random *rand.Rand) {
	defer l.users.Add(-1)
	for !w.finishing.Load() {
		t := Turn{Lock: l.at, Client: l.client, Called: time.Now()}
		mayGiveUp := l.way.HasHolds() && random.IntN(10) == 0
		held, err := l.take(mayGiveUp, random)
		if err == nil {
			session := l.session.Conn().SessionID()
			w.hold(l, &t, held, random)
			w.release(l, &t, held, session)
		} else if !mayGiveUp {
			t.Failure = err.Error()
		}
		w.tell("Note", t, new(bool))
		time.Sleep(time.Duration(random.IntN(10)) * time.Millisecond)
	}
}

// take takes the lock. It waits without a limit, or gives up soon.
func (l *line) take(mayGiveUp bool, random *rand.Rand) (held zktest.Hold, err error) {
	if mayGiveUp {
		soon := time.Duration(random.IntN(200)) * time.Millisecond
		waiting, stop := context.WithTimeout(context.Background(), soon)
		defer stop()
		return l.way.Lock(waiting)
	}
	held, err = l.way.Lock(context.Background())
	if errors.Is(err, zk.ErrDeadlock) { // a failed Unlock leaves zk.Lock in this state forever
		l.way, _ = l.Ways(l.session, directory(l.at))
	}
	return held, err
}

// One of this many turns is long: it lasts while there is a fault. The other turns are short.
const (
	oneInIsLong = 10
	longest     = 4 * sessionTimeout
)

// hold adds one to the number, and holds the lock for a while.
func (w *worker) hold(l *line, t *Turn, held zktest.Hold, random *rand.Rand) {
	life := held.Context(context.Background()) // ends with the hold
	if !w.holds(t, life) {
		return
	}
	t.From = t.Until
	isLong := random.IntN(oneInIsLong) == 0
	use := Use{Lock: l.at, Client: l.client, Server: l.session.Conn().Server(), IsLong: isLong}
	use.Token = held.Token()
	t.Read = time.Now()
	answer := w.ask(use)
	if answer.Refused {
		t.RefusedAlive = w.holds(t, life)
		return
	}
	t.Base = answer.Number
	w.work(t, life, isLong)
	if !t.Told.IsZero() {
		// The holder does not stop at once. While its session lives, no client may get the lock before Unlock.
		time.Sleep(time.Duration(random.Int64N(int64(sessionTimeout / 2))))
		isCareful := random.IntN(2) == 0
		if isCareful {
			return
		}
	}
	use.Write, use.Base = true, t.Base
	if w.ask(use).Refused {
		t.RefusedAlive = w.holds(t, life)
	} else {
		t.Wrote = time.Now()
	}
}

// work takes some milliseconds. If it is long, it takes a second, and then until no fault affects the
// client, but not forever. It ends at once when the holder is notified that the lock is lost.
func (w *worker) work(t *Turn, life context.Context, isLong bool) {
	began, atLeast := time.Now(), 3*time.Millisecond
	if isLong {
		atLeast = time.Second
	}
	for w.holds(t, life) && time.Since(began) < longest {
		time.Sleep(time.Millisecond)
		if time.Since(began) < atLeast {
			continue
		}
		befallen := false
		if isLong {
			w.tell("Befallen", t.Client, &befallen)
		}
		if !befallen {
			return
		}
	}
}

func (w *worker) ask(u Use) (answer Answer) {
	w.tell("Use", u, &answer)
	return answer
}

// holds reports whether the holder may believe that it has the lock, and records when.
func (w *worker) holds(t *Turn, life context.Context) bool {
	now := time.Now()
	w.pulse.settle()
	if life.Err() == nil {
		t.Until = now
		return true
	}
	if t.Told.IsZero() {
		t.Told, t.Why = now, why(context.Cause(life))
	}
	return false
}

// notSaid is the reason for a lock that gives none.
const notSaid = "the lock does not say"

// why returns the reason that a lock gives for its loss.
func why(lost error) string {
	var reasoned *leased.LostError
	if !errors.As(lost, &reasoned) {
		return notSaid
	}
	return string(reasoned.Reason)
}

// release calls Unlock, and records until when no other client may have had the lock: until Unlock was called,
// if the session lived, otherwise until the holder last believed that it had the lock.
func (w *worker) release(l *line, t *Turn, held zktest.Hold, session int64) {
	const tries = 3 // a user would also retry, and then give up
	called := time.Now()
	err := held.Unlock()
	for try := 1; try < tries && err != nil && !l.way.HasHolds(); try++ {
		err = held.Unlock()
	}
	if t.From.IsZero() {
		return
	}
	released := err == nil && l.session.Conn().SessionID() == session
	t.Lived = released || l.lives(session)
	if t.Lived {
		t.Until = called
	}
	isOver := err == nil || !t.Lived
	if isOver {
		t.Ended = time.Now()
	}
}

// lives reports whether a session has not ended. A majority of the servers has to answer, so lives makes a
// write, which changes nothing.
func (l *line) lives(session int64) bool {
	for range 100 {
		err := l.session.Conn().Delete("/storm/nobody", -1)
		if l.session.Conn().SessionID() != session {
			return false
		}
		if errors.Is(err, zk.ErrNoNode) {
			return true
		}
		time.Sleep(100 * time.Millisecond)
	}
	return false
}

// A pulse records when this process did not run: it was paused, or the machine was busy. A process that does
// not run cannot be notified. So the storm checks what a holder believes only when the process has run for a
// moment.
type pulse struct{ lastBeat, stoodStill atomic.Int64 } // in Unix nanoseconds

const (
	longBetweenBeats = 50 * time.Millisecond
	moment           = 100 * time.Millisecond
)

func (p *pulse) beat() {
	for {
		now := time.Now().UnixNano()
		last := p.lastBeat.Swap(now)
		if time.Duration(now-last) > longBetweenBeats {
			p.stoodStill.Store(now)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// settle returns when the process has run for a moment.
func (p *pulse) settle() {
	for {
		now := time.Now().UnixNano()
		isBeating := time.Duration(now-p.lastBeat.Load()) < longBetweenBeats
		hasRun := time.Duration(now-p.stoodStill.Load()) > moment
		if isBeating && hasRun {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}
