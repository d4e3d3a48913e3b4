package property

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"path"
	"slices"
	"strings"
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
		a, b := s.Join("A"), s.Join("B")
		a.Acquire()
		waiting := s.queue(b)[0]
		s.Expire(a.Client)
		s.FailsIf(!s.Soon(waiting.Returned),
			"A's session has ended, its znode still exists, and B waits: %v", s.left(a))
		waiting.Acquired()
		s.Holds("A's session expired, and B got the lock")
	})

// A holds the lock, and many clients wait. One after the other, the predecessor of the last one gives up, or crashes.
// The last one must keep waiting, however often it is woken, and gets the lock after A. Then it waits again, and its
// predecessor leaves while a request of its Lock is on its way: the second one, then the third, then the fourth.
var WaiterCrash = New(
	text("a waiter's crash does not give the lock to the next client", "等待者崩溃不会误放行"),
	text("the client behind it would take its crash for a release", "排在它后面的客户端会把它的崩溃当成释放"),
	text("you were woken: does that mean that it is your turn?", "你被唤醒了：这就说明轮到你了吗？"),
	func(s *Story) {
		a, b := s.Join("A"), s.Join("B")
		held := a.Acquire()
		line := s.queue(b)
		if len(s.left(b)) == 0 {
			s.void("a waiter has no znode that could be deleted")
		}
		waiters, crash := inARow, 4
		if line[0].Waits() == zktest.Polling { // each poll sees the whole queue: a few are enough, and take less long
			waiters, crash = 4, 2
		}
		for n := range waiters - 1 {
			line = append(line, s.queue(s.Join(fmt.Sprintf("waiter %d", n+2)))...)
		}
		last := s.queue(s.Join("the last"))[0]
		for i, leaves := range slices.Backward(line) {
			s.mustWait(leaves, leaves.StillWaits(), "was waiting,")
			if i >= crash {
				leaves.GiveUp()
			}
			hasLeft := func() bool { return leaves.Returned() && len(s.left(leaves.Member)) == 0 }
			if i < crash || !s.SoonAfter(fewAnswers, hasLeft) { // whether it can give up is GivingUp's question
				s.Expire(leaves.Client)
			}
			s.mustWait(last, last.StillWaits(), "saw %s leave the queue, the waiter before it (%d of %d),",
				leaves.Name, len(line)-i, len(line))
		}
		held.Release()
		s.letIn(last, "all other waiters have left, and A has released")
		s.unlocks(last)
		s.leavesDuringARequest(a, last.Member)
		if a.Reader != nil {
			s.leavesTheMiddle()
		}
		s.Holds("%d waiters left the queue, each the predecessor of the last, and %d of them by a crash; "+
			"the last kept waiting, and got the lock after A's release", len(line), crash)
	})

// leavesDuringARequest lets A hold the lock, and the only waiter between A and the last client give up.
func (s *Story) leavesDuringARequest(a, last *zktest.Member) {
	between := s.writerAs("the one between", Seat{})
	for n := 2; n <= 4; n++ {
		held, leaves, mark := a.Acquire(), s.queue(between)[0], last.Tap.Mark()
		slow := last.Tap.HoldRequest(wiretap.Any, n)
		waiting := last.Start()
		s.Await("the last one to be held up, or to wait", comesToAStop(waiting, slow, mark))
		leaves.GiveUp()
		if !s.SoonAfter(fewAnswers, func() bool { return leaves.Returned() && len(s.left(between)) == 0 }) {
			return // whether it can give up is GivingUp's question
		}
		slow.Let()
		s.mustWait(waiting, waiting.StillWaits(),
			"saw the waiter before it leave while its own request number %d was on its way,", n)
		s.unlocks(held)
		s.letIn(waiting, "the waiter before it has left, and A has released")
		s.unlocks(waiting)
		last.Tap.Restore() // removes a trap that was not sprung
		if !slow.IsSprung() {
			return
		}
	}
}

