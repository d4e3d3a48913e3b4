package property

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
)

// A holds the lock; nobody gets in beside it: not by arriving, not by losing
// its connection, not by having held the lock before, not by having looked before A
// came. Then all contend, and a
// witness outside the lock looks on: a znode that only one can create.
var OneHolder = property(
	text("one holder at a time", "同一时刻只有一个持有者"),
	text("two holders at one time write over one another", "两个持有者同时存在，会互相覆盖对方写的数据"),
	text("when does Lock return, and has it seen that every other client is behind it?",
		"Lock 什么时候返回？返回时，确认过其他客户端都排在自己后面吗？"),
	func(s *story) {
		a, b, c, d := s.join("A"), s.join("B"), s.join("C"), s.join("D")
		held := a.Acquire()
		waiting := s.queue(b, c)

		d.Tap.LoseReply(wiretap.GetChildren, 1) // only a lock that lists will lose it
		lost := d.Start()
		s.failsIf(lost.Waits() == zktest.Returned && lost.Err() == nil,
			"D lost its connection while A held the lock, and was let in beside it")
		d.Close()

		held.Release()
		first, second := s.oneOf(waiting[0], waiting[1])
		again := a.Start()
		s.mustWait(again, again.Waits(), "locked a second time")
		s.mustWait(second, second.StillWaits(), "went on waiting")
		first.Release()
		first, second = s.oneOf(again, second)
		first.Release()
		second.Release()

		e := s.join("E")
		late := e.Tap.HoldRequest(wiretap.Create, 1)
		slower := e.Start()
		s.Await(
			"E to be about to make its znode, or to wait", // its znode may be there already
			func() bool { return comesToAStop(slower, late, 0) },
		)
		held = a.Acquire()
		late.Let()
		s.mustWait(slower, slower.Waits(), "had found the lock free, was slower than A")
		held.Release()
		slower.Release()

		clients := []*zktest.Member{a, b, c, e}
		turns, breaches := s.contend(clients)
		if len(breaches) > 0 {
			s.fails("%s", <-breaches)
		}
		s.holds("%d turns by %d clients, and never two inside at a time", turns, len(clients))
	})

// contend lets members take turns, all at once. It tells how many turns they had,
// and whom the witness found inside together.
func (s *story) contend(members []*zktest.Member) (turns int, breaches chan error) {
	const rounds = 5
	breaches = make(chan error, rounds*len(members))
	var contending []*zktest.Turn
	var had atomic.Int64
	for _, m := range members {
		contending = append(contending, s.Go(m.Client, func(ctx context.Context) error {
			for range rounds {
				held, err := m.Lock(ctx)
				if err != nil {
					return err
				}
				if err := s.witness(m); err != nil {
					breaches <- err
				}
				if err := m.Unlock(held); err != nil {
					return err
				}
				had.Add(1)
			}
			return nil
		}))
	}
	for _, c := range contending {
		for !c.Returned() {
			before := had.Load()
			s.failsIf(!s.soon(func() bool { return had.Load() > before || c.Returned() }),
				"%d contended, had %d turns of %d, and then none of them went on; the queue: %v",
				len(members), before, rounds*len(members), s.Names(s.dir))
		}
		s.failsIf(c.Err() != nil, "%d contended, and one of them was told: %v", len(members), c.Err())
	}
	return rounds * len(members), breaches
}

// oneOf returns the two turns, first the one that is let in: not every lock is fair.
func (s *story) oneOf(a, b *zktest.Turn) (in, out *zktest.Turn) {
	s.Await(fmt.Sprintf("%s or %s to be let in", a.Name, b.Name), func() bool { return a.Returned() || b.Returned() })
	if b.Returned() {
		a, b = b, a
	}
	a.Acquired()
	return a, b
}

// witness goes through a room that holds one: a znode that does not exist yet.
func (s *story) witness(c *zktest.Member) error {
	room := s.Root + "/witness"
	if _, err := c.Create(room, []byte(c.Name), 0, zk.WorldACL(zk.PermAll)); err != nil {
		other, _, _ := s.Observer().Get(room)
		return fmt.Errorf("%s held the lock and found %s inside (%w)", c.Name, other, err)
	}
	return c.Delete(room, -1)
}

// A holds the lock and crashes. B must get it when A's session has expired.
var CrashFrees = property(
	text("a crashed holder's lock comes free", "持有者崩溃后锁会释放"),
	text("a process that dies inside the lock would lock everybody out for ever",
		"进程若在持锁时崩溃，其他人就永远进不来了"),
	text("who deletes the holder's znode when the holder cannot?", "持有者自己删不了 znode 时，由谁来删？"),
	func(s *story) {
		a, b := s.joinMortal("A"), s.join("B")
		a.Acquire()
		waiting := s.queue(b)[0]
		a.Crash()
		s.AwaitExpiry(a.Client)
		s.failsIf(waiting.StillWaits() != zktest.Returned,
			"the session of A is gone, its znode is not, and B waits: %v", s.left(a))
		waiting.Acquired()
		s.holds("A's session expired, and B was let in")
	})

