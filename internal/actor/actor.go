// Package actor is a client of a lock in a process of its own, which does what its
// director asks, and tells it all: what it believes of itself, and each frame on its
// line, which goes on when the director lets it.
package actor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/process"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// A Lock is how a client comes to a lock: it opens a session, and finds in it the
// ways to take the lock at a path, to write and, if not nil, to read.
type Lock struct {
	Open func(servers []string, timeout time.Duration, dial zk.Dialer) (zktest.Session, error)
	Ways func(s zktest.Session, path string) (write zktest.Way, read *zktest.Way)
}

// Role makes a process that was started in this role a client of the lock.
func (l Lock) Role(name string) {
	process.Role(name, func(director process.Call) any {
		return &Actor{lock: l, director: director, tap: wiretap.New()}
	})
}

// An Address is where a client finds its lock.
type Address struct {
	Servers []string
	Timeout time.Duration
	Path    string
}

// A Word is what a client believes of itself from now on.
type Word struct {
	Mood  string
	Said  string // an error, or empty
	Token int64  // of its hold, if that has one
}

// The moods besides those that a call to the lock ends with.
const (
	Releases = "releases"
	Told     = "told that it lost the lock"
)

// A Passage is a frame on its way.
type Passage struct {
	wiretap.Frame
	Watched []string // with a SetWatches: the paths
	Session int64    // that the client has; 0: none yet
}

// IsProof tells, by its path, the write that changes nothing with which steps 5 and 6
// prove a session: no part of what the lock does.
func IsProof(path string) bool { return strings.HasPrefix(path, "/zklock-nobody-") }

// IsFree tells whether a frame does not wait for its director: it is of the session, or
// the proof of one, and no part of what the lock does.
func IsFree(f wiretap.Frame) bool { return f.IsOfSession() || IsProof(f.Path) }

// An Actor is the client. The director calls its exported methods. Its director has
// the methods Pass of a Passage, Becomes of a Word, and Put of a token.
type Actor struct {
	lock     Lock
	director process.Call
	tap      *wiretap.Tap
	session  zktest.Session
	conn     atomic.Pointer[zk.Conn]
	write    zktest.Way
	read     *zktest.Way

	mu      sync.Mutex
	mood    string
	way     *zktest.Way // of its last hold
	held    zktest.Hold // that hold; nil: there was none
	entries int         // of the hold
	giveUp  func()      // nil: it does not wait
}

// Begin joins a lock, and tells whether it has a way to read.
func (a *Actor) Begin(place Address, reads *bool) (err error) {
	pass := func(f wiretap.Frame) {
		p := Passage{Frame: f}
		if f.Op == wiretap.SetWatches {
			p.Watched = a.tap.Watched()
		}
		if conn := a.conn.Load(); conn != nil {
			p.Session = conn.SessionID()
		}
		_ = a.director("Pass", p, new(bool))
	}
	a.tap.Gate(pass, IsFree)
	if a.session, err = a.lock.Open(place.Servers, place.Timeout, a.tap.Dial); err != nil {
		return err
	}
	conn := a.session.Conn()
	a.conn.Store(conn)
	for late := time.Now().Add(zktest.Patience); conn.State() != zk.StateHasSession; time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			return errors.New("no server gives it a session")
		}
	}
	a.write, a.read = a.lock.Ways(a.session, place.Path)
	*reads = a.read != nil
	a.mu.Lock()
	defer a.mu.Unlock()
	a.becomes(zktest.MoodIdle, nil)
	return nil
}

// becomes tells the director of a mood. The caller holds mu.
func (a *Actor) becomes(mood string, err error) {
	a.mood = mood
	w := Word{Mood: mood}
	if err != nil {
		w.Said = err.Error()
	}
	if Believes(a.mood) && a.held != nil {
		w.Token = a.held.Token()
	}
	_ = a.director("Becomes", w, new(bool))
}

// Believes tells whether a client in this mood takes the lock for its own.
func Believes(mood string) bool { return mood == zktest.MoodHolds || mood == zktest.MoodReads }

