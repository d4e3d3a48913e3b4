package property

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
)

// enoughTimeouts is how many session time-outs a story waits for what has to happen soon.
const enoughTimeouts = 3

// soon tells whether something happens in a time in which it has long happened, if the
// lock does anything about it at all.
func (s *story) soon(happens func() bool) bool {
	deadline := time.Now().Add(enoughTimeouts * zktest.MortalTimeout)
	for s.Ctx.Err() == nil {
		if happens() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(2 * time.Millisecond)
	}
	return false // the story's own time is over, and with it the calls' contexts
}

// letIn fails the story unless the call comes back soon, and with the lock.
func (s *story) letIn(t *zktest.Turn, because string, args ...any) {
	why := fmt.Sprintf(because, args...)
	if !s.soon(t.Returned) {
		s.fails("%s, and %s is not let in: it has asked %s; the queue: %v", why, t.Name, t.LastAsked(), s.Names(s.dir))
	}
	s.failsIf(t.Err() != nil, "%s, and %s's Lock answered: %v", why, t.Name, t.Err())
}

// givesUp ends the call's context, and fails the story unless the call comes back soon.
func (s *story) givesUp(t *zktest.Turn, why string) error {
	t.GiveUp()
	s.failsIf(
		!s.soon(t.Returned),
		"%s: its context has ended, and its Lock does not return; left by it: %v",
		why,
		s.left(t.Member),
	)
	return t.Err()
}

// comesToAStop tells whether nothing more comes of a call by itself: a trap has caught it,
// it has returned, or it waits, judged by the record since a Mark.
func comesToAStop(call *zktest.Turn, trap *wiretap.Trap, mark int) bool {
	if trap.IsSprung() || call.Returned() {
		return true
	}
	silently, polls := call.Tap.Waiting(mark)
	return silently || polls
}

// A holds the lock, and releases it while a request of B's is on its way: the second, the
// third, the fourth of B's call to Lock.
var ReleaseSeen = property(
	text("a release is seen, whenever it comes", "释放发生在任何时刻都不会错过"),
	text("a waiter would sleep for ever beside a free lock", "锁空着，等待者却会一直睡下去"),
	text("the lock is released between two of your requests: what wakes you?", "锁在你的两个请求之间释放：什么会唤醒你？"),
	func(s *story) {
		a, b := s.join("A"), s.join("B")
		first := a.Start()
		s.letIn(first, "nobody holds the lock")
		first.Release()
		for n := 2; n <= 4; n++ {
			held, mark := a.Acquire(), b.Tap.Mark()
			slow := b.Tap.HoldRequest(wiretap.Any, n)
			waiting := b.Start()
			s.Await("B to be held up, or to wait", func() bool {
				if slow.IsSprung() || waiting.Returned() {
					return true
				}
				silently, _ := b.Tap.Waiting(mark)
				return silently
			})
			s.mustWaitUnsettled(waiting, "was held up")
			held.Release()
			slow.Let()
			s.letIn(waiting, "A released while B's request number %d was on its way", n)
			waiting.Release()
		}
		s.holds("A released while B's second, third and fourth request was on its way, and B was let in each time")
	})

// mustWaitUnsettled is mustWait for a call that cannot settle down.
func (s *story) mustWaitUnsettled(t *zktest.Turn, when string) {
	if t.Returned() {
		s.mustWait(t, zktest.Returned, "%s", when)
	}
}

// A holds. B's line breaks while B asks for the list, and then while it reads a znode. If
// its Lock answers an error, it must have left the queue.
var FailsClean = property(
	text("an error in the wait leaves nothing behind", "等待出错后不留残余"),
	text("the znode of a caller who was told of an error would become the first, and hold the lock for nobody",
		"调用者已经得到错误，它的 znode 却会排到最前，没有人在用锁，锁却被占着"),
	text("a request of the wait has failed: what have you put into ZooKeeper by now?",
		"等待中的一个请求失败了：到这时你在 ZooKeeper 里放了什么？"),
	func(s *story) {
		a, b := s.join("A"), s.join("B")
		held := a.Acquire()
		var told []string
		for _, op := range []wiretap.Op{wiretap.GetChildren, wiretap.GetData} {
			b.Tap.LoseReply(op, 1)
			waiting := b.Start()
			how := waiting.Waits()
			if how != zktest.Returned {
				how = waiting.StillWaits()
			}
			if how != zktest.Returned {
				told = append(told, "and waited on")
				_ = s.givesUp(waiting, "B waited on after a broken line")
			} else {
				s.failsIf(waiting.Err() == nil, "B's line broke at its %v while A held the lock, and B was let in beside it", op)
				told = append(told, fmt.Sprintf("and was told %q", waiting.Err()))
			}
			s.failsIf(!s.soon(func() bool { return len(s.left(b)) == 0 }),
				"B's line broke at its %v, its Lock answered %v, and left %v", op, waiting.Err(), s.left(b))
			b.Tap.Restore()
		}
		held.Release()
		s.letIn(s.join("C").Start(), "A has released, and B has given up")
		s.holds("B's line broke at its list, %s; at its read, %s; nothing was left", told[0], told[1])
	})