// left lists what a client has put below the test's root and not taken out.
func (s *story) left(c *zktest.Member) []string {
	made := c.Tap.Done(wiretap.Create)
	return slices.DeleteFunc(slices.Clone(made), func(path string) bool {
		_, there := s.Owner(path)
		directory := slices.ContainsFunc(made, func(other string) bool { return strings.HasPrefix(other, path+"/") })
		return !there || directory
	})
}

// A holds the lock; B, C and D come in this order. At each release the line of
// the one whose turn it is stands still, so that everyone else has time to
// overtake.
var FirstCome = property(
	text("first come, first served", "先来先得"),
	text("a client with a slow line could wait for ever while others come and go",
		"网络慢的客户端可能一直等下去，别人却来了又走"),
	text("where is it written down who came first?", "谁先来的，记在哪里？"),
	func(s *story) {
		holder := s.join("A").Acquire()
		line := s.queue(s.join("B"), s.join("C"), s.join("D"))
		for i, next := range line {
			slow := next.Tap.HoldRequest(wiretap.Any, 1)
			if next.Waits() == zktest.Polling {
				zktest.AwaitChan(s.Zoo, fmt.Sprintf("%v's next poll", next.Name), slow.Sprung())
			}
			holder.Release()
			for _, later := range line[i+1:] {
				s.failsIf(later.StillWaits() == zktest.Returned,
					"%s came before %s, and %s was served first, while a request of %s was on its way",
					next.Name, later.Name, later.Name, next.Name)
			}
			slow.Let()
			next.Acquired()
			holder = next
		}
		s.holds("B, C and D came in this order and were served in it, each with a slow line when its turn came")
	})

// S, who holds nothing, calls Unlock while A holds the lock. Then A loses its
// session, B gets the lock, and A calls Unlock too late.
var NoStranger = property(
	text("a stranger cannot release it", "非持有者无法释放锁"),
	text("an Unlock too many, or too late, would let a second client in beside the holder",
		"多调一次或者晚调一次 Unlock，就会让第二个客户端与持有者同时持有锁"),
	text("how does Unlock know that what it deletes is its own?", "Unlock 怎么知道自己删的是自己的 znode？"),
	func(s *story) {
		a, b, stranger := s.joinMortal("A"), s.join("B"), s.join("the stranger")
		held := a.Acquire().Held()
		err := stranger.Unlock(s.Ctx)
		gone := stranger.Tap.Done(wiretap.Delete)
		s.failsIf(len(gone) > 0, "A held the lock, and the stranger's Unlock deleted %v", gone)
		s.failsIf(err == nil, "the stranger's Unlock said that it had released a lock that it did not hold")
		waiting := s.queue(b)[0]
		a.Crash()
		s.AwaitExpiry(a.Client)
		waiting.Acquired()
		a.Tap.Restore()
		s.Await(
			"A to have a new session",
			func() bool { return a.State() == zk.StateHasSession && a.SessionID() != a.ID },
		)
		late := a.Unlock(held)
		gone = a.Tap.Done(wiretap.Delete)
		s.failsIf(len(gone) > 0, "A had lost the lock to B, and its late Unlock deleted %v", gone)
		s.failsIf(late == nil, "A had lost the lock to B, and its late Unlock said that all was well")
		s.holds("the stranger was told %q, and the late holder %q", err, late)
	})

// A holds the lock. B is cancelled while it waits, D runs into its deadline,
// E is cancelled while its create is on its way. C must get the lock. At last nobody else is
// there, and F is cancelled while its create is on its way, and then while its list is.
var GivingUp = property(
	text("giving up leaves nothing behind", "放弃等待后不留残余"),
	text("everyone behind would wait for a client that is no longer there", "排在后面的人都在等一个已经不在的客户端"),
	text("the context has ended: what have you put into ZooKeeper by now, and who takes it out?",
		"context 已经结束：到这时你在 ZooKeeper 里放了什么？由谁清掉？"),
	func(s *story) {
		a, b, c, d, e := s.join("A"), s.join("B"), s.join("C"), s.join("D"), s.join("E")
		held := a.Acquire()
		waiting := s.queue(b, c)
		s.gaveUp(b, s.givesUp(waiting[0], "B waits behind A"), context.Canceled)

		overdue := d.Call(func(ctx context.Context) (context.Context, error) {
			ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			return d.Lock(ctx)
		})
		s.failsIf(
			!s.soon(overdue.Returned),
			"D waits behind A: its deadline has passed, and its Lock does not return; left by it: %v",
			s.left(d),
		)
		s.gaveUp(d, overdue.Err(), context.DeadlineExceeded)

		slow := e.Tap.HoldReply(wiretap.Create, 1)
		ctx, cancel := context.WithCancel(s.Ctx)
		caught := e.StartIn(ctx)
		zktest.AwaitChan(s.Zoo, "the server to carry out E's create", slow.Sprung())
		cancel()
		slow.Let()
		s.gaveUp(e, caught.Err(), context.Canceled)

		s.mustWait(waiting[1], waiting[1].StillWaits(), "went on waiting")
		held.Release()
		waiting[1].Release()

		f := s.join("F") // whose turn it is, just when it gives up
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
				s.gaveUp(f, caught.Err(), context.Canceled)
			}
		}
		s.holds("four gave up, each was told so, and left nothing; the next in line was served")
	})

