package property

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// A holds the lock, and no other client gets it: not by arriving, not by losing its connection, not
// by having held the lock before, not by having looked before A arrived. Then all clients contend,
// and a witness outside the lock observes them: a znode that only one client can create.
var OneHolder = New(
	text("one holder at a time", "同一时刻只有一个持有者"),
	text("two holders at once overwrite each other's data", "同时有两个持有者，就会互相覆盖对方写的数据"),
	text("when does Lock return, and how does it know by then that no other client holds the lock?",
		"Lock 什么时候返回？这时，它凭什么断定没有别的客户端持有锁？"),
	func(s *Story) {
		a, b, c := s.Join("A"), s.Join("B"), s.Join("C")
		held := a.Start() // makes the parents
		s.letIn(held, "nobody holds the lock")
		waiting := s.queue(b, c)

		for _, op := range []wiretap.Op{wiretap.Create, wiretap.GetChildren} {
			d := s.Join("D")
			d.Tap.LoseReply(op, 1) // only a lock that lists will lose its list
			lost := d.Start()
			s.about(FailsClean, func() {
				s.FailsIf(lost.Waits() == zktest.Returned && lost.Err() == nil,
					"D's connection broke at its %v while A held the lock, and D got the lock as well", op)
			})
			s.about(whoseZnode, func() {
				for _, w := range waiting {
					s.mustWait(w, w.StillWaits(), "was waiting when D's connection broke at its %v,", op)
				}
			})
			d.Close()
			for _, znode := range s.left(d) { // that of a create without an answer, if it is persistent
				_ = s.Observer().Delete(znode, -1)
			}
		}

		s.unlocks(held)
		first, second := s.oneOf(waiting[0], waiting[1])
		again := a.Start()
		s.mustWait(again, again.Waits(), "locked a second time")
		s.mustWait(second, second.StillWaits(), "was waiting,")
		s.unlocks(first)
		first, second = s.oneOf(again, second)
		s.unlocks(first)
		s.unlocks(second)

		e := s.Join("E")
		late := e.Tap.HoldRequest(wiretap.Create, 1)
		slower := e.Start()
		s.Await(
			"E to be about to create its znode, or to wait", // its znode may exist already
			comesToAStop(slower, late, 0),
		)
		held = a.Acquire()
		late.Let()
		s.mustWait(slower, slower.Waits(), "found the lock free, was slower than A,")
		s.unlocks(held)
		s.letIn(slower, "A has released")
		s.unlocks(slower)

		clients := []*zktest.Member{a, b, c, e}
		turns, breaches := s.contend(clients)
		if len(breaches) > 0 {
			s.Fails("%s", <-breaches)
		}
		s.Holds("%d turns by %d clients, and never two holders at once", turns, len(clients))
	})

// contend lets all members take turns at the same time. It returns how many turns they had, and
// which clients the witness found holding the lock at once.
func (s *Story) contend(members []*zktest.Member) (turns int, breaches chan error) {
	const rounds = 3
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
				if err := held.Unlock(); err != nil {
					return err
				}
				had.Add(1)
				s.Moved()
			}
			return nil
		}))
	}
	for _, c := range contending {
		for !c.Returned() {
			before := had.Load()
			s.about(ReleaseSeen, func() {
				s.FailsIf(!s.Soon(func() bool { return had.Load() > before || c.Returned() }),
					"%d clients contended, had %d turns of %d, and then none got the lock%s",
					len(members), before, rounds*len(members), s.queueNow())
			})
		}
		s.FailsIf(c.Err() != nil, "%d clients contended, and one of them got an error: %v", len(members), c.Err())
	}
	return rounds * len(members), breaches
}

// unlocks releases the lock of a client whose connection the story leaves alone. If its Unlock
// fails, the lock is wrong: perhaps another client also held it, and has released it.
func (s *Story) unlocks(holder *zktest.Turn) {
	err := holder.Unlock()
	s.FailsIf(err != nil, "%s held the lock, and its Unlock returned: %v", holder.Name, err)
}

