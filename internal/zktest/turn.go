package zktest

import (
	"context"
	"fmt"
	"time"

	"zklock/internal/wiretap"
)

// A Turn is a member's call to Lock, in the background, and the hold that it returned.
type Turn struct {
	*Member
	mark   int
	cancel context.CancelFunc
	done   chan struct{}
	came   time.Time // when the call returned
	held   Hold
	work   context.Context // of the hold, made when the call returned
	err    error
}

// Start calls Lock.
func (m *Member) Start() *Turn { return m.Call(m.Lock) }

// StartIn is Start with the given context, such as a hold's for re-entry. The call ends when that
// context does, or the test.
func (m *Member) StartIn(ctx context.Context) *Turn { return m.CallIn(ctx, m.Lock) }

// CallIn is StartIn of another call, such as a TryLock.
func (m *Member) CallIn(ctx context.Context, lock func(context.Context) (Hold, error)) *Turn {
	return m.Call(func(call context.Context) (Hold, error) {
		both, cancel := context.WithCancel(ctx)
		defer context.AfterFunc(call, cancel)()
		return lock(both)
	})
}

// Acquire calls Lock, and returns when the member holds the lock.
func (m *Member) Acquire() *Turn {
	m.zoo.t.Helper()
	t := m.Start()
	t.Acquired()
	return t
}

// lastPatience is how long the end of a test waits for a call whose context has ended.
const lastPatience = 30 * time.Second

// Call is Start of another call, such as a TryLock. The end of the test cancels it.
func (m *Member) Call(lock func(context.Context) (Hold, error)) *Turn {
	ctx, cancel := context.WithCancel(m.zoo.Ctx)
	t := &Turn{Member: m, mark: m.Tap.Mark(), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(t.done)
		t.held, t.err = lock(ctx)
		t.came = time.Now()
		if t.held != nil {
			t.work = t.held.Context(m.zoo.Ctx)
		}
		m.zoo.Moved()
	}()
	m.zoo.t.Cleanup(func() { // before the client closes
		cancel()
		m.Tap.Restore() // so that a crashed client's call also returns
		select {
		case <-t.done:
		case <-time.After(lastPatience):
			m.zoo.t.Errorf("%s's call has not come back within %v, though its context has ended", m.Name, lastPatience)
		}
	})
	return t
}

// Go is Call for a client without a lock of its own, or for a call that returns no hold.
func (z *Zoo) Go(c *Client, call func(context.Context) error) *Turn {
	m := &Member{Client: c, zoo: z}
	return m.Call(func(ctx context.Context) (Hold, error) { return nil, call(ctx) })
}

// Returned reports whether the call has returned.
func (t *Turn) Returned() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// Err waits until the call has returned, and returns its error.
func (t *Turn) Err() error {
	t.zoo.t.Helper()
	select {
	case <-t.done:
	case <-t.zoo.Ctx.Done():
		t.zoo.t.Fatalf("timed out waiting for %s's Lock to return; its last request: %v: %v",
			t.Name, t.LastAsked(), context.Cause(t.zoo.Ctx))
	}
	return t.err
}

// Acquired returns once the call has returned with the lock.
func (t *Turn) Acquired() {
	t.zoo.t.Helper()
	if err := t.Err(); err != nil {
		t.zoo.t.Fatalf("%s: Lock: %v", t.Name, err)
	}
}

// Came is when the call returned with the lock.
func (t *Turn) Came() time.Time {
	t.zoo.t.Helper()
	t.Acquired()
	return t.came
}

// Held returns the hold, once the call has returned with it.
func (t *Turn) Held() Hold {
	t.zoo.t.Helper()
	t.Acquired()
	return t.held
}

// Context is the context of the hold for the story's work, once the call has returned with the hold.
func (t *Turn) Context() context.Context {
	t.zoo.t.Helper()
	t.Acquired()
	return t.work
}

// Unlock releases the hold, once the call has returned with it, and returns the error of that Unlock.
func (t *Turn) Unlock() error {
	t.zoo.t.Helper()
	return t.Held().Unlock()
}

// Release calls Unlock, which must succeed, once the call has returned.
func (t *Turn) Release() {
	t.zoo.t.Helper()
	if err := t.Unlock(); err != nil {
		t.zoo.t.Fatalf("%s: Unlock: %v", t.Name, err)
	}
}

// GiveUp ends the call's context, and does not wait until the call returns.
func (t *Turn) GiveUp() { t.cancel() }

// LastAsked lists the last requests of the member since the call, at most three.
func (t *Turn) LastAsked() []string {
	asked := t.Asked(t.mark)
	return asked[max(0, len(asked)-3):]
}

