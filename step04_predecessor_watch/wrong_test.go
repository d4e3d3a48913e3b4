package predecessorwatch

import (
	"context"
	"errors"
	pathpkg "path"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/lockcheck"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// right is this step's lock, as a part of the wrong ones.
type right = Lock

// wrong is this step's lock, open in the places where the mistakes are made.
type wrong struct {
	*right
	wait  func(l *right, ctx context.Context, node string) error // until it is our turn
	leave func(l *right, node string) error                      // when the wait has failed
}

func (l wrong) Lock(ctx context.Context) error {
	node, err := create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
	if err != nil {
		return err
	}
	if err := l.wait(l.right, ctx, node); err != nil {
		return errors.Join(err, l.leave(l.right, node))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.node = node
	return nil
}

// before is the path of the znode before ours, "" when ours is the first.
func before(l *right, node string) (path string, err error) {
	names, _, err := l.conn.Children(l.dir)
	if err != nil {
		return "", err
	}
	name, err := predecessor(names, pathpkg.Base(node))
	if name == "" || err != nil {
		return "", err
	}
	return l.dir + "/" + name, nil
}

// told returns when the watch has fired.
func told(ctx context.Context, gone <-chan zk.Event) error {
	select {
	case event := <-gone:
		return event.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// W8, published in 基于zookeeper实现分布式锁(下) and in 51CTO, "ZooKeeper locks
// and Curator's source". The idea: I wait for the znode before mine to go; it
// has gone; it is my turn. But it may have been a waiter that died, and the
// holder is still inside.
func trustsTheWakeUp(l *right, ctx context.Context, node string) error {
	for {
		path, err := before(l, node)
		if path == "" || err != nil {
			return err
		}
		_, _, gone, err := l.conn.GetW(path)
		if err == nil {
			return told(ctx, gone) // the mistake: it does not look again
		}
		if !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
}

func TestW8TrustsTheWakeUp(t *testing.T) {
	t.Parallel()
	lockcheck.Fails(t, lockcheck.Over("W8", func(conn *zk.Conn, path string) wrong {
		return wrong{New(conn, path), trustsTheWakeUp, (*right).leave}
	}), lockcheck.WaiterCrash)
}

// W9, published in the same two and in nileader's article on the herd effect.
// The idea: exists() tells whether the znode is there and sets the watch. It
// sets one as well when the znode is not there, to tell when it is made, which
// never happens: the watch stays.
func asksIfItExists(l *right, ctx context.Context, node string) error {
	for {
		path, err := before(l, node)
		if path == "" || err != nil {
			return err
		}
		there, _, gone, err := l.conn.ExistsW(path) // the mistake
		if there {
			err = told(ctx, gone)
		}
		if err != nil {
			return err
		}
	}
}

func TestW9AsksIfItExists(t *testing.T) {
	t.Parallel()
	lockcheck.Fails(t, lockcheck.Over("W9", func(conn *zk.Conn, path string) wrong {
		return wrong{New(conn, path), asksIfItExists, (*right).leave}
	}), lockcheck.NoWatchLeft)
}

// W12, published in 51CTO, "ZooKeeper locks and Curator's source". The idea:
// the time is up, so tell the caller. The znode is forgotten; it comes to the
// front of the queue, and everyone behind it waits for a client that has given
// up.
func forgetsItsZnode(*right, string) error { return nil } // the mistake: it does not delete it

func TestW12ForgetsItsZnode(t *testing.T) {
	t.Parallel()
	lockcheck.Fails(t, lockcheck.Over("W12", func(conn *zk.Conn, path string) wrong {
		return wrong{New(conn, path), (*right).wait, forgetsItsZnode}
	}), lockcheck.GivingUp)
}

// W18, published in 51CTO, "ZooKeeper locks and Curator's source". The idea:
// tryLock makes a znode, looks once, and says no if another is before it. But the
// znode stays: the caller's next try stands behind its first, and everybody else
// behind both. What it breaks is "giving up leaves nothing behind".
type triesAndStays struct{ *right }

func (l triesAndStays) tryLock() (got bool, err error) {
	node, err := create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
	if err != nil {
		return false, err
	}
	path, err := before(l.right, node)
	if path != "" || err != nil {
		return false, err // the mistake: it does not delete the znode
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.node = node
	return true, nil
}

// Lock tries again and again, as callers of tryLock do.
func (l triesAndStays) Lock(ctx context.Context) error {
	for {
		if got, err := l.tryLock(); got || err != nil {
			return err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func TestW18TriesAndStays(t *testing.T) {
	lockcheck.Over("W18", func(conn *zk.Conn, path string) triesAndStays { return triesAndStays{New(conn, path)} }).Acts()
	t.Parallel()
	z := zktest.New(t)
	holder, b := lock.Join(z, "the holder").Acquire(), z.Client("B")
	tries := triesAndStays{New(b.Conn, holder.Path)}
	got, err := tries.tryLock()
	require.NoError(t, err)
	require.False(t, got, "B gets the lock that is held")
	next := lock.Join(z, "the next").Start()
	next.Queued()
	holder.Release()
	next.MustWait("B has been told no, and its znode is before this one")
	got, err = tries.tryLock()
	require.NoError(t, err)
	assert.False(t, got, "B gets the lock that nobody has: its first znode is before its second")
	assert.Len(t, holder.Queue(), 3, "the queue: two of B's, and the next one's, and nobody holds the lock")
}

// W19, published in the same. The idea: an error while looking is printed, and
// then comes the wait for the znode before ours. But nobody has found that one
// yet. Java makes "null" of its name, there is no such znode, and so it "has gone":
// we are let in.
func waitsForNobody(l *right, ctx context.Context, node string) error {
	for {
		path, unknown := before(l, node)
		if path == "" && unknown == nil {
			return nil
		}
		if unknown != nil {
			path = l.dir + "/null"
		}
		_, _, gone, err := l.conn.GetW(path)
		if err == nil {
			err = told(ctx, gone)
		} else if errors.Is(err, zk.ErrNoNode) {
			if unknown != nil {
				return nil // the mistake
			}
			err = nil
		}
		if err != nil {
			return err
		}
	}
}

func TestW19WaitsForNobody(t *testing.T) {
	t.Parallel()
	lockcheck.Fails(t, lockcheck.Over("W19", func(conn *zk.Conn, path string) wrong {
		return wrong{New(conn, path), waitsForNobody, (*right).leave}
	}), lockcheck.OneHolder)
}

var errNoneBefore = errors.New("no znode is before ours")

// W20, published in Java 基于 ZooKeeper 实现分布式锁需要注意什么. The idea: it is our
// turn when the first in the list is ours. But the list has names, and the create
// has answered with a path. They are never equal, and nobody is ever let in. No
// property sees it, for each begins with a lock that can be taken; what it breaks is
// "first come, first served".
func comparesAPathWithAName(l *right, ctx context.Context, node string) error {
	names, _, err := l.conn.Children(l.dir)
	if err != nil {
		return err
	}
	slices.Sort(names)
	if names[0] == node {
		return nil
	}
	at := slices.Index(names, node) - 1 // the mistake: node is a path
	if at < 0 {
		return errNoneBefore
	}
	_, _, gone, err := l.conn.GetW(l.dir + "/" + names[at])
	if err != nil {
		return err
	}
	return errors.Join(told(ctx, gone), comparesAPathWithAName(l, ctx, node))
}

func TestW20ComparesAPathWithAName(t *testing.T) {
	lockcheck.Over("W20", func(conn *zk.Conn, path string) wrong {
		return wrong{New(conn, path), comparesAPathWithAName, (*right).leave}
	}).Acts()
	t.Parallel()
	z := zktest.New(t)
	alone := z.Client("the only one")
	lock := wrong{New(alone.Conn, z.Root+"/lock"), comparesAPathWithAName, (*right).leave}
	require.ErrorIs(t, lock.Lock(z.Ctx), errNoneBefore, "the lock is free, and nobody else has ever asked for it")
	assert.Equal(t, 1, wiretap.Count(alone.Tap.Frames()).Names, "names in the list: its own is the first, and there is no other")
}

// W21, published in the same, once W20 is mended. The idea: look whether we are the
// first; if not, look who is before us. Those are two lists. If the holder leaves
// between them, nobody is before us any more, and that is taken for an error. What
// it breaks is "first come, first served": it is first, and is not served.
func looksTwice(l *right, ctx context.Context, node string) error {
	for {
		if path, err := before(l, node); path == "" || err != nil {
			return err
		}
		path, err := before(l, node) // the mistake: it may be our turn by now
		if err != nil {
			return err
		}
		if path == "" {
			return errNoneBefore
		}
		_, _, gone, err := l.conn.GetW(path)
		if err == nil {
			err = told(ctx, gone)
		}
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
}

func TestW21LooksTwice(t *testing.T) {
	lockcheck.Over("W21", func(conn *zk.Conn, path string) wrong { return wrong{New(conn, path), looksTwice, (*right).leave} }).Acts()
	t.Parallel()
	z := zktest.New(t)
	holder, waiter := lock.Join(z, "the holder").Acquire(), z.Client("the waiter")
	looks := wrong{New(waiter.Conn, holder.Path), looksTwice, (*right).leave}
	slow := waiter.Tap.HoldRequest(wiretap.GetChildren, 2)
	waiting := z.Go(waiter, looks.Lock)
	zktest.AwaitChan(z, "the waiter's second look", slow.Sprung())
	holder.Release()
	assert.Len(t, holder.Queue(), 1, "the queue: the waiter is the first")
	slow.Let()
	require.ErrorIs(t, waiting.Err(), errNoneBefore, "the lock is free, and it is the waiter's turn")
}

// W22, published in the same. The idea: what can fail while we wait is in a try,
// which deletes the znode when it fails. But the first look comes before the try. If
// that fails, the caller is told, and the znode stays: everyone behind it waits
// until the session ends. What it breaks is "giving up leaves nothing behind".
type looksBeforeTheTry struct{ *right }

func (l looksBeforeTheTry) Lock(ctx context.Context) error {
	node, err := create(l.conn, l.dir+"/lock-", zk.FlagEphemeralSequential)
	if err != nil {
		return err
	}
	path, err := before(l.right, node)
	if err != nil {
		return err // the mistake
	}
	if path != "" {
		if err := l.wait(ctx, node); err != nil {
			return errors.Join(err, l.leave(node))
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.node = node
	return nil
}

func TestW22LooksBeforeTheTry(t *testing.T) {
	lockcheck.Over("W22", func(conn *zk.Conn, path string) looksBeforeTheTry { return looksBeforeTheTry{New(conn, path)} }).Acts()
	t.Parallel()
	z := zktest.New(t)
	a := z.Client("A")
	looks := looksBeforeTheTry{New(a.Conn, z.Root+"/lock")}
	require.NoError(t, looks.Lock(z.Ctx)) // makes the directory
	require.NoError(t, looks.Unlock())
	a.Tap.LoseReply(wiretap.GetChildren, 1)
	require.ErrorIs(t, looks.Lock(z.Ctx), zk.ErrConnectionClosed, "what the caller is told")
	z.Await("A to be back", func() bool { return a.State() == zk.StateHasSession })
	assert.Equal(t, a.ID, a.SessionID(), "A's session lives on")
	next := lock.JoinAs(z, "the next", lockcheck.Seat{Path: z.Root + "/lock"}).Start()
	next.MustWait("A has given up, and its znode is before this one")
}
