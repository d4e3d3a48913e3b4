package sharedlock

import (
	"context"
	"errors"
	"fmt"
	pathpkg "path"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/lockcheck"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) {
	zktest.Child("holder", holdUntilKilled)
	zktest.Main(m)
}

func TestProperties(t *testing.T) {
	t.Parallel()
	lockcheck.Holds(t, lockcheck.OverSession("step 6", open, New, Token), append(slices.Clone(lockcheck.Properties), lockcheck.ByKind)...)
}

// ---- Whom one waits for, and who wakes whom.

func TestEachWatchesTheOneItWaitsFor(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	var turns []*turn
	for i, c := range []struct {
		kind   string
		behind int // whom it waits for
	}{
		{write, -1},
		{read, 0}, {read, 0}, // the last writer before a reader,
		{write, 2}, // the last of all before a writer
		{read, 3},
		{write, 4}, {write, 5},
		{read, 6}, {read, 6},
	} {
		u := s.join(fmt.Sprintf("number %d (%s)", i, c.kind))
		if c.behind < 0 {
			turns = append(turns, u.holds(c.kind))
			continue
		}
		turns = append(turns, u.waits(c.kind))
		if watched, want := u.Tap.Watched(), []string{turns[c.behind].node()}; !slices.Equal(watched, want) {
			t.Errorf("%s watches %v, want %v; the queue: %v", u.Name, watched, want, s.queue())
		}
	}
}

func TestWritersReleaseNotifiesEachReaderBehindItAndNobodyElse(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	const n = 10
	writer := s.join("the writer").holds(write)
	var readers, later []*turn
	for i := range n {
		readers = append(readers, s.join(fmt.Sprintf("reader %d", i+1)).waits(read))
	}
	for i, kind := range []string{write, read, read} {
		later = append(later, s.join(fmt.Sprintf("later %d", i+1)).waits(kind))
	}
	all := append(slices.Clone(readers), later...)
	if woken := s.notified(func() {
		writer.releases()
		for _, r := range readers {
			r.Acquired() // every notification was of use
		}
	}, all...); woken != n {
		t.Errorf("the writer's release sent %d notifications, want one to each of %d readers", woken, n)
	}
	for _, l := range later {
		l.mustWait("saw the readers let in")
	}
}

func TestReadersReleaseWakesAWriterOnlyIfItIsTheOneWatched(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		order []int // in which the readers 1, 2, 3 release
		woken []int // notifications to the writer, who watches reader 3
	}{
		{[]int{1, 2, 3}, []int{0, 0, 1}},
		{[]int{3, 1, 2}, []int{1, 0, 1}}, // after 3 it watches 2
		{[]int{3, 2, 1}, []int{1, 1, 1}},
	} {
		s := newScene(t)
		var readers []*turn
		for i := range 3 {
			readers = append(readers, s.join(fmt.Sprintf("reader %d", i+1)).holds(read))
		}
		writer := s.join("the writer").waits(write)
		for i, who := range c.order {
			woken := s.notified(func() {
				readers[who-1].releases()
				if i < 2 {
					writer.mustWait(fmt.Sprintf("saw %d of three readers leave", i+1))
				} else {
					writer.Acquired()
				}
			}, writer)
			if woken != c.woken[i] {
				t.Errorf("the readers leave in the order %v: reader %d's release sent the writer %d notifications, want %d", c.order, who, woken, c.woken[i])
			}
		}
	}
}

func TestArrivalWakesNobody(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	turns := []*turn{s.join("the holder").holds(write)}
	for i, kind := range []string{read, write, read, read, write} {
		turns = append(turns, s.join(fmt.Sprintf("waiter %d", i+1)).waits(kind))
	}
	for _, kind := range kinds {
		newcomer := s.join("the newcomer")
		if woken := s.notified(func() { newcomer.waits(kind) }, turns...); woken != 0 {
			t.Errorf("the arrival of one more %s sent %d notifications, want 0", kind, woken)
		}
	}
}

func TestLateReaderDoesNotOvertakeAWaitingWriter(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	early := s.join("the early reader").holds(read)
	writer := s.join("the writer").waits(write)
	late := s.join("the late reader").waits(read)
	early.releases()
	writer.Acquired()
	late.mustWait("saw the writer let in")
	writer.releases()
	late.Acquired()
}

// Three readers and three writers go on until each of them has had its turns:
// if one side kept the other out, the test would not end.
func TestNeitherSideStarves(t *testing.T) {
	t.Parallel()
	const turns = 10
	s := newScene(t)
	var hungry atomic.Int32
	var calls []*zktest.Attempt
	for i := range 6 {
		kind := kinds[i%2]
		u := s.join(fmt.Sprintf("client %d (%s)", i+1, kind))
		hungry.Add(1)
		calls = append(calls, s.Go(u.Client, func(ctx context.Context) error {
			for had := 0; hungry.Load() > 0; {
				held, err := acquire(ctx, u.lock, kind, -1)
				if err != nil {
					return fmt.Errorf("after %d turns: %w", had, err)
				}
				if err := release(held, u.lock, kind); err != nil {
					return err
				}
				if had++; had == turns {
					hungry.Add(-1)
				}
			}
			return nil
		}))
	}
	for _, c := range calls {
		c.Acquired()
	}
}

// A room is where holders go, and look who else is there.
type room struct{ inside atomic.Int64 }

const aWriter = 1000 // in the room counts as much as that many readers

func (r *room) visit(kind string) error {
	weight := int64(1)
	if kind == write {
		weight = aWriter
	}
	defer r.inside.Add(-weight)
	if n := r.inside.Add(weight); n > aWriter || kind == read && n == aWriter {
		return fmt.Errorf("%s: inside are %d writers and %d readers", kind, n/aWriter, n%aWriter)
	}
	return nil
}