// A's delete is lost on the way to the server. If Unlock answers an error, it is called once more.
var UnlockRepeated = property(
	text("an unlock that failed can be called again", "失败的 Unlock 可以再调用一次"),
	text("the lock would stay locked until the holder's session ends", "锁会一直锁着，直到持有者的会话结束"),
	text("the delete has failed: does the lock still know which znode it is about?",
		"删除失败了：锁还记得要删的是哪个 znode 吗？"),
	func(s *story) {
		a, b := s.join("A"), s.join("B")
		held := a.Acquire().Held()
		waiting := s.queue(b)[0]
		lost := a.Tap.LoseRequest(wiretap.Delete, 1)
		err := a.Unlock(held)
		calls := 1
		s.failsIf(!lost.IsSprung(), "A's Unlock answered %v without a delete; left by it: %v", err, s.left(a))
		if err != nil {
			again := a.Unlock(held)
			calls++
			s.failsIf(
				again != nil,
				"A's delete was lost, Unlock answered %q, and when it was called again: %v; left at the server: %v",
				err,
				again,
				s.left(a),
			)
		}
		s.letIn(waiting, "A's Unlock has said that the lock is released")
		s.holds("A's delete was lost on its way: %d Unlocks released the lock", calls)
	})

// A holds, and somebody deletes its znode.
var LostTold = property(
	text("unlock says that the lock was lost", "Unlock 会说锁已丢失"),
	text("the caller would believe that nobody else has been inside", "调用者会以为没有别人进来过"),
	text("the delete is answered with NoNode: who has deleted your znode, and since when?",
		"删除得到的应答是 NoNode：是谁删了你的 znode？什么时候删的？"),
	func(s *story) {
		a := s.join("A")
		held := a.Acquire().Held()
		left := s.left(a)
		s.failsIf(len(left) != 1, "A holds the lock with %d znodes: %v", len(left), left)
		s.deletes(left[0])
		err := a.Unlock(held)
		s.failsIf(
			err == nil,
			"somebody deleted A's znode, another could be let in, and A's Unlock said that all was well",
		)
		s.holds("somebody deleted A's znode, and its Unlock said %q", err)
	})

// A has held the lock, and has released it.
var QuietAfter = property(
	text("who holds nothing sends nothing", "不持锁就不发请求"),
	text("a process that was done with its locks long ago would still work for them, and load the server",
		"进程早就用完了锁，却还在为它忙，给服务器加负担"),
	text("what have you begun for the hold, and what ends it?", "你为这次持有启动了什么？由什么来结束它？"),
	func(s *story) {
		a := s.joinMortal("A")
		a.Acquire().Release()
		pings := func() int { return len(a.Tap.Done(wiretap.Ping)) }
		begin := pings()
		// Then what was under way has come to its end.
		s.Await("a ping of A after the release", func() bool { return pings() > begin })
		count, begin := s.CountClients(a.Client), pings()
		s.Await("three more", func() bool { return pings() > begin+3 })
		sent := count()
		s.failsIf(
			sent.All() > 0,
			"A has released the lock, and sent %d requests in the next session time-out: %v",
			sent.All(),
			sent.Requests,
		)
		s.holds("A has released the lock, and sent 0 requests between three pings")
	})

