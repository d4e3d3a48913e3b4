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
	open  func(servers []string, dial zk.Dialer, dir string) (*lock, error)
}

var kinds = []kind{
	{"step 4", "/storm/step4", 1, openStep4},
	{"step 5", "/storm/step5", 2, openStep5},
	{"step 6", "/storm/step6", 1, openStep6},
	{"zk.Lock", "/storm/zklock", 1, openZkLock},
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
	read   bool          // step 6: together with other readers
	cohort bool          // step 5: in the line of this process
	again  bool          // steps 5 and 6: enter twice
	wait   time.Duration // give up after it; 0: wait as long as it takes
}

// A grip is the lock held. Steps 5 and 6 end held when they lose it; nobody
// tells a holder of the others.
type grip struct {
	held    context.Context
	token   int64
	release func() error
}

// errGaveUp is what take returns to a client that wanted to wait no longer.
var errGaveUp = errors.New("gave up")

// gaveUp turns the error that a wish asked for into errGaveUp.
func (w wish) gaveUp(err error) error {
	asked := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, reentrant.ErrLocked) || errors.Is(err, sharedlock.ErrLocked)
	if w.wait > 0 && asked {
		return errGaveUp
	}
	return err
}

// lost tells whether an error of steps 5 and 6 says so.
func lost(err error) bool {
	return errors.Is(err, reentrant.ErrLost) || errors.Is(err, sharedlock.ErrLost)
}

func openStep4(servers []string, dial zk.Dialer, dir string) (*lock, error) {
	conn, err := connect(servers, dial)
	if err != nil {
		return nil, err
	}
	l := predecessorwatch.New(conn, dir)
	take := func(w wish) (*grip, error) {
		ctx := context.Background()
		if w.wait > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, w.wait)
			defer cancel()
		}
		err := l.Lock(ctx)
		return &grip{held: context.Background(), release: l.Unlock}, w.gaveUp(err)
	}
	return &lock{conn, conn.Close, take}, nil
}

// The client's own lock can neither be given up nor be asked for a moment only.
func openZkLock(servers []string, dial zk.Dialer, dir string) (*lock, error) {
	conn, err := connect(servers, dial)
	if err != nil {
		return nil, err
	}
	l := zk.NewLock(conn, dir, zk.WorldACL(zk.PermAll))
	take := func(wish) (*grip, error) {
		err := l.Lock()
		if errors.Is(err, zk.ErrDeadlock) { // a failed Unlock has left it so, for ever
			l = zk.NewLock(conn, dir, zk.WorldACL(zk.PermAll))
		}
		return &grip{held: context.Background(), release: l.Unlock}, err
	}
	return &lock{conn, conn.Close, take}, nil
}

func connect(servers []string, dial zk.Dialer) (*zk.Conn, error) {
	conn, _, err := zk.Connect(servers, sessionTimeout, zk.WithDialer(dial), zk.WithLogger(silence{}))
	return conn, err
}

type silence struct{}

func (silence) Printf(string, ...any) {}

func openStep5(servers []string, dial zk.Dialer, dir string) (*lock, error) {
	s, err := reentrant.Open(servers, sessionTimeout, reentrant.WithDialer(dial))
	if err != nil {
		return nil, err
	}
	l, c := reentrant.New(s, dir), reentrant.NewCohort(s, dir)
	plain := contextLock{l.Lock, l.TryLock, l.Unlock, reentrant.Token}
	cohort := contextLock{c.Lock, c.TryLock, c.Unlock, reentrant.Token}
	take := func(w wish) (*grip, error) {
		if w.cohort {
			return cohort.take(w)
		}
		return plain.take(w)
	}
	return &lock{s.Conn(), s.Close, take}, nil
}

func openStep6(servers []string, dial zk.Dialer, dir string) (*lock, error) {
	s, err := sharedlock.Open(servers, sessionTimeout, sharedlock.WithDialer(dial))
	if err != nil {
		return nil, err
	}
	l := sharedlock.New(s, dir)
	writer := contextLock{l.Lock, l.TryLock, l.Unlock, sharedlock.Token}
	reader := contextLock{l.RLock, l.TryRLock, l.RUnlock, sharedlock.Token}
	take := func(w wish) (*grip, error) {
		if w.read {
			return reader.take(w)
		}
		return writer.take(w)
	}
	return &lock{s.Conn(), s.Close, take}, nil
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
		return nil, w.gaveUp(err)
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