// Do does what it is asked to. Calls that wait go on when it has returned.
func (a *Actor) Do(what string, _ *bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch what {
	case "lock":
		return a.take(&a.write, zktest.MoodHolds, nil)
	case "read":
		if a.read == nil {
			return errors.New("this lock has no readers")
		}
		return a.take(a.read, zktest.MoodReads, nil)
	case "again":
		if !Believes(a.mood) {
			return errors.New("it does not hold the lock")
		}
		return a.take(a.way, a.mood, a.held)
	case "giveup":
		if a.giveUp == nil {
			return errors.New("it does not wait")
		}
		a.giveUp()
	case "unlock":
		return a.unlock()
	case "put":
		if a.held == nil {
			return errors.New("it has not held the lock")
		}
		return a.director("Put", a.held.Token(), new(bool))
	case "losecreate":
		a.tap.LoseReply(wiretap.Create, 1)
	case "losedelete":
		a.tap.LoseReply(wiretap.Delete, 1)
	case "cut":
		a.tap.Cut()
	case "mend":
		a.tap.Restore()
	default:
		return fmt.Errorf("it does not know what %q is", what)
	}
	return nil
}

// take calls a way's Lock in the background: for a new hold, or, with a hold, to enter
// that once more. It can be given up.
func (a *Actor) take(way *zktest.Way, mood string, hold zktest.Hold) error {
	again := hold != nil
	ctx := context.Background()
	switch {
	case a.giveUp != nil:
		return errors.New("it waits already")
	case !again && Believes(a.mood):
		return errors.New("it holds the lock already")
	case !again:
		a.becomes(zktest.MoodWaits, nil)
	default:
		ctx = hold.Context()
	}
	ctx, cancel := context.WithCancel(ctx)
	given := false
	a.giveUp = func() { given = true; cancel() }
	go func() {
		held, err := way.Lock(ctx)
		a.mu.Lock()
		defer a.mu.Unlock()
		a.giveUp = nil
		stillHeld := a.held == hold && a.mood == mood
		switch {
		case given && errors.Is(err, context.Canceled):
			if a.mood == zktest.MoodWaits {
				a.becomes(zktest.MoodIdle, nil)
			}
		case again && !stillHeld: // there is nothing to enter any more
		case err != nil:
			a.becomes(zktest.MoodFailed, err)
		case again:
			a.entries++
			a.becomes(mood, nil)
		default:
			a.way, a.held, a.entries = way, held, 1
			a.becomes(mood, nil)
			go a.hears(held)
		}
	}()
	return nil
}

// hears waits for the end of a hold that is lost.
func (a *Actor) hears(held zktest.Hold) {
	<-held.Context().Done()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held == held && Believes(a.mood) {
		a.becomes(Told, context.Cause(held.Context()))
	}
}

// unlock calls Unlock, also without a hold: that is refused, if the lock is any good.
func (a *Actor) unlock() error {
	if a.mood == Releases {
		return errors.New("it calls Unlock already")
	}
	mood, held := a.mood, a.held
	unlock := a.write.Unlock // of who has never held the lock
	if held != nil {
		unlock = func() error { return held.Unlock(context.Background()) }
	}
	if unlock == nil {
		return errors.New("it has no hold, and only a hold can unlock")
	}
	if mood != zktest.MoodWaits {
		a.becomes(Releases, nil)
	}
	go func() {
		err := unlock()
		a.mu.Lock()
		defer a.mu.Unlock()
		switch {
		case a.mood != Releases: // it still waits, or waits no more
			if err != nil {
				a.becomes(a.mood, err)
			}
		case err != nil && mood != Told:
			a.becomes(zktest.MoodFailed, err)
		case err == nil && a.entries > 1:
			a.entries--
			a.becomes(mood, nil)
		default:
			a.entries = 0
			a.becomes(zktest.MoodIdle, err)
		}
	}()
	return nil
}

// Leave ends the session.
func (a *Actor) Leave(bool, *bool) error {
	if a.session != nil {
		a.tap.Restore()
		a.session.Close()
	}
	return nil
}
