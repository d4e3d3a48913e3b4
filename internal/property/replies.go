package property

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// The server carries out A's create, and the reply is lost with the connection. A must get the
// lock, if need be by a second call to Lock, as any caller would make. At first not even the lock's
// directory exists. At last one more reply is lost on A's way to knowing: that to its list, to its
// sync, or to its read of a znode.
var LostCreateReply = New(
	text("a lost reply to create does no harm", "create 的响应丢失无害"),
	text("a znode that no client knows of is in the queue, and the client that created it waits behind it",
		"队列里有一个谁也不知道的 znode，连创建它的客户端也在等它"),
	text("did the create fail? How could you recognize your own znode?",
		"create 失败了吗？怎样认出自己的 znode？"),
	func(s *Story) {
		a, b := s.Join("A"), s.Join("B")
		const noDirectory = ", and its directory did not exist"
		const list = ", and the reply to the next list as well"
		const sync = ", and the reply to the next sync as well"
		const read = ", and the reply to the next getData as well"
		next := map[string]wiretap.Op{list: wiretap.GetChildren, sync: wiretap.Sync, read: wiretap.GetData}
		for _, besides := range []string{noDirectory, "", list, sync, read} {
			if op, ok := next[besides]; ok {
				a.Tap.LoseReply(op, 1)
			}
			mark := a.Tap.Mark()
			lost := a.Tap.LoseReply(wiretap.Create, 1)
			attempt := a.Start()
			zktest.AwaitChan(s.Zoo, "the reply to A's create to be lost", lost.Sprung())
			if attempt.Waits() == zktest.Returned && attempt.Err() != nil {
				s.FailsIf(
					errors.Is(attempt.Err(), zk.ErrNoNode), // it has mistaken the missing directory for a refusal
					"the reply to A's create was lost%s, and A's Lock returned: %v",
					besides,
					attempt.Err(),
				)
				attempt = a.Start()
			}
			how := attempt.Waits()
			if how == zktest.Polling { // or it has only retried what was lost
				how = attempt.StillWaits()
			}
			s.FailsIf(
				how != zktest.Returned,
				"the reply to A's create was lost%s; now nobody holds the lock, and A waits behind a znode of its own: %v",
				besides,
				s.left(a),
			)
			attempt.Acquired()
			left := s.left(a)
			s.FailsIf(
				len(left) != 1,
				"the reply to A's create was lost%s; A holds the lock with %d znodes: %v",
				besides,
				len(left),
				left,
			)
			unlocked := attempt.Unlock()
			if unlocked != nil && breaks(a, mark) > 0 { // a busy machine
				s.Fatalf("A got the lock, its connection broke once more, and its Unlock returned: %v", unlocked)
			}
			s.about(whichConnection, func() {
				s.FailsIf(unlocked != nil, "the reply to A's create was lost%s; A got the lock, and its Unlock returned: %v",
					besides, unlocked)
			})
			a.Tap.Restore() // removes a trap that was not sprung: A sends no sync, or no getData
			b.Acquire().Release()
		}
		s.Holds("the reply to A's create was lost five times, and A held the lock with one znode each time")
	})

