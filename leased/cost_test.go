package leased

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// The requests of a client for one Lock and one Unlock when the directory exists, alone and after a wait. The
// client library's own lock is counted beside it.
func TestRequestsForOneHold(t *testing.T) {
	each(t, func(t *testing.T, z *zktest.Zoo, w *way) {
		holder := w.other(z, "the holder")
		holder.Acquire().Release() // makes the directory

		// spent returns the requests for a hold, first without and then with another client to wait for.
		spent := func(m, holder *zktest.Member) (alone, waiting wiretap.Counts) {
			count := z.CountClients(m.Client)
			m.Acquire().Release()
			alone = count()

			first := holder.Acquire()
			count = z.CountClients(m.Client)
			turn := m.Start()
			turn.MustWait("the holder")
			first.Release()
			turn.Release()
			return alone, count()
		}
		a := w.join(z, "A")
		alone, waiting := spent(a, holder)
		theirs := clientLocks.JoinAs(z, "the client's lock", property.Seat{Path: z.Root + "/theirs"})
		theirs.Acquire().Release()
		theirHolder := clientLocks.JoinAs(z, "its holder", property.Seat{Path: z.Root + "/theirs"})
		theirAlone, theirWaiting := spent(theirs, theirHolder)
		t.Logf("» alone: %v, %d bytes sent, %d received; zk.Lock: %v, %d sent, %d received",
			alone.Asked, alone.Sent, alone.Received, theirAlone.Asked, theirAlone.Sent, theirAlone.Received)
		t.Logf("» after a wait: %v, %d bytes sent, %d received; zk.Lock: %v, %d sent, %d received",
			waiting.Asked, waiting.Sent, waiting.Received, theirWaiting.Asked, theirWaiting.Sent, theirWaiting.Received)
		require.Equal(t, map[wiretap.Op]int{wiretap.Create: 1, wiretap.GetChildren: 1, wiretap.Delete: 1}, alone.Requests)
		require.Equal(t, map[wiretap.Op]int{
			wiretap.Create: 1, wiretap.GetChildren: 2, wiretap.GetData: 1, wiretap.Delete: 1}, waiting.Requests)
		require.Equal(t, alone.All(), theirAlone.All(), "requests of zk.Lock, alone")
		require.Equal(t, waiting.All(), theirWaiting.All(), "requests of zk.Lock, after a wait")

		turn, mark := a.Acquire(), a.Tap.Mark()
		turn.StartIn(turn.Context()).Release()
		require.Positive(t, token(turn))
		require.Empty(t, a.Asked(mark), "requests of a re-entry and of a token")
		turn.Release()

		count := z.CountClients(a.Client)
		a.Call(a.TryLock).Release()
		require.Equal(t, map[wiretap.Op]int{wiretap.Create: 1, wiretap.GetChildren: 2, wiretap.Delete: 1}, count().Requests,
			"requests of a TryLock that gets the lock")
		first := holder.Acquire()
		count = z.CountClients(a.Client)
		require.ErrorIs(t, a.Call(a.TryLock).Err(), ErrLocked)
		require.Equal(t, map[wiretap.Op]int{wiretap.GetChildren: 1, wiretap.GetData: 1}, count().Requests,
			"requests of a TryLock that fails")
		first.Release()
	})
}

// Goroutines of one process share a Cohort: most hand-overs need no request.
func TestACohortHandsOnWithoutARequest(t *testing.T) {
	t.Parallel()
	const goroutines, turns = 8, 10
	z := zktest.New(t)
	requests := map[*way]float64{}
	for _, w := range []*way{byMutex, byCohort} {
		m := w.joinAs(z, w.name, property.Seat{Path: z.Root + "/" + w.name})
		m.Acquire().Release() // makes the directory
		mark := m.Tap.Mark()
		var all sync.WaitGroup
		for range goroutines {
			all.Go(func() {
				for range turns {
					_, err := inTurn(m, func() {})(z.Ctx)
					assert.NoError(t, err)
				}
			})
		}
		all.Wait()
		requests[w] = float64(len(m.Asked(mark))) / (goroutines * turns)
	}
	t.Logf("» %d goroutines of one process: a Mutex makes %.1f requests for each turn, a Cohort %.1f",
		goroutines, requests[byMutex], requests[byCohort])
	require.Greater(t, requests[byMutex], 3.0)
	require.Less(t, requests[byCohort], 1.0)
}

