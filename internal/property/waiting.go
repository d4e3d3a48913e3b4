package property

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// Five clients wait until each session has sent two pings, or until it is clear that they poll.
var SilentWait = New(
	text("waiting sends no request", "等待时不发请求"),
	text("the server works for clients that only wait", "客户端只是在等，服务器却在为它们忙碌"),
	text("who could notify the waiter, so that it need not poll? And how many notifications does one watch send?",
		"谁能通知等待者，让它不必轮询？一个监听器会通知几次？"),
	func(s *Story) {
		const clients, pings = 5, 2
		const plainly = 20                                     // more requests show that the clients poll
		_, waiters := s.crowd(clients, 2*zktest.MortalTimeout) // short, because the pings are the clock
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
		s.FailsIf(
			sent.All() > 0,
			"%d waiters sent %d requests in %v: %v",
			clients,
			sent.All(),
			time.Since(began).Round(100*time.Millisecond),
			sent.Requests,
		)
		s.Holds("%d waiters sent 0 requests between %d pings", clients, pings)
	})

// Five clients wait, and the holder releases. The story counts the notifications that they get. If the lock has
// readers, it also counts those in short queues of readers and writers.
var WakesOne = New(
	text("a release wakes one", "一次释放只唤醒一个"),
	text("every waiter wakes up and lists the queue, and all but one sleep again: the herd effect",
		"所有等待者都醒来检查，只有一个拿到锁，其余的又继续睡眠：这就是羊群效应"),
	text("which single change must happen before it can be your turn?", "哪一个变化发生之后，才可能轮到你？"),
	func(s *Story) {
		holder, waiters := s.crowd(5, zktest.SessionTimeout)
		s.needsWatches(waiters)
		count := s.Count(waiters...)
		holder.Release()
		s.firstIn(waiters)
		n := count().Notifications
		s.FailsIf(n != 1, "one release sent %d notifications to %d waiters", n, len(waiters))
		if s.subject.reads == nil && holder.Reader != nil {
			for _, queue := range []string{"WWRRR", "RRRWW", "WRRW", "RWRW"} {
				s.wakesEachOnce(queue, s.members)
			}
		}
		s.Holds("one release sent 1 notification to %d waiters", len(waiters))
	})

// Five clients wait. Two of them give up, each with a waiter behind it. Then the holder releases,
// and the story counts the notifications. The next holder's first waiter gives up as well, and the story
// counts what that holder's release sends to it, and to the one that still waits.
var WakesOneLater = New(
	text("when a waiter has left, a release still wakes one", "有等待者离开后，一次释放仍只唤醒一个"),
	text("each waiter that gives up makes the herd larger again", "每有一个等待者放弃，被一起唤醒的就又多一个"),
	text("your predecessor's znode was deleted, and it is not your turn: which znode do you watch now?",
		"前面的 znode 没有了，却还没有轮到你：现在该监听哪一个？"),
	func(s *Story) {
		holder, waiters := s.crowd(5, zktest.SessionTimeout)
		s.needsWatches(waiters)
		for _, leaves := range []*zktest.Turn{waiters[1], waiters[3]} {
			_ = s.givesUp(leaves, "it waits in the queue")
		}
		waiters = []*zktest.Turn{waiters[0], waiters[2], waiters[4]}
		for _, w := range waiters {
			s.mustWait(w, w.StillWaits(), "saw the one before it give up")
		}
		count := s.Count(waiters...)
		holder.Release()
		next := s.firstIn(waiters)
		n := count().Notifications
		s.FailsIf(n != 1, "two of five waiters gave up; then one release sent %d notifications to the other three", n)
		if next != waiters[0] {
			s.Holds("two of five waiters gave up; then one release sent 1 notification to the other three")
			return
		}
		told := s.releasesAfterOneGaveUp(next, waiters[1], waiters[2])
		s.Holds("two of five waiters gave up; then one release sent 1 notification to the other three; "+
			"a third one gave up, and the next release sent %d to it", told)
	})

