package leased

import (
	"context"
	"fmt"
	"math"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// TryLock and deadlines.

func TestTryLockWaitsNoLongerThanItIsTold(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a, b := w.join(z, "A"), w.other(z, "B")
		b.Acquire().Release() // makes the directory
		for _, wait := range []time.Duration{0, zktest.Patience} {
			free := tryFor(a, z.Ctx, wait)
			holds(t, z, w, free)
			require.NoError(t, free.Context().Err(), "the wait of %v is not for the work", wait)
			free.Release()
		}

		held, mark := b.Acquire(), a.Tap.Mark()
		err := tryFor(a, z.Ctx, 0).Err()
		require.ErrorIs(t, err, ErrLocked, "B holds the lock")
		require.NotErrorIs(t, err, ErrNoAnswer, "the servers have answered")
		asked := map[wiretap.Op]int{wiretap.Create: 1, wiretap.GetChildren: 1, wiretap.Delete: 1}
		require.Equal(t, asked, a.Requests(mark), "what TryLock asks, which waits for nobody")
		require.Empty(t, a.Tap.Watched(), "watches left at the server")
		err = tryFor(a, z.Ctx, 30*time.Millisecond).Err()
		require.ErrorIs(t, err, ErrLocked, "B still holds the lock")
		require.NotErrorIs(t, err, ErrNoAnswer, "the servers have answered")
		z.Await("A's znode to leave the queue", func() bool { return len(a.Queue()) == 1 })

		if w.reads {
			return // two readers of A do not wait for one another
		}
		own := a.Start()
		own.MustWait("B holds the lock")
		if w == byCohort {
			asked = map[wiretap.Op]int{} // in the process, too, it waits for nobody
		}
		for _, does := range []string{"waits", "holds"} {
			mark = a.Tap.Mark()
			require.ErrorIs(t, tryFor(a, z.Ctx, 0).Err(), ErrLocked, "another goroutine of A %s", does)
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

// No server answers. TryLock comes back in its time, or after a second if its time is shorter. It
// does not say that somebody holds the lock: nobody does.
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
				waits := []time.Duration{0, answerPatience / 2, answerPatience * 3 / 2}
				if w == byCohort {
					waits = waits[1:2] // the first try goes on in the background, and stands before the next
				}
				for _, wait := range waits {
					begun := time.Now()
					err := tryFor(a, z.Ctx, wait).Err()
					took := time.Since(begun)
					require.ErrorIs(t, err, ErrNoAnswer, "TryLock(%v)", wait)
					require.ErrorIs(t, err, ErrLocked, "TryLock(%v)", wait)
					require.Greater(t, took, max(wait, answerPatience), "TryLock(%v)", wait)
				}
				a.Tap.Restore()
			})
		})
	}
}

// The line is slow, and the lock is free. TryLock gets it, however short its time: where 0
// succeeds, a short time does not fail. If somebody holds the lock, the error says so.
func TestATryOnASlowLine(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a, b := w.join(z, "A"), w.other(z, "B")
		a.Acquire().Release()
		a.Tap.Delay(60 * time.Millisecond)
		for _, wait := range []time.Duration{0, time.Nanosecond, 20 * time.Millisecond} {
			tryFor(a, z.Ctx, wait).Release()
		}
		held := b.Acquire()
		for _, wait := range []time.Duration{0, time.Nanosecond, 20 * time.Millisecond} {
			err := tryFor(a, z.Ctx, wait).Err()
			require.ErrorIs(t, err, ErrLocked, "TryLock(%v)", wait)
			require.NotErrorIs(t, err, ErrNoAnswer, "TryLock(%v)", wait)
		}
		held.Release()
	})
}

// A holds the lock, and B's TryLock has to leave the queue. The directory's ACL forbids the
// delete: the error says so, and names the znode that stays.
func TestWhoLeavesTellsOfADeleteThatIsRefused(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a, b := w.other(z, "A"), w.join(z, "B")
		a.Acquire()
		permit(t, z, a.Path, zk.PermAll&^zk.PermDelete)
		_, err := b.TryLock(z.Ctx, 0)
		require.ErrorIs(t, err, ErrLocked)
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.ErrorContains(t, err, b.Znode())
	})
}

// Hundreds give up, each at another moment: while the create is under way, while it
// waits, just as it is let in.
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
						err = held.Unlock(z.Ctx)
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

// Beside the client library's own lock.

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

// The reply to a create of zk.Lock is lost. It looks for its own znode among ours,
// and takes each name that begins with _c_ to have 32 characters behind that: with
// fewer it would panic.
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

// What is lost, and what others put into the queue.

// A's create is lost, and while A is cut off somebody else, whose session lives,
// makes znodes with A's guid: one before A's own number and one behind it.
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
				call.MustWait("number 0, whoever owns it")
				require.NoError(t, z.Observer().Delete(before, -1))
				holds(t, z, w, call)
				call.Release()
				require.Len(t, a.Queue(), 1, "the other's second znode alone")
			})
		})
	}
}

// A hears that its session has expired, and has another one, before the znodes of
// the first are gone: here, long before. The old znode comes to the front, and is
// no place in the queue.
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

// The server has made A's znode, and A, who is cut off, does not know.
// B waits, its znode goes, and the directory's ACL forbids to make another one: Lock says so.
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

// Somebody forbids everybody to read A's znode. B cannot wait for it to go.
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

// The reply to a create is lost, and the directory's ACL forbids the list. Nobody can know
// whether there is a znode: Lock says why, and makes no other one.
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