// leavesTheMiddle brings three clients to a lock, readers and writers in every order in which the second waits, and
// the third behind it. The second leaves in every way. Then the third gets the lock if it shares it with the first.
// If not, it must keep waiting.
func (s *Story) leavesTheMiddle() {
	first, last := s.writerAs("the first", Seat{}), s.writerAs("the last", Seat{})
	for _, how := range []string{"gave up", "crashed", "lost its znode"} {
		for i, queue := range []string{"WRR", "WRW", "WWR", "WWW", "RWR", "RWW"} {
			path := fmt.Sprintf("%s-%s-%d", s.path, strings.ReplaceAll(how, " ", "-"), i)
			holder := s.as(queue[0], s.subject.At(s.Zoo, first, path)).Acquire()
			middle := s.queue(s.as(queue[1], s.writerAs("the middle one", Seat{Path: path})))[0]
			waiting := s.queue(s.as(queue[2], s.subject.At(s.Zoo, last, path)))[0]
			switch how {
			case "gave up":
				_ = s.givesUp(middle, "it waits in the queue")
			case "crashed":
				s.Expire(middle.Client)
			default:
				s.deletes(s.left(middle.Member)[0])
			}
			what := fmt.Sprintf("%s holds the lock, %s waited behind it, and %s behind that; the middle one %s",
				named[queue[0]], named[queue[1]], named[queue[2]], how)
			areBothReaders := queue[0] == 'R' && queue[2] == 'R'
			if areBothReaders {
				s.letIn(waiting, "%s", what)
			} else {
				s.keepsOut(waiting, what)
			}
			s.unlocks(holder)
			s.letIn(waiting, "%s, and the first has released", what)
			s.unlocks(waiting)
			middle.GiveUp()
		}
	}
}

// keepsOut fails the story if the call of a client that must wait has returned.
func (s *Story) keepsOut(waiting *zktest.Turn, what string) {
	if waiting.StillWaits() != zktest.Returned {
		return
	}
	s.FailsIf(waiting.Err() != nil, "%s, and the last one's Lock returned: %v", what, waiting.Err())
	s.Fails("%s, and the last one got the lock while the first held it", what)
}

// A holds the lock. B is cancelled while it waits, later also with a delete that fails, and D reaches its deadline. E
// calls Lock several times, and is cancelled while the reply to its first request is on its way, then to its second
// one, and so on. C must get the lock. In the end only F is left, and is cancelled in the same way, and then each time
// that its Lock looks at its context: right after the first look, right after the second one, and so on. Its last
// context has ended before the call.
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
		plainly := s.givesUp(waiting[0], "B waits behind A")
		s.GaveUp(b, plainly, context.Canceled)
		s.about(WaiterCrash, func() { s.mustWait(waiting[1], waiting[1].StillWaits(), "saw B give up") })
		if !overSession(b) { // a lock that is made from a Session retries in the background
			s.tellsOfItsFailedDelete(b, plainly)
		}

		overdue := startsWithADeadline(d)
		s.FailsIf(
			!s.Soon(overdue.Returned),
			"D waits behind A: its deadline has passed, and its Lock does not return; it has left %v",
			s.left(d),
		)
		s.GaveUp(d, overdue.Err(), context.DeadlineExceeded)

		for _, call := range blocking(e) {
			for _, caught := range s.givesUpAtEachReply(e, call, nil) {
				s.GaveUp(e, caught.Err(), context.Canceled)
			}
		}
		s.mustWait(waiting[1], waiting[1].StillWaits(), "was waiting,")
		held.Release()
		s.letIn(waiting[1], "A has released")
		waiting[1].Release()

		f := s.Join("F") // it gives up just when it is its turn
		for _, call := range blocking(f) {
			for _, caught := range s.givesUpAtEachReply(f, call, nil) {
				if caught.Err() != nil {
					s.GaveUp(f, caught.Err(), context.Canceled)
				} else {
					s.unlocksAfterItGaveUp(caught)
				}
			}
		}
		s.givesUpAtEachLook(f)
		s.locksWithAnEndedContext(f)
		s.Holds("four clients gave up, and left nothing; the next in the queue got the lock")
	})

// tellsOfItsFailedDelete lets B give up while the server refuses its delete, and then while its delete is lost. If its
// znode stays, its Lock must not return the same as without a fault, which is plainly.
func (s *Story) tellsOfItsFailedDelete(b *zktest.Member, plainly error) {
	for _, how := range []string{"was refused", "was lost"} {
		waiting := s.queue(b)[0]
		znodes := s.left(b)
		if len(znodes) == 0 { // it has nothing to delete
			_ = s.givesUp(waiting, "B waits behind A")
			return
		}
		directory := path.Dir(znodes[0])
		if how == "was refused" {
			s.permits(directory, zk.PermAll&^zk.PermDelete)
		} else {
			b.Tap.LoseRequest(wiretap.Delete, 1)
		}
		waiting.GiveUp()
		s.SoonAfter(fewAnswers, waiting.Returned) // or it retries until the delete is permitted
		s.permits(directory, zk.PermAll)
		err := s.givesUp(waiting, "B's delete "+how)
		s.FailsIf(err == nil, "B gave up, its delete %s, and its Lock returned nil while A held the lock", how)
		saysMore := withoutNumbers(err.Error()) != withoutNumbers(plainly.Error())
		s.FailsIf(!saysMore && !s.Soon(func() bool { return len(s.left(b)) == 0 }),
			"B gave up, its delete %s, and it has left %v; its Lock returned %q, and does not tell its caller", how, s.left(b), err)
		b.Tap.Restore() // removes a trap that was not sprung
		for _, znode := range s.left(b) {
			_ = s.Observer().Delete(znode, -1) // or B deletes it in the background
		}
	}
}

