package leased

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	pathpkg "path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// A refusal says who holds the lock, and whether it is this process, to errors.As and in its text. So does the error of
// a Lock that gives up. It gives no advice: the usual case is two requests of one process.
func TestARefusalNamesTheHolder(t *testing.T) {
	eachLock(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a, b := w.with(WithLabel("pod a")).join(z, "A"), w.other(z, "B")
		held := a.Acquire()
		znode := a.Path + "/" + a.Queue()[0]
		inWords := pathpkg.Base(znode) + `, whose label is "pod a"`
		givesUp := func(m *zktest.Member) error {
			ctx, cancel := context.WithCancel(z.Ctx)
			waiting := m.StartIn(ctx)
			waiting.MustWait("A holds the lock")
			cancel()
			return waiting.Err()
		}
		_, tried := b.TryLock(z.Ctx)
		for call, err := range map[string]error{"TryLock": tried, "Lock": givesUp(b)} {
			var locked *LockedError
			require.ErrorAs(t, err, &locked, call)
			require.ErrorIs(t, err, ErrLocked, call)
			require.Equal(t, LockedError{Znode: znode, Label: "pod a"}, *locked, call)
			require.True(t, strings.HasSuffix(err.Error(), ": "+inWords), "%s: %v", call, err)
		}

		defer held.Release()
		if w == byCohort {
			return // A's own calls wait in the process: see the next test
		}
		z.Await("B, which has given up, to leave the queue", func() bool { return len(a.Queue()) == 1 })
		_, err := a.TryLock(z.Ctx)
		var locked *LockedError
		require.ErrorAs(t, err, &locked)
		require.Equal(t, LockedError{Znode: znode, Label: "pod a", SameProcess: true}, *locked)
		require.True(t, strings.HasSuffix(err.Error(), ": "+inWords+", in this same process"), "%v", err)
	})
}

// A call that waits for another goroutine of its Cohort names no znode.
func TestARefusalByTheProcesssOwnLine(t *testing.T) {
	t.Parallel()
	a := joinProcess(zktest.New(t), "A", WithLabel("pod a"))
	held := a.Acquire()
	_, err := a.cohort.TryLock(a.Ctx)
	var locked *LockedError
	require.ErrorAs(t, err, &locked)
	require.Equal(t, LockedError{Label: "pod a", SameProcess: true}, *locked)
	require.ErrorContains(t, err, `another goroutine of this process, whose label is "pod a"`)
	held.Release()
}

func TestTryLockWaitsForNobody(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a, b := w.join(z, "A"), w.other(z, "B")
		b.Acquire().Release() // makes the directory
		free := a.Call(a.TryLock)
		holds(t, z, w, free)
		free.Release()

		held, mark := b.Acquire(), a.Tap.Mark()
		err := a.Call(a.TryLock).Err()
		require.ErrorIs(t, err, ErrLocked, "B holds the lock")
		require.NotErrorIs(t, err, ErrNoAnswer, "the servers have answered")
		asked := map[wiretap.Op]int{wiretap.GetChildren: 1, wiretap.GetData: 1}
		require.Equal(t, asked, a.Requests(mark), "what a TryLock asks behind a holder: it looks, and creates no znode")
		require.Empty(t, a.Tap.Watched(), "watches left at the server")

		if w.reads {
			return // two readers of A do not wait for one another
		}
		own := a.Start()
		own.MustWait("B holds the lock")
		if w == byCohort {
			asked = map[wiretap.Op]int{} // in the process, it also waits for no other caller
		}
		for _, does := range []string{"waits", "holds"} {
			mark = a.Tap.Mark()
			require.ErrorIs(t, a.Call(a.TryLock).Err(), ErrLocked, "another goroutine of A %s", does)
			require.Equal(t, asked, a.Requests(mark), "what TryLock asks while another goroutine %s", does)
			if does == "waits" {
				held.Release()
				own.Acquired()
			}
		}
		own.Release()
		require.Empty(t, a.Queue())
	})
}

