package property

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// A holds the lock and locks again, once more within another lock, and releases as often. Then B holds it, and A calls
// Lock with contexts of its old hold.
// The hold of D, which has locked twice, is lost. At last A's delete is on its way, and A calls Lock and Unlock.
var LocksAgain = New(
	text("the holder may lock again", "持有者可以再次加锁"),
	text("a function that holds the lock calls a function that acquires it, and waits for itself",
		"持锁的函数调用了另一个要加同一把锁的函数，结果自己等自己"),
	text("how can Lock tell that the caller is the holder?", "Lock 怎样看出调用者就是持有者？"),
	func(s *Story) {
		a, b := s.Join("A"), s.Join("B")
		first := a.Acquire()
		second := first.StartIn(first.Context())
		s.FailsIf(second.Waits() != zktest.Returned, "A holds the lock and waits for it: %v", s.left(a))
		s.FailsIf(second.Err() != nil, "A holds the lock, and its second Lock returned: %v", second.Err())
		if a.HasHolds() { // to take another lock within the hold is no re-entry
			other := s.JoinAs("C", Seat{Path: s.path + "-other"})
			inside := other.StartIn(first.Context())
			inside.Acquired()
			names := other.Queue()
			s.FailsIf(
				len(names) != 1,
				"A locked another lock inside its hold, and the queue of that lock is %v",
				names,
			)
			again := a.StartIn(inside.Held().Context(first.Context()))
			s.letIn(again, "A holds the lock, holds another lock inside, and calls Lock with a context of both holds")
			inside.Release()
			s.unlocks(again)
			s.FailsIf(s.SoonAfter(fewAnswers, func() bool { return first.Context().Err() != nil }),
				"A has locked three times and unlocked once, and the context of its hold has ended: %v",
				context.Cause(first.Context()))
			s.keepsAnotherSessionOut(first)
		}
		waiting := s.queue(b)[0]
		second.Release()
		s.mustWait(waiting, waiting.StillWaits(), "saw A, which had locked twice, release once")
		first.Release()
		s.letIn(waiting, "A, which had locked twice, has released twice")
		if a.HasHolds() {
			late := first.StartIn(first.Context())
			s.FailsIf(
				!s.Soon(late.Returned),
				"A has released, and a Lock with the context of A's old hold does not return",
			)
			s.FailsIf(
				late.Err() == nil,
				"A has released, B holds the lock, and a Lock with the context of A's old hold returned nil",
			)
			s.about(overHold, s.losesAfterItLockedTwice)
			endless := first.StartIn(context.WithoutCancel(first.Context()))
			s.about(overHold, func() { s.mustNotEnter(endless, "A has released, B holds the lock") })
		}
		s.unlocks(waiting)
		if a.HasHolds() {
			s.about(&Property{Question: text(
				"two goroutines use one hold: what does the second find while the delete of the first is on its way?",
				"两个 goroutine 同时用同一次持锁：第一个的 delete 还在路上时，第二个看到的是什么？",
			)}, func() { s.locksDuringItsUnlock(a, b) })
		}
		s.entersAgain(b, b, "B holds the lock", blocking(b))
		if b.Reader != nil {
			s.entersAgain(b.Reader, b, "B reads", []lockCall{{"RLock", b.Reader.Lock}})
		}
		s.Holds("A locked twice with one znode, and B got the lock after the second release")
	})

// keepsAnotherSessionOut calls Lock of the same path over another session, within a hold. That is another client, so
// Lock may wait, or return an error.
func (s *Story) keepsAnotherSessionOut(held *zktest.Turn) {
	beside := s.writerAs("E", Seat{}).StartIn(held.Context())
	s.FailsIf(beside.Waits() == zktest.Returned && beside.Err() == nil,
		"A holds the lock, and a Lock of the same path over another session, with the context of A's hold, returned nil: "+
			"what is the key of a hold in its context?")
	_ = s.givesUp(beside, "it waits over another session")
}