// The holder has asked for five minutes, and was granted much less. It is partitioned during a long hold. It
// counts from the sending of a write that two later ones have proved; the server counts from when it last
// heard of the holder, which is later. So the holder's lease ends first.
func TestLeaseEndsFirst(t *testing.T) {
	t.Parallel()
	// On a busy machine a timer can be late, or a write can reach the wire so late that the test takes
	// another write than the client for write 1. So there are three tries.
	const promised, tolerance = 0.9, 1.15
	const tries = 3
	measured := toldAfter(t)
	for try := 2; try <= tries; try++ {
		isNear := measured.write1 < promised*tolerance && measured.write1 > promised/tolerance
		if isNear {
			break
		}
		measured = toldAfter(t)
	}
	t.Logf("» cut off: %.2f of the session timeout after it sent write 1, the holder is notified; "+
		"the next client gets the lock later", measured.write1)
	require.InDelta(t, promised, measured.write1, 0.15, "of the timeout after write 1 the holder is notified")
	require.Less(t, measured.last, 0.8, "after the last write: the lease does not count from that one")
}

// told says when a holder was notified, as a part of the session timeout: after it had sent the write from
// which its lease counts, and after it had sent its last write.
type told struct{ write1, last float64 }

// toldAfter partitions a holder during a long hold. The holder is notified before the next client acquires
// the lock.
func toldAfter(t *testing.T) told {
	t.Helper()
	z := zktest.New(t)
	c := mutexes.JoinAs(
		z,
		"the holder",
		property.Seat{Timeout: 5 * time.Minute, Through: zktest.Handshake{Ask: zktest.MortalTimeout}.Through},
	)
	require.Equal(t, zktest.MortalTimeout, session(c).Timeout(), "the timeout that the server has granted")
	held, begin := c.Acquire().Context(), time.Now()
	next := mutexes.Join(z, "the next").Start()
	next.MustWait("the holder")
	z.Await("two session timeouts to pass", func() bool { return time.Since(begin) > 2*zktest.MortalTimeout })
	c.Crash()
	zktest.AwaitChan(z, "the holder to be notified", held.Done())
	now := time.Now()
	require.ErrorIs(t, context.Cause(held), ErrLost)
	require.False(t, next.Returned(), "the next client got the lock before the holder was notified")

	answered := answeredWrites(c.Tap.Frames())
	write1, last := lastWrite1(answered), answered[len(answered)-1]
	after := func(w proof) float64 { return now.Sub(w.sent).Seconds() / zktest.MortalTimeout.Seconds() }
	next.Release()
	return told{after(write1), after(last)}
}

// answeredWrites returns the writes of a connection that were answered. The answers arrive in the order of
// the requests.
func answeredWrites(frames []wiretap.Frame) (writes []proof) {
	var open []time.Time
	for _, f := range frames {
		switch {
		case f.Lost:
		case f.Kind == wiretap.Request:
			open = append(open, f.At)
		case f.Kind == wiretap.Reply:
			if f.Op == wiretap.Create || f.Op == wiretap.Delete {
				writes = append(writes, proof{sent: open[0], answered: f.At})
			}
			open = open[1:]
		}
	}
	return writes
}

// lastWrite1 returns the last write that two later ones have proved: write 2 was sent a tick after its
// answer, and write 3 after the answer to write 2.
func lastWrite1(writes []proof) (last proof) {
	for i, write1 := range writes {
		for j, write2 := range writes {
			isWrite2 := j > i && write2.sent.Sub(write1.answered) >= longestTick(zktest.MortalTimeout)
			hasWrite3 := j+1 < len(writes) && writes[len(writes)-1].sent.After(write2.answered)
			if isWrite2 && hasWrite3 {
				last = write1
			}
		}
	}
	return last
}

// Only writes, to which a majority has agreed, renew the lease of a hold: no ping and no sync does. So a long hold
// costs a write now and then.
func TestALongHoldAsksTheLeader(t *testing.T) {
	t.Parallel()
	var asked map[wiretap.Op]int
	var writes int
	require.NoError(t, inThreeTries(zktest.MortalTimeout, func(timeout time.Duration) (wrong error) {
		begin := time.Now()
		asked, wrong = askedInALongHold(t, timeout)
		fifths := int(time.Since(begin) / (timeout / 5)) // ten, and more on a busy machine
		writes = asked[wiretap.Delete]
		// Where answers are late, less of the lease is left, and one write follows another at once.
		if isMore := writes > fifths+2; isMore && wrong == nil {
			wrong = fmt.Errorf("%d writes in %d fifths of the timeout", writes, fifths)
		}
		return wrong
	}))
	t.Logf("» a hold of two session timeouts: %d writes that change nothing", writes)
	require.Equal(t, map[wiretap.Op]int{wiretap.Delete: writes}, asked, "requests during the hold")
}

