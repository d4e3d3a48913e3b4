package property

import (
	"slices"

	"zklock/internal/zktest"
)

// Two readers arrive, then a writer, then a third reader. The first two share. The writer waits for
// both, and the third reader waits for the writer.
var Shared = New(
	text("readers share, writers do not, nobody starves", "读者共享，写者独占，无人饿死"),
	text("readers do each other no harm, and would wait for each other anyway", "读者之间互不妨碍，却要互相等待"),
	text("whom must a reader wait for, and whom a writer?", "读者必须等谁？写者必须等谁？"),
	func(s *Story) {
		r1, r2, w, r3 := s.Join("reader 1"), s.Join("reader 2"), s.Join("the writer"), s.Join("reader 3")
		read := func(m *zktest.Member) *zktest.Turn {
			if m.Reader == nil {
				return m.Start()
			}
			return m.Reader.Start()
		}
		first := read(r1)
		first.Acquired()
		second := read(r2)
		s.FailsIf(second.Waits() != zktest.Returned, "reader 2 waits for reader 1: %v", s.Names(s.path))
		second.Acquired()
		s.FailsIf(r1.Reader == nil, "reader 2 got the lock while reader 1 held it, and this lock has no readers")
		writing := s.queue(w)[0]
		third := read(r3)
		s.mustWait(third, third.Waits(), "overtook a waiting writer")
		fourth := read(s.Join("reader 4"))
		s.mustWait(fourth, fourth.Waits(), "overtook a waiting writer")
		beside := read(r1) // another goroutine, with the same lock
		s.mustWait(beside, beside.Waits(),
			"held the lock in one goroutine, called RLock in another one, overtook a waiting writer,")
		_ = s.givesUp(beside, "it waits behind a writer")
		for _, r := range []*zktest.Turn{first, second} {
			s.mustWait(writing, writing.StillWaits(), "wrote while somebody read,")
			r.Release()
		}
		writing.Acquired()
		s.mustWait(third, third.StillWaits(), "read while somebody wrote,")
		late := s.queue(s.Join("a late writer"))[0]
		writing.Release()
		s.letIn(third, "the writer has released")
		s.letIn(fourth, "the writer has released, and reader 3 holds the lock; another writer waits behind it")
		third.Release()
		s.mustWait(late, late.StillWaits(), "wrote while reader 4 read,")
		fourth.Release()
		s.letIn(late, "both late readers have released")
		s.Holds("two readers shared, the writer waited for both, two late readers for the writer")
	})

// A reads, and asks to write within its read hold. It must be refused at once, and keep its read
// hold. Then B writes, reads within that hold, and writes within that, which is no upgrade.
var Upgrade = New(
	text("a reader that asks to write is refused", "持有读锁时拒绝加写锁"),
	text("two readers that ask to write would wait for each other", "两个读者都要求写锁，就会互相等待"),
	text("two readers hold the lock, and both ask to write: whom does each wait for?",
		"两个读者都持有读锁，都要求写锁：各自在等谁？"),
	func(s *Story) {
		a, b := s.Join("A"), s.Join("B")
		if a.Reader == nil {
			s.void("there is no read hold")
		}
		reads := a.Reader.Acquire()
		upgrade := a.StartIn(reads.Context())
		s.FailsIf(
			upgrade.Waits() != zktest.Returned,
			"A reads, asks to write, and waits for itself: %v",
			s.Names(s.path),
		)
		refusal := upgrade.Err()
		s.FailsIf(refusal == nil, "A reads, asks to write, and gets the lock: a second reader would get it as well")
		waiting := s.queue(b)[0]
		if err := reads.Unlock(); err != nil {
			s.Fails("A was refused (%v), and the Unlock of its reader's hold returned: %v", refusal, err)
		}
		s.FailsIf(
			!s.Soon(func() bool { return len(s.left(a)) == 0 }),
			"A's call to write was refused, A unlocked once, and its znode stays: is the refused call counted?",
		)
		waiting.Acquired()
		inside := b.Reader.StartIn(waiting.Context()) // a writer may both read and write within its hold
		s.letIn(inside, "B writes, and asks to read within its hold")
		again := b.StartIn(inside.Context())
		s.letIn(again, "B writes, reads within its hold, and asks to write within that")
		s.Holds(
			"A read, asked to write, and Lock returned %q; a writer waited until A released; "+
				"within its hold it read, and wrote again",
			refusal,
		)
	})

// A writes. B and C wait to read, and B's session expires meanwhile.
var ReaderStays = New(
	text("a reader that queues again is a reader", "重新排队的读者仍是读者"),
	text("after an outage readers would wait for each other", "一次故障之后，读者之间就会互相等待"),
	text("your znode was deleted with its session: which kind was it?", "znode 随会话删除了：它原来是哪一种？"),
	func(s *Story) {
		a, b, c := s.Join("A"), s.JoinMortal("B"), s.Join("C")
		if a.Reader == nil {
			s.void("there is no read hold")
		}
		held := a.Acquire()
		first := b.Reader.Start()
		s.mustWait(first, first.Waits(), "arrived to read while A wrote")
		b.Crash()
		s.AwaitExpiry(b.Client)
		b.Tap.Restore()
		s.FailsIf(
			!s.Soon(func() bool { return len(b.Queue()) == 2 || first.Returned() }),
			"B's session expired, and B does not queue again",
		)
		if first.Returned() {
			s.Fails("B's session expired while it waited to read, and its RLock returned: %v", first.Err())
		}
		second := c.Reader.Start()
		s.mustWait(second, second.Waits(), "arrived to read while A wrote")
		queue := slices.SortedFunc(slices.Values(b.Queue()), zktest.BySequence)
		held.Release()
		s.letIn(first, "A released, and B waits to read")
		s.letIn(
			second,
			"A released; B reads, although its session had expired while it waited; the queue was %v",
			queue,
		)
		s.Holds("B's session expired while it waited to read; later B and C read together")
	})