// losesAfterItLockedTwice checks that a lost hold cannot be entered, and that each Unlock of it returns an
// error: the caller of the inner Lock has to learn of the loss as well. Both count: nothing is left after
// them. A hold may outlast a connection that breaks for a moment.
func (s *Story) losesAfterItLockedTwice() {
	m := s.JoinAs("D", Seat{Path: s.path + "-twice"})
	outer := m.Acquire()
	inner := outer.StartIn(outer.Context())
	inner.Acquired()
	m.Tap.HangUp()
	s.Barrier(m.Client) // it is connected again
	hasContext := has[contexter](outer.Held())
	isLost := hasContext && s.SoonAfter(fewAnswers, func() bool { return outer.Context().Err() != nil })
	if isLost {
		s.isNotInside(outer)
	}
	unlocked := inner.Unlock()
	s.FailsIf(isLost && unlocked == nil, "%s locked twice, and its connection broke, which ended the context of its hold; "+
		"the Unlock of the second Lock returned nil", m.Name)
	err := outer.Unlock()
	s.FailsIf(!s.Soon(func() bool { return len(s.left(m)) == 0 }),
		"%s locked twice, and its connection broke; its two Unlocks returned %v and %v, and left %v",
		m.Name, unlocked, err, s.left(m))
}

// locksDuringItsUnlock holds back the delete of A's Unlock, while B waits. Meanwhile other goroutines of A call Lock
// within the hold, and Unlock once more. The delete is on its way, so both come too late.
func (s *Story) locksDuringItsUnlock(a, b *zktest.Member) {
	held := a.Acquire()
	waiting := s.queue(b)[0]
	slow := a.Tap.HoldRequest(wiretap.Delete, 1)
	unlock := func(context.Context) error { return held.Unlock() }
	first := s.Go(a.Client, unlock)
	zktest.AwaitChan(s.Zoo, "A's delete to be on its way", slow.Sprung())
	inner, second := held.StartIn(context.WithoutCancel(held.Context())), s.Go(a.Client, unlock)
	s.SoonAfter(fewAnswers, func() bool { return inner.Returned() && second.Returned() })
	slow.Let()
	s.FailsIf(first.Err() != nil, "A's delete was slow, and its Unlock returned: %v", first.Err())
	s.mustNotEnter(inner, "A's delete was on its way")
	s.says("A had locked once, and its delete was on its way: a second Unlock of the same hold", second.Err(), s.subject.NotHeld)
	s.letIn(waiting, "A has released")
	s.unlocks(waiting)
}

// isNotInside calls Lock within a lost hold, with a context that has not ended. Lock may also return another
// hold, if the znode of the lost one has been deleted.
func (s *Story) isNotInside(lost *zktest.Turn) {
	again := lost.StartIn(context.WithoutCancel(lost.Context()))
	hasReturned := again.Waits() == zktest.Returned
	if hasReturned && again.Err() == nil && again.Context().Err() == nil {
		s.unlocks(again)
		return
	}
	s.mustNotEnter(again, "the connection of "+lost.Name+" broke, which ended the context of its hold")
}

// mustNotEnter checks a Lock that was called with a context of a hold that is over. The context has not ended. Lock may
// return an error, or wait as any other client does.
func (s *Story) mustNotEnter(call *zktest.Turn, when string) {
	if call.Waits() != zktest.Returned {
		_ = s.givesUp(call, when)
		return
	}
	s.FailsIf(call.Err() == nil, "%s, and a Lock with a context that was made from %s's old hold, and has not ended, "+
		"returned nil", when, call.Name)
}