// The server carries out A's delete, and the reply is lost with the connection. Then a delete is lost before it reaches
// the server, then one while it is written, and then many, one after the other. Each time one call to Unlock must be
// enough: Unlock returns nil, and the lock is released while A's session lives on. C's delete is not answered at all.
var LostDeleteReply = New(
	text("a lost reply to delete does no harm", "delete 的响应丢失无害"),
	text("the holder does not know whether it has released the lock, or the lock is never released",
		"持有者不知道锁有没有释放，或者锁一直释放不了"),
	text("did the delete fail? What keeps trying until the outcome is known?", "delete 真的失败了吗？由谁继续重试，直到结果确定？"),
	func(s *Story) {
		a, b := s.Join("A"), s.Join("B")
		many := func(op wiretap.Op, _ int) *wiretap.Trap { return loseInARow(a.Tap, op) }
		unsent := func(op wiretap.Op, nth int) *wiretap.Trap { return s.breaksAt(a, op, nth) }
		for _, lose := range []func(wiretap.Op, int) *wiretap.Trap{a.Tap.LoseReply, a.Tap.LoseRequest, unsent, many} {
			held := a.Acquire()
			mark := a.Tap.Mark()
			lost := lose(wiretap.Delete, 1)
			err := held.Unlock()
			if err != nil {
				s.Fails(
					"A's delete, or the reply to it, was lost (%d in a row): Unlock returned %q, "+
						"left at the server: %v, and a second Unlock returned: %v",
					a.Requests(mark)[wiretap.Delete],
					err,
					s.left(a),
					held.Unlock(),
				)
			}
			s.FailsIf(len(s.left(a)) > 0, "A's delete was lost (%d in a row), Unlock returned nil, and has left %v",
				a.Requests(mark)[wiretap.Delete], s.left(a))
			zktest.AwaitChan(s.Zoo, "A's delete to be lost", lost.Sprung())
			b.Acquire().Release()
		}
		s.FailsIf(a.ID != a.SessionID(), "only the end of A's session released the lock")
		if overSession(a) { // Unlock of a lock that is made from a connection does not try again
			s.unlocksUnanswered(s.JoinMortal("C"))
		}
		s.Holds("one delete whose reply was lost, two that never arrived, and %d in a row: each time Unlock released the lock",
			inARow)
	})

// breaksAt breaks a client's connection while the client writes a request, so the library returns the error of the
// write.
func (s *Story) breaksAt(m *zktest.Member, op wiretap.Op, nth int) *wiretap.Trap {
	held := m.Tap.HoldRequest(op, nth)
	s.Go(m.Client, func(ctx context.Context) error {
		select {
		case <-held.Sprung():
			m.Tap.HangUp()
		case <-ctx.Done():
		}
		return nil
	})
	return held
}

// unlocksUnanswered holds back the reply to the delete of a client. Its Unlock must return an error after the session
// timeout, or at the end of the session. A second Unlock has nothing left to do. Then the client's deletes are lost
// until its Unlock returns, and its session lives: the delete must continue in the background.
func (s *Story) unlocksUnanswered(c *zktest.Member) {
	held := c.Acquire()
	slow := c.Tap.HoldReply(wiretap.Delete, 1)
	unlocked := s.Go(c.Client, func(context.Context) error { return held.Unlock() })
	zktest.AwaitChan(s.Zoo, "C's delete to be carried out", slow.Sprung())
	atLast := s.Soon(unlocked.Returned)
	slow.Let()
	s.FailsIf(!atLast, "C's delete is not answered, and its Unlock still waits long after the session timeout")
	s.FailsIf(unlocked.Err() == nil, "C's delete was not answered, and its Unlock returned nil")
	again := held.Unlock()
	s.FailsIf(again == nil, "C's delete was not answered, its Unlock returned %q, and a second one nil", unlocked.Err())

	held, session := c.Acquire(), c.SessionID()
	loseInARow(c.Tap, wiretap.Delete)
	unlocked = s.Go(c.Client, func(context.Context) error { return held.Unlock() })
	s.Soon(func() bool {
		loseInARow(c.Tap, wiretap.Delete) // more than it can send until the next look
		return unlocked.Returned()
	})
	mark := c.Tap.Mark()
	s.Soon(func() bool { return c.Requests(mark)[wiretap.Delete] > 2 }) // so the last one that may be carried out is lost
	c.Tap.Restore()
	if c.SessionID() != session {
		s.Fatalf("C's deletes were lost, and its session has ended meanwhile")
	}
	s.FailsIf(!s.Soon(func() bool { return len(s.left(c)) == 0 }),
		"C's deletes were lost for longer than the session timeout, and its session lives; its Unlock returned %v, "+
			"and nothing has deleted %v since", unlocked.Err(), s.left(c))
}