func TestManyGoroutinesOfManySessions(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	var room room
	var calls []*zktest.Attempt
	for i := range 4 {
		u := s.join(fmt.Sprintf("session %d", i+1))
		for j := range 6 {
			kind := read
			if j%3 == 0 {
				kind = write
			}
			calls = append(calls, s.Go(u.Client, func(ctx context.Context) error {
				for range 5 {
					held, err := acquire(ctx, u.lock, kind, -1)
					if err != nil {
						return err
					}
					if err := errors.Join(room.visit(kind), release(held, u.lock, kind)); err != nil {
						return err
					}
				}
				return nil
			}))
		}
	}
	for _, c := range calls {
		c.Acquired()
	}
	if left := s.queue(); len(left) > 0 {
		t.Errorf("all is over, and the queue holds %v", left)
	}
}

// ---- The queue and strangers in it.

func TestOrderIsTheNumberAlone(t *testing.T) {
	t.Parallel()
	// In the order of the numbers. Sorted by the whole name, or by the kind, or
	// by the first digits, the order would be another.
	names := []string{
		"z-__WRIT__0000000002",
		"_c_f0-__READ__0000000003",
		"a-__READ__0000000010",
		"_c_00-__WRIT__0000000011",
		"m-__READ__0000000100",
		"b-__WRIT__2147483647",
	}
	for _, c := range []struct{ mine, kind, behind string }{
		{names[0], write, ""},
		{names[1], read, names[0]},
		{names[2], read, names[0]},
		{names[3], write, names[2]},
		{names[4], read, names[3]},
		{names[5], write, names[4]},
	} {
		shuffled := slices.Concat(names[3:], []string{"notes", "_c_00-lock-0000000001"}, names[:3])
		if _, kind, ok := number(c.mine); kind != c.kind || !ok {
			t.Errorf("%s is a znode of the queue: %v, of kind %q", c.mine, ok, kind)
		}
		if got, err := predecessor(shuffled, c.mine); got != c.behind || err != nil {
			t.Errorf("%s waits for %q (%v), want %q", c.mine, got, err, c.behind)
		}
	}
	if _, err := predecessor(names, "_c_0f-__READ__0000000005"); !errors.Is(err, zk.ErrNoNode) {
		t.Errorf("our own znode is not there: %v, want ErrNoNode", err)
	}
}

// Curator's InterProcessReadWriteLock has such names. What stands before the
// kind says nothing of the order: here it sorts behind our own names.
func TestForeignReadersAndWritersCount(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.makeDir()
	foreignRead := s.stranger("_c_ffffffff-0b2c-4a61-9d3e-5f1f6a7b8c9d-__READ__", zk.FlagEphemeralSequential)
	reader := s.join("a reader").holds(read)
	foreignWrite := s.stranger("~-__WRIT__", zk.FlagEphemeralSequential)
	late := s.join("a late reader").waits(read)
	s.stranger("A-__WRIT__", zk.FlagEphemeralSequential) // behind us, whatever its name
	writer := s.join("a writer").waits(write)
	if watched := late.Tap.Watched(); !slices.Equal(watched, []string{foreignWrite}) {
		t.Errorf("the late reader watches %v, want %s", watched, foreignWrite)
	}
	if err := s.Observer().Delete(foreignWrite, -1); err != nil {
		t.Fatal(err)
	}
	late.Acquired()
	reader.releases()
	late.releases()
	writer.mustWait("saw our readers leave")
	if _, there := s.Owner(foreignRead); !there {
		t.Error("the foreign reader's znode is gone")
	}
}

func TestAWriterWaitsForAForeignReader(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.makeDir()
	foreign := s.stranger("_c_ffffffff-0b2c-4a61-9d3e-5f1f6a7b8c9d-__READ__0000000000", 0)
	writer := s.join("the writer").waits(write) // number 1: the directory has had one child
	if watched := writer.Tap.Watched(); !slices.Equal(watched, []string{foreign}) {
		t.Errorf("the writer watches %v, want %s", watched, foreign)
	}
	if err := s.Observer().Delete(foreign, -1); err != nil {
		t.Fatal(err)
	}
	writer.Acquired()
}

func TestOddNamesAreIgnored(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.makeDir()
	odd := []string{
		"notes", "_c_", "-", "0000000000", "__READ__", "__WRIT__", "__WRIT__x", "_c_short-__READ__",
		"__WRIT__0000000000-old", "_c_00112233445566778899aabbccddeeff-lock-0000000000", "00__rlock__0000000000",
	}
	for _, name := range odd {
		s.stranger(name, 0)
	}
	for _, kind := range kinds {
		s.join("a client").holds(kind).releases()
	}
	if left := s.queue(); len(left) != len(odd) {
		t.Errorf("want the %d odd names and no more: %v", len(odd), left)
	}
}

// ---- Re-entry.

func TestWriteInsideAReadHoldIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	u := s.join("the reader")
	reader := u.holds(read)
	deeper, err := u.lock.RLock(context.WithValue(reader.held, t, "a context of the caller's"))
	if err != nil {
		t.Fatal(err)
	}
	mark := u.Tap.Mark()
	for _, wait := range []time.Duration{-1, 0, time.Hour} {
		for _, held := range []context.Context{reader.held, deeper} {
			if _, err := acquire(held, u.lock, write, wait); !errors.Is(err, ErrUpgrade) {
				t.Errorf("write asked for inside a read hold, wait %v: %v, want ErrUpgrade", wait, err)
			}
		}
	}
	if sent := wiretap.Count(u.Tap.Since(mark)); sent.All() != 0 {
		t.Errorf("that took the requests %v, want none", sent.Requests)
	}
	reader.releases()
	reader.releases() // the deeper one
	u.holds(write).releases()
}