// askedInALongHold returns the requests of a holder during two session timeouts and, if the holder has lost
// the lock, why.
func askedInALongHold(t *testing.T, timeout time.Duration) (asked map[wiretap.Op]int, lost error) {
	t.Helper()
	z := zktest.New(t)
	c := mutexes.JoinAs(z, "the holder", property.Seat{Timeout: timeout})
	turn := c.Acquire()
	begin, mark := time.Now(), c.Tap.Mark()
	z.Await("two session timeouts to pass", func() bool { return time.Since(begin) > 2*timeout })
	asked, lost = c.Requests(mark), context.Cause(turn.Context())
	if lost == nil {
		turn.Release()
	}
	return asked, lost
}

// store is what the lock protects: one value, somewhere else. A store that checks tokens refuses one that is
// smaller than the greatest it has seen.
type store struct {
	checks   bool
	greatest int64
	value    string
	writes   []string // in the order in which they arrived
}

func (s *store) write(token int64, value string) {
	if s.checks && token < s.greatest {
		s.writes = append(s.writes, value+" (refused)")
		return
	}
	s.greatest, s.value = max(s.greatest, token), value
	s.writes = append(s.writes, value)
}

// pausedHolder is the child process, whose lines of output are writes to the store. It checks whether it
// still holds the lock, and then waits for a line of input before it writes. The test pauses it there. A
// garbage collector or a paused virtual machine has the same effect.
func pausedHolder(servers, args []string) {
	goOn := zktest.Continued()
	s, err := Open(context.Background(), servers, zktest.MortalTimeout)
	var hold *Hold
	if err == nil {
		hold, err = NewMutex(s, args[0]).Lock(context.Background())
	}
	if err != nil {
		zktest.Say("%v", err)
		return
	}
	held := hold.Context(context.Background())
	if held.Err() == nil {
		zktest.Say("session %d, token %d: first", s.Conn().SessionID(), hold.Token())
		<-goOn // the test pauses the process here
		zktest.Say("session %d, token %d: late", s.Conn().SessionID(), hold.Token())
	}
	<-held.Done()
	zktest.Say("%v", context.Cause(held))
}

// A holder is paused until its session has expired, and then resumes. No lock can prevent this late write: at
// that time, nobody could notify the holder.
func TestPausedHolder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		checks bool
		takes  []string
		keeps  string
	}{
		{false, []string{"first", "second", "late"}, "late"},
		{true, []string{"first", "second", "late (refused)"}, "second"},
	} {
		t.Run(fmt.Sprintf("checks_%v", c.checks), func(t *testing.T) {
			t.Parallel()
			z := zktest.New(t)
			store, child := &store{checks: c.checks}, z.Process("paused holder", z.Root+"/lock")
			writes := func() (session int64) {
				var token int64
				head, value, _ := strings.Cut(child.Line(), ": ")
				_, err := fmt.Sscanf(head, "session %d, token %d", &session, &token)
				require.NoError(t, err, head)
				store.write(token, value)
				return session
			}
			session := writes()
			child.Stop()
			z.AwaitExpiry(&zktest.Client{Name: "the stopped process", ID: session})
			second := mutexes.Join(z, "the second holder").Acquire()
			store.write(token(second), "second")
			child.Continue()
			writes()
			require.Contains(t, child.Line(), ErrLost.Error(), "what the first holder learns, too late")
			second.Release()
			require.Equal(t, c.takes, store.writes, "what the store takes")
			require.Equal(t, c.keeps, store.value, "what the store keeps")
		})
	}
}

// Eight clients acquire the lock repeatedly. A turn costs each of them five requests, as with zk.Lock: a
// release wakes one client, which lists once.
func TestRequestsAmongEight(t *testing.T) {
	t.Parallel()
	const clients, turns = 8, 10
	perTurn := func(join func(z *zktest.Zoo, name string) *zktest.Member) float64 {
		z := zktest.New(t)
		var members []*zktest.Member
		for i := range clients {
			members = append(members, join(z, fmt.Sprintf("client %d", i+1)))
		}
		members[0].Acquire().Release() // makes the directory
		var all sync.WaitGroup
		asked, marks := 0, make([]int, clients)
		for i, m := range members {
			marks[i] = m.Tap.Mark()
			all.Go(func() {
				for range turns {
					_, err := inTurn(m, func() {})(z.Ctx)
					assert.NoError(t, err)
				}
			})
		}
		all.Wait()
		for i, m := range members {
			asked += len(m.Asked(marks[i]))
		}
		return float64(asked) / (clients * turns)
	}
	theirs := perTurn(clientLocks.Join)
	for _, w := range []*way{byMutex, byWriter} {
		ours := perTurn(w.join)
		t.Logf("» %d clients, requests for each turn: %s %.2f, zk.Lock %.2f", clients, w.name, ours, theirs)
		require.Less(t, ours, 5.5, w.name)
	}
}