// oneOf waits until one of the turns has got the lock, and returns that turn first. It may be
// either, because not every lock is fair.
func (s *Story) oneOf(a, b *zktest.Turn) (in, out *zktest.Turn) {
	s.about(notWoken, func() {
		s.FailsIf(!s.Soon(func() bool { return a.Returned() || b.Returned() }),
			"nobody holds the lock, and neither %s nor %s gets it; their last requests: %s, and %s%s",
			a.Name, b.Name, a.LastAsked(), b.LastAsked(), s.queueNow())
	})
	if b.Returned() {
		a, b = b, a
	}
	s.letIn(a, "nobody holds the lock")
	return a, b
}

// witness creates and deletes a znode that only one client at a time can create.
func (s *Story) witness(c *zktest.Member) error {
	room := s.Root + "/witness"
	if _, err := c.Create(room, []byte(c.Name), 0, zk.WorldACL(zk.PermAll)); err != nil {
		other, _, _ := s.Observer().Get(room)
		return fmt.Errorf("%s acquired the lock while %s held it (%w)", c.Name, other, err)
	}
	return c.Delete(room, -1)
}

// A holds the lock. B, C and D arrive in this order. At each release, a request of the next in the
// queue is held back, so that all others have time to overtake it. At last another goroutine of the holder
// arrives after another client.
var FirstCome = New(
	text("first come, first served", "先来先得"),
	text("a client with a slow connection could wait forever while others are served",
		"网络慢的客户端可能永远等下去，别的客户端却来了又走"),
	text("where is the order of arrival recorded?", "谁先来的，记在哪里？"),
	func(s *Story) {
		holder := s.Join("A").Acquire()
		line := s.queue(s.Join("B"), s.Join("C"), s.Join("D"))
		for i, next := range line {
			slow := next.Tap.HoldRequest(wiretap.Any, 1)
			if next.Waits() == zktest.Polling {
				zktest.AwaitChan(s.Zoo, fmt.Sprintf("%v's next poll", next.Name), slow.Sprung())
			}
			holder.Release()
			for _, later := range line[i+1:] {
				s.FailsIf(later.StillWaits() == zktest.Returned,
					"%s arrived before %s, and %s was served first, while a request of %s was on its way",
					next.Name, later.Name, later.Name, next.Name)
			}
			slow.Let()
			s.letIn(next, "the client before it has released")
			holder = next
		}
		if s.subject.reads == nil { // some readers would not have to wait
			s.servesOthersBeforeItself(holder)
		}
		s.Holds("B, C and D arrived in this order and were served in it, each over a slow connection")
	})