// Whatever is inside a write hold is one znode, and nobody gets in before all
// is released, in whatever order.
func TestReadInsideAWriteHoldStaysExclusiveUntilAllIsReleased(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ enter, leave []string }{
		{[]string{read}, []string{read, write}},
		{[]string{read}, []string{write, read}},
		{[]string{write, read}, []string{write, write, read}},
		{[]string{read, read}, []string{read, write, read}},
	} {
		s := newScene(t)
		u := s.join("the writer")
		first := u.holds(write)
		token, _ := Token(first.held)
		mark := u.Tap.Mark()
		for _, kind := range c.enter {
			again, err := acquire(first.held, u.lock, kind, -1)
			if err != nil {
				t.Fatalf("%s inside a write hold: %v", kind, err)
			}
			if inner, ok := Token(again); !ok || inner != token {
				t.Errorf("%s inside a write hold has token %d, %v, and the hold has %d", kind, inner, ok, token)
			}
		}
		if sent := wiretap.Count(u.Tap.Since(mark)); sent.All() != 0 {
			t.Errorf("re-entry by %v sent the requests %v, want none", c.enter, sent.Requests)
		}
		reader := s.join("a reader").waits(read)
		for i, kind := range c.leave {
			reader.mustWait(fmt.Sprintf("saw %d of the releases %v", i, c.leave))
			if err := release(first.held, u.lock, kind); err != nil {
				t.Fatalf("release %d of %v: %v", i+1, c.leave, err)
			}
		}
		reader.Acquired()
	}
}

// Entries are counted by kind: a hold has as many exits of each as it has entries.
func TestAnExitOfTheOtherKindIsNotOneOfTheHold(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	u := s.join("the writer")
	held := u.holds(write).held
	require.ErrorIs(t, u.lock.RUnlock(held), ErrNotHeld, "RUnlock of a write entry")
	inner, err := u.lock.RLock(held)
	require.NoError(t, err)
	require.NoError(t, u.lock.RUnlock(inner))
	require.ErrorIs(t, u.lock.RUnlock(inner), ErrNotHeld, "one RUnlock more than RLocks")
	require.NoError(t, held.Err(), "the hold, after all that")
	require.Len(t, s.queue(), 1, "the lock, which is held until Unlock")
	require.NoError(t, u.lock.Unlock(held))

	held = u.holds(read).held
	require.ErrorIs(t, u.lock.Unlock(held), ErrNotHeld, "Unlock of a read entry")
	require.Len(t, s.queue(), 1, "the lock, which is held until RUnlock")
	require.NoError(t, u.lock.RUnlock(held))
	require.Empty(t, s.queue())
}

// The znode is a writer's until it goes, and so is the hold.
func TestWhoReadsOnInsideAWriteHoldMayWriteAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	u := s.join("the writer")
	held := u.holds(write).held
	inner, err := u.lock.RLock(held)
	require.NoError(t, err)
	require.NoError(t, u.lock.Unlock(held))
	again, err := u.lock.Lock(inner)
	require.NoError(t, err)
	require.NoError(t, u.lock.RUnlock(inner))
	require.Len(t, s.queue(), 1, "the lock, which is held until the last exit")
	require.NoError(t, u.lock.Unlock(again))
	require.Empty(t, s.queue())
}

func TestReaderMayReadAgainWhileAWriterWaits(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	u := s.join("the reader")
	reader := u.holds(read)
	writer := s.join("the writer").waits(write)
	if _, err := u.lock.RLock(reader.held); err != nil {
		t.Fatal(err)
	}
	reader.releases()
	writer.mustWait("saw the first of two releases")
	reader.releases()
	writer.Acquired()
}

func TestWhatIsNotHeldIsNotReleased(t *testing.T) {
	eachKind(t, func(s *scene, kind string) {
		u := s.join("the holder")
		holder := u.holds(kind)
		elsewhere, err := New(u.lock.s, s.dir+"-too").Lock(s.Ctx)
		if err != nil {
			s.t.Fatal(err)
		}
		mark := u.Tap.Mark()
		other := map[string]string{read: write, write: read}[kind]
		for what, err := range map[string]error{
			"released by the other method":  release(holder.held, u.lock, other),
			"released by a stranger":        release(s.Ctx, u.lock, kind),
			"released with another's hold":  release(elsewhere, u.lock, kind),
			"released through another lock": release(holder.held, New(u.lock.s, s.dir), kind),
		} {
			if !errors.Is(err, ErrNotHeld) {
				s.t.Errorf("%s: %v, want ErrNotHeld", what, err)
			}
		}
		if sent := wiretap.Count(u.Tap.Since(mark)); sent.All() != 0 || holder.held.Err() != nil {
			s.t.Errorf("that sent the requests %v, and the hold is %v", sent.Requests, holder.held.Err())
		}
		holder.releases()
		if cause := context.Cause(holder.held); !errors.Is(cause, ErrNotHeld) {
			s.t.Errorf("after its release the hold's context ended with %v, want ErrNotHeld", cause)
		}
		if err := release(holder.held, u.lock, kind); !errors.Is(err, ErrNotHeld) {
			s.t.Errorf("released a second time: %v, want ErrNotHeld", err)
		}
	})
}

// ---- Deaths.