// inARow is how many requests of a kind a story loses, one after the other. A lock must not count its
// tries: how long an outage lasts is not for it to say.
const inARow = 12

// loseInARow loses the next requests of a kind. It returns the trap of the last of them.
func loseInARow(tap *wiretap.Tap, op wiretap.Op) (last *wiretap.Trap) {
	for range inARow {
		last = tap.LoseRequest(op, 1)
	}
	return last
}

// A's delete is lost on the way to the server. If Unlock returns an error, it is called once more. Then
// the server refuses a delete of B's. At last the reply to A's delete is lost, and B has the lock before A connects again.
var UnlockRepeated = New(
	text("an Unlock that failed can be called again", "失败的 Unlock 可以再调用一次"),
	text("the lock would stay locked until the holder's session ends", "锁会一直被占着，直到持有者的会话结束"),
	text("the delete has failed: does the lock still know which znode to delete?",
		"删除失败了：锁还记得要删的是哪个 znode 吗？"),
	func(s *Story) {
		a, b := s.Join("A"), s.Join("B")
		held := a.Acquire()
		waiting := s.queue(b)[0]
		lost := a.Tap.LoseRequest(wiretap.Delete, 1)
		err := held.Unlock()
		calls := 1
		s.FailsIf(!lost.IsSprung(), "A's Unlock returned %v without a delete; it has left %v", err, s.left(a))
		a.Tap.Restore()
		if err != nil {
			again := held.Unlock()
			calls++
			s.FailsIf(
				again != nil,
				"A's delete was lost, Unlock returned %q, and when it was called again: %v; left at the server: %v",
				err,
				again,
				s.left(a),
			)
		}
		s.letIn(waiting, "A's Unlock has returned nil")
		s.refuses(waiting)
		held = a.Start()
		s.letIn(held, "B has released")
		s.about(whoseZnode, func() { s.releasesNoOthers(held, b) })
		s.Holds("A's delete was lost on its way; calls to Unlock until the lock was released: %d", calls)
	})

// releasesNoOthers loses the reply to the delete of a holder. B gets the lock before the holder is connected again: if
// its Unlock deletes once more, that must not release B's lock.
func (s *Story) releasesNoOthers(held *zktest.Turn, b *zktest.Member) {
	waiting := s.queue(b)[0]
	lost := held.Tap.LoseReply(wiretap.Delete, 1)
	back := held.Tap.HoldRequest(wiretap.Connect, 1)
	release := s.Go(held.Client, func(context.Context) error { return held.Unlock() })
	zktest.AwaitChan(s.Zoo, "the reply to A's delete to be lost", lost.Sprung())
	s.letIn(waiting, "A's delete was carried out")
	back.Let()
	err := release.Err()
	s.FailsIf(len(s.left(b)) == 0, "A's delete was carried out, its reply was lost, and B got the lock; then A was connected again, "+
		"deleted B's znode, and its Unlock returned %v", err)
	s.unlocks(waiting)
}

// refuses makes the server refuse the delete by which a holder releases the lock, and permit it later.
// Unlock must return the refusal and succeed when it is called again. If the lock is made from a connection, Unlock may
// also retry.
func (s *Story) refuses(held *zktest.Turn) {
	directory := path.Dir(s.left(held.Member)[0])
	s.permits(directory, zk.PermAll&^zk.PermDelete)
	mark := held.Tap.Mark()
	first := s.Go(held.Client, func(context.Context) error { return held.Unlock() })
	retries := func() bool { return held.Requests(mark)[wiretap.Delete] >= inARow }
	s.Soon(func() bool { return first.Returned() || retries() })
	s.FailsIf(overSession(held.Member) && !first.Returned(),
		"the server refuses %s's delete, and Unlock does not return the refusal; its last requests: %v",
		held.Name, held.LastAsked())
	s.FailsIf(first.Returned() && first.Err() == nil,
		"the server refused %s's delete, and Unlock returned nil; left at the server: %v",
		held.Name, s.left(held.Member))
	s.permits(directory, zk.PermAll)
	refusal := first.Err()
	if refusal == nil {
		return
	}
	err := held.Unlock()
	s.FailsIf(err != nil || len(s.left(held.Member)) > 0,
		"the server refused %s's delete, and Unlock returned %q; when it was called again: %v; left at the server: %v",
		held.Name, refusal, err, s.left(held.Member))
}

