package zktest

import (
	"context"

	"zklock/internal/wiretap"
)

// An Attempt is a client's call to Lock, running in the background.
type Attempt struct {
	zoo    *Zoo
	client *Client
	mark   int
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// Go starts a call to Lock in the background. The test's end cancels it.
func (z *Zoo) Go(c *Client, lock func(context.Context) error) *Attempt {
	ctx, cancel := context.WithCancel(z.Ctx)
	a := &Attempt{zoo: z, client: c, mark: c.Tap.Mark(), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.err = lock(ctx)
	}()
	z.t.Cleanup(func() { // before the client closes
		cancel()
		c.Tap.Restore() // a crashed client's call comes back, too
		<-a.done
	})
	return a
}

// Returned tells whether the call has come back.
func (a *Attempt) Returned() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// Err returns what the call answered, once it has come back.
func (a *Attempt) Err() error {
	a.zoo.t.Helper()
	AwaitChan(a.zoo, a.client.Name+"'s Lock to return", a.done)
	return a.err
}

// Acquired returns once the call has come back with the lock.
func (a *Attempt) Acquired() {
	a.zoo.t.Helper()
	if err := a.Err(); err != nil {
		a.zoo.t.Fatalf("%s: Lock: %v", a.client.Name, err)
	}
}

// Cancel ends the call's context and returns what the call answered.
func (a *Attempt) Cancel() error {
	a.zoo.t.Helper()
	a.cancel()
	return a.Err()
}

// Queued returns once the server has answered the call's create, or a list: a
// lock may have made its znode earlier.
func (a *Attempt) Queued() {
	a.zoo.t.Helper()
	a.zoo.Await(a.client.Name+"'s create to be answered", func() bool {
		for _, f := range a.client.Tap.Since(a.mark) {
			if f.Kind == wiretap.Reply && (f.Op == wiretap.Create && f.Err != wiretap.NoNode || f.Op == wiretap.GetChildren) {
				return true
			}
		}
		return a.Returned()
	})
}

// Wait says how a call waits for the lock.
type Wait int

const (
	Returned Wait = iota // it does not: it has come back
	Silently             // with a watch that has not fired, and no request
	Polling              // by the same request again and again
)

func (w Wait) String() string { return [...]string{"returned", "waits silently", "polls"}[w] }

// Waits returns once the call has settled down to wait, or has come back.
func (a *Attempt) Waits() Wait {
	a.zoo.t.Helper()
	a.Queued()
	return a.settled(a.mark)
}

// StillWaits is Waits after all that has happened so far: the client has
// received every notification of it, and has looked again if it polls.
func (a *Attempt) StillWaits() Wait {
	a.zoo.t.Helper()
	mark := a.client.Tap.Mark()
	a.zoo.Barrier(a.client)
	how := a.settled(a.mark)
	if how == Polling {
		how = a.settled(mark)
	}
	return how
}

func (a *Attempt) settled(mark int) (how Wait) {
	a.zoo.t.Helper()
	quiet := 0 // looks in a row at which the client waited silently
	a.zoo.Await(a.client.Name+" to be let in or to settle down to wait", func() bool {
		silently, polling := a.client.Tap.Waiting(mark)
		if quiet++; !silently {
			quiet = 0
		}
		switch {
		case a.Returned():
			how = Returned
		case polling:
			how = Polling
		case quiet == 15: // for 30 ms: a list with a watch may also be what lets it in
			how = Silently
		default:
			return false
		}
		return true
	})
	return how
}
