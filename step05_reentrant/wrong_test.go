package reentrant

import (
	"context"
	"errors"
	"fmt"
	"math"
	pathpkg "path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/lockcheck"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// basic is the queue of step 4, as a part of the wrong locks. It is used by one
// goroutine a client.
type basic struct {
	conn *zk.Conn
	dir  string
	node string
}

func (l *basic) Lock(ctx context.Context) error {
	_, err := l.queueUp(ctx)
	return err
}

// queueUp is Lock, and tells whether it had to wait.
func (l *basic) queueUp(ctx context.Context) (waited bool, err error) {
	if l.node, err = create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential); err != nil {
		return false, err
	}
	for ; ; waited = true {
		names, _, err := l.conn.Children(l.dir)
		if err != nil {
			return waited, err
		}
		before, err := predecessor(names, pathpkg.Base(l.node))
		if before == "" || err != nil {
			return waited, err
		}
		_, _, gone, err := l.conn.GetW(l.dir + "/" + before)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return waited, err
		}
		select {
		case <-gone:
		case <-ctx.Done():
			return waited, errors.Join(ctx.Err(), l.Unlock())
		}
	}
}

func (l *basic) Unlock() error { return l.conn.Delete(l.node, -1) }

// W10, published in 基于zookeeper实现分布式锁(下). The idea: a count that goes
// with the thread tells that it holds the lock already. But there is one count
// for all locks: holding orders makes stock "held", too. No property sees it,
// for each knows one lock only; what it breaks is "one holder at a time".
type oneCountForAllLocks struct{ basic }

type countOfAll struct{} // the mistake: compare holdOf, which names the lock

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

func TestW10OneCountForAllLocks(t *testing.T) {
	lockcheck.Over("W10", func(conn *zk.Conn, path string) *holdsOrders {
		orders := fmt.Sprintf("%s-of-%x", path, conn.SessionID())
		return &holdsOrders{oneCountForAllLocks{basic{conn: conn, dir: orders}}, oneCountForAllLocks{basic{conn: conn, dir: path}}}
	}).Acts()
	t.Parallel()
	z := zktest.New(t)
	a, b := z.Client("A"), z.Client("B")
	stock := &basic{conn: b.Conn, dir: z.Root + "/stock"}
	require.NoError(t, stock.Lock(z.Ctx))

	held, err := (&oneCountForAllLocks{basic{conn: a.Conn, dir: z.Root + "/orders"}}).Lock(z.Ctx)
	require.NoError(t, err)
	mark := a.Tap.Mark()
	_, err = (&oneCountForAllLocks{basic{conn: a.Conn, dir: z.Root + "/stock"}}).Lock(held)
	require.NoError(t, err, "A believes that it holds stock beside B")
	require.Zero(t, wiretap.Count(a.Tap.Since(mark)).All(), "requests: nobody was asked")
}

// W11, published in 基于zookeeper实现分布式锁(下). The idea: count the holds, so
// that the holder may lock again. But the count is set only on the path that
// waited: who finds the lock free is not known as its holder, waits for itself
// when it locks again, and cannot unlock.
type countsOnlyWhoWaited struct {
	basic
	count int
}