// Two clients look, find an empty queue, and create. The second one then finds a client before it. It leaves
// the queue, and its TryLock returns.
func TestATryThatComesSecondLeaves(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a, b := w.other(z, "A"), w.join(z, "B")
		b.Acquire().Release() // makes the directory
		create := b.Tap.HoldRequest(wiretap.Create, 1)
		try := b.Call(b.TryLock)
		zktest.AwaitChan(z, "B to have looked", create.Sprung())
		held, mark := a.Acquire(), b.Tap.Mark()
		create.Let()
		require.ErrorIs(t, try.Err(), ErrLocked)
		require.Len(t, b.Queue(), 1, "A's znode")
		asked := map[wiretap.Op]int{wiretap.GetChildren: 1, wiretap.GetData: 1, wiretap.Delete: 1}
		require.Equal(t, asked, b.Requests(mark), "behind the create")
		require.Empty(t, b.Tap.Watched(), "watches left at the server")
		held.Release()
	})
}

// Many callers poll a lock that is held only for a moment. They must not block one another with znodes that
// never become holds. So most of the tries that return ErrLocked have created no znode. Only tries that
// looked at the same moment as another one have.
func TestCallersOfTryLockDoNotBarOneAnother(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		const pollers, turns = 16, 100
		a := w.other(z, "A")
		a.Acquire().Release() // makes the directory
		mark := a.Tap.Mark()
		var had, tries atomic.Int32
		var all sync.WaitGroup
		for range pollers {
			all.Go(func() {
				for had.Load() < turns && z.Ctx.Err() == nil {
					tries.Add(1)
					hold, err := a.TryLock(z.Ctx)
					if errors.Is(err, ErrLocked) {
						continue
					}
					if assert.NoError(t, err) {
						had.Add(1)
						assert.NoError(t, hold.Unlock())
					}
				}
			})
		}
		all.Wait()
		require.NoError(t, z.Ctx.Err(), "timed out waiting for %d turns: there were %d, in %d tries",
			turns, had.Load(), tries.Load())
		creates := a.Requests(mark)[wiretap.Create]
		t.Logf("» %d turns, %d tries, %d creates", had.Load(), tries.Load(), creates)
		require.Less(t, creates, int(tries.Load())*2/3, "creates of %d tries", tries.Load())
	})
}

// No server answers. TryLock returns when its context ends, and its error does not say that another client
// holds the lock, because none does.
func TestATryWithoutAServer(t *testing.T) {
	for _, how := range []string{"cut off", "silent"} {
		t.Run(how, func(t *testing.T) {
			each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
				a := w.join(z, "A")
				a.Acquire().Release()
				if how == "silent" {
					a.Tap.Silence()
				} else {
					a.Tap.Cut()
					z.Await("A to see it", func() bool { return a.State() != zk.StateHasSession })
				}
				ctx, cancel := context.WithTimeout(z.Ctx, 100*time.Millisecond)
				defer cancel()
				_, err := a.TryLock(ctx)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorIs(t, err, ErrNoAnswer)
				require.NotErrorIs(t, err, ErrLocked)
				a.Tap.Restore()
			})
		})
	}
}

// A holds the lock, and B's TryLock, whose znode is second, must leave the queue. The directory's ACL forbids
// the delete. The error says so, and names the znode that is left.
func TestWhoLeavesTellsOfADeleteThatIsRefused(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a, b := w.other(z, "A"), w.join(z, "B")
		a.Acquire().Release() // makes the directory
		create := b.Tap.HoldRequest(wiretap.Create, 1)
		try := b.Call(b.TryLock)
		zktest.AwaitChan(z, "B to have looked", create.Sprung())
		a.Acquire()
		permit(t, z, a.Path, zk.PermAll&^zk.PermDelete)
		create.Let()
		err := try.Err()
		require.ErrorIs(t, err, ErrLocked)
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.ErrorContains(t, err, b.Znode())
	})
}