// releasesAfterOneGaveUp lets the waiter directly behind the holder give up. It returns how many notifications the
// holder's release sends to it: its watch cannot be taken back. The last waiter may get one.
func (s *Story) releasesAfterOneGaveUp(holder, quitter, last *zktest.Turn) (told int) {
	_ = s.givesUp(quitter, "it waits directly behind the holder")
	if len(s.left(quitter.Member)) > 0 {
		return 0 // GivingUp says so
	}
	s.mustWait(last, last.StillWaits(), "saw the one before it give up")
	toLast, toQuitter := s.Count(last), s.CountClients(quitter.Client)
	holder.Release()
	s.letIn(last, "the holder has released")
	s.Barrier(quitter.Client)
	n, told := toLast().Notifications, toQuitter().Notifications
	s.FailsIf(n != 1, "a waiter gave up directly behind the holder; then one release sent %d notifications to the last", n)
	s.FailsIf(told > 1, "a waiter gave up directly behind the holder; then one release sent it %d notifications", told)
	return told
}

// wakesEachOnce brings readers and writers to a lock, and lets them release in the order in which they came. Each that
// had to wait is notified once: when nobody is left before it whom it must wait for.
func (s *Story) wakesEachOnce(queue string, m []*zktest.Member) {
	path := s.path + "-" + queue
	var line, waiting []*zktest.Turn
	for i := range queue {
		t := s.as(queue[i], s.subject.At(s.Zoo, m[i], path)).Start()
		if t.Waits() != zktest.Returned {
			waiting = append(waiting, t)
		}
		line = append(line, t)
	}
	count := s.Count(waiting...)
	for i, t := range line {
		s.letIn(t, "those before it have released")
		for _, later := range line[i+1:] {
			later.StillWaits() // or it shares the lock
		}
		s.unlocks(t)
	}
	n := count().Notifications
	s.FailsIf(n != len(waiting), "these had the lock one after the other: %s; %d of them had to wait, and were notified %d times",
		inWords(queue), len(waiting), n)
}

// firstIn waits until one of the calls has returned, and returns it.
func (s *Story) firstIn(waiters []*zktest.Turn) (in *zktest.Turn) {
	var at int
	isIn := s.Soon(func() bool {
		at = slices.IndexFunc(waiters, (*zktest.Turn).Returned)
		return at >= 0
	})
	s.FailsIf(!isIn, "the holder has released, and none of %d waiters gets the lock%s", len(waiters), s.queueNow())
	return waiters[at]
}

// Five clients wait, and a sixth arrives. The story counts the notifications that the five get.
var ArrivalWakesNobody = New(
	text("an arrival wakes nobody", "新来者不唤醒任何人"),
	text("a new client at the end of the queue wakes every waiter", "队尾来了一个客户端，却惊动了整个队列"),
	text("does it matter to you which client is behind you?", "谁排在你后面，与你有关吗？"),
	func(s *Story) {
		_, waiters := s.crowd(5, zktest.SessionTimeout)
		s.needsWatches(waiters)
		count := s.Count(waiters...)
		s.queue(s.Join("the newcomer"))
		n := count().Notifications
		s.FailsIf(n != 0, "one arrival sent %d notifications to %d waiters", n, len(waiters))
		s.Holds("one arrival sent 0 notifications to %d waiters", len(waiters))
	})

// needsWatches ends the story if the waiters poll.
func (s *Story) needsWatches(waiters []*zktest.Turn) {
	if waiters[0].Waits() == zktest.Polling {
		s.void("nobody is ever woken: the waiters poll")
	}
}

// crowd brings a holder and n waiters, and returns when the waiters have settled. Their sessions
// have the given timeout.
func (s *Story) crowd(n int, timeout time.Duration) (holder *zktest.Turn, waiting []*zktest.Turn) {
	holder = s.Join("the holder").Acquire()
	for i := range n {
		waiting = append(waiting, s.queue(s.JoinAs(fmt.Sprintf("waiter %d", i+1), Seat{Timeout: timeout}))...)
	}
	for _, w := range waiting {
		if _, polls := w.Tap.Waiting(0); !polls {
			w.StillWaits() // the arrivals behind it have had their effect
		}
	}
	return holder, waiting
}

