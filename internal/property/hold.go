package property

import (
	"maps"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/zktest"
)

// A holds the lock and locks again, and releases twice.
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
			inside.Release()
		}
		waiting := s.queue(b)[0]
		second.Release()
		s.mustWait(waiting, waiting.StillWaits(), "saw A, which had locked twice, release once")
		first.Release()
		waiting.Acquired()
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
		}
		s.Holds("A locked twice with one znode, and B got the lock after the second release")
	})

// One goroutine of A holds the lock, somebody deletes its znode, and another goroutine of A gets
// the same lock. Both call Unlock.
var LostApart = New(
	text("the Unlock of a lost hold does not affect the next hold", "丢了锁的持有者不影响下一个持有者"),
	text("the next holder could not unlock, and its znode would block everyone",
		"下一个持有者会无法解锁，它的 znode 会挡住所有客户端"),
	text("do the count and the znode belong to the lock, or to a hold?", "计数和 znode 属于谁：属于锁，还是属于一次持锁？"),
	func(s *Story) {
		a, b := s.Join("A"), s.Join("B")
		if !a.HasHolds() {
			s.void("the lock has no holds")
		}
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
		s.mustWait(waiting, waiting.StillWaits(), "saw A unlock the hold that it had lost")
		err := second.Unlock()
		s.FailsIf(err != nil, "A's first hold was lost, and its Unlock returned %v; the Unlock of the second: %v", lost, err)
		s.letIn(waiting, "A has unlocked both of its holds, of which one was lost")
		s.Holds("A's first hold was lost, and its Unlock returned %q; the second was released", lost)
	})

// A holds the lock and is disconnected. A must learn of that before B gets the lock.
var ToldOfLoss = New(
	text("the holder learns that its connection is lost", "连接断开时会通知持有者"),
	text("a holder whose session has ended continues to write while the next holder also writes",
		"会话已经结束的持有者还在写，下一个持有者也在写"),
	text("what does the client know, and when, while it cannot reach the server?",
		"客户端连不上服务器时，它知道什么？什么时候知道？"),
	func(s *Story) {
		a, b := s.JoinMortal("A"), s.Join("B")
		earlier := a.Acquire()
		earlier.Release()
		held := a.Acquire()
		waiting := s.queue(b)[0]
		a.Crash()
		if !a.HasHolds() {
			s.AwaitExpiry(a.Client)
			s.Fails("session %#x of A has expired, and nothing notifies A, which still works as the holder", a.ID)
		}
		waiting.Acquired()
		s.FailsIf(held.Context().Err() == nil, "session %#x of A has expired and B holds the lock: A does not know", a.ID)
		s.FailsIf(
			earlier.Context().Err() == nil,
			"A learned of its loss, but the context of an earlier hold did not end at Unlock",
		)
		a.Tap.Restore()
		s.Await("A to have another session", func() bool { return a.State() == zk.StateHasSession && a.SessionID() != a.ID })
		s.FailsIf(
			held.Held().Context(s.Ctx).Err() == nil,
			"A lost the lock and got another session; then a context was made from the lost hold, and it has not ended",
		)
		s.Holds("A was disconnected, and was notified before B got the lock")
	})

// A and B take turns, and one turn runs in another process. Between two turns the directory is
// deleted and created again, so the sequence numbers start again from 0.
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
		for i, c := range []*zktest.Member{a, b, a, b, a, b} {
			begin := time.Now()
			turn := c.Acquire()
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
		for unit := range units {
			s.Fails(
				"each token is the time of this machine's clock, in %s: another clock may be wrong, or be set back; tokens: %v",
				unit,
				tokens,
			)
		}
		s.Holds("%d turns got the tokens %v, although the directory was created again", len(tokens), tokens)
	})