// B gives up while A holds the lock, and the directory's ACL forbids the delete of B's znode. Lock has returned
// before that, so the refusal is in the log.
func TestWhoGivesUpLogsADeleteThatIsRefused(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		h := &heard{}
		a, b := w.other(z, "A"), w.with(h.logger()).join(z, "B")
		held := a.Acquire()
		waiting := b.Start()
		waiting.MustWait("A holds the lock")
		permit(t, z, a.Path, zk.PermAll&^zk.PermDelete)
		require.ErrorIs(t, waiting.Cancel(), ErrLocked)
		z.Await("the refusal in the log", func() bool {
			return h.has("level=ERROR", "has refused to delete a znode that belongs to no hold", b.Znode())
		})
		permit(t, z, a.Path, zk.PermAll)
		b.Close()
		held.Release()
	})
}

// Hundreds of calls give up, each at another moment: while the create is under way, while they wait, just
// when they acquire the lock.
func TestGivingUpAtAnyMomentLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a := w.join(z, "A")
		a.Acquire().Release() // makes the directory
		begun := time.Now()
		a.Acquire().Release()
		span := 2 * time.Since(begun)
		var all sync.WaitGroup
		for n := range 4 {
			all.Go(func() {
				for i := range 60 {
					ctx, cancel := context.WithTimeout(z.Ctx, span*time.Duration(60*n+i)/240)
					held, err := a.Lock(ctx)
					if err == nil {
						err = held.Unlock()
					}
					if err != nil {
						assert.ErrorIs(t, err, context.DeadlineExceeded)
					}
					cancel()
				}
			})
		}
		all.Wait()
		z.Await("the queue to be empty", func() bool { return len(a.Queue()) == 0 })
		a.Acquire().Release()
	})
}

// In one queue with the client library's own lock.

var clientLocks = property.Over("zk.Lock", property.ClientLock)

func TestAMutexAndTheClientsLockExcludeOneAnother(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	joined := 0
	line := z.Line(3, func(name string) *zktest.Member {
		joined++
		return []property.Subject{clientLocks, mutexes}[joined%2].Join(z, name)
	})
	for len(line) > 0 {
		line = z.Pass(line)
	}
}

// The reply to a create of zk.Lock is lost. Its recovery looks for its own znode among those of leased. It
// assumes that each name that begins with _c_ has 32 more characters, and would panic if there were fewer.
func TestTheClientsLockFindsItsZnodeAmongOurs(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, c := mutexes.Join(z, "A"), clientLocks.Join(z, "zk.Lock")
	held := a.Acquire()
	lost := c.Tap.LoseReply(wiretap.Create, 1)
	theirs := c.Start()
	zktest.AwaitChan(z, "the reply to be lost", lost.Sprung())
	theirs.MustWait("A holds the lock")
	require.Len(t, a.Queue(), 2)
	held.Release()
	theirs.Release()
}

// Lost requests and replies, and znodes that other clients put into the queue.