func TestWaitersDeathLetsNobodyInWrongly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		holder, dies, behind string
		letIn                bool // and rightly so
	}{
		{write, read, write, false},
		{write, write, read, false},
		{write, write, write, false},
		{read, write, write, false},
		{read, write, read, true}, // only the writer stood between two readers
	} {
		t.Run(strings.Trim(strings.Join([]string{c.holder, c.dies, c.behind}, ""), "_"), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			holder := s.join("the holder").holds(c.holder)
			dies := s.mortal("the one that dies").waits(c.dies)
			behind := s.join("the one behind").waits(c.behind)
			dies.Crash()
			s.AwaitExpiry(dies.Client)
			if !c.letIn {
				behind.mustWait("saw the one before it die")
				holder.releases()
			}
			behind.Acquired()
		})
	}
}

// holdUntilKilled is a process of its own.
func holdUntilKilled(servers, args []string) {
	dir, kind := args[0], args[1]
	s, err := Open(servers, zktest.MortalTimeout)
	if err == nil {
		_, err = acquire(context.Background(), New(s, dir), kind, -1)
	}
	zktest.Say("holds: %v", err)
	select {}
}

func TestKilledProcessIsNoHolderForEver(t *testing.T) {
	eachKind(t, func(s *scene, kind string) {
		process := s.Process("holder", s.dir, kind)
		if line := process.Line(); line != "holds: <nil>" {
			s.t.Fatalf("the child process says %q", line)
		}
		node := s.dir + "/" + s.queue()[0]
		owner, _ := s.Owner(node)
		writer := s.join("the writer").waits(write)
		process.Signal(syscall.SIGKILL)
		writer.Acquired()
		if sessions, err := s.Sessions(); sessions[owner] || err != nil {
			s.t.Errorf("the writer is in, and session %#x of the killed process lives (%v)", owner, err)
		}
		if _, there := s.Owner(node); there {
			s.t.Errorf("the writer is in, and the killed process's znode stands before it: %v", s.queue())
		}
	})
}

// The session of a waiter expires. It queues again, under its new session.
func TestExpiryDoesNotEndTheWait(t *testing.T) {
	eachKind(t, func(s *scene, kind string) {
		holder := s.join("the holder").holds(write)
		waiter := s.mortal("the waiter").waits(kind)
		waiter.Crash()
		s.AwaitExpiry(waiter.Client)
		waiter.Tap.Restore()
		s.Await("the waiter to queue again", func() bool { return len(s.queue()) == 2 })
		waiter.mustWait("lost its session")
		holder.releases()
		waiter.Acquired()
		if owner, _ := s.Owner(waiter.node()); owner != waiter.SessionID() || owner == waiter.ID {
			s.t.Errorf("the znode belongs to session %#x; the old session was %#x, the new one is %#x", owner, waiter.ID, waiter.SessionID())
		}
		waiter.releases()
	})
}

// ---- Lost replies.

func TestLostCreateReply(t *testing.T) {
	eachKind(t, func(s *scene, kind string) {
		s.makeDir()
		u := s.join("the unlucky one")
		for _, listToo := range []bool{false, true} {
			lost := []*wiretap.Trap{u.Tap.LoseReply(wiretap.Create, 1)}
			if listToo { // the recovery is cut off as well
				lost = append(lost, u.Tap.LoseReply(wiretap.GetChildren, 1))
			}
			mark := u.Tap.Mark()
			holder := u.holds(kind)
			for _, trap := range lost {
				zktest.AwaitChan(s.Zoo, "the reply to be lost", trap.Sprung())
			}
			creates := wiretap.Count(u.Tap.Since(mark)).Requests[wiretap.Create]
			if queue := s.queue(); creates != 1 || len(queue) != 1 {
				s.t.Errorf("after %d lost replies: %d creates, and the queue %v, want the one znode found again", len(lost), creates, queue)
			}
			holder.releases()
			if left := s.queue(); len(left) > 0 {
				s.t.Errorf("after the release the queue holds %v", left)
			}
		}
	})
}

// The create is lost before the server hears of it. In its stead stands a znode
// with the same guid, of another session, as an earlier session of the client
// may have left one that the server is about to remove. It is not ours.
func TestZnodeOfAnotherSessionIsNotAdopted(t *testing.T) {
	eachKind(t, func(s *scene, kind string) {
		s.makeDir()
		u := s.join("the client")
		lost := u.Tap.LoseRequest(wiretap.Create, 1)
		recovery := u.Tap.HoldRequest(wiretap.Delete, 1) // the write in vain
		attempt := u.asks(kind)
		zktest.AwaitChan(s.Zoo, "the create to be lost", lost.Sprung())
		zktest.AwaitChan(s.Zoo, "the client to look for its znode", recovery.Sprung())
		var asked string
		for _, f := range u.Tap.Frames() {
			if f.Kind == wiretap.Request && f.Op == wiretap.Create {
				asked = f.Path
			}
		}
		twin := s.stranger(pathpkg.Base(asked), zk.FlagEphemeralSequential)
		recovery.Let()
		if kind == read { // a reader shares with its twin; a writer waits for it
			attempt.Acquired()
		} else {
			s.Await("the client to hold the lock or to have a znode of its own", func() bool { return attempt.Returned() || len(s.queue()) == 2 })
			if attempt.Returned() {
				s.t.Fatalf("the client holds the lock by znode %v of session %#x, which is not its own session %#x", s.queue(), s.Observer().ID, u.ID)
			}
			attempt.mustWait("found a znode of another session with its guid")
		}
		if node := attempt.node(); node == "" || len(s.queue()) != 2 {
			s.t.Fatalf("the client holds the lock by a znode of session %#x, which is not its own session %#x: %v", s.Observer().ID, u.ID, s.queue())
		}
		if err := s.Observer().Delete(twin, -1); err != nil {
			s.t.Fatal(err)
		}
		attempt.Acquired()
		attempt.releases()
	})
}