// A create that does not reach the server is repeated. It takes one list to find that there
// is no znode, and one to see that it is the first. The first time there is no directory yet.
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

// The znode that Lock has found, after a lost reply, goes before Lock has read it. Lock makes
// another one.
func TestAZnodeThatGoesWhileItIsLookedForIsMadeAnew(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		a := w.join(z, "A")
		a.Tap.LoseReply(wiretap.Create, 3) // after one that finds no directory, and the directory's
		read := a.Tap.HoldRequest(wiretap.GetData, 1)
		turn := a.Start()
		zktest.AwaitChan(z, "A to read the znode that it has found", read.Sprung())
		require.NoError(t, z.Observer().Delete(a.Znode(), -1))
		read.Let()
		turn.Release()
	})
}

// The create's reply is lost, and each step of the recovery loses its reply once: the
// write that changes nothing, the list, the look at the owner.
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
		require.Equal(t, 4, a.Requests(mark)[wiretap.Delete], "writes that change nothing: one before each of three lists, and one without a reply")
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
		holds(t, z, w, waiting) // with a znode that it has made anew
		require.NoError(t, held.Context().Err(), "nobody asks the server, and so nobody knows")
		require.ErrorIs(t, held.Unlock(), ErrLost)
		waiting.Release()
	})
}

// FuzzNames puts a znode of each kind with a number among names of anybody's. It asks
// functions that are not exported: a server would not give these numbers.
func FuzzNames(f *testing.F) {
	// Sorted by the whole name, or by the kind, or by the first digits, the order
	// would be another.
	f.Add("_c_f-", "z-__WRIT__0000000002/_c_ffffffff-0b2c-4a61-9d3e-5f1f6a7b8c9d-__READ__0000000003/"+
		"a-__READ__0000000010/_c_00-__WRIT__0000000011/b-__WRIT__2147483647", int32(100))
	f.Add("", "", int32(0))
	f.Add("_c_0-", "_c_1-__WRIT__0000000001/_c_3-__READ__0000000003/_c_2-__WRIT__0000000002/_c_5-__WRIT__0000000005/foreign", int32(4))
	f.Add("__READ__", "__READ__-2147483648/__WRIT__2147483647/__WRIT__99999999999999999999", int32(-1))
	f.Add("__WRIT__", "__READ__/__WRIT__x/__READ__+1/lock-0000000000/__WRIT__٣/__READ____WRIT__0000000003/__WRIT__0000000000-old", int32(7))
	f.Add("_c_0-", "_c_1-lock-0000000001/zz-lock-0000000003/_c_2-lock-0000000002/lock-0000000005/foreign", int32(4))
	f.Add("lock-", "lock--2147483648/lock-2147483647/lock-99999999999999999999", int32(-1))
	f.Add("-lock-0000000000-", "lock-/lock-x/lock-+1/_c_0-__READ__0000000000/lock-٣", int32(7))
	f.Add("_c_0-", "_c_block-lock-0000000002/_c_1b2c0000-0000-lock-0000000003-backup/0000000004", int32(5))
	f.Add("__READ", "__READ__-000000000", int32(-1))
	f.Add("", "block-0/flock-3/my-lock-2/x__READ__0/x__WRIT__3/lock-123456789", int32(9)) // directories of other locks
	f.Fuzz(func(t *testing.T, prefix, names string, own int32) {
		others := strings.Split(names, "/")
		fuzzNames(t, NewMutex(nil, "/lock").q, `(?s)^.*lock-([+-]?[0-9]+)$`, prefix, others, own)
		fuzzNames(t, NewRWMutex(nil, "/lock").q, `(?s)^.*__(?:READ|WRIT)__([+-]?[0-9]+)$`, prefix, others, own)
	})
}

func fuzzNames(t *testing.T, q *queue, ofTheQueue, prefix string, others []string, own int32) {
	is := regexp.MustCompile(ofTheQueue)
	for _, name := range others {
		_, k, ok := q.number(name)
		number := ""
		if found := is.FindStringSubmatch(name); found != nil {
			number = found[1]
		}
		if len(number) < 18 { // a longer one may not fit into an int
			require.Equal(t, len(number) >= 10, ok, "%q is of the queue, of kind %q", name, k)
		}
	}
	for _, k := range q.kinds {
		mine := fmt.Sprintf("%s%s%010d", prefix, k, own)
		n, is, ok := q.number(mine)
		require.Equal(t, fmt.Sprint(own, k, true), fmt.Sprint(n, is, ok), mine)
		waitsFor := func(name string) (int, bool) { // the number, if it is of those whom mine waits for
			n, other, ok := q.number(name)
			return n, ok && (k != read || other != read)
		}
		if !slices.Contains(others, mine) && own >= 0 && own < math.MaxInt32 {
			_, err := q.predecessor(others, mine)
			require.ErrorIs(t, err, zk.ErrNoNode, "%q is not among %q", mine, others)
		}
		for _, list := range [][]string{append(slices.Clone(others), mine), append([]string{mine}, others...)} {
			before, err := q.predecessor(list, mine)
			if own < 0 || own == math.MaxInt32 {
				require.ErrorContains(t, err, "numbers are used up")
				continue
			}
			require.NoError(t, err)
			require.True(t, isBefore(waitsFor, before, others, int(own)), "before %q in %q stands %q", mine, list, before)
		}
	}
}

// isBefore tells whether before is the right one of the names to watch: its
// number is the greatest below own. There is none if it is "".
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
