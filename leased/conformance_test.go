package leased

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// Arguments with which no lock can work are refused before any request is sent, with an error that says what
// to do.
func TestWhatCannotWorkIsRefusedUnasked(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a := w.join(z, "A")
		mark := a.Tap.Mark()
		cancelled, cancel := context.WithCancel(z.Ctx)
		cancel()
		overdue, cancel := context.WithDeadline(z.Ctx, time.Now())
		defer cancel()
		var none context.Context

		refused := func(m *zktest.Member, ctx context.Context, want error, words ...string) {
			t.Helper()
			for call, lock := range map[string]func() error{
				"Lock":    func() error { _, err := m.Lock(ctx); return err },
				"TryLock": func() error { _, err := m.TryLock(ctx); return err },
			} {
				err := lock()
				require.Error(t, err, call)
				if want != nil {
					require.ErrorIs(t, err, want, call)
				}
				for _, word := range words {
					require.ErrorContains(t, err, word, call)
				}
				require.Less(t, len(err.Error()), 200, "bytes of the error")
			}
		}
		refused(a, none, nil, "the context is nil", "give context.Background()")
		refused(a, cancelled, context.Canceled, a.Path, "the context had ended before the call")
		refused(a, overdue, context.DeadlineExceeded, a.Path, "the context had ended before the call")
		for _, path := range []string{
			"", "/", "locks/orders", "/locks/", "//locks", "/locks//orders", "/locks/../orders", "/.",
		} {
			const advice = "want an absolute path below the root, such as /locks/orders"
			refused(w.at(z, a, path), z.Ctx, nil, fmt.Sprintf("path %q", path), advice)
		}
		refused(w.at(z, a, strings.Repeat("k", longestPath)), z.Ctx, nil, "want an absolute path")
		tooLong := w.at(z, a, "/locks/"+strings.Repeat("k", 1_100_000))
		refused(tooLong, z.Ctx, nil, "a path of 1100007 bytes, which begins with \"/locks/kkk")

		_, err := NewMutex(nil, a.Path).Lock(z.Ctx)
		require.ErrorContains(t, err, "the session is nil or empty")
		hold := mustLock(t, w.lock(w.at(z, w.join(z, "B"), a.Path)), z.Ctx)
		require.NoError(t, hold.Unlock())
		z.Barrier(a.Client)
		a.Session.Close() // waits for the work in the background
		require.Empty(t, a.Asked(mark), "requests of calls that were all refused")
	})
}

// If a path is very long, the error contains the parts that fit: its beginning and its end.
func TestAVeryLongPathInAnError(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	ended, cancel := context.WithCancel(z.Ctx)
	cancel()
	path := "/locks/" + strings.Repeat("锁", longestPath/3-10) + "/the-end"
	_, err := NewMutex(session(mutexes.Join(z, "A")), path).Lock(ended)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "leased: lock /locks/锁")
	require.ErrorContains(t, err, "锁/the-end: ")
	require.True(t, utf8.ValidString(err.Error()), err.Error())
	require.Less(t, len(err.Error()), 200, "bytes of the error")
}

// If the session is closed, the error says so.
func TestAfterClose(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a := w.join(z, "A")
		hold := mustLock(t, w.lock(a), z.Ctx)
		a.Session.Close()
		requireReason(t, hold.Unlock(), ReasonClosed)
		_, err := a.Lock(z.Ctx)
		require.ErrorContains(t, err, a.Path)
		require.ErrorContains(t, err, "the session is closed: open another one")
		_, err = a.TryLock(z.Ctx)
		require.ErrorContains(t, err, "the session is closed: open another one")
	})
}