// One goroutine of A holds the lock, somebody deletes its znode, and another goroutine of A gets
// the same lock. Both call Unlock.
var LostApart = New(
	text("the Unlock of a lost hold does not affect the next hold", "丢了锁的持有者不影响下一个持有者"),
	text("the next holder could not unlock, and its znode would block everyone",
		"下一个持有者会无法解锁，它的 znode 会挡住所有客户端"),
	text("does the znode belong to the lock, or to a hold?", "znode 属于谁：属于锁，还是属于一次持锁？"),
	func(s *Story) {
		a, b := s.Join("A"), s.Join("B")
		first := a.Acquire()
		s.deletes(s.left(a)[0])
		second := a.Start()
		hasReturned := s.Soon(second.Returned)
		waitsInProcess := !hasReturned && len(s.left(a)) == 0
		if waitsInProcess {
			lost := first.Unlock()
			s.letIn(second, "A has unlocked the hold that it had lost")
			second.Release()
			s.Holds("A's first hold was lost, and its Unlock returned %q; the second waited for that, and was released", lost)
		}
		s.letIn(second, "somebody deleted the znode of A's first hold")
		waiting := s.queue(b)[0]
		lost := first.Unlock()
		how := waiting.StillWaits()
		s.FailsIf(how == zktest.Returned && waiting.Err() == nil && len(s.left(a)) == 0,
			"A called Unlock for its lost hold; that deleted the znode of A's second hold, and B got the lock%s", s.queueNow())
		s.mustWait(waiting, how, "saw A unlock the hold that it had lost")
		err := second.Unlock()
		s.FailsIf(err != nil, "A's first hold was lost, and its Unlock returned %v; the Unlock of the second: %v", lost, err)
		s.letIn(waiting, "A has unlocked both of its holds, of which one was lost")
		s.Holds("A's first hold was lost, and its Unlock returned %q; the second was released", lost)
	})

// A holds the lock and is disconnected. A must learn of that before B gets the lock. Then a third client has
// the lock five times: the context of its call ends, its delete is answered late, its connection breaks at its list, and
// while it holds the lock, and its Session is closed.
var ToldOfLoss = New(
	text("the holder learns that its connection is lost", "连接断开时会通知持有者"),
	text("a holder whose session has ended continues to write while the next holder also writes",
		"会话已经结束的持有者还在写，下一个持有者也在写"),
	text("what does the client know, and when, while it cannot reach the server?",
		"客户端连不上服务器时，它知道什么？什么时候知道？"),
	func(s *Story) {
		a, b := s.JoinMortal("A"), s.Join("B")
		held := a.Acquire()
		waiting := s.queue(b)[0]
		beat := s.beat()
		a.Crash()
		if !a.HasHolds() {
			s.AwaitExpiry(a.Client)
			s.Fails("session %#x of A has expired, and nothing notifies A, which still works as the holder", a.ID)
		}
		waiting.Acquired()
		s.FailsIf(!has[contexter](held.Held()),
			"session %#x of A has expired and B holds the lock, and A cannot learn of it: your Hold has no "+
				"Context(context.Context) context.Context; 5.7 says what it is for", a.ID)
		isTold := held.Context().Err() != nil
		// The client learns of its loss by a timer, a third of the timeout before the session expires.
		if still := beat.end(); !isTold && still >= zktest.MortalTimeout/3 {
			s.Fatalf("this machine paused for %v, and B got the lock before A could learn of its loss", still)
		}
		s.FailsIf(!isTold, "session %#x of A has expired and B holds the lock: A does not know", a.ID)
		s.about(whatEndsTheWork, func() { s.saysItIsLost(held.Context(), "A was disconnected") })
		a.Tap.Restore()
		s.Await("A to have another session", func() bool { return a.State() == zk.StateHasSession && a.SessionID() != a.ID })
		late := held.Held().Context(s.Ctx)
		when := "A lost the lock and got another session; then a context was made from the lost hold"
		s.FailsIf(late.Err() == nil, "%s, and it has not ended", when)
		s.saysItIsLost(late, when)
		s.about(whatEndsTheWork, func() { s.endsWithItsParent(waiting) }) // B's session outlives a busy machine's pauses
		waiting.Release()
		c := s.Join("C")
		s.about(whatEndsTheWork, func() {
			s.outlivesItsCall(c, blocking(c))
			s.endsBeforeItsDelete(c)
		})
		s.about(whichConnection, func() { s.beginsWithAConnection(c) })
		s.about(overHold, func() { s.unlocksALostHold(c) })
		s.about(whatEndsTheWork, func() { s.endsBeforeItsSession(c) })
		s.Holds("A was disconnected, and was notified before B got the lock")
	})