// One goroutine of A holds the lock. Another one calls Lock of the same lock. First its create is lost on the way to
// the server, then the reply on the way back, and then the reply to its list. Then it does so beside a third goroutine,
// which waits.
var OwnPlace = New(
	text("a call whose create was lost does not use the znode of another call", "create 丢失时不会占用别人的位置"),
	text("two goroutines would hold the lock at once, both with the znode of the first",
		"两个 goroutine 会凭第一个 goroutine 的 znode 同时持有锁"),
	text("how do you know that the znode which you found was made by this call?",
		"你怎样知道，找到的 znode 就是这一次调用创建的？"),
	func(s *Story) {
		a := s.Join("A")
		a.Acquire().Release() // makes the directory
		s.losesRequestsBesideItself(a)
		s.Holds("another goroutine's create was lost four times, and it never got the lock while the first held it, " +
			"and deleted no znode of the others")
	})

// losesRequestsBesideItself lets one goroutine of a client hold the lock, and another one lose requests of its Lock.
// Then it does the same while a third goroutine waits. The call that loses a request may delete its own znode only.
func (s *Story) losesRequestsBesideItself(a *zktest.Member) {
	before := s.left(a)
	a.Acquire()
	others := s.newIn(a, before)
	s.losesRequests(a, others)
	before = s.left(a)
	mark := a.Tap.Mark()
	waiting := a.Start()
	how := waiting.StillWaits()
	if how == zktest.Returned && waiting.Err() != nil {
		return // the lock has one call at a time, which ManyShare refuses
	}
	s.mustWait(waiting, how, "called Lock in another goroutine")
	listsAtAnArrival := how == zktest.Polling || slices.ContainsFunc(a.Tap.Since(mark), func(f wiretap.Frame) bool {
		return f.Op == wiretap.GetChildren && f.Path == s.dir && f.Watch
	})
	if !listsAtAnArrival { // else its list may be lost with the connection
		s.losesRequests(a, slices.Concat(others, s.newIn(a, before)))
	}
}

// newIn lists the znodes of a client that are not among those before.
func (s *Story) newIn(a *zktest.Member, before []string) []string {
	return slices.DeleteFunc(s.left(a), func(znode string) bool { return slices.Contains(before, znode) })
}

// losesRequests lets a goroutine of a client call Lock, and lose a request of it each time. Other goroutines of the
// client have these znodes.
func (s *Story) losesRequests(a *zktest.Member, others []string) {
	for _, fault := range []struct {
		what string
		lose func(wiretap.Op, int) *wiretap.Trap
		op   wiretap.Op
	}{
		{"its create was lost", a.Tap.LoseRequest, wiretap.Create},
		{"the reply to its create was lost", a.Tap.LoseReply, wiretap.Create},
		{"the reply to its list was lost", a.Tap.LoseReply, wiretap.GetChildren},
	} {
		mark := a.Tap.Mark()
		lost := fault.lose(fault.op, 1)
		call := a.Start()
		s.Await("A's Lock to lose a request, or to wait", comesToAStop(call, lost, mark))
		how := zktest.Silently
		if lost.IsSprung() || call.Returned() { // or it waits in its process
			how = call.Waits()
		}
		if how != zktest.Returned && lost.IsSprung() {
			how = call.StillWaits()
		}
		gone := func() []string {
			return slices.DeleteFunc(slices.Clone(others), func(znode string) bool { return slices.Contains(s.left(a), znode) })
		}
		s.FailsIf(s.SoonAfter(fewAnswers, func() bool { return len(gone()) > 0 }),
			"other goroutines of %[1]s had %[2]v; one called Lock, %[3]s, and it deleted %[4]v", a.Name, others, fault.what, gone())
		s.FailsIf(how == zktest.Returned && call.Err() == nil,
			"one goroutine of %[1]s held the lock; another one called Lock, %[2]s, and it got the lock as well; %[1]s's znodes: %[3]v",
			a.Name, fault.what, s.left(a))
		if how != zktest.Returned {
			call.GiveUp()
			if !s.Soon(call.Returned) { // ManyShare says so
				return
			}
		}
		a.Tap.Restore() // removes a trap that was not sprung
	}
}

