package property

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
)

func lock(w zktest.Way, ctx context.Context) error {
	_, err := w.Lock(ctx)
	return err
}

var RefusedUnasked = property(
	text("what cannot work is refused before anything is sent",
		"what cannot work is refused before anything is sent"),
	text("a mistake in the caller's code would come back as a riddle, or not at all",
		"a mistake in the caller's code would come back as a riddle, or not at all"),
	text("what can be known to be wrong without the server's help?",
		"what can be known to be wrong without the server's help?"),
	func(s *story) {
		a := s.join("A")
		mark := a.Tap.Mark()
		var none context.Context
		cancelled, cancel := context.WithCancel(s.Ctx)
		cancel()
		overdue, cancel := context.WithDeadline(s.Ctx, time.Now())
		defer cancel()

		s.says("Lock(nil)", lock(a.Way, none), nil, "the context is nil", "give context.Background()")
		s.says("Lock with a cancelled context", lock(a.Way, cancelled), context.Canceled, a.Path)
		s.says("Lock after its deadline", lock(a.Way, overdue), context.DeadlineExceeded, a.Path)
		nothing := s.way(nil, a.Path)
		s.says("Lock over nil", lock(nothing, s.Ctx), nil, "is nil: give the one that")
		for _, path := range []string{
			"",
			"/",
			"locks/orders",
			"/locks/",
			"//locks",
			"/locks//orders",
			"/locks/../orders",
			"/.",
		} {
			at := s.way(a.Session, path)
			const advice = "want an absolute path below the root, such as /locks/orders"
			s.says("Lock", lock(at, s.Ctx), nil, strconv.Quote(path), advice)
			if s.subject.Znode || at.Token != nil {
				s.says("Unlock", at.Unlock(s.Ctx), nil, strconv.Quote(path), advice)
			} else { // it holds nothing, whatever the path
				s.says("Unlock", at.Unlock(s.Ctx), s.subject.NotHeld, path)
			}
		}
		zero := s.way(a.Session, "/locks/\x00")
		s.says("Lock", lock(zero, s.Ctx), zk.ErrInvalidPath, "/locks/")
		if a.Token != nil {
			s.says("Unlock(nil)", a.Unlock(none), nil, "the context is nil", "what Lock returned")
			s.says("Unlock over nil", nothing.Unlock(s.Ctx), nil, "the session is nil", "Open")
		}
		if !s.subject.Znode {
			s.says("Unlock", a.Unlock(s.Ctx), s.subject.NotHeld, a.Path)
		}
		s.Barrier(a.Client)
		a.Session.Close() // waits for what is done in the background
		sent := wiretap.Count(a.Tap.Since(mark))
		s.failsIf(sent.All() > 0, "all of it was refused, and yet there were the requests %v", sent.Requests)
		s.done("nil, ended contexts and bad paths were refused without a request")
	})

var ClosedBefore = property(
	text("a closed session is named in the error", "a closed session is named in the error"),
	text("the caller would look for the mistake at the server",
		"the caller would look for the mistake at the server"),
	text("what do the calls answer when the session is closed?",
		"what do the calls answer when the session is closed?"),
	func(s *story) {
		a := s.join("A")
		held := a.Acquire().Held()
		a.Session.Close()
		s.says("Unlock after Close", a.Unlock(held), s.subject.Lost, a.Path)
		s.says("Lock after Close", lock(a.Way, s.Ctx), nil, a.Path, "closed")
		s.sweep()
		s.done("after Close, Unlock answered %q, and Lock that the session is closed", s.subject.Lost)
	})

// sweep removes a znode that outlives its session, as step 1's does.
func (s *story) sweep() {
	if s.subject.Znode {
		_ = s.Observer().Delete(s.path, -1)
	}
}