func TestLostDeleteDoesNoHarm(t *testing.T) {
	eachKind(t, func(s *scene, kind string) {
		u, other := s.join("the holder"), s.join("the other")
		for _, lose := range []func(wiretap.Op, int) *wiretap.Trap{u.Tap.LoseReply, u.Tap.LoseRequest} {
			holder := u.holds(kind)
			waiting := other.asks(write)
			waiting.mustWait("came second")
			lost := lose(wiretap.Delete, 1)
			holder.releases()
			zktest.AwaitChan(s.Zoo, "the delete to be lost", lost.Sprung())
			waiting.Acquired()
			waiting.releases()
		}
		if u.SessionID() != u.ID {
			s.t.Errorf("the znode went with session %#x, not by a delete", u.ID)
		}
	})
}

// ---- Giving up.

func TestGivingUpLeavesNothing(t *testing.T) {
	eachKind(t, func(s *scene, kind string) {
		s.join("the holder").holds(write)
		alone := s.queue()
		gone := func(when string) {
			s.t.Helper()
			s.Await("the znode to go of one that gave up "+when, func() bool { return slices.Equal(s.queue(), alone) })
		}

		u := s.join("one that is cancelled")
		if err := u.waits(kind).Cancel(); !errors.Is(err, context.Canceled) {
			s.t.Errorf("cancelled while waiting: %v", err)
		}
		gone("while waiting")

		late := &turn{user: u, mark: u.Tap.Mark()}
		soon, cancel := context.WithTimeout(s.Ctx, 20*time.Millisecond)
		defer cancel()
		if _, err := acquire(soon, u.lock, kind, -1); !errors.Is(err, context.DeadlineExceeded) {
			s.t.Errorf("deadline while waiting: %v", err)
		}
		s.Await("the create to be answered", func() bool { return late.node() != "" }) // on a slow machine it is under way
		gone("at its deadline")

		slow := u.Tap.HoldReply(wiretap.Create, 1)
		attempt := u.asks(kind)
		zktest.AwaitChan(s.Zoo, "the create to be under way", slow.Sprung())
		if err := attempt.Cancel(); !errors.Is(err, context.Canceled) { // at once: the line still stands
			s.t.Errorf("cancelled with the create under way: %v", err)
		}
		if queue := s.queue(); len(queue) != 2 {
			s.t.Errorf("the server has carried out the create: want two znodes, not %v", queue)
		}
		slow.Let()
		gone("while its create was under way")

		// A new client: the first one still has watches, and when it sets them
		// again on a new connection, the race detector finds a race inside zk.Conn.
		u = s.join("one that is cut off")
		lost := u.Tap.LoseReply(wiretap.Create, 1)
		attempt = u.asks(kind)
		zktest.AwaitChan(s.Zoo, "the reply to the create to be lost", lost.Sprung())
		u.Tap.Cut()
		if err := attempt.Cancel(); !errors.Is(err, context.Canceled) {
			s.t.Errorf("cancelled while cut off: %v", err)
		}
		u.Tap.Restore()
		gone("while it did not know whether it had a znode")
		if u.SessionID() != u.ID {
			s.t.Errorf("the znode went with session %#x, not by a delete", u.ID)
		}
	})
}

// The caller gives up while the list that lets it in arrives: the lock is its own,
// or nobody's. Which of the two is up to chance, so there are many rounds.
func TestGivingUpAsTheLockIsGottenLeavesNothing(t *testing.T) {
	eachKind(t, func(s *scene, kind string) {
		s.makeDir()
		u := s.join("the undecided one")
		gotten := 0
		for range 100 {
			list := u.Tap.HoldReply(wiretap.GetChildren, 1)
			attempt := u.asks(kind)
			zktest.AwaitChan(s.Zoo, "the list to be under way", list.Sprung())
			go list.Let()
			if attempt.Cancel() == nil {
				gotten++
				attempt.releases()
			}
		}
		s.t.Logf("%d of 100 got the lock", gotten)
		s.Await("the znodes to go of those that gave up", func() bool { return len(s.queue()) == 0 })
		require.Equal(s.t, u.ID, u.SessionID(), "the session: no znode must need its end")
	})
}

func TestTryAsksOnceOrForAWhile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		holders string // who holds, and then waits
		kind    string
		got     bool
	}{
		{"", read, true}, {"", write, true},
		{"R", read, true}, {"R", write, false},
		{"W", read, false}, {"W", write, false},
		{"RW", read, false}, {"RW", write, false}, // no overtaking the writer
	} {
		s := newScene(t)
		for i, who := range c.holders {
			kind := map[rune]string{'R': read, 'W': write}[who]
			if u := s.join(fmt.Sprintf("client %d", i+1)); i == 0 {
				u.holds(kind)
			} else {
				u.waits(kind)
			}
		}
		before := s.queue()
		u := s.join("the one that tries")
		for _, wait := range []time.Duration{0, 20 * time.Millisecond} {
			if c.got && wait > 0 {
				wait = time.Hour // it is not needed, and 20 ms may pass on a busy machine
			}
			mark := u.Tap.Mark()
			held, err := acquire(s.Ctx, u.lock, c.kind, wait)
			if c.got && err != nil || !c.got && !errors.Is(err, ErrLocked) {
				t.Errorf("%q in the queue, try %s for %v: %v", c.holders, c.kind, wait, err)
			}
			if err == nil {
				err = release(held, u.lock, c.kind)
			}
			if c.got && err != nil {
				t.Error(err)
			}
			s.Await("what tried to leave the queue", func() bool { return slices.Equal(s.queue(), before) })
			if watches := wiretap.Count(u.Tap.Since(mark)).Requests[wiretap.GetData]; wait == 0 && watches != 0 {
				t.Errorf("%q in the queue, try %s once: it set a watch", c.holders, c.kind)
			}
		}
	}
}

