package reentrant

import (
	"context"
	"errors"
	"fmt"
	pathpkg "path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/explore"
	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
	predecessorwatch "zklock/step04_predecessor_watch"
)

type step4 = predecessorwatch.Lock

// basic is the lock of step 4, as a part of the wrong ones.
type basic struct {
	*step4
	conn *zk.Conn
	dir  string
}

func newBasic(conn *zk.Conn, path string) basic {
	return basic{predecessorwatch.New(conn, path), conn, path}
}

// W10, published in 基于zookeeper实现分布式锁(下). The idea: a count that
// belongs to the thread shows that it already holds the lock. But there is one count
// for all locks: holding orders makes stock "held", too. No property shows it,
// because each knows only one lock. It breaks "one holder at a time".
type oneCountForAllLocks struct{ basic }

type countOfAll struct{}

func (l *oneCountForAllLocks) Lock(ctx context.Context) (context.Context, error) {
	if count, ok := ctx.Value(countOfAll{}).(*int); ok && *count > 0 {
		*count++
		return ctx, nil
	}
	count := 1
	return context.WithValue(ctx, countOfAll{}, &count), l.basic.Lock(ctx)
}

// holdsOrders asks for stock when it holds orders of its own.
type holdsOrders struct{ orders, stock oneCountForAllLocks }

func (l *holdsOrders) Lock(ctx context.Context) error {
	held, err := l.orders.Lock(ctx)
	if err == nil {
		_, err = l.stock.Lock(held)
	}
	return err
}

func (l *holdsOrders) Unlock() error { return l.orders.Unlock() }

func newHoldsOrders(conn *zk.Conn, path string) *holdsOrders {
	orders := fmt.Sprintf("%s-of-%x", path, conn.SessionID())
	return &holdsOrders{oneCountForAllLocks{newBasic(conn, orders)}, oneCountForAllLocks{newBasic(conn, path)}}
}

func TestW10OneCountForAllLocks(t *testing.T) {
	subject := property.Over("W10", newHoldsOrders)
	explore.Acts(subject)
	t.Parallel()
	z := zktest.New(t)
	property.Over("stock", newBasic).Join(z, "B").Acquire()
	a := subject.Join(z, "A")
	a.Acquire() // and believes that it holds stock beside B
	queue := a.Queue()
	require.Len(t, queue, 1, "the queue for stock: A has asked nobody")
	t.Logf("W10: B holds the lock of stock, and A, which holds that of orders, got it as well; the queue for stock: %v", queue)
}

// W11, published in 基于zookeeper实现分布式锁(下). The idea: count the holds, so
// that the holder may lock again. But the count is set only on the path that
// waited: a client that finds the lock free is not known as its holder, and cannot unlock. When
// it locks again, it waits for itself; in the published listing only a second lock object
// does, for there the constructor has made the znode (W6).
type countsOnlyWhoWaited struct {
	basic
	count int
}

func (l *countsOnlyWhoWaited) Lock(ctx context.Context) error {
	if l.count > 0 {
		l.count++
		return nil
	}
	others, _, _ := l.conn.Children(l.dir)
	err := l.basic.Lock(ctx)
	if len(others) > 0 && err == nil {
		l.count = 1
	}
	return err
}

func (l *countsOnlyWhoWaited) Unlock() error {
	if l.count == 0 {
		return ErrNotHeld
	}
	if l.count--; l.count > 0 {
		return nil
	}
	return l.basic.Unlock()
}

func TestW11CountsOnlyWhoWaited(t *testing.T) {
	subject := property.Over("W11", func(conn *zk.Conn, path string) *countsOnlyWhoWaited {
		return &countsOnlyWhoWaited{basic: newBasic(conn, path)}
	})
	explore.Acts(subject)
	t.Parallel()
	property.Lacks(t, subject, property.LocksAgain)

	a := subject.Join(zktest.New(t), "A")
	require.ErrorIs(t, a.Acquire().Unlock(), ErrNotHeld, "the holder's own Unlock")
	require.Len(t, a.Queue(), 1, "the lock, which nobody can release")
}

// W14, published in Java 基于 ZooKeeper 实现分布式锁需要注意什么. The idea: the
// holder's znode is the first, so unlock() deletes the first. It is the first
// of the present holder: a client that has lost its session, or never had the lock,
// deletes another client's znode.
type deletesTheFirst struct{ basic }

func (l deletesTheFirst) Unlock() error {
	names, _, err := l.conn.Children(l.dir)
	if err != nil || len(names) == 0 {
		return err
	}
	slices.Sort(names)
	return l.conn.Delete(l.dir+"/"+names[0], -1)
}