// While a call waits for the answer to its create, list or read, while it stands
// in the queue, or waits for the answer to its delete, the session is closed.
var ClosedDuring = property(
	text("a session closed during a call ends the call",
		"a session closed during a call ends the call"),
	text("the call would wait for an answer that cannot come",
		"the call would wait for an answer that cannot come"),
	text("for what does the call wait, and does it come when the session is closed?",
		"for what does the call wait, and does it come when the session is closed?"),
	func(s *story) {
		for what, ctx := range map[string]context.Context{
			"a context":            s.Ctx,
			"context.Background()": context.Background(),
		} {
			for _, op := range []wiretap.Op{wiretap.Create, wiretap.GetChildren, wiretap.GetData} {
				b, a := s.writerAs("B", Seat{}), s.join("A")
				b.Acquire()
				mark, reply := a.Tap.Mark(), a.Tap.HoldReply(op, 1)
				call := a.StartIn(ctx)
				s.Await(
					fmt.Sprintf("the reply to A's %v, an answer, or A to wait", op),
					func() bool { return comesToAStop(call, reply, mark) },
				)
				closeDuring(a, call, reply)
				s.says(fmt.Sprintf("Lock with %s, closed at %v,", what, op), call.Err(), nil, a.Path)
				b.Session.Close()
				s.sweep()
			}
		}
		a := s.join("A")
		held := a.Acquire().Held()
		reply := a.Tap.HoldReply(wiretap.Delete, 1)
		unlock := s.Go(a.Client, func(context.Context) error { return a.Unlock(held) })
		zktest.AwaitChan(s.Zoo, "the server to carry out A's delete", reply.Sprung())
		closeDuring(a, unlock, reply)
		s.says("Unlock, closed at its delete,", unlock.Err(), s.subject.Lost, a.Path)
		s.done("closed during each request and while it waited, each call came back and named the path")
	})

// closeDuring closes the session while the call is under way and a reply on hold,
// which is let go once the call has come back.
func closeDuring(a *zktest.Member, call *zktest.Turn, reply *wiretap.Trap) {
	var closing sync.WaitGroup
	closing.Go(a.Session.Close)
	_ = call.Err()
	reply.Let()
	closing.Wait()
}

var NoPermission = property(
	text("a missing permission is named, and can be given later",
		"a missing permission is named, and can be given later"),
	text("the holder could not get rid of a lock that it may not delete",
		"the holder could not get rid of a lock that it may not delete"),
	text("which requests does the server refuse, and what stands at the server then?",
		"which requests does the server refuse, and what stands at the server then?"),
	func(s *story) {
		a := s.join("A")
		_, err := s.Observer().Create(s.dir, nil, 0, zk.WorldACL(zk.PermAll))
		without := func(permission int32) {
			if err == nil {
				_, err = s.Observer().SetACL(s.dir, zk.WorldACL(zk.PermAll&^permission), -1)
			}
			if err != nil {
				s.Fatalf("the ACL of %s: %v", s.dir, err)
			}
		}
		advice := []string{a.Path}
		if a.Token != nil {
			advice = append(advice, "look at the ACL there", "AddAuth")
		}
		without(zk.PermCreate)
		s.says("Lock without the permission to create", lock(a.Way, s.Ctx), zk.ErrNoAuth, advice...)
		if !s.subject.Znode { // which asks for no list
			without(zk.PermRead)
			s.says("Lock without the permission to read", lock(a.Way, s.Ctx), zk.ErrNoAuth, advice...)
			without(0)
			s.Await(
				"the znode of a caller who must not look to be removed",
				func() bool { return len(s.Names(s.dir)) == 0 },
			)
		}
		without(zk.PermDelete)
		held := a.Acquire().Held()
		znode := s.dir + "/" + s.Names(s.dir)[0]
		s.says("Unlock without the permission to delete", a.Unlock(held), zk.ErrNoAuth, append(advice, znode)...)
		without(0)
		if err := a.Unlock(held); err != nil {
			s.fails("Unlock, called again once it is permitted, answered: %v", err)
		}
		s.done(
			"without the permission to create, read or delete each call said so, and Unlock worked once it was permitted",
		)
	})

var ChildlessParent = property(
	text("a parent that can have no children is named", "a parent that can have no children is named"),
	text("NoChildrenForEphemerals alone does not say which path is meant",
		"NoChildrenForEphemerals alone does not say which path is meant"),
	text("a parent is an ephemeral znode: what can the caller do?",
		"a parent is an ephemeral znode: what can the caller do?"),
	func(s *story) {
		parent := s.Root + "/ephemeral"
		if _, err := s.Observer().Create(parent, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
			s.Fatalf("create %s: %v", parent, err)
		}
		a := s.join("A")
		for _, path := range []string{parent + "/lock", parent + "/locks/lock"} {
			at := s.way(a.Session, path)
			advice := []string{"zklock: lock " + path, "ephemeral"}
			if a.Token != nil {
				advice = append(advice, "choose another path")
			}
			s.says("Lock", lock(at, s.Ctx), zk.ErrNoChildrenForEphemerals, advice...)
		}
		_ = s.Observer().Delete(parent, -1)
		s.done("below an ephemeral znode, Lock said that another path is needed")
	})

