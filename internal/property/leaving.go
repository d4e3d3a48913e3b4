package property

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// A holds the lock and crashes. B must get it when A's session has expired.
var CrashFrees = New(
	text("a crashed holder's lock is free again", "持有者崩溃后锁会释放"),
	text("a process that crashes while it holds the lock would lock everyone else out forever",
		"进程如果在持锁时崩溃，别的客户端就永远拿不到锁"),
	text("who deletes the holder's znode when the holder cannot?", "持有者自己不能删除 znode 时，由谁删除？"),
	func(s *Story) {
		a, b := s.JoinMortal("A"), s.Join("B")
		a.Acquire()
		waiting := s.queue(b)[0]
		a.Crash()
		s.AwaitExpiry(a.Client)
		s.FailsIf(!s.Soon(waiting.Returned),
			"A's session has ended, its znode still exists, and B waits: %v", s.left(a))
		waiting.Acquired()
		s.Holds("A's session expired, and B got the lock")
	})

// A holds the lock, B waits, C waits behind B. B crashes, and C must keep waiting.
var WaiterCrash = New(
	text("a waiter's crash does not give the lock to the next client", "等待者崩溃不会误放行"),
	text("the client behind it would take its crash for a release", "排在它后面的客户端会把它的崩溃当成释放"),
	text("you were woken: does that mean that it is your turn?", "你被唤醒了：这就说明轮到你了吗？"),
	func(s *Story) {
		a, b, c := s.Join("A"), s.JoinMortal("B"), s.Join("C")
		held := a.Acquire()
		waiting := s.queue(b, c)[1]
		if len(s.left(b)) == 0 {
			s.void("a waiter has no znode that could be deleted")
		}
		b.Crash()
		s.AwaitExpiry(b.Client)
		s.mustWait(waiting, waiting.StillWaits(), "saw the waiter B crash")
		held.Release()
		waiting.Acquired()
		s.Holds("B crashed in the queue; C kept waiting, and got the lock after A's release")
	})

// A holds the lock. B is cancelled while it waits, D reaches its deadline, and E is cancelled while
// the reply to its create is on its way. C must get the lock. In the end only F is left. F is
// cancelled while the reply to its create is on its way, and then while the reply to its list is.
var GivingUp = New(
	text("giving up leaves nothing behind", "放弃等待后不留残余"),
	text("a client that has given up would block every client behind it in the queue", "排在后面的客户端都在等一个已经离开的客户端"),
	text("the context has ended: what does Lock return? "+
		"And what have you created in ZooKeeper by now, and what deletes it?",
		"context 已经结束：Lock 返回什么？到这时，你在 ZooKeeper 里创建了什么？由谁清理？"),
	func(s *Story) {
		a, b, c, d, e := s.Join("A"), s.Join("B"), s.Join("C"), s.Join("D"), s.Join("E")
		held := a.Acquire()
		waiting := s.queue(b, c)
		s.GaveUp(b, s.givesUp(waiting[0], "B waits behind A"), context.Canceled)
		s.mustWait(waiting[1], waiting[1].StillWaits(), "saw B give up")

		overdue := d.Call(func(ctx context.Context) (zktest.Hold, error) {
			ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			return d.Lock(ctx)
		})
		s.FailsIf(
			!s.Soon(overdue.Returned),
			"D waits behind A: its deadline has passed, and its Lock does not return; it has left %v",
			s.left(d),
		)
		s.GaveUp(d, overdue.Err(), context.DeadlineExceeded)

		slow := e.Tap.HoldReply(wiretap.Create, 1)
		ctx, cancel := context.WithCancel(s.Ctx)
		caught := e.StartIn(ctx)
		s.Await("the server to carry out E's create, or E to wait without one", func() bool {
			return comesToAStop(caught, slow, 0)
		})
		cancel()
		slow.Let()
		s.GaveUp(e, caught.Err(), context.Canceled)

		s.mustWait(waiting[1], waiting[1].StillWaits(), "was waiting,")
		held.Release()
		waiting[1].Release()

		f := s.Join("F") // it gives up just when it is its turn
		for _, op := range []wiretap.Op{wiretap.Create, wiretap.GetChildren} {
			slow = f.Tap.HoldReply(op, 1)
			ctx, cancel = context.WithCancel(s.Ctx)
			caught = f.StartIn(ctx)
			s.Await("F's request to be carried out", func() bool { return slow.IsSprung() || caught.Returned() })
			cancel()
			slow.Let()
			if caught.Err() == nil {
				caught.Release()
			} else {
				s.GaveUp(f, caught.Err(), context.Canceled)
			}
		}
		s.Holds("four clients gave up, and left nothing; the next in the queue got the lock")
	})

