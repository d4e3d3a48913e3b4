package property

import (
	"context"
	"net"
	"path"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
)

// A calls Unlock without a Lock before it. Then it locks, and somebody deletes
// its znode.
var UnlockTells = property(
	text("unlock says whether the lock was never held, or was lost",
		"unlock says whether the lock was never held, or was lost"),
	text("who has lost the lock must know that somebody else may have been inside",
		"who has lost the lock must know that somebody else may have been inside"),
	text("the delete is answered with NoNode: has this client ever held the lock?",
		"the delete is answered with NoNode: has this client ever held the lock?"),
	func(s *story) {
		a := s.join("A")
		s.says("Unlock without the lock", a.Unlock(s.Ctx), s.subject.NotHeld,
			"zklock: unlock "+a.Path+": ", "each Unlock needs a Lock before it")
		held := a.Acquire().Held()
		s.deletes(a.Znode())
		s.says("Unlock of a lost lock", a.Unlock(held), zk.ErrNoNode, "zklock: unlock "+a.Znode()+": ")
		s.says("Unlock after that", a.Unlock(held), s.subject.NotHeld, a.Path)
		s.done("the lock was never held, then lost, and Unlock said which")
	})

// deletes is what somebody else does to a znode of the lock.
func (s *story) deletes(znode string) {
	if err := s.Observer().Delete(znode, -1); err != nil {
		s.Fatalf("delete %s: %v", znode, err)
	}
}

// A's context has ended before it calls Lock. Then A holds, B gives up, and the
// reply to B's delete is lost.
var GivingUpTells = property(
	text("who gives up is told what may be left", "who gives up is told what may be left"),
	text("a znode that nobody knows of would block the lock, and nobody would know where to look",
		"a znode that nobody knows of would block the lock, and nobody would know where to look"),
	text("the wait has failed, and so has the delete: which of the two errors does Lock return?",
		"the wait has failed, and so has the delete: which of the two errors does Lock return?"),
	func(s *story) {
		a, b := s.join("A"), s.join("B")
		ended, cancel := context.WithCancel(s.Ctx)
		cancel()
		says := "zklock: lock " + a.Path + ": context canceled"
		s.says("Lock", lock(a.Way, ended), context.Canceled, says)
		held := a.Acquire()
		waiting := s.queue(b)[0]
		b.Tap.LoseReply(wiretap.Delete, 1)
		says += "\nleave the queue: delete " + b.Znode() + ": "
		s.says("Lock", waiting.Cancel(), context.Canceled, says)
		held.Release()
		s.done("B gave up, nobody answered its delete, and Lock named the znode")
	})

// A holds. The reply to B's list is lost, and then the one to its read, if it
// reads.
var ErrorEndsWait = property(
	text("an error ends the wait", "an error ends the wait"),
	text("the caller would be let in, or would stay in the queue without knowing",
		"the caller would be let in, or would stay in the queue without knowing"),
	text("a list is answered with an error: what have you put into ZooKeeper by now?",
		"a list is answered with an error: what have you put into ZooKeeper by now?"),
	func(s *story) {
		a, b := s.join("A"), s.join("B")
		held := a.Acquire()
		for _, op := range []wiretap.Op{wiretap.GetChildren, wiretap.GetData} {
			lost, waiting := b.Tap.LoseReply(op, 1), b.Start()
			if waiting.Waits(); lost.IsSprung() {
				s.says("Lock", waiting.Err(), zk.ErrConnectionClosed, "zklock: lock "+b.Path+": ")
			} else { // it does not ask for this
				_ = waiting.Cancel()
			}
			left := s.left(b)
			s.failsIf(len(left) > 0, "the reply to B's %v was lost, its Lock has returned, and left %v", op, left)
		}
		held.Release()
		s.done("B's line broke at each request of its wait: its Lock said so, and left nothing")
	})

// A holds, B waits, and somebody deletes B's znode. Then A releases.
var PlaceLost = property(
	text("a waiter whose znode was deleted says so", "a waiter whose znode was deleted says so"),
	text("it has no place in the queue: it would wait for ever, or be let in beside the next one",
		"it has no place in the queue: it would wait for ever, or be let in beside the next one"),
	text("your own znode is not in the list: whose turn is it?", "列表里没有自己的 znode：轮到谁了？"),
	func(s *story) {
		a, b := s.join("A"), s.join("B")
		held := a.Acquire()
		waiting := s.queue(b)[0]
		s.deletes(b.Znode())
		held.Release() // who watches its predecessor looks now
		err := waiting.Err()
		s.says("Lock", err, zk.ErrNoNode, "own znode "+path.Base(b.Znode())+": ")
		s.failsIf(strings.Contains(err.Error(), "leave the queue"),
			"B's znode was gone, and its Lock said that it could not delete it: %q", err)
		s.done("somebody deleted B's znode, and its Lock said so")
	})

// Hold is the part of a process, for zktest.Child, that takes the lock at a path
// and keeps it.
func (s Subject) Hold(servers, args []string) {
	session, err := s.Open(servers, zktest.MortalTimeout, net.DialTimeout)
	if err == nil {
		way, _ := s.Ways(session, args[0])
		_, err = way.Lock(context.Background())
	}
	if err != nil {
		zktest.Say("%v", err)
		return
	}
	zktest.Say("%d", session.Conn().SessionID())
	select {}
}

// A process holds the lock, B waits, and the process is killed. This is for packages
// whose zktest.Child "holder" is the subject's Hold.
var KilledHolder = property(
	text("a killed holder's lock comes free", "a killed holder's lock comes free"),
	text("a process that is killed inside the lock would lock everybody out for ever",
		"a process that is killed inside the lock would lock everybody out for ever"),
	text("who deletes the holder's znode when the holder cannot?", "持有者自己删不了 znode 时，由谁来删？"),
	func(s *story) {
		process := s.Process("holder", s.path)
		said := process.Line()
		session, err := strconv.ParseInt(said, 10, 64)
		if err != nil {
			s.Fatalf("the process does not hold the lock: %s", said)
		}
		waiting := s.queue(s.join("B"))[0]
		process.Kill()
		s.AwaitExpiry(&zktest.Client{Name: "the killed process", ID: session})
		s.failsIf(waiting.StillWaits() != zktest.Returned,
			"the process was killed, its session is gone, and B waits: %v", s.Names(s.path))
		waiting.Acquired()
		s.holds("session %#x of a killed process expired, and B was let in", session)
	})