// A's create is lost. While A is partitioned, another client, whose session lives, creates znodes with A's
// guid: one before A's own number and one behind it.
func TestAZnodeOfAnotherSessionIsNotAdopted(t *testing.T) {
	for what, lose := range map[string]func(*wiretap.Tap, wiretap.Op, int) *wiretap.Trap{
		"the server has made A's": (*wiretap.Tap).LoseReply,
		"the server has not":      (*wiretap.Tap).LoseRequest,
	} {
		t.Run(what, func(t *testing.T) {
			eachLock(t, func(t *testing.T, z *zktest.Zoo, w *way) {
				a := w.join(z, "A")
				a.Acquire().Release() // takes number 0
				begun, end := outage(z, a, lose(a.Tap, wiretap.Create, 1))
				mark := a.Tap.Mark()
				call := a.Start()
				begun()
				create := a.Tap.Since(mark)[0]
				before, behind := create.Path+"0000000000", create.Path+"0000000007"
				for _, path := range []string{before, behind} {
					_, err := z.Observer().Create(path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
					require.NoError(t, err)
				}

				end()
				call.MustWait("number 0 is the first, and its owner does not matter")
				require.NoError(t, z.Observer().Delete(before, -1))
				holds(t, z, w, call)
				call.Release()
				require.Len(t, a.Queue(), 1, "the other's second znode alone")
			})
		})
	}
}

// A learns that its session has expired, and gets another one, before the znodes of the first session are
// deleted: here, long before. The old znode becomes the first in the queue, but it is not A's place.
func TestAZnodeOfAnEndedSessionIsNoPlaceInTheQueue(t *testing.T) {
	eachLock(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		lines := 0
		a := w.joinAs(z, "A", property.Seat{Through: zktest.Over(func(c net.Conn) net.Conn {
			lines++
			return zktest.Handshake{Expired: lines == 2}.Conn(c)
		})})
		held := w.other(z, "B").Acquire()
		call := a.Start()
		call.MustWait("B holds the lock")
		old := a.Znode()
		a.Tap.HangUp()
		z.Await("A to have another session", func() bool {
			return a.State() == zk.StateHasSession && a.SessionID() != a.ID
		})
		held.Release()
		z.Await("A to queue again, or to be let in", func() bool { return len(a.Queue()) == 2 || call.Returned() })
		require.False(t, call.Returned(), "A holds the lock with %s, a znode of its old session", old)
		require.NoError(t, z.Observer().Delete(old, -1))
		holds(t, z, w, call)
	})
}

// B waits, and its znode is deleted, by hand or with its session. The directory's ACL forbids
// creating another one, so Lock returns that error.
func TestAPlaceThatCannotBeMadeAnewEndsTheWait(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		for _, why := range []string{"deleted", "gone with its session"} {
			a, b := w.other(z, "A"), w.joinAs(z, "B", property.Seat{Timeout: zktest.MortalTimeout})
			held, waiting := a.Acquire(), b.Start()
			waiting.MustWait("A holds the lock")
			permit(t, z, a.Path, zk.PermAll&^zk.PermCreate)
			mark := b.Tap.Mark()
			if why == "deleted" {
				require.NoError(t, z.Observer().Delete(b.Znode(), -1))
			} else {
				b.Crash()
				z.AwaitExpiry(b.Client)
				b.Tap.Restore()
			}
			held.Release()
			require.ErrorIs(t, waiting.Err(), zk.ErrNoAuth, "B's znode was %s", why)
			if why == "deleted" {
				require.Equal(t, 1, b.Requests(mark)[wiretap.Create], "creates that are refused")
			}
			permit(t, z, a.Path, zk.PermAll)
		}
	})
}

// Calls that give up behind a long hold leave one watch in the client library, however many they are. Two readers
// of one session that wait for one writer share it, and both are notified.
func TestAWatchIsShared(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := mutexes.Join(z, "A")
	b := mutexes.Join(z, "B")
	other := NewRWMutex(session(b), z.Root+"/shared")
	hold := mustLock(t, NewRWMutex(session(a), z.Root+"/shared"), z.Ctx)
	const calls = 20
	for i := range calls {
		ctx, cancel := context.WithCancel(z.Ctx)
		mark := b.Tap.Mark()
		go func() {
			defer cancel()
			z.Await("B to wait", func() bool { return b.Requests(mark)[wiretap.GetData] == 1 && session(b).shares() == 1 })
		}()
		_, err := other.RLock(ctx)
		require.ErrorIs(t, err, context.Canceled, "call %d", i)
	}
	require.Equal(t, 1, watches(b.Conn), "watches in the client library")

	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			h, err := other.RLock(z.Ctx)
			if assert.NoError(t, err) {
				assert.NoError(t, h.Unlock())
			}
		})
	}
	z.Await("both readers to wait", func() bool { return session(b).Stats().Waiting == 2 })
	require.NoError(t, hold.Unlock())
	readers.Wait()
	z.Await("no watch to be left", func() bool { return watches(b.Conn) == 0 })
}

// shares returns how many watches the session has to share.
func (s *Session) shares() int {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	return len(s.client.watches)
}

