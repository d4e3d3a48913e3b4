package reentrant

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/lockcheck"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// A's create is lost, and while A is cut off somebody else, whose session lives,
// makes znodes with A's guid: one before A's own number and one behind it.
func TestAZnodeOfAnotherSessionIsNotAdopted(t *testing.T) {
	t.Parallel()
	for what, lose := range map[string]func(*wiretap.Tap, wiretap.Op, int) *wiretap.Trap{
		"the server has made A's": (*wiretap.Tap).LoseReply,
		"the server has not":      (*wiretap.Tap).LoseRequest,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			z := zktest.New(t)
			a := join(t, z, "A")
			a.release(a.acquire()) // takes number 0
			cut := a.outageAt(lose(a.Tap, wiretap.Create, 1))
			call := a.start()
			cut.begun()
			before, behind := a.asked()+"0000000000", a.asked()+"0000000007"
			for _, path := range []string{before, behind} {
				_, err := z.Observer().Create(path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
				require.NoError(t, err)
			}

			cut.end()
			if call.Waits() == zktest.Returned { // number 0 is before A, whoever owns it
				a.holds(call.in())
			}
			require.NoError(t, z.Observer().Delete(before, -1))
			held := call.in()
			a.holds(held)
			a.release(held)
			require.Len(t, a.queue(), 1, "the other's second znode alone")
		})
	}
}

// A hears that its session has expired, and has another one, before the znodes of
// the first are gone: here, long before. The old znode comes to the front, and is
// no place in the queue.
func TestAZnodeOfAnEndedSessionIsNoPlaceInTheQueue(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	lines := 0
	a := joinOver(t, z, "A", zktest.SessionTimeout, func(c net.Conn) net.Conn {
		lines++
		return &altered{Conn: c, expired: lines == 2}
	})
	b := join(t, z, "B")
	held := b.acquire()
	call := a.start()
	a.waits(call, "B holds the lock")
	old := a.made()
	a.Tap.HangUp()
	z.Await("A to have another session", func() bool { return a.State() == zk.StateHasSession && a.SessionID() != a.ID })
	b.release(held)
	z.Await("A to queue again, or to be let in", func() bool { return len(a.queue()) == 2 || call.Returned() })
	require.False(t, call.Returned(), "A holds the lock with %s, a znode of its old session", old)
	require.NoError(t, z.Observer().Delete(old, -1))
	a.holds(call.in())
}

func TestASessionLostWithTheCreatesReplyMeansANewCreate(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := joinMortal(t, z, "A")
	a.release(a.acquire())
	cut := a.outageAt(a.Tap.LoseReply(wiretap.Create, 1))
	call := a.start()
	cut.begun()
	z.AwaitExpiry(a.Client)
	cut.end()
	held := call.in()
	require.NotEqual(t, a.ID, a.SessionID(), "A's session")
	a.holds(held)
	require.Len(t, a.queue(), 1)
}

// Each step of the recovery loses its reply once: the write in vain, the list, the look
// at the owner.
func TestARecoveryThatIsCutOffGoesOn(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := join(t, z, "A")
	a.release(a.acquire())
	traps := []*wiretap.Trap{a.Tap.LoseReply(wiretap.Create, 1)}
	for _, op := range []wiretap.Op{wiretap.Delete, wiretap.GetChildren, wiretap.GetData} {
		traps = append(traps, a.Tap.LoseReply(op, 1))
	}
	mark := a.Tap.Mark()
	held := a.acquire()
	for _, trap := range traps {
		zktest.AwaitChan(z, "each reply to be lost", trap.Sprung())
	}
	a.holds(held)
	require.Equal(t, 1, a.requests(mark)[wiretap.Create], "creates: the one without a reply was found")
}

func TestWhoGivesUpAnUnansweredCreateReturnsAtOnceAndLeavesNothing(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := join(t, z, "A")
	a.release(a.acquire())
	cut := a.outageAt(a.Tap.LoseReply(wiretap.Create, 1))
	call := a.start()
	cut.begun()

	require.ErrorIs(t, call.Cancel(), context.Canceled, "Lock's answer while A is cut off")
	_, there := z.Owner(a.made())
	require.True(t, there, "the znode that nobody told A of")

	cut.end()
	z.Await("the znode of a caller that gave up to be removed in the background", func() bool { return len(a.queue()) == 0 })
	require.Equal(t, a.ID, a.SessionID(), "A's session: the znode must not need its end")
	a.Close() // waits for the background
}