// The session is closed while a call waits for the answer to its create, list or read, while it is queued, or
// while it waits for the answer to its delete. In each case the call returns.
func TestClosedDuringACall(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		for _, op := range []wiretap.Op{wiretap.Create, wiretap.GetChildren, wiretap.GetData} {
			b, a := w.other(z, "B"), w.join(z, "A")
			held := b.Acquire()
			reply := a.Tap.HoldReply(op, 1)
			call := a.StartIn(context.Background())
			zktest.AwaitChan(z, fmt.Sprintf("the reply to A's %v", op), reply.Sprung())
			closeDuring(a, call, reply)
			require.ErrorContains(t, call.Err(), "leased: lock "+a.Path, "closed at %v", op)
			require.ErrorContains(t, call.Err(), "the session is closed", "closed at %v", op)
			held.Release()
			b.Close()
		}
		b, a := w.other(z, "B"), w.join(z, "A")
		held := b.Acquire()
		call := a.StartIn(context.Background())
		call.MustWait("B holds the lock")
		a.Session.Close()
		require.ErrorContains(t, call.Err(), "the session is closed", "closed while it waited")
		held.Release()

		a = w.join(z, "A")
		turn := a.Acquire()
		reply := a.Tap.HoldReply(wiretap.Delete, 1)
		unlock := z.Go(a.Client, func(context.Context) error { return turn.Unlock() })
		zktest.AwaitChan(z, "the server to carry out A's delete", reply.Sprung())
		closeDuring(a, unlock, reply)
		requireReason(t, unlock.Err(), ReasonClosed)
		z.Await("nothing to be left", func() bool { return len(b.Queue()) == 0 })
	})
}

// closeDuring closes the session while the call is under way and one reply is held back. The reply is sent
// once the call has returned.
func closeDuring(a *zktest.Member, call *zktest.Turn, reply *wiretap.Trap) {
	var closing sync.WaitGroup
	closing.Go(a.Session.Close)
	_ = call.Err()
	reply.Let()
	closing.Wait()
}

// If a permission is missing, the error names it. It can be granted later.
func TestWithoutAPermission(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a := w.join(z, "A")
		_, err := z.Observer().Create(a.Path, nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		says := func(call string, err error, words ...string) {
			t.Helper()
			require.ErrorIs(t, err, zk.ErrNoAuth, call)
			for _, word := range append(words, a.Path, "look at the ACL there", "AddAuth") {
				require.ErrorContains(t, err, word, call)
			}
		}
		permit(t, z, a.Path, zk.PermAll&^zk.PermCreate)
		_, err = a.Lock(z.Ctx)
		says("Lock without the permission to create", err)
		permit(t, z, a.Path, zk.PermAll&^zk.PermRead)
		_, err = a.Lock(z.Ctx)
		says("Lock without the permission to read", err)
		permit(t, z, a.Path, zk.PermAll)
		z.Await("the znode of a caller who must not look to be removed", func() bool { return len(a.Queue()) == 0 })
		permit(t, z, a.Path, zk.PermAll&^zk.PermDelete)
		turn := a.Acquire()
		says("Unlock without the permission to delete", turn.Unlock(), a.Znode())
		permit(t, z, a.Path, zk.PermAll)
		turn.Release()
	})
}

// If the parent can have no children, the error says so.
func TestBelowAnEphemeralZnode(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		parent := z.Root + "/ephemeral"
		_, err := z.Observer().Create(parent, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		a := w.join(z, "A")
		for _, path := range []string{parent + "/lock", parent + "/locks/lock"} {
			_, err := w.at(z, a, path).Lock(z.Ctx)
			require.ErrorIs(t, err, zk.ErrNoChildrenForEphemerals)
			require.ErrorContains(t, err, "leased: lock "+path)
			require.ErrorContains(t, err, "choose another path")
		}
	})
}

// A lie is sent instead of a reply.
type lie struct {
	what, says string
	hangs      bool // keeps the connection open after the lie
}

var lies = []lie{
	{"it closes", "", false},
	{"it hangs", "", true},
	{"an answer to nobody", "\x00\x00\x00\x14" + "aaaa" + "\x00\x00\x00\x00\x00\x00\x00\x00" + "ccccdddd", false},
	{"half a frame's length", "\x00\x00", false},
}

// A liar is between a client and its tap. It passes the handshake on. As long as it has lies left, it sends
// one instead of the next reply.
type liar struct {
	lie
	left atomic.Int32
}

func (l *liar) over(tap zk.Dialer) zk.Dialer {
	return zktest.Over(func(c net.Conn) net.Conn {
		hung := false
		return &zktest.Altered{Conn: c, Alter: func(n int, frame []byte) ([]byte, error) {
			if hung { // until the client gives up, or disconnects
				return nil, nil
			}
			isHandshake := n == 0
			isPing := binary.BigEndian.Uint32(frame[4:]) == 0xfffffffe
			if isHandshake || isPing {
				return frame, nil
			}
			if left := l.left.Add(-1); left < 0 {
				return frame, nil
			}
			if l.hangs {
				hung = true
				return nil, nil
			}
			return []byte(l.says), io.EOF
		}}
	})(tap)
}