func TestTryGetsWhatComesFreeInTime(t *testing.T) {
	eachKind(t, func(s *scene, kind string) {
		holder := s.join("the holder").holds(write)
		tries := s.join("the one that tries").asksFor(kind, time.Hour)
		tries.mustWait("asked for an hour")
		holder.releases()
		tries.Acquired()
		tries.releases()
	})
}

// ---- Loss.

func TestHolderIsToldBeforeAnybodyElseIsLetIn(t *testing.T) {
	eachKind(t, func(s *scene, kind string) {
		holder := s.mortal("the holder").holds(kind)
		next := s.join("the next").waits(write)
		holder.Crash()
		next.Acquired()
		if cause := context.Cause(holder.held); !errors.Is(cause, ErrLost) {
			s.t.Errorf("the next is in, and the hold that was lost says %v, want ErrLost", cause)
		}
		for _, ctx := range []context.Context{holder.held, context.WithoutCancel(holder.held)} {
			if _, err := acquire(ctx, holder.lock, kind, -1); !errors.Is(err, ErrLost) {
				s.t.Errorf("locked again inside a lost hold: %v, want ErrLost", err)
			}
		}
		if err := release(holder.held, holder.lock, kind); !errors.Is(err, ErrLost) {
			s.t.Errorf("the release of a lost hold: %v, want ErrLost", err)
		}
		if err := release(holder.held, holder.lock, kind); !errors.Is(err, ErrNotHeld) {
			s.t.Errorf("the second release: %v, want ErrNotHeld", err)
		}
		holder.Tap.Restore() // with a new session the lock serves as before
		again := holder.user.asks(kind)
		next.releases()
		again.Acquired()
		again.releases()
	})
}

// The lease runs out while the holder is cut off, and the session lives on. Who
// is told may still be stopping: nobody gets in beside it before it has released
// the lock as often as it has locked it, neither elsewhere nor in its own process.
func TestALostHoldKeepsTheOthersOutUntilItsRelease(t *testing.T) {
	eachKind(t, func(s *scene, kind string) {
		holder := s.hasty("the holder").holds(kind)
		inner, err := acquire(holder.held, holder.lock, read, -1)
		require.NoError(s.t, err)
		behind := []*turn{s.join("the writer behind").waits(write), s.join("the reader behind it").waits(read)}
		holder.Tap.Cut()
		zktest.AwaitChan(s.Zoo, "the holder to be told", holder.held.Done())
		require.ErrorIs(s.t, context.Cause(holder.held), ErrLost, "the lease ran out")
		require.ErrorIs(s.t, context.Cause(inner), ErrLost, "and what is inside the hold ends as well")

		holder.Tap.Restore()
		other := New(holder.lock.s, s.dir+"-too")
		elsewhere, err := other.Lock(s.Ctx) // all goes on as if nothing had happened
		require.NoError(s.t, err)
		require.NoError(s.t, elsewhere.Err())
		require.NoError(s.t, other.Unlock(elsewhere))
		behind = append(behind, holder.waits(write), holder.waits(read))
		for _, exit := range []string{kind, read} {
			for _, b := range behind {
				b.mustWait("saw the holder's lease run out, and not the last " + unlock(exit))
			}
			require.ErrorIs(s.t, release(holder.held, holder.lock, exit), ErrLost, "each release of a lost hold")
		}
		for _, b := range behind {
			b.Acquired()
			b.releases()
		}
		require.Equal(s.t, holder.ID, holder.SessionID(), "the holder's session: the znode must not need its end")
	})
}

// The lease runs out while the client asks whether it is its turn. What it gets
// hangs on a new lease.
func TestHoldDoesNotBeginWithALostLease(t *testing.T) {
	eachKind(t, func(s *scene, kind string) {
		u := s.join("the client")
		slow := u.Tap.HoldReply(wiretap.GetChildren, 1)
		attempt := u.asks(kind)
		zktest.AwaitChan(s.Zoo, "the list to be under way", slow.Sprung())
		session := u.lock.s
		session.mu.Lock()
		session.until = time.Now()
		session.mu.Unlock()
		session.expire()
		slow.Let()
		attempt.Acquired()
		if attempt.held.Err() != nil {
			s.t.Errorf("the hold began with %v", context.Cause(attempt.held))
		}
		attempt.releases()
	})
}

// Two session time-outs pass. For the holder's sake the leader is asked all the
// while; a waiter is silent, and the leader is asked when its turn has come.
func TestLongHoldsAndLongWaitsHaveAGoodLease(t *testing.T) {
	eachKind(t, func(s *scene, kind string) {
		holder := s.mortal("the holder").holds(kind)
		waiting := s.mortal("the writer behind").waits(write)
		begin, mark := time.Now(), waiting.Tap.Mark()
		s.Await("two session time-outs to pass", func() bool { return time.Since(begin) > 2*zktest.MortalTimeout })
		if asked := wiretap.Count(waiting.Tap.Since(mark)); asked.All() > 0 {
			s.t.Errorf("waiting sent %v", asked.Requests)
		}
		if holder.held.Err() != nil {
			s.t.Errorf("the hold ended with %v", context.Cause(holder.held))
		}
		holder.releases()
		waiting.Acquired()
		if waiting.held.Err() != nil {
			s.t.Errorf("after a long wait the hold began with %v", context.Cause(waiting.held))
		}
		// A handshake does as well as a write, should the machine have stopped for so
		// long that the line was given up.
		asked := slices.ContainsFunc(waiting.Tap.Since(mark), func(f wiretap.Frame) bool {
			return f.Kind == wiretap.Request && (f.Op == wiretap.Delete || f.Op == wiretap.Connect)
		})
		if !asked {
			s.t.Error("the leader was not asked when the turn had come")
		}
		waiting.releases()
	})
}

