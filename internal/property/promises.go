package property

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
)

// A finds that the lock's parents are missing. Before A can make the second of
// them, B has made it, and holds the lock.
var ParentsMade = property(
	text("missing parents are made", "缺少的父节点会创建"),
	text("somebody would have to prepare the server for each new lock", "每加一把新锁，都得有人先在服务器上做准备"),
	text("the create is answered with NoNode: what is missing, and who else may be making it?",
		"create 得到的应答是 NoNode：缺的是什么？还有谁可能正在创建它？"),
	func(s *story) {
		s.path = s.Root + "/shop/locks/orders"
		a, b := s.join("A"), s.join("B")
		slow := a.Tap.HoldRequest(wiretap.Create, 2)
		second := a.Start()
		zktest.AwaitChan(s.Zoo, "A to make a parent", slow.Sprung())
		first := b.Acquire()
		slow.Let()
		s.mustWait(second, second.Waits(), "made the lock's parents together with B")
		first.Release()
		second.Release()
		below := s.Names(s.Root + "/shop")
		s.failsIf(
			!slices.Equal(below, []string{"locks"}),
			"the lock is /shop/locks/orders, and below /shop stands %v",
			below,
		)
		s.holds("two made the parents of /shop/locks/orders at once, and were let in one after the other")
	})

// One goroutine of A holds, and another one waits. Then eight take turns with the one lock.
var ManyShare = property(
	text("many goroutines share one lock", "许多 goroutine 共用一把锁"),
	text("two goroutines that use one lock would be inside together", "用同一把锁的两个 goroutine 会同时在里面"),
	text("which of the lock's fields do two callers at once read and write?", "两个调用者会同时读写这把锁的哪些字段？"),
	func(s *story) {
		a := s.join("A")
		held, second := a.Acquire(), a.Start()
		s.mustWait(second, second.StillWaits(), "called Lock in another goroutine")
		unlock := s.Go(a.Client, func(context.Context) error { return a.Unlock(held.Held()) })
		if !s.soon(unlock.Returned) {
			second.GiveUp()
			s.fails(
				"one goroutine of A holds the lock and calls Unlock, which does not return while another one waits in Lock",
			)
		}
		s.failsIf(
			unlock.Err() != nil,
			"one goroutine of A holds the lock, another one waits, and Unlock answered: %v",
			unlock.Err(),
		)
		s.letIn(second, "A's other goroutine released")
		second.Release()
		const goroutines = 8
		turns, breaches := s.contend(slices.Repeat([]*zktest.Member{a}, goroutines))
		s.failsIf(len(breaches) > 0, "%d goroutines had %d turns with one lock, and %d times there were two inside",
			goroutines, turns, len(breaches))
		s.holds("%d goroutines had %d turns with one lock, and never were there two inside", goroutines, turns)
	})

// A holds, B waits, and somebody writes into their znodes. B gives up, A releases.
var WhateverIsInIt = property(
	text("a znode is deleted whatever is in it", "不管 znode 里写了什么都能删掉"),
	text("a note that somebody wrote into a znode would keep it for ever", "有人往 znode 里写了点东西，它就永远删不掉了"),
	text("which version does the delete ask for?", "删除时要求的是哪个版本？"),
	func(s *story) {
		a, b := s.join("A"), s.join("B")
		held := a.Acquire()
		waiting := s.queue(b)[0]
		written := append(s.left(a), s.left(b)...)
		for _, znode := range written {
			if _, err := s.Observer().Set(znode, []byte("a note"), -1); err != nil {
				s.Fatalf("write into %s: %v", znode, err)
			}
		}
		waiting.StillWaits() // it has looked again
		err := waiting.Cancel()
		s.failsIf(
			!errors.Is(err, context.Canceled),
			"somebody wrote into the znodes; B gave up, and its Lock answered: %v",
			err,
		)
		if err := a.Unlock(held.Held()); err != nil {
			s.fails("somebody wrote into the znodes, and A's Unlock answered: %v", err)
		}
		for _, znode := range written {
			s.gone(znode, "somebody wrote into it")
		}
		s.holds("somebody wrote into %v; one gave up, one released, and nothing was left", written)
	})

// gone fails the story if a znode stays.
func (s *story) gone(znode, why string) {
	gone := s.soon(func() bool {
		_, there := s.Owner(znode)
		return !there
	})
	s.failsIf(!gone, "%s stays, for %s", znode, why)
}