// startsWithADeadline calls Lock with a context that reaches its deadline soon.
func startsWithADeadline(m *zktest.Member) *zktest.Turn {
	return m.Call(func(ctx context.Context) (zktest.Hold, error) {
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		return m.Lock(ctx)
	})
}

// unlocksAfterItGaveUp releases a hold that a call returned although its context had ended.
func (s *Story) unlocksAfterItGaveUp(caught *zktest.Turn) {
	err := caught.Unlock()
	s.FailsIf(err != nil, "%s's context ended when it got the lock: its Lock returned nil, and its Unlock returned: %v; "+
		"the znodes that %s has deleted: %v", caught.Name, err, caught.Name, caught.Tap.Done(wiretap.Delete))
}

// givesUpAtEachReply lets a client make a call several times, such as its Lock. The context of the first call ends
// while the reply to the first request is on its way, that of the second call while the reply to the second one
// is, and so on, until a call sends no such request. A client that polls always sends one more. meanwhile, if not nil,
// is called when the context has ended, before the reply arrives.
func (s *Story) givesUpAtEachReply(m *zktest.Member, lock lockCall, meanwhile func(n int, call *zktest.Turn),
) iter.Seq2[int, *zktest.Turn] {
	const most = 6
	return func(yield func(int, *zktest.Turn) bool) {
		for n := 1; n <= most; n++ {
			mark := m.Tap.Mark()
			slow := m.Tap.HoldReply(wiretap.Any, n)
			call := m.Call(lock.lock)
			s.Await(fmt.Sprintf("the server to carry out request %d of %s, or %s to wait", n, m.Name, m.Name),
				comesToAStop(call, slow, mark))
			call.GiveUp()
			if meanwhile != nil {
				meanwhile(n, call)
			}
			slow.Let()
			isLast := !slow.IsSprung()
			m.Tap.Restore() // removes a trap that was not sprung
			if !yield(n, call) || isLast {
				return
			}
		}
	}
}

// A watchedContext ends at a look at it: right after the answer that it has not ended.
type watchedContext struct {
	context.Context
	looks atomic.Int64 // left until then
	end   func()
}

func (c *watchedContext) Err() error {
	defer c.look()
	return c.Context.Err()
}

func (c *watchedContext) Done() <-chan struct{} {
	defer c.look()
	return c.Context.Done()
}

func (c *watchedContext) look() {
	if c.looks.Add(-1) == 0 {
		c.end()
	}
}

// givesUpAtEachLook lets a client call Lock of a free lock several times. The context of the first call ends right
// after Lock has looked at it once, that of the second call after two looks, and so on, until a call looks less often.
func (s *Story) givesUpAtEachLook(m *zktest.Member) {
	const most = 12
	const forOthers = 20 * time.Millisecond // while one goroutine of Lock looks, the others see that the context has ended
	for n := 1; n <= most; n++ {
		ctx, cancel := context.WithCancel(s.Ctx)
		returned := make(chan struct{})
		watched := &watchedContext{Context: ctx, end: func() {
			cancel()
			select {
			case <-returned:
			case <-time.After(forOthers):
			}
		}}
		watched.looks.Store(int64(n))
		call := m.Call(func(context.Context) (zktest.Hold, error) {
			defer close(returned)
			return m.Lock(watched)
		})
		what := fmt.Sprintf("nobody holds the lock, and the context of %s ended right after its Lock had looked at it %d times",
			m.Name, n)
		s.FailsIf(!s.Soon(call.Returned), "%s; Lock does not return, and has left %v", what, s.left(m))
		cancel()
		if err := call.Err(); err == nil {
			s.unlocks(call)
		} else {
			s.FailsIf(!errors.Is(err, context.Canceled), "%s; Lock returned %v", what, err)
		}
		s.FailsIf(!s.Soon(func() bool { return len(s.left(m)) == 0 }),
			"%s; Lock returned %v, and has left %v behind", what, call.Err(), s.left(m))
		if watched.looks.Load() > 0 {
			return
		}
	}
}

// locksWithAnEndedContext calls Lock of a free lock with a context that has ended before the call.
func (s *Story) locksWithAnEndedContext(m *zktest.Member) {
	ended, end := context.WithCancel(s.Ctx)
	end()
	for _, lock := range blocking(m) {
		call := m.Call(func(context.Context) (zktest.Hold, error) { return lock.lock(ended) })
		s.FailsIf(!s.Soon(call.Returned), "%s is called with a context that has ended, and does not return", lock.name)
		s.FailsIf(call.Err() == nil, "%s was called with a context that had ended, and got the lock", lock.name)
		s.GaveUp(m, call.Err(), context.Canceled)
	}
}