// A holds the lock, and B waits. B gives up while it cannot reach a server. Then B reconnects in
// the same session, and A releases. C must get the lock.
var GivesUpCutOff = New(
	text("giving up while disconnected leaves nothing behind", "断线期间放弃等待，也不留残余"),
	text("the session survives the disconnect, and so does a znode that no client uses: it blocks the lock",
		"断线期间会话没有过期，已经没有人用的 znode 也就留了下来，堵住了锁"),
	text("the delete could not reach a server: what sends it again, and until when?",
		"delete 没能送到服务器：由谁再发？发到什么时候为止？"),
	func(s *Story) {
		var dials atomic.Int64
		counting := func(tap zk.Dialer) zk.Dialer {
			return func(network, address string, timeout time.Duration) (net.Conn, error) {
				dials.Add(1)
				return tap(network, address, timeout)
			}
		}
		a, b, c := s.Join("A"), s.JoinAs("B", Seat{Through: counting}), s.Join("C")
		held := a.Acquire()
		waiting := s.queue(b)[0]
		b.Tap.Cut()
		waiting.GiveUp()
		const enough = 5 // failed dials: by then the library has answered the first delete with an error
		tried := dials.Load() + enough
		s.Await("B to try to connect", func() bool { return dials.Load() >= tried })
		b.Tap.Restore()
		s.Await("B to be back", func() bool { return b.State() == zk.StateHasSession })
		s.FailsIf(!s.Soon(waiting.Returned),
			"B gave up while it was disconnected; it is connected again, and its Lock does not return")
		s.FailsIf(waiting.Err() == nil, "B gave up while it was disconnected, and got the lock although A held it")
		s.FailsIf(!s.Soon(func() bool { return len(s.left(b)) == 0 }),
			"B gave up while it was disconnected, and its Lock returned %v; B is connected again, and has left %v",
			waiting.Err(), s.left(b))
		held.Release()
		s.letIn(c.Start(), "B gave up while it was disconnected, and A has released")
		s.Holds("B gave up while it was disconnected, and its Lock returned %q; B left nothing, and C got the lock",
			waiting.Err())
	})

// GaveUp fails the story unless the client's Lock returned the error why, and the client has left
// nothing behind.
func (s *Story) GaveUp(c *zktest.Member, err, why error) {
	s.FailsIf(!errors.Is(err, why), "%s gave up, and its Lock returned %v instead of %q", c.Name, err, why)
	isGone := s.Soon(func() bool { return len(s.left(c)) == 0 }) // a lock may clean up in the background
	s.FailsIf(!isGone, "%s gave up, and left %v behind", c.Name, s.left(c))
}

// A holds the lock. The reply to B's create is delayed, and later the reply to its list. Each time
// B gives up before the reply arrives.
var GivesUpAtOnce = New(
	text("a client that gives up need not wait for a reply", "放弃等待不必等响应"),
	text("a caller with a deadline would hang while the connection is down", "设了截止时间的调用者，会一直卡到网络恢复"),
	text("the context has ended while a request is on its way: which goroutine waits for the reply?",
		"请求还在路上，context 已经结束：由谁等响应？"),
	func(s *Story) {
		a, b := s.Join("A"), s.Join("B")
		a.Acquire()
		for _, op := range []wiretap.Op{wiretap.Create, wiretap.GetChildren} {
			slow := b.Tap.HoldReply(op, 1)
			waiting := b.Start()
			s.Await(
				fmt.Sprintf("the reply to B's %v to be held up", op),
				func() bool { return comesToAStop(waiting, slow, 0) },
			)
			waiting.GiveUp()
			atOnce := s.Soon(waiting.Returned)
			slow.Let()
			s.FailsIf(
				!atOnce,
				"B gave up while the reply to its %v was on its way, and its Lock did not return before the reply arrived",
				op,
			)
			s.GaveUp(b, waiting.Err(), context.Canceled)
		}
		s.Holds(
			"B gave up while its create, and then its list, was not answered: Lock returned at once, and nothing was left",
		)
	})

// A holds the lock. B's connection breaks while B lists the queue, and then while it reads a znode.
// If B's Lock returns an error, B must have left the queue.
var FailsClean = New(
	text("an error in the wait leaves nothing behind", "等待出错后不留残余"),
	text("the caller got an error, but its znode would become the first in the queue and block everyone",
		"调用者已经得到错误，它的 znode 却会排到最前：没有人在用锁，锁却被占着"),
	text("a request of the wait has failed: what have you created in ZooKeeper by now?",
		"等待中有一个请求失败了：到这时，你在 ZooKeeper 里创建了什么？"),
	func(s *Story) {
		a, b := s.Join("A"), s.Join("B")
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
				told = append(told, "and B kept waiting")
				_ = s.givesUp(waiting, "B kept waiting after its connection broke")
			} else {
				s.FailsIf(waiting.Err() == nil,
					"B's connection broke at its %v while A held the lock, and B got the lock as well", op)
				told = append(told, fmt.Sprintf("and B's Lock returned %q", waiting.Err()))
			}
			s.FailsIf(!s.Soon(func() bool { return len(s.left(b)) == 0 }),
				"B's connection broke at its %v, its Lock returned %v, and left %v", op, waiting.Err(), s.left(b))
			b.Tap.Restore()
		}
		held.Release()
		s.letIn(s.Join("C").Start(), "A has released, and B has given up")
		s.Holds("B's connection broke at its list, %s; at its read, %s; nothing was left", told[0], told[1])
	})