// A holds, B waits, and B's session expires.
var LostWhileWaiting = property(
	text("a waiter whose session expires says so or queues again", "会话过期的等待者会报错或重新排队"),
	text("its znode and its watch are gone, and it would wait for ever", "它的 znode 和监听都没了，会永远等下去"),
	text("the session has ended: what wakes the waiter now?", "会话已经结束：现在由什么唤醒等待者？"),
	func(s *story) {
		a, b := s.join("A"), s.joinMortal("B")
		held := a.Acquire()
		waiting := s.queue(b)[0]
		told := zk.ErrSessionExpired
		if waiting.Waits() == zktest.Polling {
			told = zk.ErrConnectionClosed
		}
		b.Crash()
		s.AwaitExpiry(b.Client)
		b.Tap.Restore()
		if b.Token == nil { // it knows no other session than the one it had
			err := waiting.Err()
			s.failsIf(
				!errors.Is(err, told),
				"B's session expired while it waited; wanted was the error %q, and its Lock answered: %v",
				told,
				err,
			)
			left := s.left(b)
			s.failsIf(len(left) > 0, "B's session expired while it waited, B was told, and left %v", left)
			s.holds("B's session expired while it waited: its Lock answered %q, and nothing was left", waiting.Err())
		}
		s.failsIf(!s.soon(func() bool { return len(b.Queue()) == 2 || waiting.Returned() }),
			"B's session expired while it waited, and B neither says so nor queues again; the queue: %v", b.Queue())
		if waiting.Returned() && waiting.Err() != nil {
			s.fails(
				"B's session expired while it waited, the client has another one, and B's Lock answered: %v; it has to queue up again",
				waiting.Err(),
			)
		}
		s.mustWait(waiting, waiting.StillWaits(), "lost its session")
		held.Release()
		waiting.Acquired()
		if owner, _ := s.Owner(b.Znode()); owner != b.SessionID() || owner == b.ID {
			s.fails("B lost session %#x while it waited, and holds the lock by a znode of session %#x", b.ID, owner)
		}
		s.holds("B's session expired while it waited, and B was served under its new one")
	})

// A holds, B waits and is cut off, and A releases. B's session lives on.
var ReleasedWhileCutOff = property(
	text("a release is not missed while the line is down", "断线期间的释放不会错过"),
	text("the waiter would wait for a notification that was sent to nobody", "等待者会等一个没有发给任何人的通知"),
	text("who sets the watch again on the new connection, and what if its znode has gone meanwhile?",
		"在新连接上由谁重新设置监听？要是那个 znode 这时已经没了呢？"),
	func(s *story) {
		a, b := s.join("A"), s.join("B")
		held := a.Acquire()
		waiting := s.queue(b)[0]
		s.needsWatches([]*zktest.Turn{waiting})
		b.Tap.Cut()
		held.Release()
		b.Tap.Restore()
		waiting.Acquired()
		s.failsIf(b.SessionID() != b.ID, "B was let in, with session %#x in place of %#x", b.SessionID(), b.ID)
		s.holds("A released while B's line was down, and B was let in when it was back")
	})

var UnlockTooMany = property(
	text("an unlock without the lock says so", "没有锁却调用 Unlock 会报错"),
	text("a caller that releases what it does not hold would not know of its mistake",
		"释放自己并不持有的锁，调用者不会知道自己错了"),
	text("how does Unlock know that the lock is held?", "Unlock 怎么知道锁正被持有？"),
	func(s *story) {
		a := s.join("A")
		s.says("Unlock before Lock", a.Unlock(s.Ctx), s.subject.NotHeld, a.Path)
		turn := a.Acquire()
		turn.Release()
		s.says("a second Unlock", a.Unlock(turn.Held()), s.subject.NotHeld, a.Path)
		s.done("before Lock, and a second time, Unlock answered %q", s.subject.NotHeld)
	})

// done ends the story, if nothing is left at the server but an empty directory.
func (s *story) done(evidence string, args ...any) {
	left := s.Names(s.dir)
	s.failsIf(len(left) > 0, "left in the lock's directory: %v", left)
	left = s.Names(s.Root)
	isClean := len(left) == 0 || slices.Equal(left, []string{"lock"})
	s.failsIf(!isClean, "left at the server: %v", left)
	s.holds(evidence, args...)
}

// says fails the story unless err is an error of the kind wanted, if any, and
// holds all the words.
func (s *story) says(call string, err, want error, words ...string) {
	isAnotherKind := want != nil && !errors.Is(err, want)
	s.failsIf(err == nil || isAnotherKind, "%s answered %v; wanted: %v", call, err, want)
	for _, word := range words {
		s.failsIf(!strings.Contains(err.Error(), word), "%s answered %q, which does not say %q", call, err, word)
	}
}