// A gives up while it is cut off, and its session is closed before the line is
// back: nothing must be left running. The znode goes with the session.
func TestCloseEndsARecovery(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := joinMortal(t, z, "A")
	a.release(a.acquire())
	cut := a.outageAt(a.Tap.LoseReply(wiretap.Create, 1))
	call := a.start()
	cut.begun()
	require.ErrorIs(t, call.Cancel(), context.Canceled)
	a.Close()
}

func TestNamesOfOthersDoNoHarmDuringRecovery(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := join(t, z, "A")
	a.release(a.acquire())
	for _, name := range []string{"_c_", "_c_short", "_c_short-lock-", "_c_-lock-x", "-lock-", "lock-", "_", "-", "notes",
		"_c_0123456789abcdef0123456789abcdef", "_c_0123456789abcdef0123456789abcdef-lock-", "lock-0000000000-old"} {
		_, err := z.Observer().Create(a.path()+"/"+name, nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	lost := a.Tap.LoseReply(wiretap.Create, 1)
	held := a.acquire()
	zktest.AwaitChan(z, "the create's reply to be lost", lost.Sprung())
	a.holds(held)
	a.release(held)
}

func TestUnlockWithoutALineReturnsOnceTheLineIsBack(t *testing.T) {
	t.Parallel()
	for what, lose := range map[string]func(*wiretap.Tap, wiretap.Op, int) *wiretap.Trap{
		"the delete was carried out":     (*wiretap.Tap).LoseReply,
		"the server did not hear of it":  (*wiretap.Tap).LoseRequest,
		"and the context has ended, too": (*wiretap.Tap).LoseRequest,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			z := zktest.New(t)
			a, b := join(t, z, "A"), join(t, z, "B")
			call := a.start()
			held := call.in()
			if what == "and the context has ended, too" {
				_ = call.Cancel()
				require.Error(t, held.Err())
			}
			cut := a.outageAt(lose(a.Tap, wiretap.Delete, 1))
			unlock := z.Go(a.Client, func(context.Context) error { return a.lock.Unlock(held) })
			cut.begun()
			require.False(t, unlock.Returned(), "Unlock returned while nobody could know")
			cut.end()
			require.NoError(t, unlock.Err(), "Unlock's answer once the line was back")
			require.Empty(t, a.queue())
			require.Equal(t, a.ID, a.SessionID(), "A's session: the release must not need its end")
			b.release(b.acquire())
		})
	}
}

// A believes that the server gave it one second; the server keeps the session
// for ten.
func TestUnlockWithoutALineForGoodIsErrLostAndTheZnodeGoesLater(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := joinOver(t, z, "A", zktest.SessionTimeout, told(time.Second))
	held := a.acquire()
	a.Tap.Cut()
	require.ErrorIs(t, a.lock.Unlock(held), ErrLost, "Unlock's answer while A is cut off")
	require.Len(t, a.queue(), 1, "A's znode, which it could not delete")

	a.Tap.Restore()
	z.Await("the session to go on trying to delete the znode", func() bool { return len(a.queue()) == 0 })
	require.Equal(t, a.ID, a.SessionID(), "A's session: the release must not need its end")
	a.release(a.acquire())
}

func TestUnlockAfterTheSessionsEndIsErrLost(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := joinMortal(t, z, "A")
	held := a.acquire()
	a.Crash()
	z.AwaitExpiry(a.Client)
	require.ErrorIs(t, a.lock.Unlock(held), ErrLost)
}

// The session expires while the delete is on its way. The server keeps it for
// less than it said, so that A is still patient when the line is back.
func TestADeleteThatComesAfterTheSessionsEndIsErrLost(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := joinOver(t, z, "A", zktest.MortalTimeout, told(zktest.SessionTimeout))
	held := a.acquire()
	cut := a.outageAt(a.Tap.LoseRequest(wiretap.Delete, 1))
	unlock := z.Go(a.Client, func(context.Context) error { return a.lock.Unlock(held) })
	cut.begun()
	z.AwaitExpiry(&zktest.Client{Name: "A", ID: held.Value(holdOf{a.lock}).(*hold).owner})
	cut.end()
	require.ErrorIs(t, unlock.Err(), ErrLost, "the znode went with the session and not by the delete")
}