// A holds the lock, B waits, and C waits behind B. Somebody deletes B's znode, and A releases.
var NotBeside = New(
	text("a waiter whose znode was deleted does not get the lock while another client holds it",
		"等待者的 znode 被删除以后，它不会在别人持锁时拿到锁"),
	text("it has no place in the queue, finds no predecessor, and takes that for its turn",
		"它已经不在队列里，却以为前面没有别的节点就轮到自己"),
	text("your own znode is not in the list: whose turn is it?", "列表里没有自己的 znode：轮到谁了？"),
	func(s *Story) {
		a, b, c := s.Join("A"), s.Join("B"), s.Join("C")
		held := a.Acquire()
		turns := s.queue(b, c)
		znodes := s.left(b)
		if len(znodes) == 0 {
			s.void("a waiter has no znode that could be deleted")
		}
		s.deletes(znodes[0])
		s.mustWait(turns[1], turns[1].StillWaits(), "saw that its predecessor's znode was deleted,")
		s.FailsIf(turns[0].Returned() && turns[0].Err() == nil, "B's znode was deleted, and B got the lock while A held it")
		held.Release()
		s.letIn(turns[1], "A released, and C is the next")
		s.FailsIf(!s.Soon(func() bool { return turns[0].Returned() || len(s.left(b)) == 1 }),
			"B's znode was deleted, and B neither returns an error nor queues again; its last requests: %s",
			turns[0].LastAsked())
		if !turns[0].Returned() {
			s.mustWait(turns[0], turns[0].StillWaits(), "had lost its znode")
			turns[1].Release()
			s.letIn(turns[0], "C released, and B has queued again")
			s.Holds("somebody deleted B's znode; B queued again, and got the lock after C")
		}
		s.FailsIf(
			turns[0].Err() == nil,
			"somebody deleted B's znode, C got the lock, and B got it as well; the queue: %v",
			s.Names(s.dir),
		)
		s.Holds("somebody deleted B's znode; B's Lock returned %q", turns[0].Err())
	})

// A holds the lock, B waits, and B's session expires.
var LostWhileWaiting = New(
	text("a waiter whose session expires returns an error or queues again", "会话过期的等待者会报错或重新排队"),
	text("its znode and its watch no longer exist, and it would wait forever", "它的 znode 和监听器都没有了，它会永远等下去"),
	text("the session has ended: what wakes the waiter now, and what does its Lock return?",
		"会话已经结束：现在由什么唤醒等待者？它的 Lock 返回什么？"),
	func(s *Story) {
		a, b := s.Join("A"), s.JoinMortal("B")
		held := a.Acquire()
		waiting := s.queue(b)[0]
		b.Crash()
		s.AwaitExpiry(b.Client)
		mark := b.Tap.Mark()
		b.Tap.Restore()
		queuesAgain := func() bool {
			const withA = 2      // znodes: A's, and a new one of B's
			if s.subject.Znode { // there is no queue, so B must send a request in its new session
				return b.SessionID() != b.ID && len(b.Asked(mark)) > 0 && b.Tap.Idle()
			}
			return len(b.Queue()) == withA
		}
		s.FailsIf(
			!s.Soon(func() bool { return waiting.Returned() || queuesAgain() }),
			"B's session expired while it waited, and B neither returns an error nor queues again; its last requests: %s",
			waiting.LastAsked(),
		)
		if waiting.Returned() {
			s.saysSo(b, waiting.Err())
		}
		newSession := b.SessionID()
		s.mustWait(waiting, waiting.StillWaits(), "lost its session")
		held.Release()
		s.letIn(waiting, "B's session expired while it waited, B has another one, and A released")
		if s.subject.Znode {
			s.Holds("B's session expired while it waited; B continued in its new session, and got the lock")
		}
		owner, _ := s.Owner(b.Znode())
		sessions, err := s.Sessions()
		_, lives := sessions[newSession]
		if hasExpired := err == nil && !lives; hasExpired { // on a busy machine, which is no mistake of the lock
			s.Fatalf("B's second session %#x has expired as well", newSession)
		}
		if owner != b.SessionID() || owner == b.ID {
			s.Fails("B lost session %#x while it waited, and holds the lock by a znode of session %#x", b.ID, owner)
		}
		s.Holds("B's session expired while it waited, and B got the lock in its new session")
	})