func TestReleaseReturnsOnceTheLineIsBack(t *testing.T) {
	eachKind(t, func(s *scene, kind string) {
		holder := s.join("the holder").holds(kind)
		lost := holder.Tap.LoseRequest(wiretap.Delete, 1)
		hello := holder.Tap.HoldRequest(wiretap.Connect, 1) // the next handshake
		release := s.Go(holder.Client, func(context.Context) error { return release(holder.held, holder.lock, kind) })
		zktest.AwaitChan(s.Zoo, "the delete to be lost", lost.Sprung())
		zktest.AwaitChan(s.Zoo, "the client to connect again", hello.Sprung())
		if release.Returned() {
			s.t.Errorf("the line is down, and %s answered %v", unlock(kind), release.Err())
		}
		hello.Let()
		if err := release.Err(); err != nil || len(s.queue()) > 0 || holder.SessionID() != holder.ID {
			s.t.Errorf("the line is back: %s answered %v, the queue is %v, the session %#x (was %#x)", unlock(kind), err, s.queue(), holder.SessionID(), holder.ID)
		}
	})
}

// The line is down for longer than the session's time-out, as far as the client
// knows. It is told that nothing is certain, and the session goes on trying.
func TestReleaseWhileCutOffIsTriedOn(t *testing.T) {
	eachKind(t, func(s *scene, kind string) {
		holder := s.hasty("the holder").holds(kind)
		waiting := s.join("the writer behind").waits(write)
		holder.Tap.Cut()
		if err := release(holder.held, holder.lock, kind); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "no answer for") {
			s.t.Errorf("cut off: %s answered %v, want ErrLost and the reason", unlock(kind), err)
		}
		waiting.mustWait("came second, and the first one's znode stands")
		holder.Tap.Restore()
		waiting.Acquired()
		if holder.SessionID() != holder.ID {
			s.t.Errorf("the znode went with session %#x, not by a delete", holder.ID)
		}
	})
}

// The directory's ACL forbids the delete. The lock stays as it is until the exit
// that was refused is tried again; the other kind's is not that exit.
func TestARefusedReleaseCanBeTriedAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ enter, leave []string }{
		{[]string{write}, []string{write}},
		{[]string{read}, []string{read}},
		{[]string{write, read}, []string{read, write}},
		{[]string{write, read}, []string{write, read}},
	} {
		t.Run(fmt.Sprint(c.leave), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			u := s.join("the holder")
			held, err := s.Ctx, error(nil)
			for _, kind := range c.enter {
				held, err = acquire(held, u.lock, kind, -1)
				require.NoError(t, err)
			}
			next := s.join("the next").waits(write)
			_, err = s.Observer().SetACL(s.dir, zk.WorldACL(zk.PermAll&^zk.PermDelete), -1)
			require.NoError(t, err)
			last := c.leave[len(c.leave)-1]
			for _, kind := range c.leave[:len(c.leave)-1] {
				require.NoError(t, release(held, u.lock, kind))
			}
			for range 2 {
				require.ErrorIs(t, release(held, u.lock, last), zk.ErrNoAuth)
				next.mustWait("saw the server refuse the release")
			}
			require.ErrorIs(t, context.Cause(held), ErrNotHeld, "who has called "+unlock(last)+" does not work on")
			_, err = s.Observer().SetACL(s.dir, zk.WorldACL(zk.PermAll), -1)
			require.NoError(t, err)
			other := map[string]string{read: write, write: read}[last]
			require.ErrorIs(t, release(held, u.lock, other), ErrNotHeld, "the exit that was not refused")
			require.NoError(t, release(held, u.lock, last), "the exit that was")
			next.Acquired()
			require.ErrorIs(t, release(held, u.lock, last), ErrNotHeld, "once more")
		})
	}
}

func TestReleaseWorksWithAContextThatHasEnded(t *testing.T) {
	eachKind(t, func(s *scene, kind string) {
		holder := s.join("the holder").holds(kind)
		_ = holder.Cancel()
		if holder.held.Err() == nil {
			s.t.Error("the hold does not end with the context given to the lock")
		}
		holder.releases()
		if left := s.queue(); len(left) > 0 {
			s.t.Errorf("after the release the queue holds %v", left)
		}
	})
}

func TestZnodeDeletedByHandIsReportedByTheRelease(t *testing.T) {
	eachKind(t, func(s *scene, kind string) {
		holder := s.join("the holder").holds(kind)
		if err := s.Observer().Delete(holder.node(), -1); err != nil {
			s.t.Fatal(err)
		}
		if err := release(holder.held, holder.lock, kind); !errors.Is(err, ErrLost) {
			s.t.Errorf("the release of a znode that was deleted by hand: %v, want ErrLost", err)
		}
	})
}

// ---- Tokens.