// A holds the lock, and B waits. Then C arrives. C's third request is the one that sets a watch on
// a single znode. It is held back until B, whose znode C would watch, has closed its session. D arrives, and gives up.
// Then A releases, and C gets the lock. Whether C had to wait until then is WaiterCrash's question.
var NoWatchLeft = New(
	text("no watch is left behind", "不遗留监听器"),
	text("watches that can never fire fill the server's memory", "永远不会触发的监听器会占满服务器的内存"),
	text("what does the read that sets the watch do when its znode has been deleted?",
		"设置监听器的读操作，在 znode 已经不在时会怎样？"),
	func(s *Story) {
		a, b, c := s.Join("A"), s.Join("B"), s.Join("C")
		held := a.Acquire()
		s.queue(b)
		slow := c.Tap.HoldRequest(wiretap.Any, 3)
		last := c.Start()
		s.Await("C to be held up, or to wait", comesToAStop(last, slow, 0))
		b.Close()
		slow.Let()
		last.StillWaits() // let it come to rest: it may have the lock, which is not asked here
		d := s.Join("D")
		_ = s.givesUp(s.queue(d)[0], "D waits in the queue")
		held.Release()
		s.letIn(last, "A has released")
		last.Release()
		for _, c := range []*zktest.Member{a, c, d} {
			s.Barrier(c.Client)
			left := c.Tap.Watched()
			s.FailsIf(len(left) > 0, "at the end %s still has a watch at the server, on %v", c.Name, left)
		}
		s.Holds("B's znode was deleted while C was about to watch it, and D gave up; at the end 0 watches are left")
	})

// A releases the lock while a request of B's Lock is on its way: the second one, then the third,
// then the fourth.
var ReleaseSeen = New(
	text("no release is missed", "不会错过任何一次释放"),
	text("a waiter would sleep forever although the lock is free", "锁空着，等待者却会一直睡下去"),
	text("the lock is released between two of your requests: what wakes you?", "锁在你的两个请求之间释放：什么会唤醒你？"),
	func(s *Story) {
		a, b := s.Join("A"), s.Join("B")
		first := a.Start()
		s.letIn(first, "nobody holds the lock")
		first.Release()
		for n := 2; n <= 4; n++ {
			held, mark := a.Acquire(), b.Tap.Mark()
			slow := b.Tap.HoldRequest(wiretap.Any, n)
			waiting := b.Start()
			s.Await("B to be held up, or to wait", comesToAStop(waiting, slow, mark))
			if waiting.Returned() {
				s.mustWait(waiting, zktest.Returned, "arrived")
			}
			held.Release()
			slow.Let()
			s.letIn(waiting, "A released while B's request number %d was on its way", n)
			waiting.Release()
		}
		s.Holds("A released while B's second, third and fourth request was on its way, and B got the lock each time")
	})

// A holds the lock, and B waits. B is disconnected, A releases, and B connects again in the same
// session.
var ReleasedWhileCutOff = New(
	text("no release is missed while the connection is down", "断线期间的释放也不会错过"),
	text("the waiter would wait for a notification that was never sent to it", "这条通知从来没有发给等待者，等待者却一直在等它"),
	text("what sets the watch again on the new connection, and what if its znode was deleted meanwhile?",
		"在新连接上由谁重新设置监听器？如果那个 znode 这时已经不在呢？"),
	func(s *Story) {
		a, b := s.Join("A"), s.Join("B")
		held := a.Acquire()
		waiting := s.queue(b)[0]
		s.needsWatches([]*zktest.Turn{waiting})
		b.Tap.Cut()
		held.Release()
		b.Tap.Restore()
		s.letIn(waiting, "A released while B was disconnected, and B is connected again")
		s.FailsIf(b.SessionID() != b.ID, "B got the lock, with session %#x in place of %#x", b.SessionID(), b.ID)
		s.Holds("A released while B was disconnected, and B got the lock when it was connected again")
	})