// A holds the lock, and B waits. B gives up while it cannot reach a server. Then B reconnects in
// the same session, and A releases. C must get the lock. Later B gives up while it is disconnected, and its create
// was carried out.
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
		triesToConnect := func() {
			const enough = 5 // failed dials: by then the library has answered the first request with an error
			tried := dials.Load() + enough
			s.Await("B to try to connect", func() bool { return dials.Load() >= tried })
		}
		triesToConnect()
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
		if overSession(b) { // a lock that is made from a connection does not look for its znode
			s.givesUpBeforeItsCreateIsAnswered(b, triesToConnect)
		}
		s.Holds("B gave up while it was disconnected, and its Lock returned %q; B left nothing, and C got the lock",
			waiting.Err())
	})

// givesUpBeforeItsCreateIsAnswered lets a client give up while it is disconnected, and does not know whether its
// create was carried out. It was.
func (s *Story) givesUpBeforeItsCreateIsAnswered(m *zktest.Member, triesToConnect func()) {
	before := len(s.Names(s.dir))
	slow := m.Tap.HoldReply(wiretap.Create, 1)
	attempt := m.Start()
	zktest.AwaitChan(s.Zoo, fmt.Sprintf("%s's create to be carried out", m.Name), slow.Sprung())
	m.Tap.Cut()
	attempt.GiveUp()
	triesToConnect()
	m.Tap.Restore()
	s.FailsIf(!s.Soon(attempt.Returned),
		"the reply to %[1]s's create was lost, and %[1]s gave up while it was disconnected; it is connected again, "+
			"and its Lock does not return", m.Name)
	s.FailsIf(!s.Soon(func() bool { return len(s.Names(s.dir)) == before }),
		"the reply to %[1]s's create was lost, and %[1]s gave up while it was disconnected; it is connected again, "+
			"and its znode is still in the queue: %v", m.Name, s.Names(s.dir))
}

// GaveUp fails the story unless the client's Lock returned the error why, and the client has left
// nothing behind.
func (s *Story) GaveUp(c *zktest.Member, err, why error) {
	s.FailsIf(!errors.Is(err, why), "%s gave up, and its Lock returned %v instead of %q", c.Name, err, why)
	isGone := s.Soon(func() bool { return len(s.left(c)) == 0 }) // a lock may clean up in the background
	s.FailsIf(!isGone, "%s gave up, and left %v behind", c.Name, s.left(c))
}

// A holds the lock. B calls Lock several times, and gives up before the reply to its first request arrives, then before
// that to its second one, and so on.
var GivesUpAtOnce = New(
	text("a client that gives up need not wait for a reply", "放弃等待不必等响应"),
	text("a caller with a deadline would hang while the connection is down", "设了截止时间的调用者，会一直卡到网络恢复"),
	text("the context has ended while a request is on its way: which goroutine waits for the reply?",
		"请求还在路上，context 已经结束：由谁等响应？"),
	func(s *Story) {
		a, b := s.Join("A"), s.Join("B")
		a.Acquire()
		for _, call := range blocking(b) {
			returns := func(n int, waiting *zktest.Turn) {
				s.FailsIf(!s.Soon(waiting.Returned),
					"B gave up while the reply to its request number %d was on its way, and its %s did not return before the reply "+
						"arrived; its last requests: %s", n, call.name, waiting.LastAsked())
			}
			for _, waiting := range s.givesUpAtEachReply(b, call, returns) {
				s.GaveUp(b, waiting.Err(), context.Canceled)
			}
		}
		s.Holds("B gave up before the reply to each of its requests: Lock returned at once, and nothing was left")
	})

// A holds the lock. B's connection breaks while B lists the queue, and then while it reads a znode.
// If B's Lock returns an error, B must have left the queue. Then the server refuses B's list, its read, and,
// when A has released, its create. At last requests of B are lost: with nobody else there, and, if the lock is made from a
// connection, beside other goroutines of B. From a Session it is OwnPlace that asks this.
var FailsClean = New(
	text("an error in the wait leaves nothing behind", "等待出错后不留残余"),
	text("the caller got an error, but its znode would become the first in the queue and block everyone",
		"调用者已经得到错误，它的 znode 却会排到最前：没有人在用锁，锁却被占着"),
	text("a request of the wait has failed: what does Lock return? And what have you created in ZooKeeper by now?",
		"等待中有一个请求失败了：Lock 返回什么？到这时，你在 ZooKeeper 里创建了什么？"),
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
		if !s.subject.Znode {
			s.refusesARequest(b, "list of the queue", s.dir, zk.PermRead)
		}
		if s.readsZnodes(b) {
			s.refusesARequest(b, "read of A's znode", s.left(a)[0], zk.PermRead)
		}
		held.Release()
		s.refusesARequest(b, "create", s.dir, zk.PermCreate) // a lock that looks first sends none while A holds it
		s.tellsOfALostCreate(b)
		next := s.Join("C").Start()
		s.letIn(next, "A has released, and B has given up")
		if !overSession(b) {
			s.unlocks(next)
			s.about(OwnPlace, func() { s.losesRequestsBesideItself(b) })
		}
		s.Holds("B's connection broke at its list, %s; at its read, %s; nothing was left", told[0], told[1])
	})