// One goroutine of A holds. Another one calls Lock of the same lock, and its create is
// lost: on the way to the server, and then on the way back.
var OwnPlace = property(
	text("a lost create takes nobody else's place", "create 丢失时不会占用别人的位置"),
	text("two goroutines would be inside, each with the one znode of the first",
		"两个 goroutine 会同时在里面，凭的都是第一个的那一个 znode"),
	text("you look for your znode by its name: which other calls have made znodes with such a name?",
		"你按名字找自己的 znode：还有哪些调用也创建过这样的名字？"),
	func(s *story) {
		a := s.join("A")
		a.Acquire().Release() // so that the directory is there
		a.Acquire()
		what := map[bool]string{true: "request", false: "reply"}
		for _, request := range []bool{true, false} {
			lose := a.Tap.LoseReply
			if request {
				lose = a.Tap.LoseRequest
			}
			lost := lose(wiretap.Create, 1)
			second := a.Start()
			how := zktest.Silently
			if s.soon(func() bool { return lost.IsSprung() || second.Returned() }) { // else it waits inside its process
				how = second.Waits()
			}
			if how != zktest.Returned && lost.IsSprung() {
				how = second.StillWaits()
			}
			s.failsIf(
				how == zktest.Returned && second.Err() == nil,
				"one goroutine of A held the lock; another one's create was lost (the %s), and it was let in beside the first; A's znodes: %v",
				what[request],
				s.left(a),
			)
			if how != zktest.Returned {
				_ = s.givesUp(second, "A's second goroutine waited")
			}
			a.Tap.Restore() // a trap that was not sprung
		}
		s.holds("a second goroutine's create was lost twice, and never was it let in beside the first")
	})

// The reply to A's create is lost, and when A is back, it hears that its session has
// expired. The server deletes the znodes of the old session later. B comes before that.
var OldZnode = property(
	text("a znode of an old session is no place in the queue", "旧会话的 znode 不算队列里的位置"),
	text("it is deleted with the old session, and somebody else is let in beside its maker",
		"它会随旧会话一起删除，别人就会在它的主人之外进来"),
	text("you find a znode with your name: whose session does it belong to?",
		"你找到一个带自己名字的 znode：它属于哪个会话？"),
	func(s *story) {
		lines := 0
		a := s.joinAs("A", Seat{Through: zktest.Over(func(c net.Conn) net.Conn {
			lines++
			return zktest.Handshake{Expired: lines == 2}.Conn(c)
		})})
		b := s.writerAs("B", Seat{})
		b.Acquire().Release() // so that the directory is there
		lost := a.Tap.LoseReply(wiretap.Create, 1)
		attempt := a.Start()
		zktest.AwaitChan(s.Zoo, "the reply to A's create to be lost", lost.Sprung())
		old := s.left(a)
		s.Await(
			"A to have another session",
			func() bool { return a.State() == zk.StateHasSession && a.SessionID() != a.ID },
		)
		// The old znode stays until A has seen it, and waits or has returned, however slow A is.
		s.soon(func() bool { return len(a.Tap.Watched()) > 0 || attempt.Returned() })
		if how := attempt.Waits(); how == zktest.Returned && attempt.Err() != nil {
			attempt = a.Start()
			attempt.Waits()
		}
		if _, there := s.Owner(old[0]); there { // else A has deleted it, which is as good
			s.deletes(old[0]) // as the server does, when it ends the old session
		}
		s.letIn(attempt, "the old session's znode has gone, and nobody else has one")
		other := b.Start()
		s.mustWait(other, other.Waits(), "came after %s, of A's old session, had gone,", old[0])
		s.holds("A made %s in an old session, got a new one, and held the lock with a znode of the new one", old[0])
	})