// A server that turns out to be none: it has done what was asked, and instead of
// its reply comes something else. The client itself makes room for any length
// that a frame claims, and panics if a frame is too short, and nobody reads the
// frames before it does: such frames are not tried.
var RepliesThatAreNone = property(
	text("a reply that is none does no harm", "a reply that is none does no harm"),
	text("a proxy or a broken server would leave a znode that nobody knows of",
		"a proxy or a broken server would leave a znode that nobody knows of"),
	text("the server has done what was asked, and the reply is nonsense: what is known?",
		"the server has done what was asked, and the reply is nonsense: what is known?"),
	func(s *story) {
		var tell []func(part *story)
		for _, lie := range lies {
			liar := &liar{lie: lie}
			dir := s.dir + "/" + strings.ReplaceAll(lie.what, " ", "-")
			a := s.joinAs("A", Seat{Timeout: zktest.MortalTimeout, Path: s.in(dir), Through: liar.over})
			tell = append(tell, func(part *story) { part.lied(liar, a, dir) })
		}
		// All have joined: joining changes the story. Most of the time is spent waiting.
		var telling sync.WaitGroup
		wrong := make([]string, len(lies))
		for i := range tell {
			telling.Go(func() { wrong[i] = s.apart(tell[i]) })
		}
		telling.Wait()
		all := strings.Join(wrong, "")
		s.failsIf(all != "", "%s", all)
		s.done("%d kinds of lies: the calls came back, and left nothing", len(lies))
	})

// lied tells of one lie, to a client whose lock is in dir.
func (s *story) lied(liar *liar, a *zktest.Member, dir string) {
	d := &deceived{story: s, liar: liar, a: a, dir: dir}
	if a.Token == nil {
		d.isToldThatNobodyKnows()
	} else {
		d.triesAgain()
	}
	d.mustBeEmpty("the release")
	_ = s.Observer().Delete(dir, -1)
}

// A deceived client is one that is lied to.
type deceived struct {
	*story
	liar *liar
	a    *zktest.Member
	dir  string
	held context.Context // what its last Lock has returned
}

// isToldThatNobodyKnows is what a lock of steps 1 to 4 answers.
func (d *deceived) isToldThatNobodyKnows() {
	refused := d.lying(always, d.lockBriefly)
	d.says(d.liar.what+": Lock", refused, zk.ErrConnectionClosed, d.a.Path)
	for _, name := range d.Names(d.dir) { // as it says
		_ = d.Observer().Delete(d.dir+"/"+name, -1)
	}
	d.works("Lock without a lie", d.lock())
	refused = d.lying(1, d.unlock)
	d.says(d.liar.what+": Unlock", refused, zk.ErrConnectionClosed, d.a.Path)
	d.says(d.liar.what+": Unlock again", d.unlock(), zk.ErrNoNode, d.a.Path)
}

// triesAgain is what a lock of steps 5 and 6 does, until the context or the session ends.
func (d *deceived) triesAgain() {
	refused := d.lying(always, d.lockBriefly)
	d.says(d.liar.what+": Lock, each time,", refused, context.DeadlineExceeded, d.a.Path)
	d.mustBeEmpty("the call that gave up")
	d.works("Lock, once,", d.lying(1, d.lock))
	d.works("Unlock, once,", d.lying(1, d.unlock))
	d.works("Lock without a lie", d.lock())
	refused = d.lying(always, d.unlock)
	d.says(d.liar.what+": Unlock, each time,", refused, d.subject.Lost, d.a.Path)
}

// always is more lies than there are replies.
const always = 1 << 30

// lying makes a call, during which there are so many lies.
func (d *deceived) lying(times int32, call func() error) error {
	d.liar.left.Store(times)
	defer d.liar.left.Store(0)
	return call()
}

func (d *deceived) lock() (err error) {
	d.held, err = d.a.Lock(d.Ctx)
	return err
}

// lockBriefly is Lock by somebody who soon gives up.
func (d *deceived) lockBriefly() error {
	ctx, cancel := context.WithTimeout(d.Ctx, 200*time.Millisecond)
	defer cancel()
	return lock(d.a.Way, ctx)
}

func (d *deceived) unlock() error { return d.a.Unlock(d.held) }

// works fails the story if a call has answered an error.
func (d *deceived) works(call string, err error) {
	d.failsIf(err != nil, "%s: %s answered %v", d.liar.what, call, err)
}

// mustBeEmpty waits until no znode is left.
func (d *deceived) mustBeEmpty(after string) {
	isEmpty := func() bool { return len(d.Names(d.dir)) == 0 }
	d.Await(d.liar.what+": the directory to be empty after "+after, isEmpty)
}

// A lie is what comes instead of a reply.
type lie struct {
	what, says string
	hangs      bool // and does not close the connection then
}

var lies = []lie{
	{"it closes", "", false},
	{"it hangs", "", true},
	{"an answer to nobody", "\x00\x00\x00\x14" + "aaaa" + "\x00\x00\x00\x00\x00\x00\x00\x00" + "ccccdddd", false},
	{"half a frame's length", "\x00\x00", false},
}

