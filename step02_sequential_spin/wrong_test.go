package sequentialspin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	pathpkg "path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/explore"
	"zklock/internal/property"
	"zklock/internal/zktest"
)

// Readers copy published locks. Here are the mistakes of some of them, each in a
// lock that is otherwise right, and each with the property that finds it.

// right is this step's lock, as a part of a wrong one.
type right = Lock

// wrong is this step's lock, with the places of the mistakes as fields.
type wrong struct {
	*right
	mode    int32                                              // of the znode
	prefix  string                                             // of the znode's path, before the number
	isFirst func(names []string, mine string) (bool, error)    // is it our turn?
	wait    func(ctx context.Context, node string) (err error) // until it is
}

func newWrong(conn *zk.Conn, path string) *wrong {
	l := &wrong{right: New(conn, path), mode: zk.FlagEphemeralSequential, prefix: path + "/lock-", isFirst: isFirst}
	l.wait = func(ctx context.Context, node string) (err error) {
		for first := false; !first && err == nil; {
			first, err = l.look(ctx, node)
		}
		return err
	}
	return l
}

// with makes the lock with a mistake in it.
func with(mistake func(l *wrong)) func(*zk.Conn, string) *wrong {
	return func(conn *zk.Conn, path string) *wrong {
		l := newWrong(conn, path)
		mistake(l)
		return l
	}
}