// A holds, B waits, C waits behind B. Somebody deletes B's znode, and A releases.
var NotBeside = property(
	text("a waiter whose znode was deleted is not let in beside another", "znode 被删的等待者不会在别人之外进来"),
	text("it stands nowhere in the queue, and takes an empty place before it for its turn",
		"它已不在队列里，却把前面没有人当成轮到自己"),
	text("your own znode is not in the list: whose turn is it?", "列表里没有自己的 znode：轮到谁了？"),
	func(s *story) {
		a, b, c := s.join("A"), s.join("B"), s.join("C")
		held := a.Acquire()
		turns := s.queue(b, c)
		znodes := s.left(b)
		if len(znodes) == 0 {
			s.void("a waiter has no znode that could go")
		}
		s.deletes(znodes[0])
		s.mustWait(turns[1], turns[1].StillWaits(), "saw the znode before its own deleted")
		s.failsIf(turns[0].Returned() && turns[0].Err() == nil, "B's znode was deleted, and B was let in beside A")
		held.Release()
		s.letIn(turns[1], "A released, and C is the next")
		s.failsIf(!s.soon(func() bool { return turns[0].Returned() || len(s.left(b)) == 1 }),
			"B's znode was deleted, and B neither says so nor queues again; it has asked %s", turns[0].LastAsked())
		if !turns[0].Returned() {
			s.mustWait(turns[0], turns[0].StillWaits(), "had lost its znode")
			turns[1].Release()
			s.letIn(turns[0], "C released, and B has queued again")
			s.holds("somebody deleted B's znode; B queued again, and was let in after C")
		}
		s.failsIf(
			turns[0].Err() == nil,
			"somebody deleted B's znode, C was let in, and B was let in beside it; the queue: %v",
			s.Names(s.dir),
		)
		s.holds("somebody deleted B's znode; B was told %q", turns[0].Err())
	})

// A holds, B waits. B's line breaks at each kind of request of its wait.
var LineBreaks = property(
	text("a broken line does not end the wait", "断线不会结束等待"),
	text("each short outage would send the callers to the end of the queue, or home with an error",
		"每次短暂的故障都会让调用者排到队尾，或者带着错误返回"),
	text("a request was not answered: is the session over, or only the line?",
		"请求没有得到应答：是会话结束了，还是只断了线？"),
	func(s *story) {
		a, b := s.join("A"), s.join("B")
		held := a.Acquire()
		var broken []wiretap.Op
		// the first create is no wait yet
		for op, nth := range map[wiretap.Op]int{wiretap.Create: 2, wiretap.GetChildren: 1, wiretap.GetData: 1} {
			lost := b.Tap.LoseReply(op, nth)
			waiting := b.Start()
			how := waiting.Waits()
			if how != zktest.Returned {
				how = waiting.StillWaits()
			}
			if lost.IsSprung() {
				broken = append(broken, op)
			}
			if how == zktest.Returned {
				s.failsIf(
					waiting.Err() != nil,
					"B waited, its line broke at its %v, and its Lock answered: %v",
					op,
					waiting.Err(),
				)
				s.mustWait(waiting, how, "lost its connection")
			}
			_ = s.givesUp(waiting, "B waited on after a broken line")
			b.Tap.Restore()
		}
		last := s.queue(b)[0]
		held.Release()
		s.letIn(last, "A released")
		slices.Sort(broken)
		s.holds("B's line broke at its %v, and B waited on", broken)
	})

// A holds. B's list is not answered, and B gives up: the answer comes later.
var GivesUpAtOnce = property(
	text("who gives up need not wait for an answer", "放弃等待不必等应答"),
	text("a caller with a deadline would hang for as long as the line is down", "设了截止时间的调用者会一直挂到网络恢复"),
	text("the context has ended while a request is on its way: who waits for the answer?",
		"请求还在路上，context 已经结束：由谁来等应答？"),
	func(s *story) {
		a, b := s.join("A"), s.join("B")
		a.Acquire()
		for _, op := range []wiretap.Op{wiretap.Create, wiretap.GetChildren} {
			slow := b.Tap.HoldReply(op, 1)
			waiting := b.Start()
			s.Await(
				fmt.Sprintf("the answer to B's %v to be held up", op),
				func() bool { return comesToAStop(waiting, slow, 0) },
			)
			waiting.GiveUp()
			atOnce := s.soon(waiting.Returned)
			slow.Let()
			s.failsIf(
				!atOnce,
				"B gave up while the answer to its %v was on its way, and its Lock did not return before it had come",
				op,
			)
			s.gaveUp(b, waiting.Err(), context.Canceled)
		}
		s.holds(
			"B gave up while its create, and then its list, was not answered: it was told at once, and nothing was left",
		)
	})