// saysSo ends the story of B, whose session expired while it waited, and whose Lock has returned. A
// lock without holds knows only the session that it began with, so its Lock may return any error.
func (s *Story) saysSo(b *zktest.Member, err error) {
	s.FailsIf(err == nil, "B's session expired while it waited, A holds the lock, and B got it as well")
	s.FailsIf(
		b.HasHolds(),
		"B's session expired while it waited, B has another one, and its Lock returned: %v; it has to queue up again",
		err,
	)
	left := s.left(b)
	s.FailsIf(len(left) > 0, "B's session expired while it waited, its Lock returned an error, and left %v", left)
	s.Holds("B's session expired while it waited: its Lock returned %q, and nothing was left", err)
}

// A holds the lock, and B calls TryLock. Then the lock is free, and B calls TryLock once more, and
// Lock. The context of each of these two calls ends after the call has returned.
var Tries = New(
	text("TryLock does not wait, and leaves nothing behind", "尝试加锁不等别人，也不留残余"),
	text("a caller that must not wait would wait, or would leave a znode that blocks the queue",
		"不愿等待的调用者会一直等下去，或者留下一个已经没有人用的 znode，堵住队列"),
	text("the context that was given to TryLock ends: what ends with it, and what must not?",
		"传给 TryLock 的 context 结束了：什么随之结束？什么不该结束？"),
	func(s *Story) {
		a, b := s.writerAs("A", Seat{}), s.Join("B")
		if b.TryLock == nil {
			s.void("the lock has no TryLock")
		}
		held := a.Acquire()
		try := b.Call(b.TryLock)
		s.FailsIf(!s.Soon(try.Returned), "A holds the lock, and B's TryLock does not return")
		s.FailsIf(try.Err() == nil, "A holds the lock, and B's TryLock got the lock as well")
		s.FailsIf(
			!s.Soon(func() bool { return len(s.left(b)) == 0 }),
			"A holds the lock, and B's TryLock has left %v",
			s.left(b),
		)
		held.Release()
		for name, call := range map[string]func(context.Context) (zktest.Hold, error){
			"TryLock": b.TryLock,
			"Lock":    b.Lock,
		} {
			t := b.Call(call)
			s.letIn(t, "nobody holds the lock, B calls %s", name)
			t.GiveUp()                           // ends the call's context, which governs the wait and nothing else
			const enough = 50 * time.Millisecond // in which the hold could end as well
			for begin := time.Now(); t.Context().Err() == nil && time.Since(begin) <= enough; {
				time.Sleep(time.Millisecond) // a wait for time to pass, not for a state
			}
			s.FailsIf(t.Context().Err() != nil,
				"B's %s got the lock, then the context that it was given ended, and the hold with it: %v",
				name, context.Cause(t.Context()))
			t.Release()
		}
		s.Holds("TryLock behind A returned %q and left nothing; "+
			"when the lock was free it got the lock, and kept it when its context ended", try.Err())
	})

// A holds the lock, and B calls TryLock. B's delete is lost on its way to the server.
var TryLost = New(
	text("TryLock leaves nothing behind when its delete is lost",
		"TryLock 放弃时，即使 delete 丢失，也不留下 znode"),
	text("the caller goes on without the lock, but its znode would become the first in the queue and block everyone",
		"调用者没有拿到锁就离开了，它的 znode 却会排到最前，把锁堵住"),
	text("TryLock has returned ErrLocked: what keeps trying until the znode is deleted?",
		"TryLock 已经返回 ErrLocked：由谁继续重试，直到 znode 确实删除？"),
	func(s *Story) {
		a, b := s.writerAs("A", Seat{}), s.Join("B")
		if b.TryLock == nil {
			s.void("the lock has no TryLock")
		}
		held := a.Acquire()
		lost := b.Tap.LoseRequest(wiretap.Delete, 1)
		_, err := b.TryLock(s.Ctx)
		s.FailsIf(err == nil, "A holds the lock, and B's TryLock got the lock as well")
		s.FailsIf(
			!s.Soon(func() bool { return len(s.left(b)) == 0 }),
			"B's TryLock returned %q, its delete was lost, and it has left %v",
			err, s.left(b),
		)
		b.Tap.Restore() // a lock that looks before it creates has sent no delete that could be lost
		held.Release()
		b.Acquire().Release()
		if lost.IsSprung() {
			s.Holds("B's TryLock returned %q, its delete was lost, and nothing was left", err)
		}
		s.Holds("B's TryLock returned %q, and created no znode", err)
	})