// saysItIsLost checks the cause with which the context of a lost hold has ended. The work under the lock must
// be able to tell a loss from the end of its parent, and from an Unlock.
func (s *Story) saysItIsLost(work context.Context, when string) {
	cause := context.Cause(work)
	saysNothing := errors.Is(cause, context.Canceled)
	isReleased := s.subject.NotHeld != nil && errors.Is(cause, s.subject.NotHeld)
	s.FailsIf(saysNothing || isReleased,
		"%s: the context of the hold has ended, and its cause does not say that the hold is lost: %v", when, cause)
}

// endsWithItsParent checks the context of a hold for a work that has a context of its own.
func (s *Story) endsWithItsParent(held *zktest.Turn) {
	type key struct{}
	parent, end := context.WithCancelCause(context.WithValue(s.Ctx, key{}, "a value"))
	work := held.Held().Context(parent)
	s.FailsIf(work.Value(key{}) == nil, "the context of %s's hold does not have the values of its parent", held.Name)
	why := errors.New("the service stops")
	end(why)
	s.FailsIf(!s.Soon(func() bool { return work.Err() != nil }),
		"the parent of a context of %s's hold has ended, and the context has not: the work would go on", held.Name)
	s.FailsIf(context.Cause(work) != why,
		"the parent of a context of %s's hold has ended with the cause %q, and the context with %v",
		held.Name, why, context.Cause(work))
	s.FailsIf(held.Context().Err() != nil,
		"the parent of one context of %s's hold has ended, and another context of the hold as well", held.Name)
}

// endsBeforeItsDelete checks that Unlock ends the context of a hold before it deletes the znode: another client gets
// the lock then, even if the reply is late.
func (s *Story) endsBeforeItsDelete(c *zktest.Member) {
	held := c.Acquire()
	late := c.Tap.HoldReply(wiretap.Delete, 1)
	unlocked := s.Go(c.Client, func(context.Context) error { return held.Unlock() })
	zktest.AwaitChan(s.Zoo, "C's znode to be deleted", late.Sprung())
	s.FailsIf(!s.Soon(func() bool { return held.Context().Err() != nil }),
		"C's Unlock has deleted its znode, so another client can get the lock, and the context of C's hold has not ended: "+
			"its work goes on")
	late.Let()
	s.FailsIf(unlocked.Err() != nil, "C's Unlock returned: %v", unlocked.Err())
}

// beginsWithAConnection checks that a hold is not lost from its start: C's connection breaks at its list, and C gets
// the lock over the next one. Nothing else happens to that connection.
func (s *Story) beginsWithAConnection(c *zktest.Member) {
	next := c.Tap.HoldRequest(wiretap.Connect, 1)
	lost := c.Tap.LoseReply(wiretap.GetChildren, 1)
	attempt := c.Start()
	zktest.AwaitChan(s.Zoo, "the reply to C's list to be lost", lost.Sprung())
	zktest.AwaitChan(s.Zoo, "C to connect again", next.Sprung())
	s.SoonAfter(fewAnswers, attempt.Returned) // until C's next list waits in the client, as in KeptCreate
	mark := c.Tap.Mark()
	next.Let()
	if s.Soon(attempt.Returned) && attempt.Err() != nil {
		attempt = c.Start() // as any caller would
	}
	s.letIn(attempt, "the reply to C's list was lost, C is connected again, and nobody holds the lock")
	isLost := s.SoonAfter(fewAnswers, func() bool { return attempt.Context().Err() != nil })
	if isLost && breaks(c, mark) > 0 { // a busy machine
		s.Fatalf("C got the lock after its connection had broken, and has lost that connection as well")
	}
	s.FailsIf(isLost, "the reply to C's list was lost, C is connected again and got the lock, "+
		"and the hold was lost from its start: its context has ended with the connection before")
	attempt.Release()
}