// The leader has heard of A's create, and A's line breaks. A comes back to a follower that
// hears of the create late, on three servers. Whoever lacks LostCreateReply lacks this, too,
// and is not asked.
var LaggingServer = property(
	text("a server that lags does no harm", "落后的服务器无害"),
	text("who looks for its znode there finds none, makes a second one, and waits for the first",
		"在那里找自己的 znode 会找不到，于是再创建一个，然后等着前一个"),
	text("the server that answers you now may know less than the one before: how do you make it catch up?",
		"现在应答你的服务器可能不如之前那台知道得多：怎样让它赶上？"),
	func(s *story) {
		ctx := s.Ctx // has the property's limit
		lag := zktest.NewLag(s.T)
		s.Zoo, s.dir = lag.Zoo, lag.Root+"/lock"
		s.Ctx, s.path = ctx, s.in(s.dir)
		a := s.joinAs("A", Seat{Through: lag.Through})
		a.Acquire().Release() // makes the directory
		var call *zktest.Turn
		catchUp := lag.LoseCreate(a.Client, func() {
			call = a.Call(func(ctx context.Context) (context.Context, error) {
				held, err := a.Lock(ctx)
				if errors.Is(err, zk.ErrConnectionClosed) { // as any caller would
					held, err = a.Lock(ctx)
				}
				return held, err
			})
		})
		before := len(s.Names(s.dir))
		catchUp()
		s.letIn(
			call,
			"A's create was lost and carried out, and the server that A came back to did not know of it (%d names there)",
			before,
		)
		left := s.Names(s.dir)
		s.failsIf(
			len(left) != 1,
			"A came back to a server that lags, and holds the lock with %d znodes: %v",
			len(left),
			left,
		)
		call.Release()
		s.holds(
			"A came back to a server that did not know of its create (%d names there), and held the lock with that one znode",
			before,
		)
	})

// cause tells whether a hold goes on, as its context says.
func cause(held context.Context) string {
	if held.Err() == nil {
		return "goes on"
	}
	return fmt.Sprintf("ended with the cause %q", context.Cause(held))
}

// needsHold ends the story if there is no hold that could end.
func (s *story) needsHold(m *zktest.Member) {
	if m.Token == nil {
		s.void("Lock returns nothing that could end")
	}
}

// A holds, B waits. A releases, and the answer to its delete is late.
var EndsFirst = property(
	text("the hold's context ends before the next is let in", "下一个进来之前，持有的 context 已经结束"),
	text("work that is bound to the context would go on beside the next holder",
		"跟着 context 走的工作会和下一个持有者同时进行"),
	text("which comes first: the end of the context, or the delete?", "先结束 context，还是先删除？"),
	func(s *story) {
		a, b := s.join("A"), s.writerAs("B", Seat{})
		s.needsHold(a)
		held := a.Acquire()
		waiting := s.queue(b)[0]
		slow := a.Tap.HoldReply(wiretap.Delete, 1)
		unlock := s.Go(a.Client, func(context.Context) error { return a.Unlock(held.Held()) })
		s.letIn(waiting, "A has released")
		goesOn := held.Held().Err() == nil
		slow.Let()
		s.failsIf(goesOn, "A calls Unlock, its delete is carried out, and B is let in: A's context goes on")
		if err := unlock.Err(); err != nil {
			s.fails("the answer to A's delete was late, and its Unlock answered: %v", err)
		}
		s.holds("when B was let in, A's Unlock had not come back, and A's context had ended")
	})

type key struct{}

// A's context ends with the caller's, and has its values.
var EndsWithCaller = property(
	text("the hold's context is made from the caller's", "持有的 context 从调用者的 context 派生"),
	text("work would go on when its caller has given it up, and would not find the caller's values",
		"调用者已经放弃，工作却还在继续，也拿不到调用者放进 context 的值"),
	text("from which context do you make the one that you return?", "你返回的 context 是从哪个 context 派生的？"),
	func(s *story) {
		a := s.join("A")
		s.needsHold(a)
		ctx, cancel := context.WithCancel(context.WithValue(s.Ctx, key{}, true))
		defer cancel()
		turn := s.entersWith(a, ctx)
		inner := turn.StartIn(turn.Held())
		inner.Acquired()
		for _, held := range []context.Context{turn.Held(), inner.Held()} {
			s.failsIf(held.Value(key{}) != true, "A's context does not have the values of the one that Lock was given")
			s.failsIf(held.Err() != nil, "A holds the lock, and its context %s", cause(held))
		}
		cancel()
		ended := func() bool { return turn.Held().Err() != nil && inner.Held().Err() != nil }
		s.failsIf(!s.soon(ended), "the context that A gave to Lock has ended, and the hold's goes on")
		left := s.left(a)
		s.failsIf(
			len(left) != 1,
			"the caller's context has ended, A has not called Unlock, and its znode is gone: %v",
			s.Names(s.dir),
		)
		inner.Release()
		turn.Release()
		s.holds(
			"the hold's contexts had the caller's values and ended with the caller's, and the znode stayed until Unlock",
		)
	})