func TestW14DeletesTheFirst(t *testing.T) {
	subject := property.Over("W14", func(conn *zk.Conn, path string) deletesTheFirst {
		return deletesTheFirst{newBasic(conn, path)}
	})
	explore.Acts(subject)
	t.Parallel()
	property.Lacks(t, subject, property.OnlyHolder)

	z := zktest.New(t)
	a := subject.Join(z, "A")
	held := a.Acquire()
	a.Tap.LoseReply(wiretap.GetChildren, 1)
	require.ErrorIs(t, held.Unlock(), zk.ErrConnectionClosed, "Unlock, whose list was not answered")
	z.Await("A to be connected again", func() bool { return a.State() == zk.StateHasSession })
	require.Empty(t, a.Tap.Done(wiretap.Delete), "deletes")
	require.Len(t, a.Queue(), 1, "the queue: A has called Unlock, and its znode bars the lock")
}

// W23, published in the same, once W20 is fixed. The idea: an interrupt ends the wait,
// so catch it, and delete the znode. But then acquire() returns as it does with the
// lock, and lock() notes that it is acquired: a client that has given up believes that
// it holds the lock, and has no znode. With W14, its unlock() deletes the holder's.
type takesAnInterruptForTheLock struct{ basic }

func newTakesAnInterruptForTheLock(conn *zk.Conn, path string) takesAnInterruptForTheLock {
	return takesAnInterruptForTheLock{newBasic(conn, path)}
}

func (l takesAnInterruptForTheLock) Lock(ctx context.Context) error {
	err := l.basic.Lock(ctx)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// asPublished is W23 with the unlock() from the same article.
type asPublished struct{ takesAnInterruptForTheLock }

func newAsPublished(conn *zk.Conn, path string) asPublished {
	return asPublished{newTakesAnInterruptForTheLock(conn, path)}
}

func (l asPublished) Unlock() error { return deletesTheFirst{l.basic}.Unlock() }

func TestW23TakesAnInterruptForTheLock(t *testing.T) {
	subject := property.Over("W23", newTakesAnInterruptForTheLock)
	explore.Acts(subject)
	t.Parallel()
	property.Lacks(t, subject, property.GivingUp)

	z := zktest.New(t)
	published := property.Over("W23 and W14", newAsPublished)
	holder, interrupted := published.Join(z, "the holder").Acquire(), published.Join(z, "the interrupted one").Start()
	interrupted.MustWait("somebody else holds the lock")
	require.NoError(t, interrupted.Cancel(), "what the interrupted Lock answers: there are two inside")
	require.Equal(t, []string{pathpkg.Base(holder.Znode())}, holder.Queue(), "the queue: only the holder has a znode")
	interrupted.Release()
	require.Empty(t, holder.Queue(), "the queue: the interrupted one has deleted the holder's znode")
	published.Join(z, "the next").Acquire() // beside the holder
}

// W25, published in Curator, kazoo and go-zookeeper. The idea: a queue's znode is known by the end
// of its name, lock- and a number. So the directory of another lock, which somebody has created
// below this one as block-0, counts as a place, and that place is never left.
type takesADirectoryForAPlace struct{ basic }

func (l takesADirectoryForAPlace) Lock(ctx context.Context) error {
	if err := l.basic.Lock(ctx); err != nil {
		return err
	}
	for {
		names, _, err := l.conn.Children(l.dir)
		if err != nil {
			return errors.Join(err, l.basic.Unlock())
		}
		if !slices.ContainsFunc(names, isForeignPlace) {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), l.basic.Unlock())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// isForeignPlace reports whether a name that the queue did not make looks like a place in it.
func isForeignPlace(name string) bool {
	before, digits, found := strings.Cut(name, "lock-")
	_, err := strconv.Atoi(digits)
	return found && err == nil && before != ""
}

func newTakesADirectoryForAPlace(conn *zk.Conn, path string) takesADirectoryForAPlace {
	return takesADirectoryForAPlace{newBasic(conn, path)}
}

func TestW25TakesADirectoryForAPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lock  property.Subject
		waits bool
	}{
		{property.Over("W25", newTakesADirectoryForAPlace), true},
		{locks, false},
	} {
		z := zktest.New(t)
		a := c.lock.Join(z, "A")
		a.Acquire().Release() // makes the directory
		_, err := z.Observer().Create(a.Path+"/block-0", nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		turn := a.Start()
		waits := turn.Waits() != zktest.Returned
		require.Equal(t, c.waits, waits, "%s waits for block-0, which is the directory of another lock", c.lock.Name)
		if c.waits {
			t.Logf("%s: nobody holds the lock, and A waits; the queue: %v", c.lock.Name, a.Queue())
		}
	}
}