func TestTokensRise(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	u, v := s.join("A"), s.join("B")
	var writers, all int64 // the greatest of each so far
	for round := range 3 {
		for _, group := range []string{"W", "RR", "W", "R", "RR", "W"} {
			var turns []*turn
			for i, who := range group {
				turns = append(turns, []*user{u, v}[(i+round)%2].holds(map[rune]string{'R': read, 'W': write}[who]))
			}
			for _, tn := range turns {
				token, ok := Token(tn.held)
				if limit := map[string]int64{read: writers, write: all}[tn.kind]; !ok || token <= limit {
					t.Errorf("round %d: %s got token %d, %v, after %d", round, tn.kind, token, ok, limit)
				}
				if all = max(all, token); tn.kind == write {
					writers = token
				}
				tn.releases()
			}
		}
		if err := s.Observer().Delete(s.dir, -1); err != nil { // and so the numbers start over
			t.Fatal(err)
		}
	}
	if token, ok := Token(s.Ctx); ok {
		t.Errorf("a context without a hold has token %d", token)
	}
}

func TestTokenIsOfTheLockThatWasLockedLast(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	u := s.join("A")
	outer := u.holds(read)
	other := New(u.lock.s, s.dir+"-too")
	inner, err := other.Lock(outer.held)
	if err != nil {
		t.Fatal(err)
	}
	of := func(held context.Context) int64 { token, _ := Token(held); return token }
	if of(inner) <= of(outer.held) {
		t.Errorf("the inner lock's token is %d, the outer one's %d", of(inner), of(outer.held))
	}
	again, err := u.lock.RLock(inner)
	if err != nil {
		t.Fatal(err)
	}
	if of(again) != of(outer.held) {
		t.Errorf("the outer lock, locked again inside the inner one, has token %d, and not %d", of(again), of(outer.held))
	}
	outer.releases()
	if err := other.Unlock(inner); err != nil {
		t.Error(err)
	}
	outer.releases() // the first entry
}

// ---- The rest.

func TestMissingParentsAreMade(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.dir += "/shop/orders"
	s.join("A").holds(write).releases()
	if names := s.Names(pathpkg.Dir(s.dir)); !slices.Equal(names, []string{"orders"}) {
		t.Errorf("below the lock's parent stands %v", names)
	}
}

func TestClosedSession(t *testing.T) {
	eachKind(t, func(s *scene, kind string) {
		u := s.join("A")
		holder := u.holds(kind)
		waiting := s.join("B")
		attempt := waiting.waits(write)
		waiting.lock.s.Close()
		u.lock.s.Close()
		require.ErrorContains(s.t, attempt.Err(), "the session is closed", "Close while waiting")
		zktest.AwaitChan(s.Zoo, "the holder to be told", holder.held.Done())
		if cause := context.Cause(holder.held); !errors.Is(cause, ErrLost) {
			s.t.Errorf("Close while holding: the hold ended with %v, want ErrLost", cause)
		}
		if err := release(holder.held, u.lock, kind); !errors.Is(err, ErrLost) {
			s.t.Errorf("a release after Close: %v, want ErrLost", err)
		}
		for _, wait := range []time.Duration{-1, 0, time.Hour} {
			_, err := acquire(s.Ctx, u.lock, kind, wait)
			require.ErrorContains(s.t, err, "the session is closed", "lock after Close, with wait %v", wait)
		}
		if left := s.queue(); len(left) > 0 {
			s.t.Errorf("the sessions are closed, and the queue holds %v", left)
		}
	})
}

// ---- Names.

// FuzzNames puts a znode of each kind with a number among names of anybody's.
func FuzzNames(f *testing.F) {
	f.Add("", "", int32(0))
	f.Add("_c_0-", "_c_1-__WRIT__0000000001/_c_3-__READ__0000000003/_c_2-__WRIT__0000000002/_c_5-__WRIT__0000000005/foreign", int32(4))
	f.Add("__READ__", "__READ__-2147483648/__WRIT__2147483647/__WRIT__99999999999999999999", int32(-1))
	f.Add("__WRIT__", "__READ__/__WRIT__x/__READ__+1/lock-0000000000/__WRIT__٣/__READ____WRIT__0000000003", int32(7))
	ofTheQueue := regexp.MustCompile(`(?s)^.*__(READ|WRIT)__[+-]?[0-9]{1,18}$`)
	f.Fuzz(func(t *testing.T, prefix, names string, own int32) {
		others := strings.Split(names, "/")
		for _, name := range others {
			digits := len(name) - strings.LastIndex(name, "_")
			if n, kind, ok := number(name); ok != ofTheQueue.MatchString(name) && digits < 18 {
				t.Errorf("the number of %q is %d, its kind %q, %v", name, n, kind, ok)
			}
		}
		for _, kind := range []string{read, write} {
			mine := fmt.Sprintf("%s%s%010d", prefix, kind, own)
			if n, is, ok := number(mine); n != int(own) || is != kind || !ok {
				t.Errorf("the number of %q is %d, its kind %q, %v", mine, n, is, ok)
			}
			for _, list := range [][]string{append(others, mine), append([]string{mine}, others...)} {
				if before, err := predecessor(list, mine); err != nil || !isBefore(before, others, int(own), kind) {
					t.Errorf("before %q in %q stands %q (%v)", mine, list, before, err)
				}
			}
		}
	})
}

// isBefore tells whether before is the right one of the names for a znode of
// the given kind: of those whom it waits for, its number is the greatest below
// own. There is none if it is "".
func isBefore(before string, names []string, own int, kind string) bool {
	highest, _, there := number(before)
	for _, name := range names {
		n, other, ok := number(name)
		if ok && n < own && (!there || n > highest) && !(kind == read && other == read) {
			return false
		}
	}
	_, other, _ := number(before)
	return before == "" || there && highest < own && slices.Contains(names, before) && !(kind == read && other == read)
}
