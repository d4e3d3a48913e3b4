package sharedlock

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/zktest"
	"zklock/internal/upkeep/chapter"
)

// ways are the two ways to wait: the first is how the course's shared lock waits
// at first.
var ways = []lockcheck.Subject{
	watching("a watch on the directory", predecessor),
	lockcheck.OverSession("a watch on one znode", open, New, Token),
}

func TestTheFirstFormIsARightLockWithAHerd(t *testing.T) {
	t.Parallel()
	lockcheck.Holds(t, ways[0], lockcheck.OneHolder, lockcheck.Shared)
	lockcheck.Lacks(t, ways[0], lockcheck.WakesOne, lockcheck.ArrivalWakesNobody)
}

// The readers before the first writer in the queue are let in together. Each of
// them has to be told; anybody else is told in vain.
func TestAWritersRelease(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		for _, c := range []struct {
			waiting, says string
			letIn         int
		}{
			{"RRRRRRRRRR", "10 readers wait", 10},
			{"RRRRRWRRRRR", "5 readers, a writer and 5 readers wait", 5},
		} {
			z := zktest.New(t)
			turns := queue(z, way, "W"+c.waiting)
			writer, waiters := turns[0], turns[1:]
			count := z.Count(waiters...)
			writer.Release()
			for _, w := range waiters[:c.letIn] {
				w.Acquired()
			}
			z.Settle(waiters[c.letIn:]...)
			chapter.Says(
				t,
				"%s: a writer releases, and %s: %d notifications, %d let in",
				way.Name,
				c.says,
				count().Notifications,
				c.letIn,
			)
		}
	}
}

func TestAnArrival(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		z := zktest.New(t)
		waiters := queue(z, way, "WRRRRRWRRRRR")[1:]
		count := z.Count(waiters...)
		way.Join(z, "the newcomer").Reader.Start().MustWait("the others")
		chapter.Says(
			t,
			"%s: 5 readers, a writer and 5 readers wait, and one more comes: %d notifications",
			way.Name,
			count().Notifications,
		)
	}
}

// Ten readers leave in the order in which they came. The writer behind them has
// to know of the last one only.
func TestReadersLeave(t *testing.T) {
	t.Parallel()
	n := chapter.Size(t, 10)
	for i, way := range ways {
		z := zktest.New(t)
		turns := queue(z, way, strings.Repeat("R", n)+"W")
		readers, writer := turns[:n], turns[n]
		count := z.Count(writer)
		for i, reader := range readers {
			reader.Release()
			if i < n-1 {
				z.Settle(writer)
			}
		}
		writer.Acquired()
		told := count().Notifications
		chapter.Says(
			t,
			"%s: %d readers leave one by one: notifications to the writer behind them: %d",
			way.Name,
			n,
			told,
		)
		require.Equal(t, []int{n, 1}[i], told, "notifications")
	}
}

// Whoever is let in together takes a turn together: in it all of them do their work,
// and leave.
func TestTenReadersTakeOneTurn(t *testing.T) {
	t.Parallel()
	const n, work = 10, 50 // ms
	for _, c := range []struct {
		kind       kind
		who, times string
	}{{read, "readers", "turn"}, {write, "writers", "turns"}} {
		z := zktest.New(t)
		var waiting []*zktest.Turn
		for i := range n {
			waiting = append(waiting, as(c.kind, subject.Join(z, fmt.Sprintf("client %d (%s)", i+1, c.kind))).Start())
		}
		most, turns := 0, 0
		for ; len(waiting) > 0; turns++ {
			z.Await("somebody to be let in", func() bool {
				return slices.ContainsFunc(waiting, (*zktest.Turn).Returned)
			})
			var inside, outside []*zktest.Turn
			for _, w := range waiting {
				if w.Waits() == zktest.Returned {
					inside = append(inside, w)
				} else {
					outside = append(outside, w)
				}
			}
			most = max(most, len(inside))
			time.Sleep(work * time.Millisecond) // stands for the work
			for _, w := range inside {
				w.Release()
			}
			waiting = outside
		}
		chapter.Says(t, "10 %s of %d ms: %d inside at a time, %d %s", c.who, work, most, turns, c.times)
	}
}

// What a lock and an unlock cost the client, the directory being there.
func TestRequestsForOneTenure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind  kind
		calls string
	}{{read, "RLock and RUnlock"}, {write, "Lock and Unlock"}} {
		z := zktest.New(t)
		holder := subject.Join(z, "the holder")
		holder.Acquire().Release() // makes the directory
		m := as(c.kind, subject.Join(z, "the client"))
		m.Acquire().Release()
		alone := m.Asked(0)

		held := holder.Acquire()
		mark := m.Tap.Mark()
		waiter := m.Start()
		waiter.MustWait("the holder")
		held.Release()
		waiter.Release()
		waited := m.Asked(mark)

		chapter.Says(t, "%s, alone: %d requests: %s", c.calls, len(alone), strings.Join(alone, ", "))
		chapter.Says(t, "%s, after a wait: %d requests: %s", c.calls, len(waited), strings.Join(waited, ", "))
	}
}

// Left out on purpose: step 5 hands a tenure on to the next goroutine of its
// process without a request. Here each goroutine has a znode of its own.
func TestLeftOutHandingOn(t *testing.T) {
	t.Parallel()
	const goroutines, turns = 8, 10
	z := zktest.New(t)
	m := subject.Join(z, "the process")
	m.Acquire().Release() // makes the directory
	mark := m.Tap.Mark()
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range turns {
				held, err := m.Lock(z.Ctx)
				if assert.NoError(t, err) {
					assert.NoError(t, m.Unlock(held))
				}
			}
		})
	}
	all.Wait()
	each := float64(len(m.Asked(mark))) / (goroutines * turns)
	chapter.Says(
		t,
		"%d goroutines of one process, %d turns: %v requests for each turn",
		goroutines,
		goroutines*turns,
		chapter.About(each, 1.3),
	)
}

// Left out on purpose: a reader that becomes a writer. Here two readers try, by
// queuing up as writers while they hold the lock: each waits for the other.
func TestLeftOutUpgrade(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := subject.Join(z, "A"), subject.Join(z, "B")
	reading := a.Reader.Acquire()
	who := map[string]string{a.Znode(): "A's read znode"}
	b.Reader.Acquire()
	who[b.Znode()] = "B's read znode"

	mark := a.Tap.Mark()
	_, err := a.Lock(reading.Held())
	require.ErrorIs(t, err, ErrUpgrade, "write asked for inside a read hold")
	chapter.Says(t, "write asked for inside a read hold: ErrUpgrade after %d requests", len(a.Asked(mark)))

	writing := a.Start()
	writing.MustWait("B's read znode")
	who[a.Znode()] = "A's write znode"
	b.Start().MustWait("A's write znode")
	writing.MustWait("B's read znode, now that B waits, too")
	chapter.Says(t, "two readers queue up as writers: both wait, A for %s, B for %s",
		who[a.Tap.Watched()[0]], who[b.Tap.Watched()[0]])
}
