package property

import (
	"context"
	"errors"

	"zklock/internal/check/zktest"
)

// another gives the first client of the story another lock.
func (s *story) another(path string) *zktest.Member {
	m := s.subject.At(s.Zoo, s.members[0], path)
	if s.reads(0) {
		return m.Reader
	}
	return m
}

// entersWith is a member's call to Lock with a context that it has already.
func (s *story) entersWith(m *zktest.Member, held context.Context) *zktest.Turn {
	turn := m.StartIn(held)
	s.letIn(turn, "nobody is in %v's way", m.Name)
	return turn
}

// A holds another lock, and B this one. Then A locks this one inside the other, and
// the other one again inside this.
var OwnHold = property(
	text("each lock has its own hold and token", "每把锁各有自己的持有和令牌"),
	text("who holds one lock would be let into another, or release it", "持有一把锁的人会闯进另一把锁，或者把它释放掉"),
	text("which lock's hold does the context carry, and does it carry others as well?",
		"context 里带的是哪把锁的持有？别的锁的持有也带着吗？"),
	func(s *story) {
		a, b := s.join("A"), s.writerAs("B", Seat{})
		other := s.another(a.Path + "-other")
		outer, theirs := other.Acquire(), b.Acquire()
		s.says("A's Unlock with the hold of another lock", a.Unlock(outer.Held()), s.subject.NotHeld, a.Path)
		s.says("A's Unlock with B's hold", a.Unlock(theirs.Held()), s.subject.NotHeld, a.Path)
		theirs.Release()

		inner := s.entersWith(a, outer.Held())
		again := s.entersWith(other, inner.Held())
		out, in, back := token(outer), token(inner), token(again)
		s.failsIf(
			in <= out || back != out,
			"A's holds of one lock, of another inside, and of the first again inside have the tokens %d, %d and %d",
			out,
			in,
			back,
		)
		inner.Release()
		outer.Release()
		s.says("Unlock through a third lock", s.another(other.Path).Unlock(again.Held()), s.subject.NotHeld, other.Path)
		s.failsIf(len(other.Queue()) != 1, "A locked twice and released once: %v", other.Queue())
		again.Release()
		cause := context.Cause(outer.Held())
		s.failsIf(
			!errors.Is(cause, s.subject.NotHeld),
			"A has released the lock, and its context ended with the cause: %v; wanted: ErrNotHeld",
			cause,
		)
		anew := s.entersWith(other, context.WithoutCancel(outer.Held()))
		s.failsIf(
			len(other.Queue()) != 1,
			"A locked anew, with a context that carried a hold once; its znodes in the queue: %v",
			other.Queue(),
		)
		anew.Release()
		s.holds("A held two locks, one inside the other: each Unlock took its own lock's hold alone")
	})

// A's lease runs out while it is cut off, and its session lives on. A is told, and
// works on. Another client waits meanwhile, and another goroutine of A.
var LossLetsNobodyIn = property(
	text("a loss lets nobody in before the holder unlocks", "锁丢失后，持有者调用 Unlock 之前不放进任何人"),
	text("who is told that the lock is lost needs time to stop, and somebody would be inside beside it",
		"得知锁丢失的人需要时间停下来，这时别人就会同时在里面"),
	text("the lease has run out and the session lives on: who may delete the znode, and when?",
		"租约已经到期，会话还活着：谁可以删 znode？什么时候删？"),
	func(s *story) {
		believes := zktest.Handshake{Tell: zktest.MortalTimeout} // and the server keeps the session for longer
		a, b := s.joinAs("A", Seat{Through: believes.Through}), s.writerAs("B", Seat{})
		outer := a.Acquire()
		inner := s.entersWith(a, context.WithoutCancel(outer.Held())) // as for work that outlives the caller
		other := s.queue(b)[0]
		own := a.Start()
		a.Tap.Cut()
		for _, held := range []context.Context{outer.Held(), inner.Held()} {
			s.failsIf(
				!s.soon(func() bool { return held.Err() != nil }),
				"A was cut off for %d session time-outs, and one of its contexts goes on",
				enoughTimeouts,
			)
			cause := context.Cause(held)
			s.failsIf(
				!errors.Is(cause, s.subject.Lost),
				"A's lease ran out, and its context ended with the cause: %v; wanted: ErrLost",
				cause,
			)
		}
		a.Tap.Restore()
		s.another(a.Path + "-other").Acquire().Release() // A's session can be relied on again
		nobodyIn := func(when string) {
			s.mustWait(other, other.StillWaits(), "%s", when)
			s.failsIf(own.Returned(), "another goroutine of A %s and was let in beside it", when)
		}
		nobodyIn("saw that A had lost the lock")
		for _, ctx := range []context.Context{outer.Held(), context.WithoutCancel(outer.Held())} {
			s.says("A's Lock with a lost hold", lock(a.Way, ctx), s.subject.Lost, a.Path)
		}
		s.says("A's first Unlock", a.Unlock(inner.Held()), s.subject.Lost, a.Path)
		nobodyIn("saw A's first Unlock of two")
		s.says("A's last Unlock", a.Unlock(outer.Held()), s.subject.Lost, a.Path)
		s.says("one Unlock more", a.Unlock(outer.Held()), s.subject.NotHeld, a.Path)
		other.Release()
		own.Release()
		s.failsIf(a.ID != a.SessionID(), "A got rid of the lock only with its session")
		s.holds("A was told of its loss; its two Unlocks said so, too, and B was let in after the second")
	})