// A's connection breaks at its create. When A reconnects, it learns that its session has expired.
// The server deletes the znode of the old session later. B arrives after that.
var OldZnode = New(
	text("a znode of an old session holds no place in the queue", "旧会话的 znode 不算队列里的位置"),
	text("the server deletes it with the old session, and another client gets the lock while its creator still works",
		"它会随旧会话一起删除，于是另一个客户端也拿到锁"),
	text("you find a znode with your name: whose session does it belong to?",
		"你找到一个 znode，名字正是你起的：它属于哪个会话？"),
	func(s *Story) {
		b := s.writerAs("B", Seat{})
		b.Acquire().Release() // makes the directory
		a := s.JoinAs("A", Seat{Through: expiresOnce()})
		lost := a.Tap.LoseReply(wiretap.Create, 1)
		a.Tap.LoseReply(wiretap.Sync, 1) // a lock that syncs before it looks must look again in the new session
		attempt := a.Start()
		zktest.AwaitChan(s.Zoo, "the reply to A's create to be lost", lost.Sprung())
		old := s.left(a)
		s.findsItsOldZnode(a, b, attempt)
		s.Holds("A made %s in an old session, got a new one, and held the lock with a znode of the new one", old[0])
	})

// findsItsOldZnode checks A's call to Lock, during which A gets a new session while its znode of
// the old one still exists.
func (s *Story) findsItsOldZnode(a, b *zktest.Member, attempt *zktest.Turn) {
	s.Await(
		"A to have another session",
		func() bool { return a.State() == zk.StateHasSession && a.SessionID() != a.ID },
	)
	old := s.ofOldSession(a)
	// The old znode stays until A has seen it, and waits or has returned, however slow A is.
	s.Soon(func() bool { return len(a.Tap.Watched()) > 0 || attempt.Returned() })
	if how := attempt.Waits(); how == zktest.Returned && attempt.Err() != nil {
		attempt = a.Start()
		attempt.Waits()
	}
	s.endsOldSession(old)
	s.letIn(attempt, "the old session's znode was deleted, and nobody else has one")
	other := b.Start()
	s.mustWait(other, other.Waits(), "arrived after A's old znode %s was deleted,", strings.Join(old, " and "))
	attempt.Release()
	other.Release()
}

// ofOldSession returns a client's znodes, except those of its
// present session: a quick client may already be queued again.
func (s *Story) ofOldSession(a *zktest.Member) []string {
	return slices.DeleteFunc(s.left(a), func(znode string) bool {
		owner, _ := s.Owner(znode)
		return owner == a.SessionID()
	})
}

// endsOldSession deletes these znodes, as the server does when it ends a session.
func (s *Story) endsOldSession(znodes []string) {
	for _, znode := range znodes {
		if _, there := s.Owner(znode); there { // otherwise the client has deleted it, which is as good
			s.deletes(znode)
		}
	}
}

