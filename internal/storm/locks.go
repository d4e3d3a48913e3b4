package main

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	predecessorwatch "zklock/step04_predecessor_watch"
	reentrant "zklock/step05_reentrant"
	sharedlock "zklock/step06_shared_lock"
)

// sessionTimeout is short, so that many sessions end in a storm, and longer
// than an election takes.
const sessionTimeout = 2 * time.Second

// A kind is one of the four locks that stand in the storm.
type kind struct {
	name  string
	dir   string
	loops int // how many goroutines of a client use it
	other int // one turn in so many is taken in the lock's other way, if it has one
	open  func(servers []string, dial zk.Dialer, dir string) (*lock, error)
}

var kinds = []kind{
	{"step 4", "/storm/step4", 1, 1, openStep4},
	{"step 5", "/storm/step5", 2, 2, openStep5},
	{"step 6", "/storm/step6", 1, 3, openStep6},
	{"zk.Lock", "/storm/zklock", 1, 1, openZkLock},
}

// trusted are the kinds that have to come through without a breach.
func trusted(kind int) bool { return kind == 1 || kind == 2 }

// A lock is one client's, over a session of its own.
type lock struct {
	conn  *zk.Conn
	close func()
	take  func(wish) (*grip, error)
}

// lives tells whether a session of the lock has not ended. The servers have to
// agree to a write, even to one in vain.
func (l *lock) lives(session int64) bool {
	err := l.conn.Delete("/storm/nobody", -1)
	return errors.Is(err, zk.ErrNoNode) && l.conn.SessionID() == session
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
	return w.wait > 0 && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, reentrant.ErrLocked) || errors.Is(err, sharedlock.ErrLocked))
}

// lost tells whether an error of steps 5 and 6 says so.
func lost(err error) bool {
	return errors.Is(err, reentrant.ErrLost) || errors.Is(err, sharedlock.ErrLost)
}

func openStep4(servers []string, dial zk.Dialer, dir string) (*lock, error) {
	return overConn(servers, dial, func(conn *zk.Conn) (func(context.Context) error, func() error) {
		l := predecessorwatch.New(conn, dir)
		return l.Lock, l.Unlock
	})
}

// The client's own lock cannot be given up.
func openZkLock(servers []string, dial zk.Dialer, dir string) (*lock, error) {
	return overConn(servers, dial, func(conn *zk.Conn) (func(context.Context) error, func() error) {
		l := zk.NewLock(conn, dir, zk.WorldACL(zk.PermAll))
		lock := func(context.Context) error {
			err := l.Lock()
			if errors.Is(err, zk.ErrDeadlock) { // a failed Unlock has left it so, for ever
				l = zk.NewLock(conn, dir, zk.WorldACL(zk.PermAll))
			}
			return err
		}
		return lock, func() error { return l.Unlock() }
	})
}

// overConn is a lock that is made from a connection, and ends no hold by itself.
func overConn(servers []string, dial zk.Dialer, methods func(*zk.Conn) (lock func(context.Context) error, unlock func() error)) (*lock, error) {
	conn, _, err := zk.Connect(servers, sessionTimeout, zk.WithDialer(dial), zk.WithLogger(noLog{}))
	if err != nil {
		return nil, err
	}
	take, release := methods(conn)
	return &lock{conn, conn.Close, func(w wish) (*grip, error) {
		ctx := context.Background()
		if w.wait > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, w.wait)
			defer cancel()
		}
		return &grip{held: context.Background(), release: release}, take(ctx)
	}}, nil
}

// noLog drops the client's own log.
type noLog struct{}

func (noLog) Printf(string, ...any) {}

func openStep5(servers []string, dial zk.Dialer, dir string) (*lock, error) {
	s, err := reentrant.Open(servers, sessionTimeout, reentrant.WithDialer(dial))
	if err != nil {
		return nil, err
	}
	l, c := reentrant.New(s, dir), reentrant.NewCohort(s, dir)
	return overSession(s, contextLock{l.Lock, l.TryLock, l.Unlock, reentrant.Token},
		contextLock{c.Lock, c.TryLock, c.Unlock, reentrant.Token}), nil
}

func openStep6(servers []string, dial zk.Dialer, dir string) (*lock, error) {
	s, err := sharedlock.Open(servers, sessionTimeout, sharedlock.WithDialer(dial))
	if err != nil {
		return nil, err
	}
	l := sharedlock.New(s, dir)
	return overSession(s, contextLock{l.Lock, l.TryLock, l.Unlock, sharedlock.Token},
		contextLock{l.RLock, l.TryRLock, l.RUnlock, sharedlock.Token}), nil
}

// overSession is a lock of step 5 or 6, with its other way of taking it.
func overSession(s interface {
	Conn() *zk.Conn
	Close()
}, usual, other contextLock) *lock {
	return &lock{s.Conn(), s.Close, func(w wish) (*grip, error) {
		if w.other {
			return other.take(w)
		}
		return usual.take(w)
	}}
}

// A contextLock is a lock whose hold is a context, as in steps 5 and 6.
type contextLock struct {
	lock   func(context.Context) (context.Context, error)
	try    func(context.Context, time.Duration) (context.Context, error)
	unlock func(context.Context) error
	token  func(context.Context) (int64, bool)
}

func (l contextLock) take(w wish) (*grip, error) {
	held, err := context.Context(nil), error(nil)
	if w.wait > 0 {
		held, err = l.try(context.Background(), w.wait)
	} else {
		held, err = l.lock(context.Background())
	}
	if err != nil {
		return nil, err
	}
	token, _ := l.token(held)
	release := func() error { return l.unlock(held) }
	if w.again {
		if _, err := l.lock(held); err == nil {
			release = func() error { return errors.Join(l.unlock(held), l.unlock(held)) }
		}
	}
	return &grip{held, token, release}, nil
}
