package main

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/check/steps"
	"zklock/internal/check/zktest"
	"zklock/internal/property"
	"zklock/internal/server/wiretap"
	reentrant "zklock/step05_reentrant"
	sharedlock "zklock/step06_shared_lock"
)

// sessionTimeout is short, so that many sessions end in a storm, and longer
// than an election takes.
const sessionTimeout = 2 * time.Second

// A kind is one of the four locks that stand in the storm.
type kind struct {
	property.Subject
	dir   string
	loops int // how many goroutines of a client use it
	oneIn int // one turn in so many is taken in the lock's other way; 0: it has none
}

var kinds = []kind{
	{steps.Of("4"), "/storm/step4", 1, 0},
	{steps.Cohort, "/storm/leased", 2, 0},
	{steps.Of("5"), "/storm/step5", 2, 0},
	{steps.Client, "/storm/zklock", 1, 0},
}

// trusted are the kinds that have to come through without a breach.
func trusted(kind int) bool { return kind == 1 }

// A line is what one client has of one lock: a session over a network of its own, in
// which faults happen.
type line struct {
	kind
	client, at   int // which client's, and where in kinds
	tap          *wiretap.Tap
	server       atomic.Value           // the only one that the client can reach; "": it can reach all
	inHold       chan (<-chan struct{}) // the end of a fault that is for the next hold
	session      zktest.Session
	usual, other zktest.Way
}

// open opens a line of a client to kinds[at].
func open(servers []string, client, at int) (l *line, err error) {
	l = &line{kind: kinds[at], client: client, at: at, tap: wiretap.New(), inHold: make(chan (<-chan struct{}))}
	if l.session, err = l.Open(servers, sessionTimeout, l.dial); err == nil {
		l.makeLock()
	}
	return l, err
}

func (l *line) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	if only, _ := l.server.Load().(string); only != "" {
		address = only
	}
	return l.tap.Dial(network, address, timeout)
}

func (l *line) makeLock() {
	usual, readers := l.Ways(l.session, l.dir)
	if readers != nil {
		l.other = *readers
	}
	l.usual = usual
}

// lives tells whether a session of the client has not ended. The servers have to
// agree to a write, even to one in vain.
func (l *line) lives(session int64) bool {
	err := l.session.Conn().Delete("/storm/nobody", -1)
	return errors.Is(err, zk.ErrNoNode) && l.session.Conn().SessionID() == session
}

// A wish is how a client wants the lock this time.
type wish struct {
	other bool          // step 5: in the line of this process; step 6: together with other readers
	again bool          // steps 5 and 6: enter twice
	wait  time.Duration // give up after it; 0: wait as long as it takes
}

// A grip is the lock held. Steps 5 and 6 end held when they lose it; nobody
// tells a holder of the others.
type grip struct {
	held    context.Context
	token   int64
	release func() error
}

// gaveUp tells whether an error is the one that the wish asked for.
func (w wish) gaveUp(err error) bool {
	if w.wait <= 0 {
		return false
	}
	isLate := errors.Is(err, context.DeadlineExceeded)
	isLocked := errors.Is(err, reentrant.ErrLocked) || errors.Is(err, sharedlock.ErrLocked)
	return isLate || isLocked
}

// lost tells whether an error of steps 5 and 6 says so.
func lost(err error) bool {
	return errors.Is(err, reentrant.ErrLost) || errors.Is(err, sharedlock.ErrLost)
}

// take takes the lock. The client's own lock cannot be given up.
func (l *line) take(w wish) (*grip, error) {
	way, ctx := l.usual, context.Background()
	if w.other {
		way = l.other
	}
	var held context.Context
	var err error
	switch {
	case w.wait == 0 || l.Name == steps.Client.Name:
		held, err = way.Lock(ctx)
	case way.TryLock != nil:
		held, err = way.TryLock(ctx, w.wait)
	default:
		ctx, cancel := context.WithTimeout(ctx, w.wait)
		defer cancel()
		held, err = way.Lock(ctx)
	}
	if errors.Is(err, zk.ErrDeadlock) { // a failed Unlock has left zk.Lock so, for ever
		l.makeLock()
	}
	if err != nil {
		return nil, err
	}
	unlock := func() error { return way.Unlock(held) }
	if way.Token == nil { // nobody ends such a hold
		return &grip{context.Background(), 0, unlock}, nil
	}
	token, _ := way.Token(held)
	if w.again {
		if _, err := way.Lock(held); err == nil {
			return &grip{held, token, func() error { return errors.Join(unlock(), unlock()) }}, nil
		}
	}
	return &grip{held, token, unlock}, nil
}