// A calls Lock while its connection is busy with another request, so its create waits in the
// client. Then A's session ends, and the client sends the create in the next one.
var KeptCreate = New(
	text("a create that is sent in the next session makes one znode", "推迟到下一个会话才发出的 create 只占一个位置"),
	text("its creator takes the znode for one of the old session, queues up once more, and waits for itself",
		"创建它的客户端以为这个 znode 属于旧会话，于是重新排队，结果等的是自己"),
	text("in which session was the create sent? Was it the one that you had before?",
		"create 是在哪个会话里发出的？会话还是原来的吗？"),
	func(s *Story) {
		a, b := s.Join("A"), s.Join("B")
		b.Acquire().Release() // makes the directory
		s.keepsBusy(a)
		attempt := a.Start()
		s.SoonAfter(fewAnswers, attempt.Returned)
		back := a.Tap.HoldRequest(wiretap.Connect, 1) // until the old session has ended
		s.EndSession(a)
		back.Let()
		s.Await("A to have another session", func() bool { return a.State() == zk.StateHasSession && a.SessionID() != a.ID })
		if attempt.Waits() == zktest.Returned && attempt.Err() != nil {
			attempt = a.Start() // as any caller would
		}
		s.letIn(attempt, "A's create was sent in its next session, and nobody holds the lock; A's znodes: %v", s.left(a))
		left := s.left(a)
		if len(left) == 0 { // a busy machine
			s.Fatalf("A got the lock in its next session, and has lost that session as well")
		}
		s.FailsIf(len(left) > 1, "A's create was sent in its next session, and A holds the lock with %d znodes: %v",
			len(left), left)
		attempt.Release()
		s.Holds("A's session ended while its create waited in the client, and A held the lock with %s", left[0])
	})

// A's connection breaks at its list. Then another A has created its znode, and its connection is busy with another
// request, so its list waits in the client. Each A learns that its session has expired, and the client sends a list
// in the next one. The server deletes the znode of the old session later.
var KeptList = New(
	text("a list that is sent in the next session gives nobody the lock", "推迟到下一个会话才发出的列表请求，不会误放行"),
	text("it still shows the znode of the old session; when the server deletes that znode, "+
		"another client gets the lock, and the holder is not notified",
		"列表里还有旧会话的 znode：它随后被删，别人拿到锁，而持有者没有得到通知"),
	text("the list shows your znode: in which session was it created, and on which connection did the list arrive?",
		"列表里有你的 znode：它是在哪个会话里创建的？列表又是从哪条连接来的？"),
	func(s *Story) {
		s.keepsUnsent()
		b := s.writerAs("B", Seat{})
		b.Acquire().Release() // makes the directory
		a := s.JoinAs("A", Seat{Through: expiresOnce()})
		s.losesItsList(a, b)

		a = s.JoinAs("A", Seat{Through: expiresOnce()})
		made := a.Tap.HoldReply(wiretap.Create, 1)
		attempt := a.Start()
		zktest.AwaitChan(s.Zoo, "the server to make A's znode", made.Sprung())
		s.keepsBusy(a)
		made.Let()
		s.SoonAfter(fewAnswers, attempt.Returned) // as in KeptCreate
		a.Tap.HangUp()
		s.Await("A to have another session", func() bool { return a.State() == zk.StateHasSession && a.SessionID() != a.ID })
		old := s.ofOldSession(a)
		how := attempt.Waits()
		s.endsOldSession(old)
		if how != zktest.Returned {
			s.letIn(attempt, "the old session's znode was deleted, and nobody else has one")
		}
		if err := attempt.Err(); err != nil {
			s.Holds("A's session ended before its list was sent, and its Lock returned %q", err)
		}
		other := b.Start()
		if other.Waits() != zktest.Returned {
			s.Holds("A's session ended before its list was sent, and A held the lock with %v", s.left(a))
		}
		isTold := a.HasHolds() && s.Soon(func() bool { return attempt.Context().Err() != nil })
		s.FailsIf(
			!isTold,
			"A's list was sent in its next session, and A got the lock with %v of the old one, which is deleted now: "+
				"B holds the lock (error: %v), and A has not been notified",
			old, other.Err(),
		)
		s.Holds("A's list was sent in its next session, and A's hold had ended before B got the lock")
	})