// watches returns how many watches the client library keeps.
func watches(c *zk.Conn) (n int) {
	conn := reflect.ValueOf(c).Elem()
	lock := conn.FieldByName("watchersLock")
	mu := (*sync.Mutex)(lock.Addr().UnsafePointer())
	mu.Lock()
	defer mu.Unlock()
	for each := conn.FieldByName("watchers").MapRange(); each.Next(); {
		n += each.Value().Len()
	}
	return n
}

// Many watches fire that no call waits for any more. They are dropped in time.
func TestWatchesThatHaveFiredAreDropped(t *testing.T) {
	t.Parallel()
	c := &dummy(t, time.Hour).client
	_, current := c.watchOn("/none")
	for i := range 10_000 {
		fired := make(chan zk.Event)
		close(fired)
		c.share(strconv.Itoa(i), fired, current)
	}
	require.Less(t, len(c.watches), 100)
	fired := make(chan zk.Event)
	close(fired)
	c.share("/fired", fired, current)
	gone, _ := c.watchOn("/fired")
	require.Nil(t, gone, "a watch that has fired")
	open := make(chan zk.Event)
	c.share("/open", open, current)
	gone, _ = c.watchOn("/open")
	require.NotNil(t, gone)
	c.mu.Lock()
	c.loseWatches()
	c.mu.Unlock()
	c.share("/late", open, current)
	for _, path := range []string{"/open", "/late"} {
		gone, _ = c.watchOn(path)
		require.Nil(t, gone, "the watch on %s, after watches were lost", path)
	}
}

// A's znode gets an ACL that lets nobody read it. So B cannot watch it.
func TestAWatchThatIsRefusedEndsTheWait(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a, b := w.other(z, "A"), w.join(z, "B")
		a.Acquire()
		permit(t, z, a.Znode(), zk.PermAll&^zk.PermRead)
		require.ErrorIs(t, b.Start().Err(), zk.ErrNoAuth)
		require.Len(t, a.Queue(), 1, "B has left the queue")
	})
}

func TestACreateWithoutAReplyIsRepeatedWhenTheSessionHasExpired(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a := w.joinAs(z, "A", property.Seat{Timeout: zktest.MortalTimeout})
		a.Acquire().Release() // makes the directory
		begun, end := outage(z, a, a.Tap.LoseReply(wiretap.Create, 1))
		call := a.Start()
		begun()
		z.AwaitExpiry(a.Client)
		end()
		holds(t, z, w, call)
		require.NotEqual(t, a.ID, a.SessionID(), "A's session")
		require.Len(t, a.Queue(), 1)
	})
}

// Lock is called without a connection, and the session expires. The client library sends the create in the next
// session. Lock finds that znode, and leaves none of its own behind.
func TestACreateThatIsSentInTheNextSessionIsFound(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a := w.joinAs(z, "A", property.Seat{Timeout: zktest.MortalTimeout})
		a.Acquire().Release() // makes the directory
		hello := a.Tap.HoldRequest(wiretap.Connect, 1)
		a.Tap.HangUp()
		zktest.AwaitChan(z, "A to connect again", hello.Sprung())
		call := a.Start()
		z.AwaitExpiry(a.Client)
		hello.Let()
		holds(t, z, w, call)
		require.Len(t, a.Queue(), 1)
	})
}

// The reply to a create is lost, and the directory's ACL forbids the list. So it cannot be known whether the
// znode exists. Lock returns the reason, and creates no other one.
func TestARecoveryThatIsRefusedEndsTheLock(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a := w.join(z, "A")
		a.Acquire().Release() // makes the directory
		permit(t, z, a.Path, zk.PermAll&^zk.PermRead)
		a.Tap.LoseReply(wiretap.Create, 1)
		mark := a.Tap.Mark()
		require.ErrorIs(t, lock(a, z.Ctx).Err(), zk.ErrNoAuth)
		require.Equal(t, 1, a.Requests(mark)[wiretap.Create], "creates")
	})
}