// A server turns out not to be one: it carries out the request, and sends something else instead of the
// reply. The calls return, and leave no znode behind. The client library allocates whatever length a frame
// claims, and panics if a frame is too short. Such frames are not tried here.
func TestRepliesThatAreNone(t *testing.T) {
	for _, lie := range lies {
		t.Run(lie.what, func(t *testing.T) {
			each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
				liar := &liar{lie: lie}
				a := w.joinAs(z, "A", property.Seat{Timeout: 3 * zktest.MortalTimeout, Through: liar.over})
				const always = 1 << 30
				lying := func(times int32, call func() error) error {
					liar.left.Store(times)
					defer liar.left.Store(0)
					return call()
				}
				empty := func() bool { return len(a.Queue()) == 0 }
				briefly := func(call func(ctx context.Context) error) func() error {
					return func() error {
						ctx, cancel := context.WithTimeout(z.Ctx, 200*time.Millisecond)
						defer cancel()
						return call(ctx)
					}
				}
				l := w.lock(a)
				var hold *Hold
				lock := func(ctx context.Context) (err error) {
					hold, err = l.Lock(ctx)
					return err
				}
				forLong := func() error { return lock(z.Ctx) }
				unlock := func() error { return hold.Unlock() }

				err := lying(always, briefly(lock))
				require.ErrorIs(t, err, context.DeadlineExceeded, "Lock, each time")
				require.ErrorContains(t, err, a.Path)
				z.Await("the directory to be empty after the call that gave up", empty)
				require.NoError(t, lying(1, forLong), "Lock, once")
				require.NoError(t, lying(1, unlock), "Unlock, once")
				require.NoError(t, lock(z.Ctx), "Lock without a lie")
				err = lying(always, unlock) // for a session timeout
				require.ErrorIs(t, err, ErrNoAnswer, "Unlock, each time")
				require.ErrorContains(t, err, a.Path)
				z.Await("the directory to be empty after the release", empty)
			})
		})
	}
}

// The directory has 1,000 children of other programs, with names of 200 characters, and some that look like
// those of the queue. They do not disturb the lock, and are not deleted.
func TestACrowdedDirectory(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		names := []string{
			"lock-", "lock-abc", "lock-99999999999999999999", "lock--99999999999999999999", "lock-0000000000 ",
			"lock-0x1", "lock-1e3", "lock-٣", "LOCK-0000000000", "lock_0000000000", "0000000000", "-1",
			"замок-0000000000", "锁", "_c_", "_c_short", "_c_-lock-", "_c_-lock-abc",
			"_c_0123456789abcdef0123456789abcdef-lock-", "_c_-__WRIT__x", "__READ__", "__WRIT__",
			"__READ__99999999999999999999", "__lock__0000000000",
			// The directories of other locks.
			"0", "orders", "block-0", "flock-3", "my-lock-2", "x__READ__0", "x__WRIT__3", "lock-000000000",
		}
		for len(names) < 1000 {
			names = append(names, fmt.Sprintf("foreign-%0192d", len(names)))
		}
		a := w.join(z, "A")
		inMany := func(op func(path string) any) {
			for some := range slices.Chunk(names, 100) { // in parts, so that each multi fits into the observer's buffer
				var ops []any
				for _, name := range some {
					ops = append(ops, op(a.Path+"/"+name))
				}
				_, err := z.Observer().Multi(ops...)
				require.NoError(t, err)
			}
		}
		_, err := z.Observer().Create(a.Path, nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		inMany(func(path string) any { return &zk.CreateRequest{Path: path, Acl: zk.WorldACL(zk.PermAll)} })
		for range 5 { // so that the queue's numbers exceed those of the directories
			a.Acquire().Release()
		}
		require.ElementsMatch(t, names, a.Queue())
		inMany(func(path string) any { return &zk.DeleteRequest{Path: path, Version: -1} })
	})
}