func (l *countsOnlyWhoWaited) Lock(ctx context.Context) error {
	if l.count > 0 {
		l.count++
		return nil
	}
	waited, err := l.queueUp(ctx)
	if waited && err == nil { // the mistake
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

func newCountsOnlyWhoWaited(conn *zk.Conn, path string) *countsOnlyWhoWaited {
	return &countsOnlyWhoWaited{basic: basic{conn: conn, dir: path}}
}

func TestW11CountsOnlyWhoWaited(t *testing.T) {
	t.Parallel()
	lockcheck.Fails(t, lockcheck.Over("W11", newCountsOnlyWhoWaited), lockcheck.LocksAgain)

	z := zktest.New(t)
	lock := newCountsOnlyWhoWaited(z.Client("A").Conn, z.Root+"/lock")
	require.NoError(t, lock.Lock(z.Ctx))
	require.ErrorIs(t, lock.Unlock(), ErrNotHeld, "the holder's own Unlock")
	require.Len(t, z.Names(z.Root+"/lock"), 1, "the lock, which nobody can release")
}

// W14, published in Java 基于 ZooKeeper 实现分布式锁需要注意什么. The idea: the
// holder's znode is the first, so unlock() deletes the first. It is the first
// of whoever holds the lock: a client that has lost its session, or never had
// the lock, deletes another's.
type deletesTheFirst struct{ basic }

func (l *deletesTheFirst) Unlock() error {
	names, _, err := l.conn.Children(l.dir)
	if err != nil || len(names) == 0 {
		return err
	}
	slices.Sort(names)
	return l.conn.Delete(l.dir+"/"+names[0], -1) // the mistake: not l.node
}

func TestW14DeletesTheFirst(t *testing.T) {
	t.Parallel()
	lock := lockcheck.Over("W14", func(conn *zk.Conn, path string) *deletesTheFirst {
		return &deletesTheFirst{basic{conn: conn, dir: path}}
	})
	lockcheck.Fails(t, lock, lockcheck.NoStranger)
}

// W15, published in the same. The idea: the watcher wakes the waiting thread,
// and takes the local lock to do so. But the waiting thread has the local lock:
// each waits for the other. The properties get stuck on it, which is no
// evidence; what it breaks is "a release wakes one".
type wakesUnderTheWaitersLock struct {
	basic
	mu      sync.Mutex
	blocked atomic.Bool // for the test: the watcher wants mu
}

func (l *wakesUnderTheWaitersLock) Lock(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	if l.node, err = create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential); err != nil {
		return err
	}
	names, _, err := l.conn.Children(l.dir)
	if err != nil {
		return err
	}
	before, err := predecessor(names, pathpkg.Base(l.node))
	if before == "" || err != nil {
		return err
	}
	_, _, gone, err := l.conn.GetW(l.dir + "/" + before)
	if err != nil {
		return err
	}
	woken := make(chan struct{})
	go func() {
		<-gone
		l.blocked.Store(true)
		l.mu.Lock() // the mistake: Lock has it until it is woken
		close(woken)
		l.mu.Unlock()
	}()
	select {
	case <-woken:
		return nil
	case <-ctx.Done():
		return errors.Join(ctx.Err(), l.Unlock())
	}
}

func TestW15WakesUnderTheWaitersLock(t *testing.T) {
	lockcheck.Over("W15", func(conn *zk.Conn, path string) *wakesUnderTheWaitersLock {
		return &wakesUnderTheWaitersLock{basic: basic{conn: conn, dir: path}}
	}).Acts()
	t.Parallel()
	z := zktest.New(t)
	a, b := z.Client("A"), z.Client("B")
	holder := &basic{conn: a.Conn, dir: z.Root + "/lock"}
	require.NoError(t, holder.Lock(z.Ctx))
	waiter := &wakesUnderTheWaitersLock{basic: basic{conn: b.Conn, dir: z.Root + "/lock"}}
	attempt := z.Go(b, waiter.Lock)
	require.Equal(t, zktest.Silently, attempt.Waits())
	mark := b.Tap.Mark()

	require.NoError(t, holder.Unlock())
	z.Await("the watcher to want the local lock", waiter.blocked.Load)
	require.Equal(t, 1, wiretap.Count(b.Tap.Since(mark)).Notifications, "B was notified of A's release")
	require.Equal(t, []string{pathpkg.Base(waiter.node)}, z.Names(waiter.dir), "the queue: B is the first")
	require.False(t, attempt.Returned(), "B's Lock, whose watcher waits for it")
	require.ErrorIs(t, attempt.Cancel(), context.Canceled, "only giving up ends the wait")
}

// W16, published in the same, and W17, which ZooKeeper 如何实现分布式锁 and
// nileader's article on the herd effect come to if whole names are sorted. The
// idea: the guid tells whose znode it is, and sorting tells who came first. But
// the guid stands before the number: W17 sorts by it, and W16, which means the
// number, by a field of it, because the guid has dashes, too. A late-comer is
// let in beside the holder: in earnest every other time; here each time, for
// the guids run backwards.
type sortsNames struct {
	basic
	key func(name string) string
}

var guids atomic.Int64

func (l *sortsNames) Lock(ctx context.Context) error {
	guid := math.MaxInt64 - guids.Add(1)
	name := fmt.Sprintf("_c_%08x-0000-%08x-lock-", guid>>32, guid&math.MaxUint32) // with dashes, as UUIDs have
	var err error
	if l.node, err = create(l.conn, l.dir+"/"+name, zk.FlagEphemeralSequential); err != nil {
		return err
	}
	for {
		names, _, watch, err := l.conn.ChildrenW(l.dir)
		if err != nil {
			return err
		}
		first := slices.MinFunc(names, func(a, b string) int { return strings.Compare(l.key(a), l.key(b)) }) // the mistake
		if first == pathpkg.Base(l.node) {
			return nil
		}
		select {
		case <-watch:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), l.Unlock())
		}
	}
}

func TestW16AndW17SortNamesAndNotNumbers(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]func(string) string{
		"W16": func(name string) string { return strings.Split(name, "-")[2] },
		"W17": func(name string) string { return name },
	} {
		lock := lockcheck.Over(name, func(conn *zk.Conn, path string) *sortsNames {
			return &sortsNames{basic{conn: conn, dir: path}, key}
		})
		lockcheck.Fails(t, lock, lockcheck.OneHolder, lockcheck.FirstCome)
	}
}