// A has held the lock and released it, and has waited for it and given up. Then all is quiet. The story
// counts the requests that A sends after that. Meanwhile calls of C end in every way, and the story counts the
// goroutines that they have left.
var QuietAfter = New(
	text("a client without the lock sends nothing, and keeps no goroutine", "不持锁就不发请求，也不留 goroutine"),
	text("a process that released its locks long ago would still work for them",
		"进程早就用完了锁，却还在为它忙碌"),
	text("what did you start for the call or the hold, and what stops it?", "你为这次调用、这次持锁启动了什么？由什么来结束它？"),
	func(s *Story) {
		a, b, c := s.JoinMortal("A"), s.Join("B"), s.Join("C")
		s.locksAndGivesUp(a, b)
		pings := func() int { return len(a.Tap.Done(wiretap.Ping)) }
		begin := pings()
		// By then no request of the release is on its way.
		s.Await("a ping of A after the release", func() bool { return pings() > begin })
		count, begin := s.CountClients(a.Client), pings()
		s.leavesNoMore("C locked and gave up in %d rounds, and its calls have left %d goroutines; after the first round there were %d",
			func() { s.endsInEveryWay(c, b) })
		s.Await("three more", func() bool { return pings() > begin+3 })
		sent := count()
		s.FailsIf(
			sent.All() > 0,
			"A has released the lock, has given up once, and sent %d requests in the next session timeout: %v",
			sent.All(),
			sent.Requests,
		)
		if c.HasHolds() {
			s.forgetsItsWork(c)
		}
		s.Holds("A has released the lock, and sent 0 requests between three pings")
	})

// locksAndGivesUp lets a client lock and unlock, and then give up while it waits behind another one.
func (s *Story) locksAndGivesUp(m, other *zktest.Member) {
	m.Acquire().Release()
	held := other.Acquire()
	_ = s.givesUp(s.queue(m)[0], m.Name+" waits")
	held.Release()
}

// endsInEveryWay lets calls of a client end: by an Unlock, by giving up at rest and at each reply, by a try that finds
// another holder, and by the loss of its hold.
func (s *Story) endsInEveryWay(m, other *zktest.Member) {
	s.locksAndGivesUp(m, other)
	held := other.Acquire()
	for _, call := range slices.Concat(blocking(m), tries(m)) {
		for _, caught := range s.givesUpAtEachReply(m, call, nil) {
			isDone := func() bool { // the znode of a lock that is one znode is the holder's
				return caught.Returned() && (s.subject.Znode || len(s.left(m)) == 0)
			}
			s.Soon(isDone) // or another property refuses the lock
		}
	}
	held.Release()
	if m.HasHolds() {
		lost := m.Acquire()
		m.Tap.HangUp()
		s.Barrier(m.Client) // it is connected again
		err := lost.Unlock()
		s.about(overHold, func() {
			s.FailsIf(!s.Soon(func() bool { return len(s.left(m)) == 0 }),
				"%[1]s held the lock, its connection broke, and it is connected again; its Unlock returned %[2]v, and has left %[3]v",
				m.Name, err, s.left(m))
		})
	}
}

// forgetsItsWork fails the story if the goroutines of a hold become more with each context that was made from it and
// has ended.
func (s *Story) forgetsItsWork(c *zktest.Member) {
	const works = 20
	held := c.Acquire()
	s.leavesNoMore("C holds the lock, and works with contexts of its hold have ended, in %d rounds: they have left %d goroutines; "+
		"after the first round there were %d", func() {
		for range works {
			work, end := context.WithCancel(s.Ctx)
			held.Held().Context(work)
			end()
		}
	})
	held.Release()
}

// leavesNoMore fails the story if each round leaves more goroutines than the one before. A lock may start some once,
// for all its calls.
func (s *Story) leavesNoMore(wrong string, calls func()) {
	const rounds = 3
	label := pprof.Labels("story", s.Root)
	left := func() (n int) { // a goroutine has the labels of the one that has started it
		var text bytes.Buffer
		_ = pprof.Lookup("goroutine").WriteTo(&text, 1)
		_, groups, _ := strings.Cut(text.String(), "\n")     // after the line that has the total
		for _, some := range strings.Split(groups, "\n\n") { // each begins with how many are alike
			if strings.Contains(some, s.Root) {
				alike := 0
				_, _ = fmt.Sscan(some, &alike)
				n += alike
			}
		}
		return n
	}
	usual := 0
	for round := range rounds {
		pprof.Do(s.Ctx, label, func(context.Context) { calls() })
		if round == 0 {
			s.SoonAfter(fewAnswers, func() bool { return left() == 0 })
			usual = left()
		}
	}
	s.FailsIf(!s.Soon(func() bool { return left() <= usual }), wrong, rounds, left(), usual)
}