func TestUnlockOfAZnodeDeletedByHandIsErrLost(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := join(t, z, "A")
	held := a.acquire()
	require.NoError(t, z.Observer().Delete(a.made(), -1))
	require.NoError(t, held.Err(), "nobody asks the server, and so nobody knows")
	require.ErrorIs(t, a.lock.Unlock(held), ErrLost)
	a.release(a.acquire())
}

// Deleted by hand while it waits, the znode is made again when the wait goes on.
func TestAWaitersZnodeDeletedByHandIsMadeAnew(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := join(t, z, "A"), join(t, z, "B")
	held := a.acquire()
	call := b.start()
	b.waits(call, "A holds the lock")
	require.NoError(t, z.Observer().Delete(b.made(), -1))
	a.release(held)
	b.holds(call.in())
}

// Of three others in the queue, two came before A though their names sort behind
// A's, and one came after A though its name sorts first.
func TestTheQueueGoesByNumbersAlone(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := join(t, z, "A")
	a.release(a.acquire())
	other := func(prefix string) (node string) {
		node, err := z.Observer().Create(a.path()+"/"+prefix, nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		return node
	}
	before := []string{other("_c_ffffffffffffffffffffffffffffffff-lock-"), other("zz-lock-")}
	call := a.start()
	a.waits(call, "two came before A")
	other("A-lock-")
	for _, node := range before {
		require.Equal(t, zktest.Silently, call.StillWaits(), "A's number is greater than that of %s: %v", node, a.queue())
		require.NoError(t, z.Observer().Delete(node, -1))
	}
	a.release(call.in())
}

func TestNumberAndPredecessor(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"lock-0000000007":                  "7 true",
		"_c_block-lock-0000000012":         "12 true", // the last lock- counts
		"_c_9f-lock--2147483648":           "-2147483648 true",
		"lock-":                            "0 false",
		"lock-x":                           "0 false",
		"0000000007":                       "0 false",
		"_c_0000000000-__READ__0000000003": "0 false",
		"_c_1b2c0000-0000-lock-0000000003-backup": "0 false",
	} {
		n, ok := number(name)
		require.Equal(t, want, fmt.Sprint(n, ok), name)
	}
	names := []string{"_c_b-lock-0000000002", "_c_c-lock-0000000000", "notes", "_c_a-lock-0000000001", "_c_0-lock-0000000003"}
	for mine, before := range map[string]string{
		"_c_c-lock-0000000000": "",
		"_c_a-lock-0000000001": "_c_c-lock-0000000000",
		"_c_b-lock-0000000002": "_c_a-lock-0000000001",
		"_c_0-lock-0000000003": "_c_b-lock-0000000002",
	} {
		got, err := predecessor(names, mine)
		require.NoError(t, err)
		require.Equal(t, before, got, "the one before %s", mine)
	}
	_, err := predecessor(names, "_c_d-lock-0000000001")
	require.ErrorIs(t, err, zk.ErrNoNode, "our own znode is not there")
}

// FuzzNames puts a znode with a number among names of anybody's.
func FuzzNames(f *testing.F) {
	f.Add("", "", int32(0))
	f.Add("_c_0-", "_c_1-lock-0000000001/zz-lock-0000000003/_c_2-lock-0000000002/lock-0000000005/foreign", int32(4))
	f.Add("lock-", "lock--2147483648/lock-2147483647/lock-99999999999999999999", int32(-1))
	f.Add("-lock-0000000000-", "lock-/lock-x/lock-+1/_c_0-__READ__0000000000/lock-٣", int32(7))
	ofTheQueue := regexp.MustCompile(`(?s)^.*lock-[+-]?[0-9]{1,18}$`)
	f.Fuzz(func(t *testing.T, prefix, names string, own int32) {
		mine, others := fmt.Sprintf("%slock-%010d", prefix, own), strings.Split(names, "/")
		if n, ok := number(mine); n != int(own) || !ok {
			t.Errorf("the number of %q is %d, %v", mine, n, ok)
		}
		for _, name := range others {
			digits := len(name) - strings.LastIndex(name, "-")
			if n, ok := number(name); ok != ofTheQueue.MatchString(name) && digits < 18 {
				t.Errorf("the number of %q is %d, %v", name, n, ok)
			}
		}
		for _, list := range [][]string{append(others, mine), append([]string{mine}, others...)} {
			if before, err := predecessor(list, mine); err != nil || !lockcheck.IsBefore(number, before, others, int(own)) {
				t.Errorf("before %q in %q stands %q", mine, list, before)
			}
		}
	})
}