func (l *wrong) Lock(ctx context.Context) error {
	node, err := create(l.conn, l.prefix, l.mode)
	if err != nil {
		return err
	}
	if err := l.wait(ctx, node); err != nil {
		return errors.Join(err, l.leave(node))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.node = node
	return nil
}

// look reports whether it is our turn, and pauses if it is not.
func (l *wrong) look(ctx context.Context, node string) (first bool, err error) {
	return l.lookAndPause(ctx, node, l.poll)
}

func (l *wrong) lookAndPause(ctx context.Context, node string, pause time.Duration) (first bool, err error) {
	names, _, err := l.conn.Children(l.dir)
	if err != nil {
		return false, err
	}
	if first, err := l.isFirst(names, pathpkg.Base(node)); first || err != nil {
		return first, err
	}
	select {
	case <-time.After(pause):
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// firstBy is isFirst with another order.
func firstBy[K cmp.Ordered](key func(name string) K) func([]string, string) (bool, error) {
	return func(names []string, mine string) (bool, error) {
		return !slices.ContainsFunc(names, func(name string) bool { return key(name) < key(mine) }), nil
	}
}

// newcomers are counted for a name that sorts before the names of all earlier
// clients. In practice this is a matter of luck, here it is certain.
var newcomers atomic.Int64

func newcomer() int64 { return 0xffff - newcomers.Add(1) }

// W1, in 基于zookeeper实现分布式锁(下). The idea: a sequential znode is all that
// a queue needs. It is persistent, so it outlives a holder that crashes:
// every client behind it waits forever.
func persistentZnode(l *wrong) { l.mode = zk.FlagSequence }

func TestW1PersistentZnode(t *testing.T) {
	subject := property.Over("W1", with(persistentZnode))
	explore.Acts(subject)
	property.Lacks(t, subject, property.CrashFrees)
}

// W2, in the same article. The idea: compare each child's number with our own.
// By mistake it reads the number from our own name instead of the child's, so no
// number is ever smaller, and every client gets the lock.
func comparesItselfWithItself(l *wrong) {
	l.isFirst = func(names []string, mine string) (bool, error) {
		own, _ := number(mine)
		for range names {
			if n, ok := number(mine); ok && n < own {
				return false, nil
			}
		}
		return true, nil
	}
}

func TestW2ComparesItselfWithItself(t *testing.T) {
	subject := property.Over("W2", with(comparesItselfWithItself))
	explore.Acts(subject)
	property.Lacks(t, subject, property.OneHolder)
}

// W3, in the same article, once W2 is fixed. The idea: our predecessor is the
// greatest number below ours. The search starts at 0 and looks for a greater
// number, so number 0 is nobody's predecessor, and number 1 gets the lock beside it.
func overlooksNumberZero(l *wrong) {
	l.isFirst = func(names []string, mine string) (bool, error) {
		own, _ := number(mine)
		greatest, predecessor := 0, ""
		for _, name := range names {
			if n, ok := number(name); ok && n < own && n > greatest {
				greatest, predecessor = n, name
			}
		}
		return predecessor == "", nil
	}
}

func TestW3OverlooksNumberZero(t *testing.T) {
	subject := property.Over("W3", with(overlooksNumberZero))
	explore.Acts(subject)
	property.Lacks(t, subject, property.OneHolder)
}

// W4, in the same article. The idea: print an error of the request that lists the queue. The
// result then means "nobody is before me", so a lost connection gives the lock to a waiter.
func returnsAfterAnError(l *wrong) {
	wait := l.wait
	l.wait = func(ctx context.Context, node string) error {
		_ = wait(ctx, node) // the published listings print it
		return nil
	}
}

func TestW4ReturnsAfterAnError(t *testing.T) {
	subject := property.Over("W4", with(returnsAfterAnError))
	explore.Acts(subject)
	property.Lacks(t, subject, property.OneHolder)
}

// W5, in the same article. The idea: one directory for all locks, with the lock's
// name before the number. The code ignores the names, so the locks share one
// queue, and a client that wants one lock waits for the holder of another.
func oneQueueForAllLocks(l *wrong) {
	l.prefix, l.dir = l.dir+"_", pathpkg.Dir(l.dir)
	l.isFirst = firstBy(func(name string) int {
		n, _ := strconv.Atoi(name[strings.LastIndex(name, "_")+1:])
		return n
	})
}

func TestW5OneQueueForAllLocks(t *testing.T) {
	subject := property.Over("W5", with(oneQueueForAllLocks))
	explore.Acts(subject)
	property.Lacks(t, subject, property.Unrelated)
}

// W6, in the same article. The idea: the constructor creates the znode, lock()
// only waits. So the constructor joins the queue, and a second lock() after
// unlock() finds no smaller number and returns, without any znode. And two
// goroutines that use one object both get the lock: they share one znode.
type oneZnode struct {
	*wrong
	node string
}

func newOneZnode(conn *zk.Conn, path string) *oneZnode {
	l := newWrong(conn, path)
	l.isFirst = func(names []string, mine string) (bool, error) {
		return isFirst(append(names, mine), mine) // does not miss its own
	}
	node, _ := create(conn, l.prefix, l.mode)
	return &oneZnode{l, node}
}

func (l *oneZnode) Lock(ctx context.Context) error { return l.wait(ctx, l.node) }
func (l *oneZnode) Unlock() error                  { return l.conn.Delete(l.node, -1) }

func TestW6ZnodeMadeInTheConstructor(t *testing.T) {
	subject := property.Over("W6", newOneZnode)
	explore.Acts(subject)
	property.Lacks(t, subject, property.OneHolder, property.ManyShare)
}

// W7, in the same article. The idea: to look again, lock() calls itself. Each
// look is a frame on the stack, until the stack is full. A lock's results do
// not show this, so no property can; the stack does.
func waitsByRecursion(l *wrong) {
	l.wait = func(ctx context.Context, node string) error {
		if first, err := l.look(ctx, node); first || err != nil {
			return err
		}
		return l.wait(ctx, node)
	}
}

func TestW7WaitsByRecursion(t *testing.T) {
	explore.Acts(property.Over("W7", with(waitsByRecursion)))
	z := zktest.New(t)
	l := with(waitsByRecursion)(z.Client("the waiter").Conn, z.Root)
	l.poll = time.Millisecond
	var depths []int // of the stack, at each look
	l.isFirst = func([]string, string) (bool, error) {
		depths = append(depths, runtime.Callers(0, make([]uintptr, 10000)))
		return len(depths) == 100, nil
	}
	require.NoError(t, l.wait(z.Ctx, ""))
	frames := depths[99] - depths[0]
	assert.Equal(t, 99, frames, "frames on the stack, after 99 looks more")
	t.Logf("W7: the waiter has looked 99 times more, and has %d frames more on its stack", frames)
}

// W16, in Java 基于 ZooKeeper 实现分布式锁需要注意什么. The idea: some text
// precedes the number, and the number is the third of the fields between the
// dashes. The text is a guid, which has dashes itself, so the queue is sorted by a
// piece of the guid: a later client gets the lock beside the holder.
func sortsByAPieceOfTheGuid(l *wrong) {
	l.prefix = fmt.Sprintf("%s/3f9a6c10-7be2-%04x-9c3b-5d0f8a1e44c7-lock-", l.dir, newcomer())
	l.isFirst = firstBy(func(name string) string { return append(strings.Split(name, "-"), "", "", "")[2] })
}

func TestW16SortsByAPieceOfTheGuid(t *testing.T) {
	subject := property.Over("W16", with(sortsByAPieceOfTheGuid))
	explore.Acts(subject)
	property.Lacks(t, subject, property.OneHolder)
}

// W17: as in ZooKeeper 如何实现分布式锁, a hostname precedes the number. Code that
// sorts the whole names sorts the hosts: a later client from a host that is early
// in the alphabet gets the lock beside the holder.
func sortsByTheHostname(l *wrong) {
	l.prefix = fmt.Sprintf("%s/host%04x-lock-", l.dir, newcomer())
	l.isFirst = firstBy(func(name string) string { return name })
}

func TestW17SortsByTheHostname(t *testing.T) {
	subject := property.Over("W17", with(sortsByTheHostname))
	explore.Acts(subject)
	property.Lacks(t, subject, property.OneHolder)
}

// Without a mistake in it, the lock that the mistakes are made in is right.
func TestTheWrongLocksAreOtherwiseRight(t *testing.T) {
	property.Holds(t, property.Over("no mistake", newWrong),
		property.OneHolder, property.CrashFrees, property.Unrelated)
}