// waitsForCurator puts a znode of a Curator client into the queue, if the queue's names are of Curator's form: then
// the two share a queue, and a client waits for that znode. If readers share, and a writer also waits for a znode with
// another guid, so must a reader.
func (s *Story) waitsForCurator(a *zktest.Member) {
	held := a.Acquire()
	form := regexp.MustCompile("^_c_.*-(lock-|__WRIT__)[0-9]{10}$").FindStringSubmatch(path.Base(a.Znode()))
	held.Release()
	if form == nil {
		return
	}
	arrives := func(guid string) (znode string) {
		name := "/_c_" + guid + "-" + form[1]
		znode, err := s.Observer().Create(s.dir+name, nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
		s.Require(err, "create "+name)
		return znode
	}
	curator := arrives("6f1c1b0e-3d5b-4a8e-9c61-1f2a3b4c5d6e")
	waiting := a.Start()
	s.mustWait(waiting, waiting.Waits(), "arrived after a client of Curator")
	s.deletes(curator)
	s.letIn(waiting, "the client of Curator has released")
	waiting.Release()
	if a.Reader == nil {
		return
	}
	arrives("6f1c1b0e-3d5b-__READ__5d6e")
	writing := a.Start()
	if writing.Waits() == zktest.Returned { // it knows only the guids that clients really use
		writing.Release()
		return
	}
	_ = s.givesUp(writing, "it waits behind another client")
	reading := a.Reader.Start()
	s.mustWait(reading, reading.Waits(), "arrived to read after a client that writes")
}

// servesOthersBeforeItself lets another goroutine of the holder call Lock after another client. Lock may refuse that
// call, as the client library's own lock does. Whether that call gets the lock beside the holder, or keeps the holder
// from its Unlock, is ManyShare's question.
func (s *Story) servesOthersBeforeItself(holder *zktest.Turn) {
	other := s.queue(s.Join("E"))[0]
	own := holder.Member.Start()
	hasReturned := own.StillWaits() == zktest.Returned
	if hasReturned && own.Err() == nil {
		return
	}
	release := s.Go(holder.Client, func(context.Context) error { return holder.Unlock() })
	if !s.Soon(release.Returned) {
		own.GiveUp()
		return
	}
	s.letIn(other, "the holder has released")
	if hasReturned {
		return
	}
	s.mustWait(own, own.StillWaits(), "arrived after E, in another goroutine of the client that held the lock,")
	other.Release()
	s.letIn(own, "E has released")
}

// passesFourDigits lets two clients take turns with the lock: one waits while the other one holds it. On
// the way, the numbers that the server gives pass from four digits to five.
func (s *Story) passesFourDigits(a, b *zktest.Member) {
	const before, turns = 9_995, 8
	s.countsTo(before)
	held := a.Acquire()
	for i := range turns {
		next := []*zktest.Member{b, a}[i%2].Start()
		s.mustWait(next, next.Waits(), "arrived after many others")
		held.Release()
		s.letIn(next, "the holder released")
		held = next
	}
	held.Release()
}

// countsTo makes the server give this number next to a znode in the lock's directory. The server counts
// the children that the directory has ever had.
func (s *Story) countsTo(number int) {
	probe, err := s.Observer().Create(s.dir+"/-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
	if errors.Is(err, zk.ErrNoNode) { // a lock without a directory has no numbers
		return
	}
	s.Require(err, "ask for the next number")
	s.deletes(probe)
	digits := strings.TrimPrefix(probe, s.dir+"/-")
	last, err := strconv.Atoi(digits)
	s.Require(err, "read the number "+digits)
	const atOnce = 100 // the buffer of a client on a tour takes no more
	for last++; last < number; {
		var all []any
		for ; last < number && len(all) < atOnce; last++ {
			all = append(all,
				&zk.CreateRequest{Path: probe, Acl: zk.WorldACL(zk.PermAll)}, &zk.DeleteRequest{Path: probe, Version: -1})
		}
		_, err := s.Observer().Multi(all...)
		s.Require(err, "create and delete children")
		s.Moved()
	}
}

// B, which does not hold the lock, calls Unlock while A holds it. In
// steps 5 and 6 only a hold unlocks, so B has nothing to call. Then
// A loses its session, B gets the lock, and A calls Unlock too late.
var OnlyHolder = New(
	text("another client cannot release it", "其他客户端无法释放锁"),
	text("an extra or late Unlock would give the lock to a second client while the holder still has it",
		"多调用一次或者晚调用一次 Unlock，就会让另一个客户端与持有者同时持有锁"),
	text("how does Unlock know that the znode it deletes is its own?", "Unlock 怎样知道要删除的是自己的 znode？"),
	func(s *Story) {
		a, b := s.Join("A"), s.Join("B")
		held := a.Acquire()
		if !b.HasHolds() {
			err := b.Unlock()
			gone := b.Tap.Done(wiretap.Delete)
			s.FailsIf(len(gone) > 0, "A held the lock, and B's Unlock deleted %v", gone)
			s.FailsIf(err == nil, "B's Unlock returned nil for a lock that B did not hold")
		}
		waiting := s.queue(b)[0]
		s.Expire(a.Client)
		s.letIn(waiting, "A's session has expired")
		a.Tap.Restore()
		s.Await(
			"A to have a new session",
			func() bool { return a.State() == zk.StateHasSession && a.SessionID() != a.ID },
		)
		late := held.Unlock()
		gone := a.Tap.Done(wiretap.Delete)
		s.FailsIf(len(gone) > 0, "A had lost the lock to B, and its late Unlock deleted %v", gone)
		s.about(LostTold, func() { s.FailsIf(late == nil, "A had lost the lock to B, and its late Unlock returned nil") })
		s.Holds("A had lost the lock to B, and its late Unlock deleted nothing and returned %q", late)
	})

// foreign lists names that have no place in a queue. Some look as if they had, such as the
// directories of other locks below this one. Each lock has two more: see withAnotherPrefix.
var foreign = []string{
	"notes", "lock-", "lock-x", "0000000000", "_c_short-lock-", "_c_", "-", "lock-0000000000-old",
	"block-0", "my-lock-2", "my-lock-0000000000", "_c_x-lock-0", "x__READ__0", "x__WRIT__1", "x__WRIT__0000000000",
	"_c_x-__WRIT__0",
}

// withAnotherPrefix lists names like those of the client's own znodes, whose prefix is another lock's.
func withAnotherPrefix(m *zktest.Member) []string {
	prefix := strings.TrimRight(path.Base(m.Znode()), "0123456789")
	return []string{prefix + "shop-0000000000", "shop-" + prefix + "0000000000"}
}

// Another lock beside this one is held, and the lock's directory has foreign znodes. A takes the
// lock many times, until its numbers are higher than those in the foreign names. B arrives while A
// holds the lock, and gets it after A. At last thousands of other znodes come and go, and A and B take
// turns while the numbers of the queue get a fifth digit. If the names are of Curator's form, A waits behind such a
// client.
var Unrelated = New(
	text("unrelated znodes are no obstacle", "无关节点不影响加锁"),
	text("another lock, or a stray znode in the directory, would block or break this one",
		"别的锁，或者目录里一个不相干的 znode，会挡住或弄坏这把锁"),
	text("which names in the list belong to this queue?", "列出的名字里，哪些真正属于这个队列？"),
	func(s *Story) {
		s.JoinAs("the neighbour", Seat{Path: s.path + "-too"}).Acquire()
		a, b := s.Join("A"), s.Join("B")
		first := a.Start() // makes the directory, if the lock has one
		s.FailsIf(
			first.Waits() != zktest.Returned,
			"the neighbour holds another lock, and A waits: %v",
			s.Names(s.Root),
		)
		first.Release()
		others := slices.Concat(foreign, withAnotherPrefix(a))
		for _, name := range others {
			_, err := s.Observer().Create(s.path+"/"+name, nil, 0, zk.WorldACL(zk.PermAll))
			if err != nil && !errors.Is(err, zk.ErrNoNode) { // a lock without a directory has no foreign znodes
				s.Fatalf("create %s: %v", name, err)
			}
		}
		var held *zktest.Turn
		for range len(others) {
			if held != nil {
				held.Release()
			}
			held = a.Start()
			s.FailsIf(
				!s.Soon(held.Returned),
				"nobody holds the lock, and A waits; the other names in the directory: %v",
				s.Names(s.path),
			)
			s.FailsIf(held.Err() != nil, "with foreign znodes in the directory Lock returned: %v", held.Err())
		}
		waiting := s.queue(b)[0]
		held.Release()
		s.letIn(waiting, "A has released")
		waiting.Release()
		s.about(&Property{Question: text(
			"how do you compare two names, and does it still work when the number has more digits?",
			"你怎样比较两个名字？序号变大以后还对吗？",
		)}, func() { s.passesFourDigits(a, b) })
		s.waitsForCurator(a)
		s.Holds("another lock in the same parent was held, the directory had %d foreign znodes, and A and B got the lock, "+
			"also when their numbers got a fifth digit",
			len(others))
	})

// A finds that the lock's parents are missing. Before A can make the second of them, B has made it, and holds the lock.
// Then the server permits no znode below the first parent of another lock.
var ParentsMade = New(
	text("missing parents are created", "缺少的父节点会自动创建"),
	text("somebody would have to prepare the server for each new lock", "每增加一把新锁，都要有人先在服务器上做准备"),
	text("create returns NoNode: what is missing, and who else may be creating it?",
		"create 得到的响应是 NoNode：缺少的是什么？还有谁可能正在创建它？"),
	func(s *Story) {
		s.path = s.Root + "/shop/locks/orders"
		a, b := s.Join("A"), s.Join("B")
		slow := a.Tap.HoldRequest(wiretap.Create, 2)
		second := a.Start()
		zktest.AwaitChan(s.Zoo, "A to make a parent", slow.Sprung())
		first := b.Acquire()
		slow.Let()
		s.mustWait(second, second.Waits(), "created the lock's parents together with B")
		first.Release()
		s.letIn(second, "B has released")
		second.Release()
		below := s.Names(s.Root + "/shop")
		s.FailsIf(
			!slices.Equal(below, []string{"locks"}),
			"the lock is /shop/locks/orders, and /shop has the children %v",
			below,
		)
		s.mayMakeNoParent()
		s.Holds("two clients created the parents of /shop/locks/orders at once, and got the lock one after the other")
	})

// mayMakeNoParent calls Lock below a znode that permits no children. Lock must return that refusal.
func (s *Story) mayMakeNoParent() {
	_, err := s.Observer().Create(s.Root+"/closed", nil, 0, zk.WorldACL(zk.PermRead))
	s.Require(err, "create /closed")
	call := s.JoinAs("C", Seat{Path: s.Root + "/closed/locks/orders"}).Start()
	s.FailsIf(!s.Soon(call.Returned), "the server permits no znode below /closed, and the Lock of /closed/locks/orders does not "+
		"return; its last requests: %s", call.LastAsked())
	s.FailsIf(!errors.Is(call.Err(), zk.ErrNoAuth),
		"the server permits no znode below /closed, and the Lock of /closed/locks/orders returned %v instead of %q",
		call.Err(), zk.ErrNoAuth)
}

// A locks twice. The second time everything that the lock needs exists. Before the third time somebody deletes the
// lock's directory, and before the fourth time, when A's create is on its way.
var MadeOnce = New(
	text("an existing directory is not created again", "已有的目录不再创建"),
	text("a create that fails is also a write: each Lock would cost one more", "失败的 create 也是写操作：每次 Lock 都要多付一次"),
	text("when is the directory missing, and which reply says so?", "目录什么时候会不存在？哪个响应会告诉你？"),
	func(s *Story) {
		a := s.Join("A")
		a.Acquire().Release()
		mark := a.Tap.Mark()
		a.Acquire().Release()
		creates := a.Requests(mark)[wiretap.Create]
		asked := a.Asked(mark)
		s.FailsIf(creates > 1, "A locked once more, alone, and sent %d creates; its requests: %v", creates, asked)
		s.FailsIf(s.looksForTheDirectory(a.Tap.Since(mark)),
			"A locked once more, alone, and first asked whether the directory exists; its requests: %v", asked)
		s.deletesTheDirectory(a)
		s.Holds("A locked once more, alone, with %d create; its requests: %v; then its directory was deleted, and A locked again",
			creates, asked)
	})

// looksForTheDirectory reports whether a client read the lock's directory itself before it sent a create.
func (s *Story) looksForTheDirectory(frames []wiretap.Frame) bool {
	isCreate := func(f wiretap.Frame) bool { return f.Op == wiretap.Create }
	looks := func(f wiretap.Frame) bool {
		return f.Path == s.dir && (f.Op == wiretap.Exists || f.Op == wiretap.GetData)
	}
	first := slices.IndexFunc(frames, isCreate)
	return slices.ContainsFunc(frames[:max(0, first)], looks)
}

// deletesTheDirectory deletes the empty directory of the lock, as an operator may: before a Lock, and when the create of
// a Lock is on its way. Lock has to create it.
func (s *Story) deletesTheDirectory(m *zktest.Member) {
	if err := s.Observer().Delete(s.dir, -1); errors.Is(err, zk.ErrNoNode) { // the lock has no directory
		return
	}
	s.makesTheDirectory(m.Start(), "")
	create := m.Tap.HoldRequest(wiretap.Create, 1)
	again := m.Start()
	zktest.AwaitChan(s.Zoo, "A to be about to create its znode", create.Sprung())
	s.deletes(s.dir)
	create.Let()
	s.makesTheDirectory(again, " while A's create was on its way")
}

func (s *Story) makesTheDirectory(again *zktest.Turn, when string) {
	s.FailsIf(!s.Soon(again.Returned), "the lock's empty directory was deleted%s, and Lock does not return; its last requests: %s",
		when, again.LastAsked())
	s.FailsIf(again.Err() != nil, "the lock's empty directory was deleted%s, and Lock returned: %v", when, again.Err())
	again.Release()
}

// One goroutine of A holds the lock, and another one waits. Others give up meanwhile: one is cancelled, one reaches its
// deadline, and some wait two at a time. Then the one that waits gets the lock. Some get it just as the one before
// them learns that its delete is done, and eight goroutines take turns with it.
var ManyShare = New(
	text("many goroutines share one lock", "许多 goroutine 共用一把锁"),
	text("two goroutines that use one lock would hold it at once", "共用一把锁的两个 goroutine 会同时持有锁"),
	text("which fields of the lock do two concurrent callers read and write? And does a caller that waits for another one "+
		"see that its own context ends?",
		"这把锁的哪些字段，会被两个调用者同时读写？一个调用者在等另一个时，自己的 context 结束了，它知道吗？"),
	func(s *Story) {
		a := s.Join("A")
		held, second := a.Acquire(), a.Start()
		s.mustWait(second, second.StillWaits(), "called Lock in another goroutine")
		s.othersGiveUp(a)
		s.mustWait(second, second.StillWaits(), "saw two other goroutines of its process give up,")
		s.listTogether(a)
		s.mustWait(second, second.StillWaits(), "saw many other goroutines of its process give up,")
		unlock := s.Go(a.Client, func(context.Context) error { return held.Unlock() })
		if !s.Soon(unlock.Returned) {
			second.GiveUp()
			s.Fails(
				"one goroutine of A holds the lock and calls Unlock, which does not return while another one waits in Lock",
			)
		}
		s.FailsIf(
			unlock.Err() != nil,
			"one goroutine of A holds the lock, another one waits, and Unlock returned: %v",
			unlock.Err(),
		)
		s.letIn(second, "A's other goroutine released")
		second.Release()
		if isQueue := !s.subject.Znode; isQueue && !a.HasHolds() { // else the lock does not know which znode it holds
			s.unlocksLate(a)
		}
		const goroutines = 8
		turns, breaches := s.contend(slices.Repeat([]*zktest.Member{a}, goroutines))
		s.FailsIf(len(breaches) > 0, "%d goroutines had %d turns with one lock, and %d times two of them held it at once",
			goroutines, turns, len(breaches))
		s.about(OwnPlace, func() { s.namesDiffer(a) })
		s.Holds("%d goroutines had %d turns with one lock, and two of them never held it at once", goroutines, turns)
	})

// namesDiffer checks that no two calls have given their znodes the same name, without the number, if some names differ.
func (s *Story) namesDiffer(m *zktest.Member) {
	znodes, names := 0, map[string]bool{}
	for _, path := range m.Tap.Done(wiretap.Create) {
		if name, isBelow := strings.CutPrefix(path, m.Path+"/"); isBelow {
			znodes++
			names[strings.TrimRight(name, "0123456789")] = true
		}
	}
	s.FailsIf(1 < len(names) && len(names) < znodes,
		"%s made %d znodes, each in another call, and gave them %d different names", m.Name, znodes, len(names))
}

// othersGiveUp lets two goroutines of a client wait for its lock, which another goroutine holds, and give up.
func (s *Story) othersGiveUp(m *zktest.Member) {
	before := s.left(m)
	waiting := m.Start()
	s.mustWait(waiting, waiting.StillWaits(), "called Lock in a third goroutine")
	waiting.GiveUp()
	s.otherGaveUp(waiting, context.Canceled, before)
	s.otherGaveUp(startsWithADeadline(m), context.DeadlineExceeded, before)
}

// otherGaveUp checks a call that gave up while another goroutine of its client held the lock. Before it, the client
// had these znodes.
func (s *Story) otherGaveUp(waiting *zktest.Turn, why error, before []string) {
	m := waiting.Member
	s.FailsIf(!s.Soon(waiting.Returned),
		"one goroutine of %[1]s holds the lock; the context of another goroutine's Lock has ended (%[2]v), "+
			"and Lock does not return", m.Name, why)
	s.about(GivingUp, func() {
		s.FailsIf(!errors.Is(waiting.Err(), why),
			"one goroutine of %s holds the lock; another one gave up, and its Lock returned %v instead of %q",
			m.Name, waiting.Err(), why)
		s.FailsIf(!s.Soon(func() bool { return slices.Equal(s.left(m), before) }),
			"one goroutine of %s holds the lock; another one gave up; before, %[1]s had %v, and now %v",
			m.Name, before, s.left(m))
	})
}

// listTogether lets pairs of goroutines of a client wait for its lock, which another goroutine holds. The reply to the
// first one's list is held until the second one has sent its create, so the replies to both arrive at the same moment:
// a list without the second one's znode, and the name of that znode. Which goroutine then runs first is chance, so
// there are many pairs.
func (s *Story) listTogether(m *zktest.Member) {
	const pairs = 20
	for range pairs {
		list := m.Tap.HoldReply(wiretap.GetChildren, 1)
		first := m.Start()
		isListed := s.SoonAfter(fewAnswers, list.IsSprung) // or it waits in its process
		mark := m.Tap.Mark()
		second := m.Start()
		s.SoonAfter(fewAnswers, func() bool { return len(m.Asked(mark)) > 0 })
		list.Let()
		for _, waiting := range []*zktest.Turn{first, second} {
			if s.SoonAfter(1, waiting.Returned) {
				s.mustWait(waiting, zktest.Returned,
					"called Lock at the same moment as another goroutine, while a third one held the lock,")
			}
			waiting.GiveUp()
		}
		s.FailsIf(!s.Soon(func() bool { return first.Returned() && second.Returned() }),
			"two goroutines of %s waited and gave up, and their Lock does not return", m.Name)
		m.Tap.Restore() // removes a trap that was not sprung
		if !isListed {
			return
		}
	}
}

// unlocksLate lets goroutines of a client get the lock one after the other. The reply to each delete is held until the
// next goroutine has sent its list, so both replies arrive at the same moment. Which goroutine then runs first is
// chance, so there are many. The next one may have the lock before the one before it continues in its Unlock.
func (s *Story) unlocksLate(m *zktest.Member) {
	const goroutines = 10
	held := m.Acquire()
	for range goroutines {
		start := m.Tap.Mark()
		next := m.Start()
		s.mustWait(next, next.StillWaits(), "called Lock in another goroutine")
		lists := func(mark int) bool { return m.Requests(mark)[wiretap.GetChildren] > 0 }
		waitsInProcess := !lists(start)
		slow := m.Tap.HoldReply(wiretap.Delete, 1)
		unlock := s.Go(m.Client, func(context.Context) error { return held.Unlock() })
		s.Await("a delete to be carried out, or Unlock to return",
			func() bool { return slow.IsSprung() || unlock.Returned() })
		mark := m.Tap.Mark()
		s.SoonAfter(fewAnswers, func() bool { return lists(mark) })
		never := func() bool { return false }
		s.SoonAfter(1, never) // nothing is expected: it gives the server the time of one answer, for the list
		slow.Let()
		s.FailsIf(unlock.Err() != nil,
			"a goroutine of A got the lock at the moment at which the one before it learned that its "+
				"delete was done; another one waited, and the next Unlock returned: %v; A's znodes: %v",
			unlock.Err(), s.left(m))
		s.letIn(next, "A's other goroutine released")
		held = next
		if waitsInProcess {
			break
		}
	}
	s.unlocks(held)
	s.FailsIf(!s.Soon(func() bool { return len(s.left(m)) == 0 }), "A's goroutines have all released, and have left %v",
		s.left(m))
}

// A holds the lock, B waits, C waits behind B, and somebody writes into their znodes. Then C gives up, A releases, and
// B gets the lock, although the watch that it had set may be used up. While A's delete is on its way, somebody writes
// once more.
var WhateverIsInIt = New(
	text("a znode is deleted, whatever its data", "无论写了什么数据，znode 都能删除"),
	text("a znode with data that somebody wrote into it would stay forever", "有人往 znode 里写了数据，它就再也删不掉"),
	text("which version does the delete ask for?", "删除时要求的是哪个版本？"),
	func(s *Story) {
		a, b, c := s.Join("A"), s.Join("B"), s.Join("C")
		held := a.Acquire()
		turns := s.queue(b, c)
		waiting, last := turns[0], turns[1]
		left := func() []string { return slices.Concat(s.left(a), s.left(b), s.left(c)) }
		written := left()
		for _, znode := range written {
			if _, err := s.Observer().Set(znode, []byte("a note"), -1); err != nil {
				if s.Soon(waiting.Returned) {
					s.Fails("somebody wrote into the znode before B's, and B's Lock returned: %v", waiting.Err())
				}
				s.Fatalf("write into %s: %v", znode, err)
			}
		}
		s.about(WaiterCrash, func() {
			s.mustWait(waiting, waiting.StillWaits(), "saw that somebody had written into the znodes,")
		})
		err := last.Cancel()
		s.FailsIf(
			!errors.Is(err, context.Canceled),
			"somebody wrote into the znodes; C gave up, and its Lock returned: %v",
			err,
		)
		slow := a.Tap.HoldRequest(wiretap.Delete, 1)
		unlocked := s.Go(a.Client, func(context.Context) error { return held.Unlock() })
		s.Await("A's delete to be on its way, or Unlock to return",
			func() bool { return slow.IsSprung() || unlocked.Returned() })
		for _, znode := range s.left(a) {
			_, err := s.Observer().Set(znode, []byte("another note"), -1)
			s.Require(err, "write into "+znode)
		}
		slow.Let()
		s.FailsIf(unlocked.Err() != nil, "somebody wrote into the znodes, and A's Unlock returned: %v", unlocked.Err())
		s.about(SilentWait, func() { s.letIn(waiting, "somebody wrote into the znodes, and A has released") })
		s.unlocks(waiting)
		s.FailsIf(!s.Soon(func() bool { return len(left()) == 0 }),
			"somebody wrote into the znodes; one gave up, two held the lock, and these still exist: %v", left())
		s.Holds("somebody wrote into %v; one gave up, two held the lock, and nothing was left", written)
	})

var UnlockTooMany = New(
	text("Unlock without the lock returns an error", "没有持有锁，Unlock 会报错"),
	text("a caller that releases a lock it does not hold would not learn of its mistake",
		"调用者释放了自己并不持有的锁，却不知道出了错"),
	text("how does Unlock know that the lock is held? "+
		"And does its error name the lock, as the errors from failed() do?",
		"Unlock 怎样知道锁是否被持有？它返回的错误写明是哪把锁了吗，像 failed 给出的错误那样？"),
	func(s *Story) {
		a := s.Join("A")
		if !a.HasHolds() { // a lock with holds has no Unlock to call
			s.says("Unlock before Lock", a.Unlock(), s.subject.NotHeld, a.Path)
		}
		turn := a.Acquire()
		turn.Release()
		s.says("a second Unlock", turn.Unlock(), s.subject.NotHeld, a.Path)
		s.Holds("Unlock without the lock returned %q", s.subject.NotHeld)
	})

// A holds the lock, and somebody deletes its znode. Then A's delete is lost, and A's session ends before the delete is
// sent again: B gets the lock because of that. The answer to the second delete is "no such node". A cannot know whether
// it still held the lock when it called Unlock: a client that was paused meanwhile sees the same. A lock that is made
// from a connection is not asked for this, since its Unlock need not send a delete again.
var LostTold = New(
	text("Unlock reports that the lock was lost", "锁丢失时，Unlock 会报告"),
	text("the caller would believe that no other client has held the lock meanwhile", "调用者会以为，其间没有别的客户端持有过锁"),
	text("delete returns NoNode: who deleted your znode, and when?",
		"删除得到的响应是 NoNode：你的 znode 是谁删除的？什么时候？"),
	func(s *Story) {
		a := s.Join("A")
		held := a.Acquire()
		left := s.left(a)
		s.FailsIf(len(left) != 1, "A holds the lock with %d znodes: %v", len(left), left)
		s.deletes(left[0])
		err := held.Unlock()
		s.FailsIf(
			err == nil,
			"somebody deleted A's znode, so another client could get the lock, and A's Unlock returned nil",
		)
		if !overSession(a) {
			s.Holds("somebody deleted A's znode, and its Unlock returned %q", err)
		}

		held = a.Acquire()
		waiting := s.queue(s.Join("B"))[0]
		lost := a.Tap.LoseRequest(wiretap.Delete, 1)
		back := a.Tap.HoldRequest(wiretap.Connect, 1) // until the session has ended
		release := s.Go(a.Client, func(context.Context) error { return held.Unlock() })
		zktest.AwaitChan(s.Zoo, "A's delete to be lost", lost.Sprung())
		s.EndSession(a)
		s.letIn(waiting, "A's session has ended")
		back.Let()
		s.FailsIf(
			release.Err() == nil,
			"A's delete was lost, and its session ended before the delete was sent again; "+
				"that end gave B the lock, and A's Unlock returned nil",
		)
		s.Holds("somebody deleted A's znode, and its Unlock returned %q; "+
			"A's session ended between a delete that was lost and the next, and its Unlock returned %q", err, release.Err())
	})

// overSession reports whether a client's lock is made from a Session, as from step 5 on, and not from a connection.
func overSession(m *zktest.Member) bool {
	_, isConnection := m.Session.(alone)
	return !isConnection
}