// A holds, and its line breaks for a moment, three times.
var ShortBreak = property(
	text("a short break of the line does not end the hold", "短暂断线不会结束持有"),
	text("each moment without a line would cost the work that was done under the lock",
		"网络断一下，锁保护下做的工作就白费了"),
	text("the line is down, and the server keeps your session: for how long?", "断线了，服务器还留着你的会话：会留多久？"),
	func(s *story) {
		a, b := s.join("A"), s.writerAs("B", Seat{})
		s.needsHold(a)
		turn := a.Acquire()
		waiting := s.queue(b)[0]
		const breaks = 3
		for range breaks {
			hello := a.Tap.HoldRequest(wiretap.Connect, 1)
			a.Tap.HangUp()
			zktest.AwaitChan(s.Zoo, "A to connect again", hello.Sprung())
			s.Await("A to see that it is cut off", func() bool { return a.State() != zk.StateHasSession })
			for range 25 { // a lock that goes by the state of the line has the time to see it
				s.failsIf(
					turn.Held().Err() != nil,
					"A's line broke for a moment, its session lives, and its context %s",
					cause(turn.Held()),
				)
				time.Sleep(2 * time.Millisecond)
			}
			hello.Let()
			s.Barrier(a.Client)
		}
		s.failsIf(
			turn.Held().Err() != nil,
			"A's line broke %d times for a moment, its session lives, and its context %s",
			breaks,
			cause(turn.Held()),
		)
		s.mustWait(waiting, waiting.StillWaits(), "saw A's line break")
		turn.Release()
		s.letIn(waiting, "A released")
		s.holds("A's line broke %d times for a moment, and A held the lock", breaks)
	})

// A's server keeps the session for longer than A believes. A holds, and is cut off for good,
// as it seems.
var UnlockEnds = property(
	text("unlock does not wait for a line for ever", "Unlock 不会无限期地等网络"),
	text("a process would hang in its own cleaning up, for as long as the outage lasts",
		"故障持续多久，进程就会在自己的收尾工作里挂多久"),
	text("nobody answers the delete: when is the lock lost anyway?", "没有人应答删除：锁最迟什么时候就丢了？"),
	func(s *story) {
		believes := zktest.Handshake{Tell: zktest.MortalTimeout}
		a := s.joinAs("A", Seat{Through: believes.Through})
		s.needsHold(a)
		held := a.Acquire().Held()
		a.Tap.Cut()
		unlock := s.Go(a.Client, func(context.Context) error { return a.Unlock(held) })
		s.failsIf(
			!s.soon(unlock.Returned),
			"A was cut off, and after %d session time-outs its Unlock had not come back",
			enoughTimeouts,
		)
		err := unlock.Err()
		s.failsIf(
			err == nil,
			"A was cut off, its znode stands there (%v), and its Unlock said that all was well",
			s.Names(s.dir),
		)
		a.Tap.Restore()
		s.failsIf(!s.soon(func() bool { return len(s.left(a)) == 0 }),
			"A's Unlock answered %q; its line is back, its session lives, and its znode stays: %v", err, s.left(a))
		s.holds("A was cut off: its Unlock answered %q, and the znode went when the line was back", err)
	})