// gaveUp fails the story unless the client was told why its Lock ended, and
// has left nothing behind.
func (s *story) gaveUp(c *zktest.Member, err, why error) {
	s.failsIf(!errors.Is(err, why), "%s gave up, and its Lock answered %v instead of %q", c.Name, err, why)
	for deadline := time.Now().Add(3 * time.Second); len(s.left(c)) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) { // a lock may clean up in the background
			s.fails("%s gave up, and left %v behind", c.Name, s.left(c))
		}
	}
}

// Another lock beside this one is held, and foreign znodes stand in the lock's
// directory. A must get the lock, and B after it.
var Unrelated = property(
	text("unrelated znodes are no obstacle", "无关节点不影响加锁"),
	text("another lock, or a stray znode in the directory, would block or break this one",
		"别的锁，或目录里一个不相干的 znode，就会挡住或弄坏这把锁"),
	text("which of the names in the list are really of this queue?", "列出的名字里，哪些真正属于这个队列？"),
	func(s *story) {
		s.joinAs("the neighbour", Seat{Path: s.path + "-too"}).Acquire()
		a, b := s.join("A"), s.join("B")
		first := a.Start() // makes the directory, where there is one
		s.failsIf(
			first.Waits() != zktest.Returned,
			"the neighbour holds another lock, and A waits: %v",
			s.Names(s.Root),
		)
		first.Release()
		names := []string{"notes", "lock-", "lock-x", "0000000000", "_c_short-lock-", "_c_", "-", "lock-0000000000-old"}
		for _, name := range names {
			_, err := s.Observer().Create(s.path+"/"+name, nil, 0, zk.WorldACL(zk.PermAll))
			if err != nil && !errors.Is(err, zk.ErrNoNode) { // a lock without a directory has no such guests
				s.Fatalf("create %s: %v", name, err)
			}
		}
		attempt := a.Start()
		s.failsIf(
			attempt.Waits() != zktest.Returned,
			"nobody holds the lock, and A waits; beside it: %v",
			s.Names(s.Root),
		)
		s.failsIf(attempt.Err() != nil, "with foreign znodes in the directory Lock answered: %v", attempt.Err())
		waiting := s.queue(b)[0]
		attempt.Release()
		waiting.Acquired()
		s.holds("with a held neighbour and %d foreign znodes, A and B were served", len(names))
	})

// A holds the lock, B waits, C waits behind B. B crashes, and C must wait on.
var WaiterCrash = property(
	text("a waiter's crash lets nobody in", "等待者崩溃不会误放行"),
	text("whoever waited behind it would take its death for a release", "排在它后面的人会把它的死亡当成释放"),
	text("you were woken: does that mean that it is your turn?", "你被唤醒了：这就说明轮到你了吗？"),
	func(s *story) {
		a, b, c := s.join("A"), s.joinMortal("B"), s.join("C")
		held := a.Acquire()
		waiting := s.queue(b, c)[1]
		if len(s.left(b)) == 0 {
			s.void("a waiter has no znode that could go")
		}
		b.Crash()
		s.AwaitExpiry(b.Client)
		s.mustWait(waiting, waiting.StillWaits(), "saw the waiter B die")
		held.Release()
		waiting.Acquired()
		s.holds("B died in the queue; C waited on, and was served after A's release")
	})

// crowd brings a holder and n waiters who have settled down. The waiters'
// sessions have the given time-out.
func (s *story) crowd(n int, timeout time.Duration) (holder *zktest.Turn, waiting []*zktest.Turn) {
	holder = s.join("the holder").Acquire()
	for i := range n {
		waiting = append(waiting, s.queue(s.joinAs(fmt.Sprintf("waiter %d", i+1), Seat{Timeout: timeout}))...)
	}
	for _, w := range waiting {
		w.StillWaits() // the arrivals behind it have had their effect
	}
	return holder, waiting
}

// Five clients wait, for as long as their sessions send two pings each, or until it is
// plain that they ask.
var SilentWait = property(
	text("waiting sends no request", "等待时不发请求"),
	text("the server works for clients that have nothing to do", "服务器在为无事可做的客户端忙碌"),
	text("who could tell the waiter, so that it need not ask?", "谁可以通知等待者，让它不必去问？"),
	func(s *story) { s.waitsInSilence(5, 2) })

