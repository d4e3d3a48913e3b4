package lockcheck

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/zktest"
)

// Holder is what steps 5 and 6 offer: the context that Lock returns is the
// hold.
type Holder interface {
	Lock(context.Context) (context.Context, error)
	Unlock(context.Context) error
}

// sharer is what step 6 offers besides.
type sharer interface {
	RLock(context.Context) (context.Context, error)
	RUnlock(context.Context) error
}

// A Session is what Open of steps 5 and 6 returns.
type Session interface {
	Conn() *zk.Conn
	Close()
}

// OverSession makes a Subject of a lock that is made from a session of its own
// kind and a path.
func OverSession[S Session, L Holder](name string,
	open func(servers []string, timeout time.Duration, dial zk.Dialer) (S, error),
	newLock func(S, string) L, token func(context.Context) (int64, bool)) Subject {
	return Subject{name, func(z *zktest.Zoo, client string, timeout time.Duration, path string) (*zktest.Client, Contender) {
		var session S
		c := z.ConnectWith(client, func(dial zk.Dialer) (*zk.Conn, func(), error) {
			var err error
			if session, err = open(z.Servers(), timeout, dial); err != nil {
				return nil, nil, err
			}
			return session.Conn(), session.Close, nil
		})
		return c, contexts(newLock(session, path), token)
	}}
}

// contexts keeps the hold's context for stories that tell of one holder a
// client: Lock and Unlock, as in steps 1 to 4.
func contexts(l Holder, token func(context.Context) (int64, bool)) Contender {
	held := make(chan context.Context, 1)
	held <- context.Background()
	keep := func(h context.Context, err error) error {
		if err == nil {
			<-held
			held <- h
		}
		return err
	}
	lock := func(ctx context.Context) error { return keep(l.Lock(ctx)) }
	now := func() context.Context { h := <-held; held <- h; return h }
	c := Contender{
		Lock:   lock,
		Unlock: func() error { return l.Unlock(now()) },
		Again:  func(context.Context) error { return lock(now()) },
		Held:   now,
		Lost:   func() <-chan struct{} { return now().Done() },
		Token:  func() int64 { n, _ := token(now()); return n },
	}
	if r, shared := l.(sharer); shared {
		c.RLock = func(ctx context.Context) error { return keep(r.RLock(ctx)) }
		c.RAgain = func(ctx context.Context) error { return keep(r.RLock(now())) }
		c.RUnlock = func() error { return r.RUnlock(now()) }
	}
	return c
}