// Cancel ends the call's context, and returns the error of the call.
func (t *Turn) Cancel() error {
	t.zoo.t.Helper()
	t.cancel()
	return t.Err()
}

// Queued returns once the server has answered the call's create, a list, or a read of the lock's
// own path: a lock may have created its znode earlier, or create none while it waits.
func (t *Turn) Queued() {
	t.zoo.t.Helper()
	t.zoo.Await(fmt.Sprintf("%v's create to be answered", t.Name), func() bool {
		for _, f := range t.Tap.Since(t.mark) {
			isCreate := f.Op == wiretap.Create && f.Err != wiretap.NoNode
			isList := f.Op == wiretap.GetChildren
			isLook := f.Path == t.Path && (f.Op == wiretap.Exists || f.Op == wiretap.GetData)
			showsQueue := isCreate || isList || isLook
			if f.Kind == wiretap.Reply && showsQueue {
				return true
			}
		}
		return t.Returned()
	})
}

// Wait says how a call waits for the lock.
type Wait int

const (
	Returned Wait = iota // it does not wait: it has returned
	Silently             // with a watch that has not fired, and no request; or without a request for a long time
	Polling              // by sending the same requests repeatedly
)

func (w Wait) String() string { return [...]string{"returned", "waits silently", "polls"}[w] }

// GoString is what a failed assertion shows.
func (w Wait) GoString() string { return w.String() }

// Waits returns once the call has settled to wait, or has returned.
func (t *Turn) Waits() Wait {
	t.zoo.t.Helper()
	t.Queued()
	return t.settled(t.mark)
}

// StillWaits is Waits after all that has happened so far: the client has received every
// notification of it, and has polled again if it polls.
func (t *Turn) StillWaits() Wait {
	t.zoo.t.Helper()
	mark := t.Tap.Mark()
	t.zoo.Barrier(t.Client)
	how := t.settled(t.mark)
	if how == Polling {
		how = t.settled(mark)
	}
	return how
}

// How many looks in a row must find a call at rest.
const (
	withAWatch   = 15  // for 30 ms: a list with a watch may also be the one that shows its turn
	whateverItIs = 500 // for a second or more: it waits for something else
)

// longestRest is the least time for whateverItIs. It is shorter than the time between two writes
// with which a holder on the same session renews its lease: a fifth of SessionTimeout.
const longestRest = MortalTimeout

// idles returns a condition: whether the call has sent nothing in many looks.
func (t *Turn) idles(mark int) func() bool {
	idle := 0 // looks in a row without a new request
	asked, since := 0, time.Now()
	return func() bool {
		idle++
		if n := len(t.Asked(mark)); n != asked || !t.Tap.Idle() {
			asked, since, idle = n, time.Now(), 0
		}
		return idle > whateverItIs && time.Since(since) > longestRest
	}
}

// Rests returns a condition: whether the call waits, or polls, judged by the record since a Mark. It
// waits for something else than a watch if it sends nothing for a long time.
func (t *Turn) Rests(mark int) func() bool {
	idles := t.idles(mark)
	return func() bool {
		silently, polls := t.Tap.Waiting(mark)
		return idles() || silently || polls
	}
}

func (t *Turn) settled(mark int) (how Wait) {
	t.zoo.t.Helper()
	quiet := 0 // looks in a row at which the client waited silently
	idles := t.idles(mark)
	isSettled := func() bool {
		silently, polling := t.Tap.Waiting(mark)
		if quiet++; !silently {
			quiet = 0
		}
		isIdle := idles()
		switch {
		case t.Returned():
			how = Returned
		case isIdle:
			how = Silently
		case polling:
			how = Polling
		case quiet == withAWatch:
			how = Silently
		default:
			return false
		}
		return true
	}
	t.zoo.await(isSettled, func() {
		t.zoo.t.Fatalf("%s did not get the lock, and neither waits silently nor polls: "+
			"it has sent %d requests, the last: %v: %v",
			t.Name, len(t.Asked(mark)), t.LastAsked(), context.Cause(t.zoo.Ctx))
	})
	return how
}

// MustWait returns when the member waits silently, after all that has happened so far. It fails the
// test if the member got the lock, or polls.
func (t *Turn) MustWait(why string, args ...any) {
	t.zoo.t.Helper()
	t.Waits()
	if how := t.StillWaits(); how != Silently {
		t.zoo.t.Fatalf("%s %v (error: %v), but should wait silently; the reason: %s; the queue: %v",
			t.Name, how, t.err, fmt.Sprintf(why, args...), t.Queue())
	}
}