// B holds the lock. A's list is answered while A's connection is busy with another request, so the read that sets A's
// watch waits in the client. Then A's session ends, and the client sends that read in the next one.
var KeptWatch = New(
	text("a watch that is set in the next session keeps nobody waiting", "推迟到下一个会话才设置的监听器，不会让人空等"),
	text("the waiter has no znode any more, and waits on: every client that comes later is served before it",
		"等待者的 znode 已经不在了，它却还在等：后来的客户端都比它先拿到锁"),
	text("you are about to sleep until your watch fires: in which session was it set, and does your znode still exist?",
		"你打算一直等到监听器触发：可它是在哪个会话里设置的？你的 znode 还在吗？"),
	func(s *Story) {
		s.keepsUnsent()
		a, b := s.Join("A"), s.Join("B")
		held := b.Acquire()
		list := a.Tap.HoldReply(wiretap.GetChildren, 1)
		waiting := a.Start()
		s.Await("A's list to be answered", comesToAStop(waiting, list, 0))
		s.keepsBusy(a)
		list.Let()
		s.SoonAfter(fewAnswers, waiting.Returned) // as in KeptCreate
		back := a.Tap.HoldRequest(wiretap.Connect, 1)
		s.EndSession(a)
		back.Let()
		s.Await("A to have another session", func() bool { return a.State() == zk.StateHasSession && a.SessionID() != a.ID })
		s.FailsIf(
			!s.Soon(func() bool { return waiting.Returned() || len(s.left(a)) > 0 }),
			"A's session ended before its getData was sent; now A waits without a znode%s", s.queueNow(),
		)
		if waiting.Returned() {
			s.FailsIf(waiting.Err() == nil, "A's session ended before its getData was sent, and A got the lock while B held it")
			s.Fails("A's session ended before its getData was sent, and its Lock returned: %v; it has to queue up again",
				waiting.Err())
		}
		held.Release()
		s.letIn(waiting, "A's session ended before its getData was sent, and B has released")
		s.Holds("A's session ended before its getData was sent; A queued again, and got the lock after B")
	})

// keepsUnsent gives the clients that join later so many addresses that their library sends in the next session what it
// has not sent: see TestFewAddressesKeepNoRequest in step 4.
func (s *Story) keepsUnsent() {
	open := s.subject.Open
	s.subject.Open = func(servers []string, timeout time.Duration, dial zk.Dialer) (zktest.Session, error) {
		return open(slices.Repeat(servers, 2), timeout, dial)
	}
}

// losesItsList breaks A's connection at its list. A gets a new session, and lists once more.
func (s *Story) losesItsList(a, b *zktest.Member) {
	lost := a.Tap.LoseReply(wiretap.GetChildren, 1)
	attempt := a.Start()
	zktest.AwaitChan(s.Zoo, "the reply to A's list to be lost", lost.Sprung())
	s.findsItsOldZnode(a, b, attempt)
}

// expiresOnce makes a client learn, on its second connection, that its session has expired.
func expiresOnce() func(tap zk.Dialer) zk.Dialer {
	lines := 0
	return zktest.Over(func(c net.Conn) net.Conn {
		lines++
		return zktest.Handshake{Expired: lines == 2}.Conn(c)
	})
}

// keepsBusy holds a request on a client's connection. What the client requests after it waits in the client.
func (s *Story) keepsBusy(m *zktest.Member) {
	busy := m.Tap.HoldRequest(wiretap.Exists, 1)
	s.Go(m.Client, func(context.Context) error {
		_, _, err := m.Exists(s.Root)
		return err
	})
	zktest.AwaitChan(s.Zoo, m.Name+"'s connection to be busy", busy.Sprung())
}

// fewAnswers is how many answers of the server a story waits for, so that a request gets as far as the client's
// connection. Nothing shows that it has. If it takes longer, the story checks a plain request.
const fewAnswers = 5