// The directory of one lock is below that of another one, as when a disk can be locked, and also each of its
// blocks. A directory is not a place in the queue, whatever its name, even if a user has chosen that name.
func TestALockBelowALock(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		disk := w.join(z, "A")
		for _, child := range []string{
			"0", "orders", "block-0", "flock-3", "my-lock-2", "x__READ__0", "x__WRIT__3",
			"block-0000000000", "evil-lock-0000000000", "lock-0000000000", "x__WRIT__0000000000", "__WRIT__0000000000",
			"lock-+000000001", "lock--00000001", "x-lock--000000001", "lock-00000000001234567890",
		} {
			w.at(z, disk, disk.Path+"/"+child).Acquire().Release()
		}
		for range 5 {
			turn := disk.Start()
			require.Equal(t, zktest.Returned, turn.Waits(), "nobody holds the lock: %v", disk.Queue())
			turn.Release()
			disk.Call(disk.TryLock).Release()
		}
	})
}

// A znode has the name of a place in the queue, but no owner. No session's end will ever delete it, so it is
// not a place. Behind it, there may be a place in the queue. No lock has a directory with such a name.
func TestAZnodeWithoutAnOwnerIsNoPlace(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a, b := w.join(z, "A"), w.other(z, "B")
		names := []string{}
		for _, k := range w.queue().kinds {
			for i, flags := range []int32{0, zk.FlagContainer} {
				names = append(names, fmt.Sprintf("_c_0123456789abcde%d-%s000000000%d", i, k, 4+i))
				path := a.Path + "/" + names[len(names)-1]
				if len(names) == 1 {
					a.Acquire().Release() // makes the directory: number 0
				}
				var err error
				if flags == zk.FlagContainer {
					_, err = z.Observer().CreateContainer(path, nil, flags, zk.WorldACL(zk.PermAll))
				} else {
					_, err = z.Observer().Create(path, nil, flags, zk.WorldACL(zk.PermAll))
				}
				require.NoError(t, err)
			}
		}
		held := b.Acquire() // before or behind them
		for range 5 {
			waiting := a.Start()
			waiting.MustWait("B holds the lock")
			held.Release()
			waiting.Release()
			held = b.Acquire()
		}
		held.Release()
		queue, err := w.lock(a).(queued).Queue(z.Ctx)
		require.NoError(t, err)
		require.Empty(t, queue, "nobody holds the lock, and nobody waits")
		a.Call(a.TryLock).Release()
		for _, name := range names {
			_, err := w.at(z, a, a.Path+"/"+name).Lock(z.Ctx)
			require.ErrorContains(t, err, "looks like the name of a znode in a lock's queue: choose another name")
		}
	})
}

// Names in all scripts are allowed, and the server accepts them. Characters that the server would refuse are
// refused before any request is sent, and the error names the character.
func TestNamesInOtherScripts(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a := w.join(z, "A")
		for _, name := range []string{
			"订单", "заказ-७", "a b", "a%2Fb", "ﬁ！", "lock-", "_c_", "...", "\ud7ff", "\uf900", "\uffef",
		} {
			w.at(z, a, z.Root+"/"+name+"/deep").Acquire().Release()
		}
		mark := a.Tap.Mark()
		for name, char := range map[string]string{
			"🔒": "U+1F512", "\ue000": "U+E000", "\uf8ff": "U+F8FF", "\x7f": "U+007F", "\u009f": "U+009F", "a\nb": "U+000A",
			"x\u0000": "U+0000", "\ufff0": "U+FFF0", "\xff\xfe": "U+FFFD", strings.Repeat("锁", 100) + "\ufffd": "U+FFFD",
		} {
			_, err := w.at(z, a, z.Root+"/"+name+"/deep").Lock(z.Ctx)
			require.ErrorIs(t, err, zk.ErrInvalidPath, "%q", name)
			require.ErrorContains(t, err, "the servers refuse the character "+char)
			require.Less(t, len(err.Error()), 200, "bytes of the error")
		}
		require.Empty(t, a.Asked(mark), "requests of calls that were all refused")
	})
}