// A create that does not reach the server is retried. One list finds that there is no znode, and another one
// that the new znode is the first. In the first round there is no directory yet.
func TestACreateThatDoesNotArriveIsRepeated(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a := w.join(z, "A")
		for _, directory := range []string{"missing", "there"} {
			mark := a.Tap.Mark()
			a.Tap.LoseRequest(wiretap.Create, 1)
			a.Acquire().Release()
			require.Equal(t, 2, a.Requests(mark)[wiretap.GetChildren], "lists, with the directory %s", directory)
		}
	})
}

// After a lost reply Lock has found its znode. The znode is deleted before Lock has read it, so Lock creates
// another one.
func TestAZnodeThatGoesWhileItIsLookedForIsMadeAnew(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a := w.join(z, "A")
		a.Tap.LoseReply(wiretap.Create, 3) // the third create: the first finds no directory, and the second creates it
		read := a.Tap.HoldRequest(wiretap.GetData, 1)
		turn := a.Start()
		zktest.AwaitChan(z, "A to read the znode that it has found", read.Sprung())
		require.NoError(t, z.Observer().Delete(a.Znode(), -1))
		read.Let()
		turn.Release()
	})
}

// The create's reply is lost, and each step of the recovery loses its reply once: the write that changes
// nothing, the list, the read of the owner.
func TestARecoveryThatIsCutOffGoesOn(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a := w.join(z, "A")
		a.Acquire().Release()
		var traps []*wiretap.Trap
		for _, op := range []wiretap.Op{wiretap.Create, wiretap.Delete, wiretap.GetChildren, wiretap.GetData} {
			traps = append(traps, a.Tap.LoseReply(op, 1))
		}
		mark := a.Tap.Mark()
		turn := a.Acquire()
		for _, trap := range traps {
			zktest.AwaitChan(z, "each reply to be lost", trap.Sprung())
		}
		holds(t, z, w, turn)
		require.Equal(t, 1, a.Requests(mark)[wiretap.Create], "creates: the one without a reply was found")
		require.Equal(t, 4, a.Requests(mark)[wiretap.Delete],
			"writes that change nothing: one before each of three lists, and one without a reply")
		turn.Release()
	})
}

func TestAZnodeDeletedByHand(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a, b := w.join(z, "A"), w.other(z, "B")
		held, waiting := a.Acquire(), b.Start()
		waiting.MustWait("A holds the lock")
		for _, node := range []string{b.Znode(), a.Znode()} {
			require.NoError(t, z.Observer().Delete(node, -1))
		}
		holds(t, z, w, waiting) // with the znode that it has created instead
		require.NoError(t, held.Context().Err(), "nobody asks the server, and so nobody knows")
		require.ErrorIs(t, held.Unlock(), ErrLost)
		waiting.Release()
	})
}

// B waits. Its znode is deleted, and then the directory: B creates both again.
func TestADirectoryDeletedByHand(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a, b := w.other(z, "A"), w.join(z, "B")
		a.Acquire()
		waiting := b.Start()
		waiting.MustWait("A holds the lock")
		lists := b.Tap.HoldRequest(wiretap.GetChildren, 1)
		for _, node := range []string{b.Znode(), a.Znode()} {
			require.NoError(t, z.Observer().Delete(node, -1))
		}
		zktest.AwaitChan(z, "B to ask for the list", lists.Sprung())
		require.NoError(t, z.Observer().Delete(b.Path, -1))
		lists.Let()
		holds(t, z, w, waiting)
		waiting.Release()
	})
}