// A holds, B waits, and is cut off for longer than its lease, while its session lives on.
// A releases meanwhile.
var AliveAtEntry = property(
	text("who is let in can rely on the lock", "进来的人可以放心用锁"),
	text("Lock would return a hold that is lost already, or that nothing watches over",
		"Lock 返回的持有可能早已丢失，或者没有人看管"),
	text("it is your turn: for how long from now on can you rely on your session?",
		"轮到你了：从现在起，会话还能靠得住多久？"),
	func(s *story) {
		believes := zktest.Handshake{Tell: zktest.MortalTimeout}
		a, b := s.writerAs("A", Seat{}), s.joinAs("B", Seat{Through: believes.Through})
		s.needsHold(b)
		held := a.Acquire()
		waiting := s.queue(b)[0]
		b.Tap.Cut()
		// the time is the story
		for begin := time.Now(); time.Since(begin) < zktest.MortalTimeout; time.Sleep(10 * time.Millisecond) {
			s.failsIf(waiting.Returned(), "B was cut off while A held the lock, and its Lock returned")
		}
		held.Release()
		b.Tap.Restore()
		s.letIn(waiting, "A released, and B's line is back")
		s.failsIf(
			waiting.Held().Err() != nil,
			"B was cut off while it waited; its line was back, it was let in, and its context had %s",
			cause(waiting.Held()),
		)
		s.failsIf(b.SessionID() != b.ID, "B was let in with session %#x in place of %#x", b.SessionID(), b.ID)
		s.holds("B was cut off for a session time-out while it waited, and was let in with a hold that was good")
	})

// A holds, and B tries. Then the lock is free, and B tries again.
var Tries = property(
	text("a try ends in time, and leaves nothing", "尝试按时结束，不留残余"),
	text("who may not wait would wait, or would block the queue with a znode of nobody",
		"不能等的人会等下去，或者留下一个没有主人的 znode 堵住队列"),
	text("the time of a try is over: what ends with it, and what must not?", "尝试的时间到了：什么随之结束？什么不该结束？"),
	func(s *story) {
		a, b := s.writerAs("A", Seat{}), s.join("B")
		if b.TryLock == nil {
			s.void("the lock has no TryLock")
		}
		held := a.Acquire()
		try := func(wait time.Duration) *zktest.Turn {
			return b.Call(func(ctx context.Context) (context.Context, error) { return b.TryLock(ctx, wait) })
		}
		for _, wait := range []time.Duration{0, 50 * time.Millisecond} {
			t := try(wait)
			s.failsIf(!s.soon(t.Returned), "A holds the lock, and B's TryLock(%v) does not return", wait)
			s.failsIf(t.Err() == nil, "A holds the lock, and B's TryLock(%v) was let in beside it", wait)
			s.failsIf(
				!s.soon(func() bool { return len(s.left(b)) == 0 }),
				"A holds the lock, and B's TryLock(%v) has left %v",
				wait,
				s.left(b),
			)
		}
		held.Release()
		for _, wait := range []time.Duration{0, zktest.MortalTimeout} {
			t, begin := try(wait), time.Now()
			s.letIn(t, "nobody holds the lock, B calls TryLock(%v)", wait)
			for t.Held().Err() == nil && time.Since(begin) <= wait { // the time is the story
				time.Sleep(time.Millisecond)
			}
			s.failsIf(t.Held().Err() != nil, "B's TryLock(%v) got the lock, and the hold %s", wait, cause(t.Held()))
			t.Release()
		}
		s.holds("two tries behind A ended and left nothing, and two tries on the free lock got it, and kept it")
	})

// A writes. B and C wait to read, and B's session expires meanwhile.
var ReaderStays = property(
	text("a reader that queues again is a reader", "重新排队的读者仍是读者"),
	text("after an outage readers would wait for one another", "一次故障之后，读者之间会互相等待"),
	text("your znode has gone with its session: which kind was it?", "znode 随会话没了：它原来是哪一种？"),
	func(s *story) {
		a, b, c := s.join("A"), s.joinMortal("B"), s.join("C")
		if a.Reader == nil {
			s.void("there is no read hold")
		}
		held := a.Acquire()
		first := b.Reader.Start()
		s.mustWait(first, first.Waits(), "came to read while A wrote")
		b.Crash()
		s.AwaitExpiry(b.Client)
		b.Tap.Restore()
		s.failsIf(
			!s.soon(func() bool { return len(b.Queue()) == 2 || first.Returned() }),
			"B's session expired, and B does not queue again",
		)
		if first.Returned() {
			s.fails("B's session expired while it waited to read, and its RLock answered: %v", first.Err())
		}
		second := c.Reader.Start()
		s.mustWait(second, second.Waits(), "came to read while A wrote")
		queue := slices.SortedFunc(slices.Values(b.Queue()), zktest.BySequence)
		held.Release()
		s.letIn(first, "A released, and B waits to read")
		s.letIn(
			second,
			"A released, and B reads, whose session had expired while it waited; the queue was %v",
			queue,
		)
		s.holds("B's session expired while it waited to read; later B and C read together")
	})