// tellsOfALostCreate loses the reply to a client's create. Lock must return: it would wait behind a znode of
// its own. It need not delete that znode, which it does not know. A lock that is made from a Session must find it: LostCreateReply.
func (s *Story) tellsOfALostCreate(m *zktest.Member) {
	if overSession(m) {
		return
	}
	lost := m.Tap.LoseReply(wiretap.Create, 1)
	call := m.Start()
	zktest.AwaitChan(s.Zoo, "the reply to the create of "+m.Name+" to be lost", lost.Sprung())
	s.FailsIf(!s.Soon(call.Returned),
		"the reply to %s's create was lost, nobody else has a znode, and its Lock neither returns the error "+
			"nor gets the lock; its last requests: %s", m.Name, call.LastAsked())
	for _, znode := range s.left(m) {
		s.deletes(znode)
	}
}

// readsZnodes reports whether a client's Lock has sent a getData so far. An exists needs no permission.
func (s *Story) readsZnodes(m *zktest.Member) bool { return m.Requests(0)[wiretap.GetData] > 0 }

// permits sets what anybody may do with a znode.
func (s *Story) permits(znode string, permissions int32) {
	_, err := s.Observer().SetACL(znode, zk.WorldACL(permissions), -1)
	s.Require(err, "set the permissions of "+znode)
}

// refusesARequest takes a permission away at a znode, so the server refuses a request of a client's Lock. Lock must
// return that error, and leave nothing behind.
func (s *Story) refusesARequest(m *zktest.Member, request, znode string, permission int32) {
	s.permits(znode, zk.PermAll&^permission)
	call := m.Start()
	s.FailsIf(!s.Soon(call.Returned), "the server refuses %s's %s, and its Lock does not return; its last requests: %s",
		m.Name, request, call.LastAsked())
	s.permits(znode, zk.PermAll)
	s.FailsIf(call.Err() == nil, "the server refused %s's %s, and %[1]s got the lock", m.Name, request)
	s.FailsIf(!s.Soon(func() bool { return len(s.left(m)) == 0 }),
		"the server refused %s's %s, its Lock returned %q, and left %v", m.Name, request, call.Err(), s.left(m))
}

// Somebody deletes A's znode and the directory before A's list. Then A holds the lock, B waits, and C waits behind B.
// Somebody deletes B's znode, and A releases. If B queues again, it gives up; then it all happens once more, and B gets
// the lock.
var NotBeside = New(
	text("a waiter whose znode was deleted does not get the lock while another client holds it",
		"等待者的 znode 被删除以后，它不会在别人持锁时拿到锁"),
	text("it has no place in the queue, finds no predecessor, and takes that for its turn",
		"它已经不在队列里，却以为前面没有别的节点就轮到自己"),
	text("your own znode is not in the list: whose turn is it, and what does your Lock do now?",
		"列表里没有自己的 znode：轮到谁了？你的 Lock 接下来做什么？"),
	func(s *Story) {
		a, b, c := s.Join("A"), s.Join("B"), s.Join("C")
		if !s.subject.Znode {
			s.losesItsDirectory(a)
		}
		waiting, holder := s.queuesAgain(a, b, c)
		s.about(whichPlace, func() {
			s.GaveUp(b, s.givesUp(waiting, "B has queued again, because its znode was deleted"), context.Canceled)
		})
		holder.Release()

		waiting, holder = s.queuesAgain(a, b, c)
		holder.Release()
		s.letIn(waiting, "C released, and B has queued again")
		s.unlocksItsNewPlace(waiting, "somebody deleted B's znode")
		s.Holds("somebody deleted B's znode; B queued again, and got the lock after C")
	})

// queuesAgain deletes B's znode while A holds the lock and C waits behind B. A releases, and C gets the lock. If B's Lock
// returns, the story ends here. Else it returns B's turn, which waits again, and C's.
func (s *Story) queuesAgain(a, b, c *zktest.Member) (waiting, holder *zktest.Turn) {
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
	if overSession(b) && turns[0].Returned() && turns[0].Err() != nil {
		s.Fails("B's znode was deleted, B's session lives, and its Lock returned: %v; it has to queue up again", turns[0].Err())
	}
	if turns[0].Returned() {
		s.FailsIf(
			turns[0].Err() == nil,
			"somebody deleted B's znode, C got the lock, and B got it as well; the queue: %v",
			s.Names(s.dir),
		)
		s.Holds("somebody deleted B's znode; B's Lock returned %q", turns[0].Err())
	}
	s.mustWait(turns[0], turns[0].StillWaits(), "had lost its znode")
	return turns[0], turns[1]
}

