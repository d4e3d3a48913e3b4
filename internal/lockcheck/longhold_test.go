package lockcheck

import (
	"context"
	pathpkg "path"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/zktest"
	reentrant "zklock/step05_reentrant"
)

// Three locks that are right for a second or two, and that only LongHold finds.

// losesEarly never makes its lease longer.
type losesEarly struct {
	s    *reentrant.Session
	lock *reentrant.Lock
}

func (l losesEarly) Lock(ctx context.Context) (context.Context, error) {
	held, err := l.lock.Lock(ctx)
	if err != nil {
		return nil, err
	}
	held, end := context.WithCancelCause(held)
	time.AfterFunc(l.s.Timeout()*9/10, func() { end(reentrant.ErrLost) }) // the mistake
	return held, nil
}

func (l losesEarly) Unlock(held context.Context) error { return l.lock.Unlock(held) }

func TestAHoldThatIsLostOnAHealthyLine(t *testing.T) {
	open := func(servers []string, timeout time.Duration, dial zk.Dialer) (*reentrant.Session, error) {
		return reentrant.Open(servers, timeout, reentrant.WithDialer(dial))
	}
	right := OverSession("the lock itself", open, reentrant.New, reentrant.Token)
	wrong := OverSession("loses early", open, func(s *reentrant.Session, path string) losesEarly {
		return losesEarly{s, reentrant.New(s, path)}
	}, reentrant.Token)
	Holds(t, right, LongHold)
	Holds(t, wrong, OneHolder, LocksAgain, ToldOfLoss, Fenced)
	Fails(t, wrong, LongHold)
}

// queue is the queue of step 4, as a part of the next two. It is used by one
// goroutine a client.
type queue struct {
	conn      *zk.Conn
	dir, node string
	first     func(waited time.Duration) bool // may we go in?
	wait      func(ctx context.Context, gone <-chan zk.Event)
}

func (q *queue) Lock(ctx context.Context) (err error) {
	begin, acl := time.Now(), zk.WorldACL(zk.PermAll)
	_, _ = q.conn.Create(q.dir, nil, zk.FlagPersistent, acl) // it may be there
	if q.node, err = q.conn.Create(q.dir+"/lock-", nil, zk.FlagEphemeralSequential, acl); err != nil {
		return err
	}
	for ctx.Err() == nil {
		names, _, err := q.conn.Children(q.dir)
		if err != nil {
			return err
		}
		slices.Sort(names)
		mine := slices.Index(names, pathpkg.Base(q.node))
		if mine == 0 && q.first(time.Since(begin)) {
			return nil
		}
		if mine > 0 {
			_, _, gone, err := q.conn.GetW(q.dir + "/" + names[mine-1])
			if err == nil {
				q.wait(ctx, gone)
			}
		}
	}
	return ctx.Err()
}

func (q *queue) Unlock() error { return q.conn.Delete(q.node, -1) }

func sleep(ctx context.Context, gone <-chan zk.Event) {
	select {
	case <-gone:
	case <-ctx.Done():
	}
}

// The lease is taken when the wait begins. A waiter whose turn comes later than
// that looks again, for ever: so did a starter of step 6.
func TestAWaiterThatIsNeverServedAfterALongWait(t *testing.T) {
	wrong := Over("never served", func(conn *zk.Conn, path string) *queue {
		return &queue{conn: conn, dir: path, wait: sleep,
			first: func(waited time.Duration) bool { return waited < zktest.MortalTimeout }} // the mistake
	})
	Holds(t, wrong, OneHolder, SilentWait)
	Fails(t, wrong, LongHold)
}

// After a while, the waiter asks all the time whether its session lives.
func TestAWaiterThatSpinsAfterAWhile(t *testing.T) {
	wrong := Over("spins after a while", func(conn *zk.Conn, path string) *queue {
		return &queue{conn: conn, dir: path, first: func(time.Duration) bool { return true },
			wait: func(ctx context.Context, gone <-chan zk.Event) {
				ctx, stop := context.WithTimeout(ctx, zktest.MortalTimeout)
				defer stop()
				sleep(ctx, gone)
				for context.Cause(ctx) == context.DeadlineExceeded && len(gone) == 0 {
					_, _, _ = conn.Exists(path) // the mistake
				}
			}}
	})
	Holds(t, wrong, OneHolder)
	Fails(t, wrong, LongHold)
}
