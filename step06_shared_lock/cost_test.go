package sharedlock

import (
	"context"
	"errors"
	"fmt"
	pathpkg "path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"zklock/internal/chapter"
	"zklock/internal/lockcheck"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// watchAll is how the course's shared lock waits at first: with a watch on the
// directory.
func watchAll(ctx context.Context, l *right, p *place) error {
	for {
		lease := l.s.Lease()
		names, stat, changed, err := l.s.Conn().ChildrenW(l.dir)
		if err != nil {
			return err
		}
		before, err := predecessor(names, pathpkg.Base(p.node))
		if before == "" || err != nil {
			p.lease, p.token = lease, stat.Pzxid
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ways are the two ways to wait.
var ways = []struct {
	name    string
	variant func(*RWLock) locker
}{
	{"a watch on the directory", func(l *RWLock) locker { return variant{right: l, wait: watchAll} }},
	{"a watch on one znode", nil},
}

func TestTheFirstFormIsARightLockWithAHerd(t *testing.T) {
	t.Parallel()
	lock := wrong(ways[0].name, variant{wait: watchAll})
	lockcheck.Holds(t, lock, lockcheck.OneHolder, lockcheck.Shared)
	lockcheck.Fails(t, lock, lockcheck.WakesOne, lockcheck.ArrivalWakesNobody)
}

// crowd brings a holder and those who wait behind it, R for a reader and W for
// a writer.
func (s *scene) crowd(holder, waiting string) (first *turn, rest []*turn) {
	s.t.Helper()
	kind := map[string]string{"R": read, "W": write}
	first = s.join("the holder").holds(kind[holder])
	for i, who := range strings.Split(waiting, "") {
		rest = append(rest, s.join(fmt.Sprintf("waiter %d", i+1)).waits(kind[who]))
	}
	for _, w := range rest {
		w.mustWait("saw the others arrive")
	}
	return first, rest
}

// The readers before the first writer in the queue are let in together. Each of
// them has to be told; anybody else is told in vain.
func TestAWritersRelease(t *testing.T) {
	t.Parallel()
	for i, way := range ways {
		for _, c := range []struct {
			waiting, says string
			letIn         int
			notified      [2]int // the ways'
		}{
			{"RRRRRRRRRR", "10 readers wait", 10, [2]int{10, 10}},
			{"RRRRRWRRRRR", "5 readers, a writer and 5 readers wait", 5, [2]int{11, 5}},
		} {
			s := newScene(t)
			s.variant = way.variant
			writer, waiters := s.crowd("W", c.waiting)
			told := s.notified(func() {
				writer.releases()
				for _, w := range waiters[:c.letIn] {
					w.Acquired()
				}
			}, waiters...)
			chapter.Says(t, "%s: a writer releases, and %s: %d notifications, %d let in", way.name, c.says, told, c.letIn)
			if told != c.notified[i] {
				t.Errorf("want %d notifications", c.notified[i])
			}
		}
	}
}

func TestAnArrival(t *testing.T) {
	t.Parallel()
	for i, way := range ways {
		s := newScene(t)
		s.variant = way.variant
		_, waiters := s.crowd("W", "RRRRRWRRRRR")
		newcomer := s.join("the newcomer")
		told := s.notified(func() { newcomer.waits(read) }, waiters...)
		chapter.Says(t, "%s: one more comes, and these 11 wait: %d notifications", way.name, told)
		if want := []int{11, 0}[i]; told != want {
			t.Errorf("want %d", want)
		}
	}
}

// Ten readers leave in the order in which they came. The writer behind them has
// to know of the last one only.
func TestReadersLeave(t *testing.T) {
	t.Parallel()
	n := chapter.Size(t, 10)
	for i, way := range ways {
		s := newScene(t)
		s.variant = way.variant
		var readers []*turn
		for i := range n {
			readers = append(readers, s.join(fmt.Sprintf("reader %d", i+1)).holds(read))
		}
		writer := s.join("the writer").waits(write)
		told := s.notified(func() {
			for i := range readers {
				readers[i].releases()
				if i < len(readers)-1 {
					writer.mustWait("saw a reader leave")
				}
			}
			writer.Acquired()
		}, writer)
		chapter.Says(t, "%s: %d readers leave one by one: notifications to the writer behind them: %d", way.name, n, told)
		if want := []int{n, 1}[i]; told != want {
			t.Errorf("want %d", want)
		}
	}
}

// A turn of the room begins when somebody enters it empty. Readers meet inside:
// each stays until all are there, which only a shared lock can bring about.
// (They would wait for ever, and the test would say so.)
func TestTenReadersTakeOneTurn(t *testing.T) {
	t.Parallel()
	const n, work = 10, 50 // ms
	for _, kind := range kinds {
		s := newScene(t)
		var inside, most, turns atomic.Int64
		full := make(chan struct{})
		var calls []*zktest.Attempt
		for i := range n {
			u := s.join(fmt.Sprintf("client %d (%s)", i+1, kind))
			calls = append(calls, s.Go(u.Client, func(ctx context.Context) error {
				held, err := acquire(ctx, u.lock, kind, -1)
				if err != nil {
					return err
				}
				now := inside.Add(1)
				for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
				}
				if now == 1 {
					turns.Add(1)
				}
				if now == n {
					close(full)
				}
				if kind == read {
					select {
					case <-full:
					case <-ctx.Done():
						return fmt.Errorf("%d of %d readers are inside", inside.Load(), n)
					}
				}
				time.Sleep(work * time.Millisecond) // stands for the work
				inside.Add(-1)
				return release(held, u.lock, kind)
			}))
		}
		for _, c := range calls {
			c.Acquired()
		}
		who, times := "readers", "turn"
		if kind == write {
			who, times = "writers", "turns"
		}
		chapter.Says(t, "10 %s of %d ms: %d inside at a time, %d %s", who, work, most.Load(), turns.Load(), times)
		if want := map[string][2]int64{read: {n, 1}, write: {1, n}}[kind]; most.Load() != want[0] || turns.Load() != want[1] {
			t.Errorf("want %d inside and %d turns", want[0], want[1])
		}
	}
}

// What a lock and an unlock cost the client, the directory being there.
func TestRequestsForOneTenure(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		s := newScene(t)
		s.makeDir()
		u := s.join("the client")
		u.holds(kind).releases()
		alone := asked(u, 0)

		holder := s.join("the holder").holds(write)
		mark := u.Tap.Mark()
		waiter := u.waits(kind)
		holder.releases()
		waiter.Acquired()
		waiter.releases()
		waited := asked(u, mark)

		lock := strings.TrimSuffix(unlock(kind), "Unlock") + "Lock"
		chapter.Says(t, "%s and %s, alone: %d requests: %s", lock, unlock(kind), len(alone), strings.Join(alone, ", "))
		chapter.Says(t, "%s and %s, after a wait: %d requests: %s", lock, unlock(kind), len(waited), strings.Join(waited, ", "))
		if len(alone) != 3 || len(waited) != 5 {
			t.Errorf("want 3 and 5")
		}
	}
}

// asked lists what a user has asked since the mark, in order.
func asked(u *user, mark int) (ops []string) {
	for _, f := range u.Tap.Since(mark) {
		if wiretap.Count([]wiretap.Frame{f}).All() == 1 { // neither a ping nor the test's own
			ops = append(ops, f.Op.String())
		}
	}
	return ops
}

// Left out on purpose: step 5 hands a tenure on to the next goroutine of its
// process without a request. Here each goroutine has a znode of its own.
func TestLeftOutHandingOn(t *testing.T) {
	t.Parallel()
	const goroutines, turns = 8, 10
	s := newScene(t)
	s.makeDir()
	u := s.join("the process")
	var calls []*zktest.Attempt
	for range goroutines {
		calls = append(calls, s.Go(u.Client, func(ctx context.Context) error {
			for range turns {
				held, err := u.lock.Lock(ctx)
				if err != nil {
					return err
				}
				if err := u.lock.Unlock(held); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	for _, c := range calls {
		c.Acquired()
	}
	each := float64(len(asked(u, 0))) / (goroutines * turns)
	chapter.Says(t, "%d goroutines of one process, %d turns: %v requests each", goroutines, goroutines*turns, chapter.About(each, 1.3))
}

// Left out on purpose: a reader that becomes a writer. Here two readers try, by
// queuing up as writers while they hold the lock: each waits for the other.
func TestLeftOutUpgrade(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	a, b := s.join("A"), s.join("B")
	readA, readB := a.holds(read), b.holds(read)
	who := map[string]string{readA.node(): "A's read znode", readB.node(): "B's read znode"}

	mark := a.Tap.Mark()
	_, err := a.lock.Lock(readA.held)
	if !errors.Is(err, ErrUpgrade) {
		t.Errorf("write asked for inside a read hold: %v, want ErrUpgrade", err)
	}
	chapter.Says(t, "write asked for inside a read hold: ErrUpgrade after %d requests", len(asked(a, mark)))

	writeA, writeB := a.waits(write), b.waits(write)
	who[writeA.node()], who[writeB.node()] = "A's write znode", "B's write znode"
	forA, forB := who[a.Tap.Watched()[0]], who[b.Tap.Watched()[0]]
	chapter.Says(t, "two readers queue up as writers: A waits for %s, B for %s, and nobody is ever let in", forA, forB)
	if forA != "B's read znode" || forB != "A's write znode" {
		t.Errorf("want the two to wait for each other; the queue: %v", s.queue())
	}
	_, _ = writeA.Cancel(), writeB.Cancel()
}