// Two clients wait for eight pings, which is six seconds or more. It finds who watches, and
// asks now and then besides. The check of an exercise asks it at its end: a learner need not
// wait for it each time.
var SilentForLong = property(
	text("a long wait sends no request", "长时间等待时不发请求"),
	SilentWait.Why,
	text("the watch tells of each change, or that the session has ended: what is left to ask for?",
		"有变化，监听会告诉你；会话结束，它也会告诉你：还有什么要问的？"),
	func(s *story) { s.waitsInSilence(2, 8) })

// waitsInSilence is told of some clients that wait, for as long as their sessions send so
// many pings each.
func (s *story) waitsInSilence(clients, pings int) {
	const plainly = 100                                    // requests
	_, waiters := s.crowd(clients, 2*zktest.MortalTimeout) // short, for the pings are the clock
	began, count := time.Now(), s.Count(waiters...)
	marks, enough := map[*zktest.Turn]int{}, map[*zktest.Turn]int{}
	for _, w := range waiters {
		marks[w], enough[w] = w.Tap.Mark(), len(w.Tap.Done(wiretap.Ping))+pings
	}
	s.Await(fmt.Sprintf("each waiter's session to send %d pings", pings), func() bool {
		asked, pinged := 0, 0
		for _, w := range waiters {
			asked += len(w.Asked(marks[w]))
			if len(w.Tap.Done(wiretap.Ping)) >= enough[w] {
				pinged++
			}
		}
		return asked > plainly || pinged == len(waiters)
	})
	sent := count()
	s.failsIf(
		sent.All() > 0,
		"%d waiters sent %d requests in %v: %v",
		clients,
		sent.All(),
		time.Since(began).Round(100*time.Millisecond),
		sent.Requests,
	)
	s.holds("%d waiters sent 0 requests between %d pings", clients, pings)
}

// Five wait, the holder releases: how many are notified?
var WakesOne = property(
	text("a release wakes one", "一次释放只唤醒一个"),
	text("all waiters wake, look, and go back to sleep, but for one: the herd",
		"所有等待者都醒来查看，除一个外又都睡下：这就是羊群效应"),
	text("which single change must happen before it can be your turn?", "哪一个变化发生之后才可能轮到你？"),
	func(s *story) {
		holder, waiters := s.crowd(5, zktest.SessionTimeout)
		s.needsWatches(waiters)
		count := s.Count(waiters...)
		holder.Release()
		s.Await("a waiter to be let in", func() bool { return slices.ContainsFunc(waiters, (*zktest.Turn).Returned) })
		n := count().Notifications
		s.failsIf(n != 1, "one release sent %d notifications to %d waiters", n, len(waiters))
		s.holds("one release sent 1 notification to %d waiters", len(waiters))
	})

// Five wait, a sixth arrives: how many are notified?
var ArrivalWakesNobody = property(
	text("an arrival wakes nobody", "新来者不唤醒任何人"),
	text("a newcomer at the end of the line disturbs all who stand in it", "队尾来了一个人，却惊动了整个队列"),
	text("does it matter to you who stands behind you?", "谁排在你后面，和你有关系吗？"),
	func(s *story) {
		_, waiters := s.crowd(5, zktest.SessionTimeout)
		s.needsWatches(waiters)
		count := s.Count(waiters...)
		s.queue(s.join("the newcomer"))
		n := count().Notifications
		s.failsIf(n != 0, "one arrival sent %d notifications to %d waiters", n, len(waiters))
		s.holds("one arrival sent 0 notifications to %d waiters", len(waiters))
	})

// needsWatches ends the story if the waiters poll.
func (s *story) needsWatches(waiters []*zktest.Turn) {
	if waiters[0].Waits() == zktest.Polling {
		s.void("nobody is ever woken: the waiters poll")
	}
}

// A holds, B waits. C arrives, and its third request, which is where a watch on
// one znode is set, is held up until B, whom C would watch, has left with its
// session. Then A releases and C is served.
var NoWatchLeft = property(
	text("no watch is left behind", "不遗留监听"),
	text("watches that can never fire fill the server's memory", "永远不会触发的监听会占满服务器的内存"),
	text("what does the read that sets the watch do when its znode is gone?",
		"设置监听的那次读，在 znode 已经不在时会怎样？"),
	func(s *story) {
		a, b, c := s.join("A"), s.join("B"), s.join("C")
		held := a.Acquire()
		s.queue(b)
		slow := c.Tap.HoldRequest(wiretap.Any, 3)
		last := c.Start()
		s.Await("C to be held up, or to wait", func() bool {
			silently, _ := c.Tap.Waiting(0)
			return silently || slow.IsSprung()
		})
		b.Close()
		slow.Let()
		s.mustWait(last, last.StillWaits(), "watched a znode that was gone")
		held.Release()
		last.Release()
		for _, c := range []*zktest.Member{a, c} {
			s.Barrier(c.Client)
			left := c.Tap.Watched()
			s.failsIf(len(left) > 0, "all is over, and %s still has a watch at the server, on %v", c.Name, left)
		}
		s.holds("B left while C was about to watch it; all is over, and 0 watches are left")
	})