// unlocksALostHold checks that Unlock returns an error if the hold was lost and the session lives, and deletes the
// znode. A hold may outlast a connection that breaks for a moment: then it is not lost.
func (s *Story) unlocksALostHold(c *zktest.Member) {
	held := c.Acquire()
	c.Tap.HangUp()
	s.Barrier(c.Client) // C is connected again
	if !s.SoonAfter(fewAnswers, func() bool { return held.Context().Err() != nil }) {
		held.Release()
		return
	}
	s.saysItIsLost(held.Context(), "C's connection broke")
	err := held.Unlock()
	s.FailsIf(err == nil, "C's connection broke, which ended the context of its hold, and C's Unlock returned nil: "+
		"its caller does not learn that the hold was lost")
	s.FailsIf(!s.Soon(func() bool { return len(s.left(c)) == 0 }),
		"C's connection broke, C is connected again, its Unlock returned %q, and has left %v", err, s.left(c))
}

// endsBeforeItsSession checks that Close of a Session ends its holds before it ends the session: the servers give the
// lock to another client then. The request that ends it is held back. A Lock of C that waits must return.
func (s *Story) endsBeforeItsSession(c *zktest.Member) {
	held := c.Acquire()
	var waiting *zktest.Turn
	if s.subject.reads == nil { // a second reader would not have to wait
		waiting = c.Start()
		s.mustWait(waiting, waiting.StillWaits(), "called Lock in another goroutine")
	}
	last := c.Tap.HoldRequest(wiretap.Close, 1)
	closed := s.Go(c.Client, func(context.Context) error {
		c.Session.Close()
		return nil
	})
	zktest.AwaitChan(s.Zoo, "C's session to be about to end", last.Sprung())
	isOver := s.SoonAfter(fewAnswers, func() bool { return held.Context().Err() != nil })
	last.Let()
	s.FailsIf(!isOver, "C's Session is closed, so another client can get the lock, and the context of C's hold has not ended: "+
		"its work goes on")
	s.saysItIsLost(held.Context(), "C's Session is closed")
	s.FailsIf(closed.Err() != nil, "C's Session was closed: %v", closed.Err())
	if waiting == nil {
		return
	}
	s.FailsIf(!s.Soon(waiting.Returned), "C's Session is closed, and a Lock of C that waited does not return")
	s.FailsIf(waiting.Err() == nil, "C's Session is closed, and a Lock of C that waited got the lock")
}

// A and B take turns, and one turn runs in another process. Between two turns the directory is
// deleted and created again, so the sequence numbers start again from 0. If the lock has readers, they take turns
// with writers. Then two clients wait that have seen the same list, in every order of readers and writers in which both
// wait. At last A's znode is deleted after its list, and B gets the lock before A's Lock returns.
var Fenced = New(
	text("each hold's token is greater than the last", "每次持锁，令牌都比上一次大"),
	text("a store cannot tell the late write of an earlier holder from a good one",
		"存储分不清哪些是前一个持有者迟到的写入、哪些是正常的写入"),
	text("which number at the server only ever grows?", "服务器上哪个数只增不减？"),
	func(s *Story) {
		a, b := s.Join("A"), s.Join("B")
		s.FailsIf(!a.HasHolds(), "the lock returns no token that a store could check")
		var tokens []int64
		units := map[string]time.Duration{
			"s":  time.Second,
			"ms": time.Millisecond,
			"µs": time.Microsecond,
			"ns": time.Nanosecond,
		}
		turns := []*zktest.Member{a, b, a, b, a, b}
		hasReaders := a.Reader != nil && s.subject.reads == nil
		if hasReaders {
			turns = append(turns, a.Reader, b, a.Reader)
		}
		for i, c := range turns {
			begin := time.Now()
			turn := c.Acquire()
			s.FailsIf(!has[tokener](turn.Held()), "your Hold has no Token() int64; 5.8 says what it is for")
			tokens = append(tokens, turn.Held().Token())
			maps.DeleteFunc(units, func(_ string, unit time.Duration) bool {
				n, from, to := turn.Held().Token(), begin.UnixNano()/int64(unit), time.Now().UnixNano()/int64(unit)
				return n < from || n > to
			})
			turn.Release()
			if i == 1 && s.subject.elsewhere != nil {
				tokens = append(tokens, s.subject.elsewhere(s.Zoo, s.path))
			}
			if i == 2 {
				s.deletes(s.path)
			}
		}
		for i := 1; i < len(tokens); i++ {
			where := ""
			if i == 2 && s.subject.elsewhere != nil {
				where = ", in another process,"
			}
			s.FailsIf(tokens[i] <= tokens[i-1], "turn %d%s got token %d after token %d", i+1, where, tokens[i], tokens[i-1])
		}
		if s.subject.reads == nil { // readers share a hold's place, and may share a token
			c := s.Join("C")
			queues := []string{"WWW"}
			if hasReaders {
				queues = append(queues, "WWR", "WRW", "RWW", "RWR")
			}
			for _, queue := range queues {
				s.tokensOfTwoThatWaited(s.as(queue[0], a), s.as(queue[1], b), s.as(queue[2], c), inWords(queue))
			}
			s.tokenAfterItsList(a, b)
		}
		for unit := range units {
			s.Fails(
				"each token is the time of this machine's clock, in %s: another clock may be wrong, or be set back; tokens: %v",
				unit,
				tokens,
			)
		}
		s.Holds("%d turns got the tokens %v, although the directory was created again", len(tokens), tokens)
	})