// unlocksItsNewPlace checks the Unlock of a client that has queued again.
func (s *Story) unlocksItsNewPlace(held *zktest.Turn, why string) {
	err := held.Unlock()
	s.about(whichPlace, func() {
		s.FailsIf(err != nil || !s.Soon(func() bool { return len(s.left(held.Member)) == 0 }),
			"%s, %s queued again, and got the lock; then its Unlock returned %v, and has left %v",
			why, held.Name, err, s.left(held.Member))
	})
}

// losesItsDirectory deletes a client's znode and the directory before the client's list.
func (s *Story) losesItsDirectory(a *zktest.Member) {
	list := a.Tap.HoldRequest(wiretap.GetChildren, 1)
	call := a.Start()
	s.Await("A to be about to list, or to return", comesToAStop(call, list, 0))
	for _, znode := range append(s.left(a), s.dir) {
		_ = s.Observer().Delete(znode, -1) // a lock may make its directory later
	}
	list.Let()
	a.Tap.Restore() // removes a trap that was not sprung
	s.Soon(func() bool { return call.Returned() || len(s.left(a)) > 0 })
	s.FailsIf(call.Returned() && call.Err() == nil && len(s.left(a)) == 0,
		"somebody deleted A's znode and the directory, and then A got the lock without a znode")
	if call.Waits() == zktest.Returned && call.Err() == nil {
		call.Release()
	}
	call.GiveUp()
	s.Soon(func() bool { return call.Returned() && len(s.left(a)) == 0 })
}

// A holds the lock, B waits, and B's session expires. If B queues again, it gets the lock and releases it. C does the same,
// and gives up when it has queued again.
var LostWhileWaiting = New(
	text("a waiter whose session expires returns an error or queues again", "会话过期的等待者会报错或重新排队"),
	text("its znode and its watch no longer exist, and it would wait forever", "它的 znode 和监听器都没有了，它会永远等下去"),
	text("the session has ended: what wakes the waiter now, and what does its Lock return?",
		"会话已经结束：现在由什么唤醒等待者？它的 Lock 返回什么？"),
	func(s *Story) {
		a, b := s.Join("A"), s.Join("B")
		held := a.Acquire()
		waiting := s.queue(b)[0]
		s.Expire(b.Client)
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
		mark = b.Tap.Mark()
		s.mustWait(waiting, waiting.StillWaits(), "lost its session")
		held.Release()
		s.letIn(waiting, "B's session expired while it waited, B has another one, and A released")
		if s.subject.Znode {
			s.Holds("B's session expired while it waited; B continued in its new session, and got the lock")
		}
		var owners []int64 // B alone has a znode now, and its connection may have broken before it learned which
		for _, name := range b.Queue() {
			owner, _ := s.Owner(b.Path + "/" + name)
			owners = append(owners, owner)
		}
		if b.SessionID() != newSession { // on a busy machine, which is no mistake of the lock
			s.Fatalf("B's second session %#x has expired as well", newSession)
		}
		s.FailsIf(!slices.Equal(owners, []int64{newSession}),
			"B lost session %#x while it waited, has session %#x now, and holds the lock; the sessions of the queue: %#x",
			b.ID, newSession, owners)
		if breaks(b, mark) > 0 {
			s.Fatalf("B got the lock in its second session, and its connection broke once more")
		}
		s.unlocksItsNewPlace(waiting, "B's session expired while it waited")
		s.givesUpItsNewPlace(a, s.writerAs("C", Seat{}))
		s.Holds("B's session expired while it waited, and B got the lock in its new session")
	})

// givesUpItsNewPlace lets the session of a client expire while it waits behind A. It gives up when it has queued again.
func (s *Story) givesUpItsNewPlace(a, m *zktest.Member) {
	held := a.Acquire()
	waiting := s.queue(m)[0]
	s.Expire(m.Client)
	m.Tap.Restore()
	s.Soon(func() bool { return waiting.Returned() || len(s.left(m)) > 0 })
	if waiting.StillWaits() == zktest.Returned {
		s.saysSo(m, waiting.Err())
	}
	s.about(whichPlace, func() {
		s.GaveUp(m, s.givesUp(waiting, m.Name+" has queued again, because its session had expired"), context.Canceled)
	})
	held.Release()
}