// The server carries out A's create, and the reply is lost with the
// connection. A must get the lock, if need be by calling Lock once more as any
// caller would. Then the same, and the connection is lost again at the first
// list that A asks for.
var LostCreateReply = property(
	text("a lost reply to create does no harm", "create 的应答丢失无害"),
	text("the znode that nobody knows of stands in the line, and its own maker waits behind it",
		"一个谁也不知道的 znode 排在队里，创建它的人自己等在它后面"),
	text("the create has failed, or has it? How could you recognise your own znode?",
		"create 失败了吗？怎样认出自己的 znode？"),
	func(s *story) {
		a, b := s.join("A"), s.join("B")
		b.Acquire().Release() // so that the directory is there
		for _, again := range []string{"", ", and the reply to the next list as well"} {
			if again != "" {
				a.Tap.LoseReply(wiretap.GetChildren, 1)
			}
			lost := a.Tap.LoseReply(wiretap.Create, 1)
			attempt := a.Start()
			zktest.AwaitChan(s.Zoo, "the reply to A's create to be lost", lost.Sprung())
			if attempt.Waits() == zktest.Returned && attempt.Err() != nil {
				attempt = a.Start()
			}
			how := attempt.Waits()
			if how == zktest.Polling { // or it has asked again for what was lost
				how = attempt.StillWaits()
			}
			s.failsIf(
				how != zktest.Returned,
				"the reply to A's create was lost%s; now nobody holds the lock, and A waits behind a znode of its own: %v",
				again,
				s.left(a),
			)
			attempt.Acquired()
			left := s.left(a)
			s.failsIf(
				len(left) != 1,
				"the reply to A's create was lost%s; A holds the lock with %d znodes: %v",
				again,
				len(left),
				left,
			)
			attempt.Release()
			b.Acquire().Release()
		}
		s.holds("A's create was answered to nobody, twice, and A held the lock with one znode each time")
	})

// The server carries out A's delete, and the reply is lost with the
// connection. Then a delete is lost before the server has heard of it. Each
// time one call to Unlock must be enough: it says that the lock is released,
// and so it is, while A's session lives on.
var LostDeleteReply = property(
	text("a lost reply to delete does no harm", "delete 的应答丢失无害"),
	text("the holder does not know whether it has released the lock, or the lock is never released",
		"持有者不知道锁有没有释放，或者锁永远没有释放"),
	text("the delete has failed, or has it? Who goes on until it is sure?", "delete 失败了吗？由谁一直做到确定为止？"),
	func(s *story) {
		a, b := s.join("A"), s.join("B")
		for _, lose := range []func(wiretap.Op, int) *wiretap.Trap{a.Tap.LoseReply, a.Tap.LoseRequest} {
			held := a.Acquire().Held()
			lost := lose(wiretap.Delete, 1)
			err := a.Unlock(held)
			zktest.AwaitChan(s.Zoo, "A's delete to be lost", lost.Sprung())
			if err != nil {
				s.fails(
					"A's delete was carried out and the reply lost: Unlock said %q, left at the server: %v, and a second Unlock said: %v",
					err,
					s.left(a),
					a.Unlock(held),
				)
			}
			b.Acquire().Release()
		}
		s.failsIf(a.ID != a.SessionID(), "A got rid of the lock only with its session")
		s.holds("a delete without reply and a delete that was never heard: Unlock saw to both")
	})

// A holds the lock and locks again, and releases twice.
var LocksAgain = property(
	text("the holder may lock again", "持有者可以再次加锁"),
	text("a function that locks, called from one that has locked, waits for itself",
		"持锁的函数调用了另一个要加锁的函数，结果自己等自己"),
	text("how can Lock tell that the caller is the holder?", "Lock 怎样看出调用者就是持有者？"),
	func(s *story) {
		a, b := s.join("A"), s.join("B")
		first := a.Acquire()
		second := first.StartIn(first.Held())
		s.failsIf(second.Waits() != zktest.Returned, "A holds the lock and waits for it: %v", s.left(a))
		s.failsIf(second.Err() != nil, "A holds the lock, and its second Lock answered: %v", second.Err())
		if a.Token != nil { // another lock inside is no re-entry
			other := s.joinAs("C", Seat{Path: s.path + "-other"})
			inside := other.StartIn(first.Held())
			inside.Acquired()
			names := other.Queue()
			s.failsIf(
				len(names) != 1,
				"inside the hold of one lock another one was locked, and that one's queue is %v",
				names,
			)
			inside.Release()
		}
		waiting := s.queue(b)[0]
		second.Release()
		s.mustWait(waiting, waiting.StillWaits(), "saw A release once of two times")
		first.Release()
		waiting.Acquired()
		s.holds("A locked twice with one znode, and B was let in after the second release")
	})