// leased refuses exactly the characters that the server or the client library would refuse.
func TestTheServerRefusesTheSameCharacters(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	for _, char := range []rune{
		0x1f, 0x20, 0x7e, 0x7f, 0x9f, 0xa0, 0xd7ff, 0xe000, 0xf8ff, 0xf900, 0xffef, 0xfff0, 0xffff, 0x10000,
	} {
		_, err := z.Observer().Create(z.Root+"/"+string(char), nil, 0, zk.WorldACL(zk.PermAll))
		require.Equal(t, refusedInPath(char), err != nil, "%U: %v", char, err)
	}
}

// A znode with kazoo's own name is not in this queue: kazoo's Lock excludes only zk.Lock and kazoo.
func TestAZnodeWithKazoosNameIsIgnored(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a := w.join(z, "A")
		a.Acquire().Release() // makes the directory
		_, err := z.Observer().Create(a.Path+"/0123456789abcdef0123456789abcdef__lock__", nil,
			zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		a.Acquire().Release()
	})
}

// Each lock has its own hold and token. A acquires a second lock while it holds a first one, and then locks
// the first one again.
func TestALockInsideAnother(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a := w.join(z, "A")
		one, other := w.lock(a), w.lock(w.at(z, a, a.Path+"-other"))
		outer := mustLock(t, one, z.Ctx)
		inner := mustLock(t, other, outer.Context(z.Ctx))
		require.NotSame(t, outer, inner)
		require.Greater(t, inner.Token(), outer.Token())
		again := mustLock(t, one, inner.Context(outer.Context(z.Ctx)))
		require.Same(t, outer, again, "the first lock again, inside the second")
		require.NoError(t, inner.Unlock())
		require.NoError(t, outer.Context(z.Ctx).Err())
		require.NoError(t, outer.Unlock())
		require.Len(t, a.Queue(), 1, "A has locked twice and released once")
		require.NoError(t, outer.Unlock())
		require.Empty(t, a.Queue())
	})
}

// Two sessions of one process are two clients. Lock with a context of one session's hold is no re-entry to a
// lock of the other session.
func TestTwoSessionsInOneProcess(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a, b := w.other(z, "one session"), w.join(z, "the other")
		held := a.Acquire()
		_, err := b.TryLock(z.Ctx)
		require.ErrorIs(t, err, ErrLocked)
		_, err = b.TryLock(held.Context())
		require.ErrorIs(t, err, ErrLocked, "with the first one's hold as its context")
		held.Release()
	})
}

// A's lease ends while A is partitioned, but its session lives on. A is notified, and continues to work.
// Until A's last Unlock nobody else acquires the lock: no other client, and no other goroutine of A.
func TestALossLetsNobodyInBeforeUnlock(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		believes := zktest.Handshake{Tell: 3 * zktest.MortalTimeout} // the server keeps the session for longer
		a, b := w.joinAs(z, "A", property.Seat{Through: believes.Through}), w.other(z, "B")
		outer := a.Acquire()
		inner := a.StartIn(context.WithoutCancel(outer.Context())) // as for work that outlives the caller
		inner.Acquired()
		other := b.Start()
		other.MustWait("A holds the lock")
		own := a.Start()
		a.Tap.Cut()
		for _, turn := range []*zktest.Turn{outer, inner} {
			zktest.AwaitChan(z, "A to be notified", turn.Context().Done())
			requireReason(t, context.Cause(turn.Context()), ReasonLeaseOver)
		}
		a.Tap.Restore()
		w.at(z, a, a.Path+"-other").Acquire().Release() // A's session has a lease again
		nobodyIn := func(when string) {
			t.Helper()
			other.MustWait("A has not unlocked: %s", when)
			require.False(t, own.Returned(), "another goroutine of A was let in: %s", when)
		}
		nobodyIn("A has been notified")
		_, err := a.Lock(context.WithoutCancel(outer.Context()))
		require.ErrorIs(t, err, ErrLost, "A's Lock with a lost hold")
		require.ErrorIs(t, inner.Unlock(), ErrLost, "A's first Unlock")
		nobodyIn("one of two Unlocks")
		require.ErrorIs(t, outer.Unlock(), ErrLost, "A's last Unlock")
		require.ErrorIs(t, outer.Unlock(), ErrNotHeld, "one Unlock more")
		other.Release()
		own.Release()
		require.Equal(t, a.ID, a.SessionID(), "A's session")
	})
}