// A holds the lock, and B waits. B's connection breaks once at each kind of request that B sends
// while it waits, and then many times in a row.
var LineBreaks = New(
	text("a broken connection does not end the wait", "断线不会结束等待"),
	text("each short outage would send callers to the end of the queue, or end their Lock with an error",
		"每次短暂的故障都会让调用者排到队尾，或者得到一个错误"),
	text("a request was not answered: is the session over, or only the connection?",
		"请求没有得到响应：是会话结束了，还是只断了连接？"),
	func(s *Story) {
		a, b := s.Join("A"), s.Join("B")
		held := a.Acquire()
		var broken []string
		for _, op := range []wiretap.Op{wiretap.Create, wiretap.GetChildren, wiretap.GetData} {
			nth := 1
			if op == wiretap.Create {
				nth = 2 // the first create is before the wait
			}
			lost := b.Tap.LoseReply(op, nth)
			waiting := b.Start()
			s.outlastsABreak(waiting, waiting.Waits(), op)
			if lost.IsSprung() {
				broken = append(broken, fmt.Sprintf("once at its %v", op))
			}
			_ = s.givesUp(waiting, "B kept waiting after its connection broke")
			b.Tap.Restore()
		}
		lastOfMany := loseInARow(b.Tap, wiretap.GetChildren)
		waiting := b.Start()
		s.Soon(func() bool { return lastOfMany.IsSprung() || waiting.Returned() })
		s.outlastsABreak(waiting, waiting.Waits(), wiretap.GetChildren)
		if lastOfMany.IsSprung() {
			broken = append(broken, fmt.Sprintf("%d times in a row", inARow))
		}
		_ = s.givesUp(waiting, "B kept waiting after its connection broke many times")
		b.Tap.Restore()
		last := s.queue(b)[0]
		held.Release()
		s.letIn(last, "A released")
		s.Holds("B's connection broke %s, and B kept waiting", strings.Join(broken, ", "))
	})

// outlastsABreak fails unless a call still waits behind the holder after its connection broke at a request.
func (s *Story) outlastsABreak(waiting *zktest.Turn, how zktest.Wait, op wiretap.Op) {
	if how != zktest.Returned {
		how = waiting.StillWaits()
	}
	if how != zktest.Returned {
		return
	}
	s.FailsIf(
		waiting.Err() != nil,
		"B waited, its connection broke at its %v, and its Lock returned: %v",
		op,
		waiting.Err(),
	)
	s.mustWait(waiting, how, "lost its connection")
}

// On three servers: the leader has received A's create, and A's connection breaks. For a moment A reaches no server, so
// its next request fails. Then A reconnects to a follower that learns of the create late. A lock that lacks
// LostCreateReply also lacks this property, and is not checked for it.
var LaggingServer = onThree(New(
	text("a server that lags does no harm", "落后的服务器无害"),
	text("a client that looks for its znode there finds none, creates a second one, and waits for the first",
		"客户端到那里找不到自己的 znode，于是再创建一个，结果排在自己的前一个 znode 后面"),
	text("the server that answers you now may know less than the one before: how do you make it catch up?",
		"现在响应你的服务器，进度可能落后于之前那台：怎样让它赶上？"),
	func(s *Story) {
		a := s.JoinAs("A", Seat{Through: s.lag.Through})
		a.Acquire().Release() // makes the directory
		var call *zktest.Turn
		catchUp := s.lag.LoseCreate(a.Client, func() {
			call = a.Call(func(ctx context.Context) (zktest.Hold, error) {
				held, err := a.Lock(ctx)
				if errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer) { // as any caller would
					held, err = a.Lock(ctx)
				}
				return held, err
			})
		})
		before := len(s.Names(s.dir))
		catchUp()
		s.letIn(
			call,
			"the reply to A's create was lost, and the server to which A reconnected did not know of the create "+
				"(%d names there)",
			before,
		)
		left := s.Names(s.dir)
		s.FailsIf(
			len(left) != 1,
			"A reconnected to a server that lags, and holds the lock with %d znodes: %v",
			len(left),
			left,
		)
		call.Release()
		s.Holds(
			"A reconnected to a server that did not know of its create (%d names there), and held the lock with that one znode",
			before,
		)
	}))

// onThree marks a property that is checked on three servers, one of which lags.
func onThree(p *Property) *Property {
	p.onThree = true
	return p
}
