package property

import (
	"slices"

	"zklock/internal/wiretap"
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

// A reads, and asks to write within its read hold: with Lock and with TryLock. It must be refused at once, and keep
// its read hold, also if the reply to its create was lost.
// The refused calls do not count, so A unlocks once.
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
		var refusal error
		for _, how := range []string{"", ", and the reply to its create was lost"} {
			reads := s.getsToRead(a, how)
			locked := s.refusal(b)
			for _, call := range []lockCall{{"Lock", a.Lock}, {"TryLock", a.TryLock}} {
				upgrade := a.CallIn(reads.Context(), call.lock)
				s.FailsIf(
					upgrade.Waits() != zktest.Returned,
					"A reads%s, and its %s to write waits for itself: %v",
					how, call.name,
					s.Names(s.path),
				)
				refusal = upgrade.Err()
				s.FailsIf(refusal == nil, "A reads%s, and its %s to write gets the lock: a second reader would get it as well",
					how, call.name)
				s.FailsIf(locked != nil && refusal.Error() == locked.Error(),
					"A reads%s, and its %s to write returned %q, as B's TryLock did: A cannot tell that it has to release first",
					how, call.name, refusal)
			}
			waiting := s.queue(b)[0]
			if err := reads.Unlock(); err != nil {
				s.Fails("A was refused (%v), and the Unlock of its reader's hold returned: %v", refusal, err)
			}
			s.FailsIf(
				!s.Soon(func() bool { return len(s.left(a)) == 0 }),
				"A's calls to write were refused, A unlocked once, and its znode stays: is a refused call counted?",
			)
			s.letIn(waiting, "A has released")
			s.unlocks(waiting)
		}
		s.Holds("A read, asked to write, and Lock and TryLock returned %q; a writer waited until A released", refusal)
	})

// refusal returns the error of a client's TryLock while another client holds the lock, or nil if the try got the lock,
// and releases it. A try that waits is given up. Tries refuses both.
func (s *Story) refusal(m *zktest.Member) error {
	try := m.Call(m.TryLock)
	if !s.Soon(try.Returned) {
		try.GiveUp()
	}
	err := try.Err()
	if err == nil {
		try.Release()
	}
	s.Soon(func() bool { return len(s.left(m)) == 0 })
	return err
}

// getsToRead lets A get the lock to read. If how is not empty, the reply to A's create is lost.
func (s *Story) getsToRead(a *zktest.Member, how string) (reads *zktest.Turn) {
	if how == "" {
		return a.Reader.Acquire()
	}
	lost := a.Tap.LoseReply(wiretap.Create, 1)
	reads = a.Reader.Start()
	zktest.AwaitChan(s.Zoo, "the reply to A's create to be lost", lost.Sprung())
	if reads.Waits() == zktest.Returned && reads.Err() != nil { // LostCreateReply has more to say
		return a.Reader.Acquire()
	}
	s.letIn(reads, "A asks to read, nobody holds the lock%s", how)
	return reads
}

// entersAgain lets outer, a client that holds the lock, lock again as m within its hold: by each call, twice.
// One Unlock for each is due.
func (s *Story) entersAgain(outer, m *zktest.Member, what string, inner []lockCall) {
	held := outer.Acquire()
	entered, calls := []*zktest.Turn{held}, ""
	for _, call := range slices.Concat(inner, inner) { // so that each comes after each other one
		again := m.CallIn(entered[len(entered)-1].Context(), call.lock)
		calls += ", " + call.name
		s.letIn(again, "%s, and calls within its hold%s", what, calls)
		entered = append(entered, again)
	}
	for i, turn := range entered {
		s.FailsIf(len(s.left(m)) != 1, "%s, has locked %d times in all and unlocked %d times, and its znodes are %v",
			what, len(entered), i, s.left(m))
		s.unlocks(turn)
	}
	s.FailsIf(!s.Soon(func() bool { return len(s.left(m)) == 0 }), "%s, has unlocked as often as it locked, and has left %v",
		what, s.left(m))
}

// A writes. B and C wait to read, and B's session expires meanwhile.
var ReaderStays = New(
	text("a reader that queues again is a reader", "重新排队的读者仍是读者"),
	text("after an outage readers would wait for each other", "一次故障之后，读者之间就会互相等待"),
	text("your znode was deleted with its session: which kind was it?", "znode 随会话删除了：它原来是哪一种？"),
	func(s *Story) {
		a, b, c := s.Join("A"), s.Join("B"), s.Join("C")
		if a.Reader == nil {
			s.void("there is no read hold")
		}
		held := a.Acquire()
		first := b.Reader.Start()
		s.mustWait(first, first.Waits(), "arrived to read while A wrote")
		s.Expire(b.Client)
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