// FuzzNames puts a znode of each kind, with a number, among any other names. It calls functions that are not
// exported, because a server would not give these numbers.
func FuzzNames(f *testing.F) {
	const one, two = "_c_00000000000000ff-", "_c_ffffffff-0b2c-4a61-9d3e-5f1f6a7b8c9d-"
	// These names are in another order if they are sorted by the whole name, by the kind, or by the first
	// digits.
	f.Add(one, "z-__WRIT__0000000002/"+two+"__READ__0000000003/"+
		one+"__READ__0000000010/"+one+"__WRIT__0000000011/"+two+"__WRIT__2147483647", int32(100))
	f.Add(one, "", int32(0))
	f.Add(one, one+"__WRIT__0000000001/"+two+"__READ__0000000003/"+two+"__WRIT__0000000002/"+
		one+"__WRIT__0000000005/foreign", int32(4))
	f.Add(two, "__READ__-2147483648/__WRIT__2147483647/__WRIT__99999999999999999999", int32(-1))
	f.Add("", "__READ__/__WRIT__x/__READ__+1/lock-0000000000/__WRIT__٣/__READ____WRIT__0000000003/"+
		"__WRIT__0000000000-old", int32(7))
	f.Add(two, one+"lock-0000000001/zz-lock-0000000003/"+two+"lock-0000000002/lock-0000000005/foreign", int32(4))
	f.Add(one, two+"lock--2147483648/lock-2147483647/lock-99999999999999999999", int32(-1))
	f.Add(one, "lock-/lock-x/lock-+1/"+one+"__READ__0000000000/lock-٣", int32(7))
	f.Add(one, "_c_block-lock-0000000002/_c_1b2c0000-0000-lock-0000000003-backup/0000000004", int32(5))
	f.Add(one, two+"__READ__-000000000", int32(-1))
	// The directories of other locks.
	f.Add("", "block-0/flock-3/my-lock-2/x__READ__0/x__WRIT__3/lock-123456789", int32(9))
	f.Add(one, "block-0000000000/evil-lock-0000000000/x__WRIT__0000000000/lock-+000000001/lock--00000001", int32(9))
	f.Fuzz(func(t *testing.T, prefix, names string, own int32) {
		others := strings.Split(names, "/")
		const guid, number = `^(?:_c_)?[0-9a-f-]{16,}-`, `([0-9]{10,})$`
		fuzzNames(t, NewMutex(nil, "/lock").q, guid+`lock-`+number, prefix, others, own)
		fuzzNames(t, NewRWMutex(nil, "/lock").q, guid+`__(?:READ|WRIT)__`+number, prefix, others, own)
	})
}

func fuzzNames(t *testing.T, q *queue, ofTheQueue, prefix string, others []string, own int32) {
	is := regexp.MustCompile(ofTheQueue)
	for _, name := range others {
		_, k, ok := q.number(name)
		found := is.FindStringSubmatch(name)
		if found == nil || len(found[1]) < 18 { // a longer one may not fit into an int
			require.Equal(t, found != nil, ok, "%q is of the queue, of kind %q", name, k)
		}
	}
	for _, k := range q.kinds {
		mine := fmt.Sprintf("%s%s%010d", prefix, k, own)
		if own >= 0 && !is.MatchString(mine) {
			continue // with a prefix that no client has
		}
		waitsFor := func(name string) (int, bool) { // the number, if mine has to wait for that name
			n, other, ok := q.number(name)
			return n, ok && (k != read || other != read)
		}
		for _, list := range [][]string{append(slices.Clone(others), mine), append([]string{mine}, others...)} {
			number, err := q.ownNumber(place{node: q.dir + "/" + mine})
			if own < 0 || own == math.MaxInt32 {
				require.ErrorContains(t, err, "numbers are used up")
				continue
			}
			require.NoError(t, err)
			before := q.predecessor(list, number, k)
			n, is, ok := q.number(mine)
			require.Equal(t, fmt.Sprint(own, k, true), fmt.Sprint(n, is, ok), mine)
			require.True(t, isBefore(waitsFor, before, others, int(own)), "before %q in %q stands %q", mine, list, before)
		}
	}
}

// isBefore reports whether before is the name to watch: its number is the greatest below own. If before is
// "", there must be no such name.
func isBefore(number func(name string) (n int, ok bool), before string, names []string, own int) bool {
	highest, there := number(before)
	for _, name := range names {
		n, ok := number(name)
		isBeforeOwn := ok && n < own
		isAbove := !there || n > highest
		if isBeforeOwn && isAbove {
			return false
		}
	}
	if before == "" {
		return true
	}
	isBeforeOwn := there && highest < own
	return isBeforeOwn && slices.Contains(names, before)
}
