package lockcheck

import (
	"context"
	"net"
	"path"
	"strconv"
	"strings"
	"syscall"

	"github.com/go-zookeeper/zk"

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// Queued are what a lock promises besides, whose clients stand in a queue, and
// that answers each error to its caller: steps 2 to 4.
var Queued = []*Property{UnlockTells, GivingUpTells, ErrorEndsWait, PlaceLost}

// What such a lock tells its caller.
var (
	UnlockTells = &Property{
		Name: "unlock says whether the lock was never held, or was lost",
		Why:  "who has lost the lock must know that somebody else may have been inside",
		Hint: "the delete is answered with NoNode: has this client ever held the lock?",
		tell: tellUnlockTells,
	}
	GivingUpTells = &Property{
		Name: "who gives up is told what may be left",
		Why:  "a znode that nobody knows of would block the lock, and nobody would know where to look",
		Hint: "the wait has failed, and so has the delete: which of the two errors does Lock return?",
		tell: tellGivingUpTells,
	}
	ErrorEndsWait = &Property{
		Name: "an error ends the wait",
		Why:  "the caller would be let in, or would stay in the queue without knowing",
		Hint: "a list is answered with an error: what have you put into ZooKeeper by now?",
		tell: tellErrorEndsWait,
	}
	PlaceLost = &Property{
		Name: "a waiter whose znode was deleted says so",
		Why:  "it has no place in the queue: it would wait for ever, or be let in beside the next one",
		Hint: "your own znode is not in the list: whose turn is it?",
		tell: tellPlaceLost,
	}
)

// A calls Unlock without a Lock before it. Then it locks, and somebody deletes
// its znode.
func tellUnlockTells(s *story) {
	g, a := s.ground(), s.join("A")
	g.says("Unlock without the lock", a.Unlock(s.Ctx), s.subject.NotHeld, "zklock: unlock "+a.Path+": ")
	held := a.Acquire().Held()
	g.deletes(a.Znode())
	g.says("Unlock of a lost lock", a.Unlock(held), zk.ErrNoNode, "zklock: unlock "+a.Znode()+": ")
	g.says("Unlock after that", a.Unlock(held), s.subject.NotHeld, a.Path)
	g.done("the lock was never held, then lost, and Unlock said which")
}

// deletes is what somebody else does to a client's znode.
func (g ground) deletes(znode string) {
	if err := g.Observer().Delete(znode, -1); err != nil {
		g.Fatalf("delete %s: %v", znode, err)
	}
}

// A's context has ended before it calls Lock. Then A holds, B gives up, and the
// reply to B's delete is lost.
func tellGivingUpTells(s *story) {
	g, a, b := s.ground(), s.join("A"), s.join("B")
	ended, cancel := context.WithCancel(s.Ctx)
	cancel()
	says := "zklock: lock " + a.Path + ": context canceled"
	g.says("Lock", lock(a.Way, ended), context.Canceled, says)
	held := a.Acquire()
	waiting := s.queue(b)[0]
	b.Tap.LoseReply(wiretap.Delete, 1)
	g.says("Lock", waiting.Cancel(), context.Canceled, says+"\n", "zklock: leave the queue: delete "+b.Znode()+": ")
	held.Release()
	g.done("B gave up, nobody answered its delete, and Lock named the znode")
}

// A holds. The reply to B's list is lost, and then the one to its read, if it
// reads.
func tellErrorEndsWait(s *story) {
	g, a, b := s.ground(), s.join("A"), s.join("B")
	held := a.Acquire()
	for _, op := range []wiretap.Op{wiretap.GetChildren, wiretap.GetData} {
		lost, waiting := b.Tap.LoseReply(op, 1), b.Start()
		waiting.Waits()
		select {
		case <-lost.Sprung():
			g.says("Lock", waiting.Err(), zk.ErrConnectionClosed, "zklock: lock "+b.Path+": ")
		default: // it does not ask for this
			_ = waiting.Cancel()
		}
		if left := s.left(b); len(left) > 0 {
			s.fails("the reply to B's %v was lost, its Lock has returned, and left %v", op, left)
		}
	}
	held.Release()
	g.done("B's line broke at each request of its wait: its Lock said so, and left nothing")
}

// A holds, B waits, and somebody deletes B's znode. Then A releases.
func tellPlaceLost(s *story) {
	g, a, b := s.ground(), s.join("A"), s.join("B")
	held := a.Acquire()
	waiting := s.queue(b)[0]
	g.deletes(b.Znode())
	held.Release() // who watches its predecessor looks now
	err := waiting.Err()
	g.says("Lock", err, zk.ErrNoNode, "own znode "+path.Base(b.Znode())+": ")
	if strings.Contains(err.Error(), "leave the queue") {
		s.fails("B's znode was gone, and its Lock said that it could not delete it: %q", err)
	}
	g.done("somebody deleted B's znode, and its Lock said so")
}

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

// KilledHolder is for packages whose zktest.Child "holder" is the subject's Hold.
var KilledHolder = &Property{
	Name: "a killed holder's lock comes free",
	Why:  "a process that is killed inside the lock would lock everybody out for ever",
	Hint: "who deletes the holder's znode when the holder cannot?",
	tell: tellKilledHolder,
}

// A process holds the lock, B waits, and the process is killed.
func tellKilledHolder(s *story) {
	process := s.Process("holder", s.path)
	said := process.Line()
	session, err := strconv.ParseInt(said, 10, 64)
	if err != nil {
		s.Fatalf("the process does not hold the lock: %s", said)
	}
	waiting := s.queue(s.join("B"))[0]
	process.Signal(syscall.SIGKILL)
	s.AwaitExpiry(&zktest.Client{Name: "the killed process", ID: session})
	if waiting.StillWaits() != zktest.Returned {
		s.fails("the process was killed, its session is gone, and B waits: %v", s.Names(s.path))
	}
	waiting.Acquired()
	s.holds("session %#x of a killed process expired, and B was let in", session)
}