// A holds the lock and is cut off. By the time that B is let in, A must know.
var ToldOfLoss = property(
	text("the holder is told when the lock is lost", "锁丢失时会通知持有者"),
	text("a holder whose session is gone goes on writing beside the next one",
		"会话已经失效的持有者还在写，而下一个持有者也在写"),
	text("what does the client know, and when, while it cannot reach the server?",
		"客户端连不上服务器时，它知道什么？什么时候知道？"),
	func(s *story) {
		a, b := s.joinMortal("A"), s.join("B")
		earlier := a.Acquire()
		earlier.Release()
		held := a.Acquire().Held()
		waiting := s.queue(b)[0]
		a.Crash()
		if a.Token == nil {
			s.AwaitExpiry(a.Client)
			s.fails("session %#x of A has expired, and nothing can tell A, which is still inside", a.ID)
		}
		waiting.Acquired()
		s.failsIf(held.Err() == nil, "session %#x of A has expired and B holds the lock: A has not been told", a.ID)
		s.failsIf(
			earlier.Held().Err() == nil,
			"A was told of its loss, but the context of an earlier hold goes on after Unlock",
		)
		s.holds("A was cut off, and knew it before B was let in")
	})

// A and B take turns; between two turns the directory is deleted and so made
// again, which starts the sequence numbers over.
var Fenced = property(
	text("each tenure's token is greater than the last", "每个持锁期的令牌都比上一个大"),
	text("a store cannot tell the late write of an earlier holder from a good one",
		"存储分不清哪些是前一个持有者迟到的写操作、哪些是正常的写操作"),
	text("which number at the server only ever grows?", "服务器上哪个数字只增不减？"),
	func(s *story) {
		a, b := s.join("A"), s.join("B")
		s.failsIf(a.Token == nil, "the lock hands out no number that a store could check")
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
			tokens = append(tokens, token(turn))
			maps.DeleteFunc(units, func(_ string, unit time.Duration) bool {
				n, from, to := token(turn), begin.UnixNano()/int64(unit), time.Now().UnixNano()/int64(unit)
				return n < from || n > to
			})
			turn.Release()
			if i == 2 {
				s.deletes(s.path)
			}
		}
		for i := 1; i < len(tokens); i++ {
			s.failsIf(tokens[i] <= tokens[i-1], "turn %d got token %d after token %d", i+1, tokens[i], tokens[i-1])
		}
		for unit := range units {
			s.fails(
				"each token was the time of day, in %s, by the clock of this machine: another's may go wrong, or back; tokens: %v",
				unit,
				tokens,
			)
		}
		s.holds("%d turns got the tokens %v, over a directory that was made again", len(tokens), tokens)
	})

func token(t *zktest.Turn) int64 {
	n, _ := t.Token(t.Held())
	return n
}

// A holds for two of its session's time-outs, while B waits. Then A releases, and
// B holds for one more. If the machine itself stood still meanwhile, that was no
// healthy line, and the story is told again, with others.
var LongHold = property(
	text("a long hold and a long wait come to a good end", "长时间持锁或等待都能正常结束"),
	text("under long work the hold is lost, or the next in line is never served",
		"工作时间一长，锁就丢了，或者下一个永远等不到"),
	text("two session time-outs have gone by: what has made the lease longer, for the holder and for the one who waits?",
		"已经过去了两个会话超时：持有者和等待者的租约各是靠什么延长的？"),
	func(s *story) {
		var l longHold
		var wrong string
		for try := range 3 {
			seat := Seat{Timeout: zktest.MortalTimeout, Path: fmt.Sprintf("%s-%d", s.path, try)}
			a, b := s.joinAs("A", seat), s.joinAs("B", seat)
			held, waiting := a.Acquire(), s.queue(b)[0]
			wrong = s.apart(func(part *story) {
				l = longHold{story: part, last: time.Now()}
				l.tell(held, waiting)
			})
			a.Close()
			b.Close()
			if wrong == ("") {
				s.holds(
					"A held for two session time-outs and sent %d requests; B waited for it with %d, and held for one more with %d",
					l.sent[0],
					l.sent[1],
					l.sent[2],
				)
			}
			s.failsIf(l.still < zktest.MortalTimeout/5, "%s", wrong)
		}
		s.Fatalf("%s; but nothing at all went on for %v: the machine is too busy", wrong, l.still)
	})

// longHold is one telling of that story.
type longHold struct {
	*story
	sent        []int         // requests: by A, by B as a waiter, by B as a holder
	last, asked time.Time     // when the line was looked at, and when with a write
	still       time.Duration // for which nothing went on, at the longest
}