// saysSo ends the story of a client whose session expired while it waited, and whose Lock has returned. If the lock is
// made from a connection, as in steps 1 to 4, its Lock may return any error. If it is made from a Session, it must queue
// up again.
func (s *Story) saysSo(m *zktest.Member, err error) {
	s.FailsIf(err == nil, "%[1]s's session expired while it waited, A holds the lock, and %[1]s got it as well", m.Name)
	s.FailsIf(
		overSession(m),
		"%[1]s's session expired while it waited, %[1]s has another one, and its Lock returned: %[2]v; it has to queue up again",
		m.Name, err,
	)
	left := s.left(m)
	s.FailsIf(len(left) > 0, "%s's session expired while it waited, its Lock returned an error, and left %v", m.Name, left)
	s.Holds("%s's session expired while it waited: its Lock returned %q, and nothing was left", m.Name, err)
}

// A holds the lock, and B calls TryLock. Then the lock is free, and B calls TryLock once more. The context
// of this call ends after the call has returned. Then A gets the lock between two requests of B's TryLock.
// At last clients try behind every short queue of readers and writers.
var Tries = New(
	text("TryLock does not wait, and leaves nothing behind", "尝试加锁不等别人，也不留残余"),
	text("a caller that must not wait would wait, or would leave a znode that blocks the queue",
		"不愿等待的调用者会一直等下去，或者留下一个已经没有人用的 znode，堵住队列"),
	text("whom would your try have to wait for? And the context that it was given ends: what ends with it, and what must not?",
		"这次尝试本来要等谁？传给它的 context 结束了：什么随之结束？什么不该结束？"),
	func(s *Story) {
		a, b := s.writerAs("A", Seat{}), s.writerAs("B", Seat{})
		if b.TryLock == nil {
			s.void("the lock has no TryLock")
		}
		held := a.Acquire()
		refused := s.tryRefused(b, lockCall{"TryLock", b.TryLock}, "A holds the lock")
		held.Release()
		s.outlivesItsCall(b, tries(b))
		s.triesAndGivesUp(a, b)
		s.entersAgain(b, b, "B holds the lock", tries(b))
		if b.Reader != nil {
			s.entersAgain(b.Reader, b, "B reads", []lockCall{{"TryRLock", b.Reader.TryLock}})
		}
		s.triesWhileAnotherComes(a, b)
		s.triesBehind(a, b)
		s.Holds("TryLock behind A returned %q and left nothing; "+
			"when the lock was free it got the lock, and kept it when its context ended", refused)
	})

// outlivesItsCall lets a client take a free lock by each of these calls. Then the context that the call was given ends.
// It governs the wait and nothing else, so the hold must not end.
func (s *Story) outlivesItsCall(m *zktest.Member, calls []lockCall) {
	for _, c := range calls {
		t := m.Call(c.lock)
		s.letIn(t, "nobody holds the lock, %s calls %s", m.Name, c.name)
		t.GiveUp()
		s.FailsIf(s.SoonAfter(fewAnswers, func() bool { return t.Context().Err() != nil }),
			"%s's %s got the lock, then the context that it was given ended, and the hold with it: %v",
			m.Name, c.name, context.Cause(t.Context()))
		t.Release()
	}
}

// tryRefused fails the story unless a try returns an error, and leaves nothing behind.
func (s *Story) tryRefused(b *zktest.Member, try lockCall, when string, args ...any) error {
	when = fmt.Sprintf(when, args...)
	mark := b.Tap.Mark()
	call := b.Call(try.lock)
	s.FailsIf(!s.Soon(call.Returned), "%s, and %s's %s does not return", when, b.Name, try.name)
	s.FailsIf(call.Err() == nil, "%s, and %s's %s got the lock as well", when, b.Name, try.name)
	setsAWatch := slices.ContainsFunc(b.Tap.Since(mark), func(f wiretap.Frame) bool { return f.Watch })
	s.FailsIf(setsAWatch, "%s, and %s's %s set a watch and waited for a while: %v", when, b.Name, try.name, b.Asked(mark))
	s.FailsIf(!s.Soon(func() bool { return len(s.left(b)) == 0 }),
		"%s, and %s's %s has left %v", when, b.Name, try.name, s.left(b))
	return call.Err()
}

// triesAndGivesUp lets B give up at each reply to its try: first behind A, and then when nobody holds the lock.
func (s *Story) triesAndGivesUp(a, b *zktest.Member) {
	for _, try := range tries(b) {
		held := a.Acquire()
		for _, caught := range s.givesUpAtEachReply(b, try, nil) {
			s.FailsIf(!s.Soon(caught.Returned), "A holds the lock, B has given up, and its %s does not return", try.name)
			s.FailsIf(caught.Err() == nil, "A holds the lock, and B's %s got the lock as well", try.name)
			s.GaveUp(b, caught.Err(), caught.Err())
		}
		s.unlocks(held)
		for _, caught := range s.givesUpAtEachReply(b, try, nil) {
			if err := caught.Err(); err != nil {
				s.GaveUp(b, err, err)
			} else {
				s.unlocksAfterItGaveUp(caught)
			}
		}
	}
}