// A releases the lock, and the answer to its delete is late. A's context ends before B acquires the lock.
func TestTheHoldEndsBeforeTheNextIsLetIn(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a, b := w.join(z, "A"), w.other(z, "B")
		held := a.Acquire()
		waiting := b.Start()
		waiting.MustWait("A holds the lock")
		slow := a.Tap.HoldReply(wiretap.Delete, 1)
		unlock := z.Go(a.Client, func(context.Context) error { return held.Unlock() })
		waiting.Acquired()
		require.ErrorIs(t, context.Cause(held.Context()), ErrNotHeld, "B is in, and A's context")
		require.EqualError(t, context.Cause(held.Context()), "the lock was released")
		slow.Let()
		require.NoError(t, unlock.Err())
	})
}

// A holder is notified that the lock is lost, but it hangs in something else. When the lock is free again,
// another process acquires it. The goroutines of the holder's own process also acquire it without waiting for
// the holder's Unlock. When the holder calls Unlock in the end, that takes the lock from nobody.
func TestALostHolderThatHangsKeepsItsProcessFromNothing(t *testing.T) {
	eachLock(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a := w.joinAs(z, "A", property.Seat{Timeout: steadyTimeout})
		hangs := a.Acquire()
		own, other := a.Start(), w.other(z, "another process").Start()
		other.MustWait("A holds the lock")
		z.Expire(a.Client)
		a.Tap.Restore()
		zktest.AwaitChan(z, "the holder to be notified", hangs.Context().Done())
		other.Release()
		own.Acquired()
		require.NoError(t, own.Context().Err(), "a new hold")
		require.ErrorIs(t, hangs.Unlock(), ErrLost)
		require.NoError(t, own.Context().Err(), "the hold of the other goroutine, after the late Unlock")
		require.ErrorIs(t, a.Call(a.TryLock).Err(), ErrLocked, "the other goroutine has the lock")
		own.Release()
		a.Call(a.TryLock).Release()
		require.Empty(t, a.Queue())
	})
}

// A's connection breaks for a moment, three times, and A keeps the lock.
func TestAShortBreakDoesNotEndTheHold(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a, b := w.join(z, "A"), w.other(z, "B")
		turn := a.Acquire()
		waiting := b.Start()
		waiting.MustWait("A holds the lock")
		for range 3 {
			hello := a.Tap.HoldRequest(wiretap.Connect, 1)
			a.Tap.HangUp()
			zktest.AwaitChan(z, "A to connect again", hello.Sprung())
			z.Await("A to see that it is cut off", func() bool { return a.State() != zk.StateHasSession })
			require.NoError(t, turn.Context().Err(), "A's line is down for a moment")
			hello.Let()
			z.Barrier(a.Client)
		}
		require.NoError(t, turn.Context().Err(), "A's line is back")
		waiting.MustWait("A holds the lock")
		turn.Release()
		waiting.Release()
	})
}

// A releases the lock while B is disconnected. When B reconnects, it acquires the lock in the same session.
func TestAReleaseWhileTheLineIsDown(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a, b := w.other(z, "A"), w.join(z, "B")
		held := a.Acquire()
		waiting := b.Start()
		waiting.MustWait("A holds the lock")
		b.Tap.Cut()
		held.Release()
		b.Tap.Restore()
		waiting.Acquired()
		require.Equal(t, b.ID, b.SessionID(), "B's session")
	})
}

// B waits, and is partitioned for longer than its lease, while its session lives on. Meanwhile A releases the
// lock. B acquires the lock, and B's hold has a lease.
func TestWhoIsLetInCanRelyOnTheLock(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		believes := zktest.Handshake{Tell: 3 * zktest.MortalTimeout}
		a, b := w.other(z, "A"), w.joinAs(z, "B", property.Seat{Through: believes.Through})
		held := a.Acquire()
		waiting := b.Start()
		waiting.MustWait("A holds the lock")
		lease := session(b).takeLease(context.Background())
		b.Tap.Cut()
		z.Await("B's lease to run out", func() bool { return session(b).isOver(lease) })
		require.False(t, waiting.Returned())
		held.Release()
		b.Tap.Restore()
		require.NoError(t, waiting.Context().Err(), "B's hold")
		require.Equal(t, b.ID, b.SessionID(), "B's session")
	})
}