func (l *longHold) tell(held, waiting *zktest.Turn) {
	polls := waiting.Waits() == zktest.Polling // as it is made to
	mark := waiting.Tap.Mark()
	l.keeps(held, 2, waiting.Returned)
	l.mayHaveSent(waiting, mark, 2, polls)

	mark = waiting.Tap.Mark()
	l.goBy(1, waiting.Returned)
	l.failsIf(!waiting.Returned(),
		"%s's turn came after two session time-outs; one more later it was still not in, and had sent %d requests",
		waiting.Name, wiretap.Count(waiting.Tap.Since(mark)).All())
	l.failsIf(
		waiting.Err() != nil,
		"%s's turn came after two session time-outs, and its Lock answered: %v",
		waiting.Name,
		waiting.Err(),
	)
	l.keeps(waiting, 1, func() bool { return false })
}

// keeps is told of a holder that releases after some session time-outs.
func (l *longHold) keeps(holder *zktest.Turn, timeouts int, otherIsIn func() bool) {
	mark, lost := holder.Tap.Mark(), holder.Held().Err
	passed := l.goBy(timeouts, func() bool { return lost() != nil || otherIsIn() })
	l.failsIf(
		lost() != nil,
		"the line was healthy, and %s was told of a loss after %.1f session time-outs",
		holder.Name,
		passed,
	)
	l.failsIf(
		otherIsIn(),
		"the line was healthy, and after %.1f session time-outs another was let in beside %s",
		passed,
		holder.Name,
	)
	l.mayHaveSent(holder, mark, timeouts, false)
	if err := holder.Unlock(holder.Held()); err != nil {
		l.fails(
			"the line was healthy, and after %d session time-outs %s's Unlock answered: %v",
			timeouts,
			holder.Name,
			err,
		)
	}
}

// goBy lets some session time-outs go by, or fewer if something has happened before.
// Meanwhile it finds out whether this process and the server are at
// work: now and then it makes a write, as those that keep a lease.
func (l *longHold) goBy(timeouts int, happened func() bool) (passed float64) {
	begin := time.Now()
	l.Await("session time-outs to go by", func() bool { // not a wait for a state: the time is the story
		if time.Since(l.asked) > 20*time.Millisecond {
			_ = l.Observer().Delete(l.Root+"/nobody", -1)
			l.asked = time.Now()
		}
		l.still, l.last = max(l.still, time.Since(l.last)), time.Now()
		passed = time.Since(begin).Seconds() / zktest.MortalTimeout.Seconds()
		return happened() || passed > float64(timeouts)
	})
	return passed
}

// mayHaveSent counts what a client has sent in some session time-outs, and says so
// if it spins.
func (l *longHold) mayHaveSent(c *zktest.Turn, mark, timeouts int, polls bool) {
	const most = 50 // in a time-out
	n := wiretap.Count(c.Tap.Since(mark)).All()
	l.sent = append(l.sent, n)
	l.failsIf(n > timeouts*most && !polls, "%s sent %d requests in %d session time-outs", c.Name, n, timeouts)
	if atOnce := askedAtOnce(c.Tap.Since(mark)); polls {
		l.failsIf(
			atOnce > n/4,
			"%s sent %d requests in %d session time-outs, %d of them as soon as the one before was answered: it does not rest between two",
			c.Name,
			n,
			timeouts,
			atOnce,
		)
	}
}

// askedAtOnce counts the requests that came no later than a millisecond after an answer.
func askedAtOnce(frames []wiretap.Frame) (n int) {
	var answered time.Time
	for _, f := range frames {
		if f.Op == wiretap.Ping {
			continue
		}
		if f.Kind == wiretap.Reply {
			answered = f.At
		}
		if f.Kind == wiretap.Request && f.At.Sub(answered) <= time.Millisecond {
			n++
		}
	}
	return n
}

// Two readers come, then a writer, then a third reader. The two share; the
// writer waits for both; the third waits for the writer.
var Shared = property(
	text("readers share, writers do not, nobody starves", "读者共享，写者独占，无人饿死"),
	text("readers, who do each other no harm, wait for one another", "读者之间互不妨碍，却在互相等待"),
	text("whom must a reader wait for, and whom a writer?", "读者必须等谁？写者必须等谁？"),
	func(s *story) {
		r1, r2, w, r3 := s.join("reader 1"), s.join("reader 2"), s.join("the writer"), s.join("reader 3")
		read := func(m *zktest.Member) *zktest.Turn {
			if m.Reader == nil {
				return m.Start()
			}
			return m.Reader.Start()
		}
		first := read(r1)
		first.Acquired()
		second := read(r2)
		s.failsIf(second.Waits() != zktest.Returned, "reader 2 waits for reader 1: %v", s.Names(s.path))
		second.Acquired()
		s.failsIf(r1.Reader == nil, "reader 2 was let in beside reader 1 by a lock that knows no readers")
		writing := s.queue(w)[0]
		third := read(r3)
		s.mustWait(third, third.Waits(), "overtook a waiting writer")
		fourth := read(s.join("reader 4"))
		s.mustWait(fourth, fourth.Waits(), "overtook a waiting writer")
		for _, r := range []*zktest.Turn{first, second} {
			s.mustWait(writing, writing.StillWaits(), "wrote while somebody read")
			r.Release()
		}
		writing.Acquired()
		s.mustWait(third, third.StillWaits(), "read while somebody wrote")
		writing.Release()
		s.letIn(third, "the writer has gone")
		s.letIn(fourth, "the writer has gone, and reader 3 is inside")
		s.holds("two readers shared, the writer waited for both, two late readers for the writer")
	})