// tokensOfTwoThatWaited lets B and C wait behind A, and C arrives before the first list of B: both see the same queue
// in their first lists. All three tokens must grow.
func (s *Story) tokensOfTwoThatWaited(a, b, c *zktest.Member, queue string) {
	held := a.Acquire()
	mark := b.Tap.Mark()
	slow := b.Tap.HoldRequest(wiretap.GetChildren, 1)
	first := b.Start()
	s.Await("B to list the queue, or to wait", comesToAStop(first, slow, mark))
	second := s.queue(c)[0]
	slow.Let()
	b.Tap.Restore()
	s.mustWait(first, first.StillWaits(), "arrived while A held the lock")
	s.unlocks(held)
	next, last := s.oneOf(first, second)
	s.unlocks(next)
	s.letIn(last, "the one before it has released")
	s.unlocks(last)
	tokens := []int64{held.Held().Token(), next.Held().Token(), last.Held().Token()}
	s.FailsIf(tokens[1] <= tokens[0] || tokens[2] <= tokens[1],
		"three clients had the lock one after the other, and two of them waited (%s); their tokens: %v", queue, tokens)
}

// tokenAfterItsList holds back each request that A sends between its list and the return of its Lock, one in
// each round. Meanwhile somebody deletes A's znode, and B gets the lock. If A's Lock then returns a hold, that hold was lost before
// B's began, so its token must be smaller. A lock whose token comes with the list sends no such request.
func (s *Story) tokenAfterItsList(a, b *zktest.Member) {
	const list = 2 // the create is the first request
	for nth := list + 1; ; nth++ {
		mark := a.Tap.Mark()
		slow := a.Tap.HoldRequest(wiretap.Any, nth)
		call := a.Start()
		s.Await("a request of A to be held up, or A's Lock to return", comesToAStop(call, slow, mark))
		if !slow.IsSprung() {
			a.Tap.Restore()
			s.letIn(call, "nobody holds the lock")
			s.unlocks(call)
			return
		}
		for _, znode := range s.left(a) {
			s.deletes(znode)
		}
		next := b.Start()
		s.letIn(next, "somebody deleted A's znode")
		token := next.Held().Token()
		slow.Let()
		if call.Waits() == zktest.Returned {
			s.FailsIf(call.Err() == nil && call.Held().Token() >= token,
				"somebody deleted A's znode after A's list, and B got the lock with token %d; then A's Lock returned a lost hold "+
					"with token %d, which a store would not refuse", token, call.Held().Token())
			if call.Err() == nil {
				_ = call.Unlock() // it is lost
			}
			s.unlocks(next)
			continue
		}
		s.unlocks(next) // A has queued up again
		s.letIn(call, "B has released")
		s.unlocks(call)
	}
}