// triesWhileAnotherComes lets A call Lock while the first request of B's try is on its way, then the second, and so on.
func (s *Story) triesWhileAnotherComes(a, b *zktest.Member) {
	for _, try := range tries(b) {
		for n := 1; n <= 3; n++ {
			mark := b.Tap.Mark()
			slow := b.Tap.HoldRequest(wiretap.Any, n)
			call := b.Call(try.lock)
			s.Await(fmt.Sprintf("request %d of B's %s, or its return", n, try.name), comesToAStop(call, slow, mark))
			other := a.Start()
			isFirst := other.Waits() == zktest.Returned
			slow.Let()
			s.FailsIf(!s.Soon(call.Returned),
				"A called Lock while B's request number %d was on its way, and B's %s waits for A; the queue: %v",
				n, try.name, s.Names(s.dir))
			s.FailsIf(isFirst && call.Err() == nil,
				"A got the lock while B's request number %d was on its way, and B's %s got the lock as well", n, try.name)
			if call.Err() == nil {
				s.unlocks(call)
			}
			s.letIn(other, "B's %s has returned", try.name)
			s.unlocks(other)
			b.Tap.Restore() // removes a trap that was not sprung
		}
	}
}

// triesBehind brings clients to a lock, in every short queue, and lets another client try. The try gets the lock
// if it would have to wait for none of them.
func (s *Story) triesBehind(a, b *zktest.Member) {
	queues := []string{"W", "WW"}
	if a.Reader != nil {
		queues = append(queues, "R", "RR", "RW", "RWR", "WR", "WRR")
	}
	m := []*zktest.Member{a, s.writerAs("C", Seat{}), s.writerAs("D", Seat{})}
	for _, queue := range queues {
		path := s.path + "-" + queue
		var line []*zktest.Turn
		for i := range queue {
			t := s.as(queue[i], s.subject.At(s.Zoo, m[i], path)).Start()
			if t.Waits() == zktest.Returned {
				s.FailsIf(t.Err() != nil, "the queue is %v, and another Lock returned: %v", s.Names(path), t.Err())
			}
			line = append(line, t)
		}
		for _, try := range tries(s.subject.At(s.Zoo, b, path)) {
			isRead := try.name == "TryRLock"
			if isRead && !strings.Contains(queue, "W") {
				call := b.Call(try.lock)
				s.letIn(call, "only readers hold the lock, and B calls TryRLock")
				s.unlocks(call)
				continue
			}
			s.tryRefused(b, try, "the lock has these clients, in the order of their arrival: %s", inWords(queue))
		}
		for _, t := range line {
			s.letIn(t, "those before it have released")
			s.unlocks(t)
		}
	}
}

// A holds the lock, and B calls TryLock. B's delete is lost on its way to the server.
var TryLost = New(
	text("TryLock leaves nothing behind when its delete is lost",
		"TryLock 放弃时，即使 delete 丢失，也不留下 znode"),
	text("the caller goes on without the lock, but its znode would become the first in the queue and block everyone",
		"调用者没有拿到锁就离开了，它的 znode 却会排到最前，把锁堵住"),
	text("TryLock has returned ErrLocked: what keeps trying until the znode is deleted?",
		"TryLock 已经返回 ErrLocked：由谁继续重试，直到 znode 确实删除？"),
	func(s *Story) {
		a, b := s.writerAs("A", Seat{}), s.writerAs("B", Seat{})
		if b.TryLock == nil {
			s.void("the lock has no TryLock")
		}
		var told string
		for _, try := range tries(b) {
			told = s.tryLost(a, b, try)
		}
		s.Holds("%s", told)
	})

// tryLost loses the delete of a try behind A.
func (s *Story) tryLost(a, b *zktest.Member, try lockCall) (told string) {
	held := a.Acquire()
	lost := b.Tap.LoseRequest(wiretap.Delete, 1)
	_, err := try.lock(s.Ctx)
	s.FailsIf(err == nil, "A holds the lock, and B's %s got the lock as well", try.name)
	s.FailsIf(
		!s.Soon(func() bool { return len(s.left(b)) == 0 }),
		"B's %s returned %q, its delete was lost, and it has left %v",
		try.name, err, s.left(b),
	)
	b.Tap.Restore() // a lock that looks before it creates has sent no delete that could be lost
	held.Release()
	b.Acquire().Release()
	if lost.IsSprung() {
		return fmt.Sprintf("B's %s returned %q, its delete was lost, and nothing was left", try.name, err)
	}
	return fmt.Sprintf("B's %s returned %q, and created no znode", try.name, err)
}