// A reads, and asks to write inside its read hold. It must be refused at once,
// and go on reading. Then B writes, reads inside, and writes inside that, which is no upgrade.
var Upgrade = property(
	text("write inside a read hold is refused", "持有读锁时拒绝加写锁"),
	text("two readers who ask to write would wait for each other", "两个读者都要求写锁，就会互相等待"),
	text("two readers are inside, and both ask to write: whom does each wait for?",
		"两个读者都持有读锁，都要求写锁：各自在等谁？"),
	func(s *story) {
		a, b := s.join("A"), s.join("B")
		if a.Reader == nil {
			s.void("there is no read hold")
		}
		reads := a.Reader.Acquire()
		upgrade := a.StartIn(reads.Held())
		s.failsIf(
			upgrade.Waits() != zktest.Returned,
			"A reads, asks to write, and waits for itself: %v",
			s.Names(s.path),
		)
		refusal := upgrade.Err()
		s.failsIf(refusal == nil, "A reads, asks to write, and is let in: so would be a second reader beside it")
		waiting := s.queue(b)[0]
		if err := reads.Unlock(reads.Held()); err != nil {
			s.fails("A was refused (%v), and its RUnlock answered: %v", refusal, err)
		}
		waiting.Acquired()
		inside := b.Reader.StartIn(waiting.Held()) // a writer may do all that it likes
		inside.Acquired()
		again := b.StartIn(inside.Held())
		s.failsIf(
			!s.soon(again.Returned),
			"B writes, reads inside, writes inside that, and waits for itself: %v",
			s.Names(s.path),
		)
		s.failsIf(
			again.Err() != nil,
			"B writes, reads inside, asks to write inside that, and its Lock answered: %v",
			again.Err(),
		)
		s.holds(
			"A read, asked to write, and was told %q; a writer waited until it had stopped reading, and wrote, read and wrote",
			refusal,
		)
	})

// A reads, and calls Unlock. Then B writes, reads inside, and calls RUnlock twice.
// What was not locked that way must not be released.
var ByKind = property(
	text("each release ends its own kind of hold", "每次释放只结束自己那一类持锁"),
	text("an Unlock too many in a reader's code would end somebody else's read, and let a writer in",
		"读者代码里多调一次 Unlock，就会释放别人的读锁，让一个写者拿到锁"),
	text("how many entries has the hold by RLock, and how many by Lock?",
		"这次持锁，经 RLock 进入了几次？经 Lock 进入了几次？"),
	func(s *story) {
		a, b := s.join("A"), s.join("B")
		if a.Reader == nil {
			s.void("there is no read hold")
		}
		reads := a.Reader.Acquire()
		writes := s.queue(b)[0]
		s.failsIf(a.Unlock(reads.Held()) == nil,
			"A holds by RLock, and its Unlock is accepted and ends the hold; left in the queue: %v", s.Names(s.path))
		s.mustWait(writes, writes.StillWaits(), "saw A's Unlock refused")
		if err := reads.Unlock(reads.Held()); err != nil {
			s.fails("A reads, its Unlock was refused, and its RUnlock answered: %v", err)
		}
		inside := b.Reader.StartIn(writes.Held())
		inside.Acquired()
		again := s.queue(a)[0]
		if err := inside.Unlock(inside.Held()); err != nil {
			s.fails("B writes and reads inside, and its RUnlock answered: %v", err)
		}
		s.failsIf(inside.Unlock(inside.Held()) == nil,
			"B writes and reads inside once, and RUnlock ends both; left in the queue: %v", s.Names(s.path))
		s.mustWait(again, again.StillWaits(), "saw B's RUnlock refused")
		inside = b.Reader.StartIn(writes.Held())
		inside.Acquired()
		writes.Release() // and the read inside goes on
		s.mustWait(again, again.StillWaits(), "saw B's Unlock, whose read inside goes on,")
		s.failsIf(
			inside.Held().Err() != nil,
			"B writes, reads inside, and has called Unlock: its read %s",
			cause(inside.Held()),
		)
		inside.Release()
		s.letIn(again, "B has called RUnlock and Unlock as often as RLock and Lock")
		s.holds(
			"A's Unlock of a read hold and B's second RUnlock of one were refused, and ended nothing; B's last release let A in",
		)
	})