// The list that gives A the lock arrives, and at this moment A's connection breaks. The client library queues
// A's later requests until the outage is over. By then A's session has expired, and C holds the lock. A must
// not acquire the lock beside C with a session that began after the outage.
func TestAnOutageJustBeforeTheEntry(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		line := &stalling{write: make(chan struct{}), dial: make(chan struct{})}
		a := w.joinAs(z, "A", property.Seat{Timeout: zktest.MortalTimeout, Through: line.through})
		b := w.other(z, "B")
		t.Cleanup(line.end)
		held := b.Acquire()
		entering := a.Start()
		entering.MustWait("B holds the lock")
		// A's create has to be long ago, so this loop lets time pass.
		for begin := time.Now(); time.Since(begin) < zktest.MortalTimeout; time.Sleep(10 * time.Millisecond) {
			require.False(t, entering.Returned(), "B holds the lock")
		}
		turn := a.Tap.HoldReply(wiretap.GetChildren, 1)
		held.Release()
		zktest.AwaitChan(z, "the server to tell A that it is its turn", turn.Sprung())

		line.stalls.Store(true)
		const requests = 8 // the first of them waits on the connection, and the others behind it
		unsent := reflect.ValueOf(a.Conn).Elem().FieldByName("sendChan")
		for range requests {
			z.Go(a.Client, func(context.Context) error {
				_, _, err := a.Exists("/zklock-nobody")
				return err
			})
		}
		t.Cleanup(line.end) // before the goroutines are waited for
		z.Await("A's requests to stand in line", func() bool { return line.writes.Load() == 1 && unsent.Len() >= requests-1 })
		before := unsent.Len()
		turn.Let()
		z.Await("A to be let in, or to ask for something", func() bool {
			return entering.Returned() || unsent.Len() > before
		})
		a.Tap.HangUp()
		z.Await("A's client to see that the line is down", func() bool { return line.broken.Load() > 0 })
		close(line.write)

		next := w.other(z, "C").Start()
		z.AwaitExpiry(a.Client)
		next.Acquired()
		inside := func() bool {
			wasLetIn := entering.Returned() && entering.Err() == nil
			return wasLetIn && entering.Context().Err() == nil
		}
		require.False(t, inside(), "A's session has expired, C is in, and A's context goes on")
		close(line.dial)
		z.Await("A to have another session", func() bool { return a.State() == zk.StateHasSession && a.SessionID() != a.ID })
		if !entering.Returned() {
			entering.StillWaits()
		}
		require.False(t, inside(), "A is in beside C, with a new session; the queue: %v", a.Queue())
		next.Release()
		if !entering.Returned() {
			entering.Acquired()
		}
	})
}

// stalling is a connection on which, once it stalls, writes and new connections wait. A write waits until the
// channel write is closed, and then fails. A new connection waits until dial is closed.
type stalling struct {
	stalls         atomic.Bool
	write, dial    chan struct{}
	writes, broken atomic.Int32 // writes that wait or have waited; reads that have failed
	ended          atomic.Bool
}

func (l *stalling) through(tap zk.Dialer) zk.Dialer {
	return func(network, address string, limit time.Duration) (net.Conn, error) {
		if l.stalls.Load() {
			<-l.dial
			l.stalls.Store(false)
		}
		conn, err := tap(network, address, limit)
		if err != nil {
			return nil, err
		}
		return &stalled{conn, l}, nil
	}
}

// end ends all these waits. A second call does nothing.
func (l *stalling) end() {
	if l.ended.Swap(true) {
		return
	}
	for _, gate := range []chan struct{}{l.write, l.dial} {
		select {
		case <-gate:
		default:
			close(gate)
		}
	}
}

// stalled is one connection of such a line.
type stalled struct {
	net.Conn
	line *stalling
}

func (c *stalled) Write(frame []byte) (int, error) {
	if !c.line.stalls.Load() {
		return c.Conn.Write(frame)
	}
	c.line.writes.Add(1)
	<-c.line.write
	return 0, net.ErrClosed
}

func (c *stalled) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		c.line.broken.Add(1)
	}
	return n, err
}