// A liar stands between a client and its tap. It lets the handshake pass, and as
// long as it has lies left, it tells one instead of the next reply.
type liar struct {
	lie
	left atomic.Int32
}

func (l *liar) over(tap zk.Dialer) zk.Dialer {
	return zktest.Over(func(c net.Conn) net.Conn {
		hung := false
		return &zktest.Altered{Conn: c, Alter: func(n int, frame []byte) ([]byte, error) {
			if hung { // until the client loses patience, or hangs up
				return nil, nil
			}
			isHandshake := n == 0
			isPing := binary.BigEndian.Uint32(frame[4:]) == 0xfffffffe
			if isHandshake || isPing {
				return frame, nil
			}
			if left := l.left.Add(-1); left < 0 {
				return frame, nil
			}
			if l.hangs {
				hung = true
				return nil, nil
			}
			return []byte(l.says), io.EOF
		}}
	})(tap)
}

// The directory has 1,000 children of somebody else, with names of 200
// characters, and some that look like the queue's.
var CrowdedDirectory = property(
	text("a directory full of foreign children is no obstacle",
		"a directory full of foreign children is no obstacle"),
	text("names that only look like the queue's would block the lock, or be deleted",
		"names that only look like the queue's would block the lock, or be deleted"),
	text("which of the names are really of this queue?",
		"which of the names are really of this queue?"),
	func(s *story) {
		names := []string{
			"lock-",
			"lock-abc",
			"lock-99999999999999999999",
			"lock--99999999999999999999",
			"lock-0000000000 ",
			"lock-0x1",
			"lock-1e3",
			"lock-٣",
			"LOCK-0000000000",
			"lock_0000000000",
			"0000000000",
			"-1",
			"замок-0000000000",
			"锁",
			"_c_",
			"_c_short",
			"_c_-lock-",
			"_c_-lock-abc",
			"_c_0123456789abcdef0123456789abcdef-lock-",
			"_c_-__WRIT__x",
			"__READ__",
			"__WRIT__",
			"__READ__99999999999999999999",
			"__lock__0000000000",
		}
		for len(names) < 1000 {
			names = append(names, fmt.Sprintf("foreign-%0192d", len(names)))
		}
		inMany := func(op func(path string) any) {
			for some := range slices.Chunk(names, 100) { // of which each multi fits the observer's buffer
				var ops []any
				for _, name := range some {
					ops = append(ops, op(s.dir+"/"+name))
				}
				if _, err := s.Observer().Multi(ops...); err != nil {
					s.Fatalf("%d foreign children: %v", len(names), err)
				}
			}
		}
		if _, err := s.Observer().Create(s.dir, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			s.Fatalf("create %s: %v", s.dir, err)
		}
		inMany(func(path string) any { return &zk.CreateRequest{Path: path, Acl: zk.WorldACL(zk.PermAll)} })
		s.join("A").Acquire().Release()
		left := slices.Sorted(slices.Values(s.Names(s.dir)))
		if slices.Sort(names); !slices.Equal(left, names) {
			s.fails("of %d foreign children, %d names are left: they are not the same", len(names), len(left))
		}
		inMany(func(path string) any { return &zk.DeleteRequest{Path: path, Version: -1} })
		s.done("A was served among %d foreign children, and they are all there", len(names))
	})

// No lock gets as far as a session. In steps 5 and 6 it is Open that says so.
var NoServer = property(
	text("a server that is none is named", "a server that is none is named"),
	text("the caller would wait for ever for an address with a typing error",
		"the caller would wait for ever for an address with a typing error"),
	text("nothing answers at the address: when does the call come back?",
		"nothing answers at the address: when does the call come back?"),
	func(s *story) {
		a := s.join("A")
		if a.Token != nil {
			s.void("there is no lock without a session")
		}
		for what, answer := range map[string]func(net.Conn){
			"nobody listens":  nil,
			"it says nothing": func(net.Conn) {},
			"it hangs up":     func(c net.Conn) { c.Close() },
		} {
			session, err := s.subject.Open(
				[]string{zktest.Impostor(s.T, answer)},
				100*time.Millisecond,
				net.DialTimeout,
			)
			if err != nil {
				s.Fatalf("%s: %v", what, err)
			}
			at := s.way(session, a.Path)
			s.says(what+": Lock", lock(at, s.Ctx), zk.ErrNoServer, a.Path)
			s.says(what+": Unlock", at.Unlock(s.Ctx), nil, a.Path)
			session.Close()
		}
		s.done("three servers that are none: Lock asked whether the address is right")
	})
