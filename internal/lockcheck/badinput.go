package lockcheck

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
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

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// BadInput holds a way to take a lock against what cannot work. Each call has to
// come back in time, with an error that names the path and says what to do, and
// to leave nothing behind.
var BadInput = []*Property{RefusedUnasked, UnlockTooMany, ClosedBefore, ClosedDuring, NoPermission,
	ChildlessParent, RepliesThatAreNone, CrowdedDirectory, NoServer}

// The properties of bad input.
var (
	RefusedUnasked = &Property{
		Name: "what cannot work is refused before anything is sent",
		Why:  "a mistake in the caller's code would come back as a riddle, or not at all",
		Hint: "what can be known to be wrong without the server's help?",
		tell: tellRefusedUnasked,
	}
	UnlockTooMany = &Property{
		Name: "an unlock without the lock says so",
		Why:  "a caller that releases what it does not hold would not know of its mistake",
		Hint: "how does Unlock know that the lock is held?",
		tell: tellUnlockTooMany,
	}
	ClosedBefore = &Property{
		Name: "a closed session is named in the error",
		Why:  "the caller would look for the mistake at the server",
		Hint: "what do the calls answer when the session is closed?",
		tell: tellClosedBefore,
	}
	ClosedDuring = &Property{
		Name: "a session closed during a call ends the call",
		Why:  "the call would wait for an answer that cannot come",
		Hint: "for what does the call wait, and does it come when the session is closed?",
		tell: tellClosedDuring,
	}
	NoPermission = &Property{
		Name: "a missing permission is named, and can be given later",
		Why:  "the holder could not get rid of a lock that it may not delete",
		Hint: "which requests does the server refuse, and what stands at the server then?",
		tell: tellNoPermission,
	}
	ChildlessParent = &Property{
		Name: "a parent that can have no children is named",
		Why:  "NoChildrenForEphemerals alone does not say which path is meant",
		Hint: "a parent is an ephemeral znode: what can the caller do?",
		tell: tellChildlessParent,
	}
	RepliesThatAreNone = &Property{
		Name: "a reply that is none does no harm",
		Why:  "a proxy or a broken server would leave a znode that nobody knows of",
		Hint: "the server has done what was asked, and the reply is nonsense: what is known?",
		tell: tellRepliesThatAreNone,
	}
	CrowdedDirectory = &Property{
		Name: "a directory full of foreign children is no obstacle",
		Why:  "names that only look like the queue's would block the lock, or be deleted",
		Hint: "which of the names are really of this queue?",
		tell: tellCrowdedDirectory,
	}
	NoServer = &Property{
		Name: "a server that is none is named",
		Why:  "the caller would wait for ever for an address with a typing error",
		Hint: "nothing answers at the address: when does the call come back?",
		tell: tellNoServer,
	}
)

// A ground is where bad input is given: the lock's znodes are in a directory of
// their own, whatever the step.
type ground struct {
	*story
	dir string
}

func (s *story) ground() ground {
	g := ground{s, s.Root + "/queue"}
	s.path = g.in(g.dir)
	return g
}

// in is the path to give to a lock whose znodes are to be in dir.
func (g ground) in(dir string) string {
	if g.subject.Znode {
		return dir + "/lock"
	}
	return dir
}

// done ends the story, if nothing is left at the server but an empty directory.
func (g ground) done(evidence string, args ...any) {
	if left := g.Names(g.dir); len(left) > 0 {
		g.fails("left in the lock's directory: %v", left)
	}
	if left := g.Names(g.Root); len(left) > 1 || len(left) == 1 && left[0] != "queue" {
		g.fails("left at the server: %v", left)
	}
	g.holds(evidence, args...)
}

// says fails the story unless err is an error of the kind wanted, if any, and
// holds all the words.
func (g ground) says(call string, err, want error, words ...string) {
	if wrong := wrongAnswer(call, err, want, words...); wrong != nil {
		g.fails("%v", wrong)
	}
}

func wrongAnswer(call string, err, want error, words ...string) error {
	if err == nil || want != nil && !errors.Is(err, want) {
		return fmt.Errorf("%s answered %v, and not an error that is %v", call, err, want)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			return fmt.Errorf("%s answered %q, which does not say %q", call, err, word)
		}
	}
	return nil
}

// hasHolds tells whether the lock is one of those whose hold is a context.
func hasHolds(w zktest.Way) bool { return w.Token != nil }

func lock(w zktest.Way, ctx context.Context) error {
	_, err := w.Lock(ctx)
	return err
}

func tellRefusedUnasked(s *story) {
	g := s.ground()
	a := s.join("A")
	mark := a.Tap.Mark()
	var none context.Context
	cancelled, cancel := context.WithCancel(s.Ctx)
	cancel()
	overdue, cancel := context.WithDeadline(s.Ctx, time.Now())
	defer cancel()

	g.says("Lock(nil)", lock(a.Way, none), nil, "the context is nil", "give context.Background()")
	g.says("Lock with a cancelled context", lock(a.Way, cancelled), context.Canceled, a.Path)
	g.says("Lock after its deadline", lock(a.Way, overdue), context.DeadlineExceeded, a.Path)
	nothing, _ := s.subject.Ways(nil, a.Path)
	g.says("Lock over nil", lock(nothing, s.Ctx), nil, "is nil: give the one that")
	for _, path := range []string{"", "/", "locks/orders", "/locks/", "//locks", "/locks//orders", "/locks/../orders", "/."} {
		at, _ := s.subject.Ways(a.Session, path)
		const advice = "want an absolute path below the root, such as /locks/orders"
		g.says("Lock", lock(at, s.Ctx), nil, strconv.Quote(path), advice)
		if s.subject.Znode || hasHolds(at) {
			g.says("Unlock", at.Unlock(s.Ctx), nil, strconv.Quote(path), advice)
		} else { // it holds nothing, whatever the path
			g.says("Unlock", at.Unlock(s.Ctx), s.subject.NotHeld, path)
		}
	}
	zero, _ := s.subject.Ways(a.Session, "/locks/\x00")
	g.says("Lock", lock(zero, s.Ctx), zk.ErrInvalidPath, "/locks/")
	if hasHolds(a.Way) {
		g.says("Unlock(nil)", a.Unlock(none), nil, "the context is nil", "what Lock returned")
		g.says("Unlock over nil", nothing.Unlock(s.Ctx), nil, "the session is nil", "Open")
	}
	if !s.subject.Znode {
		g.says("Unlock", a.Unlock(s.Ctx), s.subject.NotHeld, a.Path)
	}
	s.Barrier(a.Client)
	a.Session.Close() // waits for what is done in the background
	if sent := wiretap.Count(a.Tap.Since(mark)); sent.All() > 0 {
		s.fails("all of it was refused, and yet there were the requests %v", sent.Requests)
	}
	g.done("nil, ended contexts and bad paths were refused without a request")
}

func tellUnlockTooMany(s *story) {
	g := s.ground()
	a := s.join("A")
	g.says("Unlock before Lock", a.Unlock(s.Ctx), s.subject.NotHeld, a.Path)
	turn := a.Acquire()
	turn.Release()
	g.says("a second Unlock", a.Unlock(turn.Held()), s.subject.NotHeld, a.Path)
	g.done("before Lock, and a second time, Unlock answered %q", s.subject.NotHeld)
}

func tellClosedBefore(s *story) {
	g := s.ground()
	a := s.join("A")
	held := a.Acquire().Held()
	a.Session.Close()
	g.says("Unlock after Close", a.Unlock(held), s.subject.Lost, a.Path)
	g.says("Lock after Close", lock(a.Way, s.Ctx), nil, a.Path, "closed")
	g.sweep()
	g.done("after Close, Unlock answered %q, and Lock that the session is closed", s.subject.Lost)
}

// sweep removes a znode that outlives its session, as step 1's does.
func (g ground) sweep() {
	if g.subject.Znode {
		_ = g.Observer().Delete(g.path, -1)
	}
}

// While a call waits for the answer to its create, list or read, while it stands
// in the queue, or waits for the answer to its delete, the session is closed.
func tellClosedDuring(s *story) {
	g := s.ground()
	for what, ctx := range map[string]context.Context{"a context": s.Ctx, "context.Background()": context.Background()} {
		for _, op := range []wiretap.Op{wiretap.Create, wiretap.GetChildren, wiretap.GetData} {
			b, a := s.writer("B"), s.join("A")
			b.Acquire()
			mark, reply := a.Tap.Mark(), a.Tap.HoldReply(op, 1)
			call := a.Call(func(context.Context) (context.Context, error) { return a.Lock(ctx) })
			s.Await(fmt.Sprintf("the reply to A's %v, an answer, or A to wait", op), func() bool {
				silently, polls := a.Tap.Waiting(mark)
				select {
				case <-reply.Sprung():
					return true
				default:
					return silently || polls || call.Returned()
				}
			})
			closeDuring(a, call, reply)
			g.says(fmt.Sprintf("Lock with %s, closed at %v,", what, op), call.Err(), nil, a.Path)
			b.Session.Close()
			g.sweep()
		}
	}
	a := s.join("A")
	held := a.Acquire().Held()
	reply := a.Tap.HoldReply(wiretap.Delete, 1)
	unlock := s.Go(a.Client, func(context.Context) error { return a.Unlock(held) })
	zktest.AwaitChan(s.Zoo, "the server to carry out A's delete", reply.Sprung())
	closeDuring(a, unlock, reply)
	g.says("Unlock, closed at its delete,", unlock.Err(), s.subject.Lost, a.Path)
	g.done("closed during each request and while it waited, each call came back and named the path")
}

// writer brings a client that lets nobody in beside it.
func (s *story) writer(name string) *zktest.Member {
	if s.subject.whole == nil {
		return s.join(name)
	}
	return s.subject.whole.JoinAs(s.Zoo, name, Seat{Path: s.path})
}

// closeDuring closes the session while the call is under way and a reply on hold,
// which is let go once the call has come back.
func closeDuring(a *zktest.Member, call *zktest.Turn, reply *wiretap.Trap) {
	closed := make(chan struct{})
	go func() {
		a.Session.Close()
		close(closed)
	}()
	_ = call.Err()
	reply.Let()
	<-closed
}

func tellNoPermission(s *story) {
	g := s.ground()
	a := s.join("A")
	_, err := s.Observer().Create(g.dir, nil, 0, zk.WorldACL(zk.PermAll))
	without := func(permission int32) {
		if err == nil {
			_, err = s.Observer().SetACL(g.dir, zk.WorldACL(zk.PermAll&^permission), -1)
		}
		if err != nil {
			s.Fatalf("the ACL of %s: %v", g.dir, err)
		}
	}
	advice := []string{a.Path, "look at the ACL there", "AddAuth"}
	without(zk.PermCreate)
	g.says("Lock without the permission to create", lock(a.Way, s.Ctx), zk.ErrNoAuth, advice...)
	if !s.subject.Znode { // which asks for no list
		without(zk.PermRead)
		g.says("Lock without the permission to read", lock(a.Way, s.Ctx), zk.ErrNoAuth, advice...)
		without(0)
		s.Await("the znode of a caller who must not look to be removed", func() bool { return len(s.Names(g.dir)) == 0 })
	}
	without(zk.PermDelete)
	held := a.Acquire().Held()
	znode := g.dir + "/" + s.Names(g.dir)[0]
	g.says("Unlock without the permission to delete", a.Unlock(held), zk.ErrNoAuth, append(advice, znode)...)
	without(0)
	if err := a.Unlock(held); err != nil {
		s.fails("Unlock, called again once it is permitted, answered: %v", err)
	}
	g.done("without the permission to create, read or delete each call said so, and Unlock worked once it was permitted")
}

func tellChildlessParent(s *story) {
	g := s.ground()
	parent := s.Root + "/ephemeral"
	if _, err := s.Observer().Create(parent, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		s.Fatalf("create %s: %v", parent, err)
	}
	a := s.join("A")
	for _, path := range []string{parent + "/lock", parent + "/locks/lock"} {
		at, _ := s.subject.Ways(a.Session, path)
		g.says("Lock", lock(at, s.Ctx), zk.ErrNoChildrenForEphemerals, "zklock: lock "+path, "ephemeral", "choose another path")
	}
	_ = s.Observer().Delete(parent, -1)
	g.done("below an ephemeral znode, Lock said that another path is needed")
}

// A server that turns out to be none: it has done what was asked, and instead of
// its reply comes something else. The client itself makes room for any length
// that a frame claims, and panics if a frame is too short, and nobody reads the
// frames before it does: such frames are not tried.
func tellRepliesThatAreNone(s *story) {
	g := s.ground()
	var telling sync.WaitGroup // most of the time is spent waiting
	wrong := make(chan error, len(lies))
	for what, lie := range lies {
		telling.Go(func() { wrong <- g.lied(what, &liar{says: lie.says, hangs: lie.hangs}) })
	}
	telling.Wait()
	close(wrong)
	var all error
	for err := range wrong {
		all = errors.Join(all, err)
	}
	if all != nil {
		s.fails("%v", all)
	}
	g.done("%d kinds of lies: the calls came back, and left nothing", len(lies))
}

// lied tells of one lie. What goes wrong ends it.
func (g ground) lied(what string, liar *liar) error {
	const always = 1 << 30
	dir := g.dir + "/" + strings.ReplaceAll(what, " ", "-")
	a := g.subject.JoinAs(g.Zoo, "A", Seat{Timeout: zktest.MortalTimeout, Path: g.in(dir), Through: liar.over})
	cleared := func(when string) {
		g.Await(what+": the znode of "+when+" to go", func() bool { return len(g.Names(dir)) == 0 })
	}
	nobodyKnows := []string{a.Path, "nobody knows", "look at the znodes there"}

	// The call that takes the lock is lied to each time, and gives up.
	liar.lies.Store(always)
	ctx, cancel := context.WithTimeout(g.Ctx, 200*time.Millisecond)
	defer cancel()
	err := lock(a.Way, ctx)
	liar.lies.Store(0)
	if hasHolds(a.Way) {
		err = wrongAnswer("Lock", err, context.DeadlineExceeded, a.Path)
	} else {
		err = wrongAnswer("Lock", err, zk.ErrConnectionClosed, nobodyKnows...)
		for _, name := range g.Names(dir) { // as it says
			_ = g.Observer().Delete(dir+"/"+name, -1)
		}
	}
	if err != nil {
		return fmt.Errorf("%s, each time: %w", what, err)
	}
	cleared("the call that gave up")

	// Both calls are lied to once.
	if hasHolds(a.Way) {
		liar.lies.Store(1)
	}
	held, err := a.Lock(g.Ctx)
	if err != nil {
		return fmt.Errorf("%s, once: Lock answered %w", what, err)
	}
	liar.lies.Store(1)
	err = a.Unlock(held)
	if !hasHolds(a.Way) {
		err = errors.Join(wrongAnswer("Unlock", err, zk.ErrConnectionClosed, nobodyKnows...),
			wrongAnswer("Unlock again", a.Unlock(held), zk.ErrNoNode, a.Path))
	}
	if err != nil {
		return fmt.Errorf("%s, once: %w", what, err)
	}

	// The release is lied to each time: it gives up after a session time-out.
	if hasHolds(a.Way) {
		if held, err = a.Lock(g.Ctx); err != nil {
			return fmt.Errorf("%s, before the release: Lock answered %w", what, err)
		}
		liar.lies.Store(always)
		err = wrongAnswer("Unlock", a.Unlock(held), g.subject.Lost, a.Path)
		liar.lies.Store(0)
	}
	cleared("the release that gave up")
	_ = g.Observer().Delete(dir, -1)
	return err
}

// lies are what comes instead of a reply.
var lies = map[string]struct {
	says  string
	hangs bool
}{
	"it closes":             {"", false},
	"it hangs":              {"", true},
	"an answer to nobody":   {"\x00\x00\x00\x14" + "aaaa" + "\x00\x00\x00\x00\x00\x00\x00\x00" + "ccccdddd", false},
	"half a frame's length": {"\x00\x00", false},
}

// A liar stands between a client and its server. It lets the handshake pass, and
// as long as it has lies to tell, it tells one instead of the next reply.
type liar struct {
	says  string
	hangs bool // and does not close the connection then
	lies  atomic.Int32
}

func (l *liar) over(tap zk.Dialer) zk.Dialer {
	return zktest.Over(func(c net.Conn) net.Conn { return &lying{Conn: c, liar: l} })(tap)
}

type lying struct {
	net.Conn
	liar       *liar
	handshaken bool
	lied       bool
	unread     []byte
}

func (c *lying) Read(b []byte) (int, error) {
	for len(c.unread) == 0 {
		if c.lied && c.liar.hangs { // until the client loses patience, or hangs up
			_, err := io.Copy(io.Discard, c.Conn)
			return 0, cmp.Or(err, io.EOF)
		}
		if c.lied {
			return 0, io.EOF
		}
		head := make([]byte, 4)
		if _, err := io.ReadFull(c.Conn, head); err != nil {
			return 0, err
		}
		frame := append(head, make([]byte, binary.BigEndian.Uint32(head))...)
		if _, err := io.ReadFull(c.Conn, frame[4:]); err != nil {
			return 0, err
		}
		c.unread = frame
		ping := binary.BigEndian.Uint32(frame[4:]) == 0xfffffffe
		if c.handshaken && !ping && c.liar.lies.Add(-1) >= 0 {
			c.unread, c.lied = []byte(c.liar.says), true
		}
		c.handshaken = true
	}
	n := copy(b, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}

// The directory has 1,000 children of somebody else, with names of 200
// characters, and some that look like the queue's.
func tellCrowdedDirectory(s *story) {
	g := s.ground()
	names := []string{"lock-", "_c_", "_c_short", "_c_-lock-", "_c_-lock-abc", "lock-99999999999999999999", "lock--99999999999999999999",
		"lock-0000000000 ", "lock-0x1", "lock-1e3", "lock-٣", "LOCK-0000000000", "lock_0000000000", "0000000000", "-1", "замок-0000000000", "锁",
		"__READ__", "__WRIT__", "_c_-__WRIT__x", "__READ__99999999999999999999", "__lock__0000000000", "_c_0123456789abcdef0123456789abcdef-lock-"}
	for len(names) < 1000 {
		names = append(names, fmt.Sprintf("foreign-%0192d", len(names)))
	}
	inMany := func(op func(path string) any) {
		for some := range slices.Chunk(names, 100) { // of which each multi fits the observer's buffer
			var ops []any
			for _, name := range some {
				ops = append(ops, op(g.dir+"/"+name))
			}
			if _, err := s.Observer().Multi(ops...); err != nil {
				s.Fatalf("%d foreign children: %v", len(names), err)
			}
		}
	}
	if _, err := s.Observer().Create(g.dir, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		s.Fatalf("create %s: %v", g.dir, err)
	}
	inMany(func(path string) any { return &zk.CreateRequest{Path: path, Acl: zk.WorldACL(zk.PermAll)} })
	s.join("A").Acquire().Release()
	left := slices.Sorted(slices.Values(s.Names(g.dir)))
	if slices.Sort(names); !slices.Equal(left, names) {
		s.fails("of %d foreign children, %d names are left: they are not the same", len(names), len(left))
	}
	inMany(func(path string) any { return &zk.DeleteRequest{Path: path, Version: -1} })
	g.done("A was served among %d foreign children, and they are all there", len(names))
}

// No lock gets as far as a session. In steps 5 and 6 it is Open that says so.
func tellNoServer(s *story) {
	g := s.ground()
	a := s.join("A")
	if hasHolds(a.Way) {
		s.void("there is no lock without a session")
	}
	for what, answer := range map[string]func(net.Conn){
		"nobody listens":  nil,
		"it says nothing": func(net.Conn) {},
		"it hangs up":     func(c net.Conn) { c.Close() },
	} {
		session, err := s.subject.Open([]string{Impostor(s.T, answer)}, 100*time.Millisecond, net.DialTimeout)
		if err != nil {
			s.Fatalf("%s: %v", what, err)
		}
		at, _ := s.subject.Ways(session, a.Path)
		g.says(what+": Lock", lock(at, s.Ctx), zk.ErrNoServer, a.Path, "is the address right", "does ZooKeeper run")
		g.says(what+": Unlock", at.Unlock(s.Ctx), nil, a.Path)
		session.Close()
	}
	g.done("three servers that are none: Lock asked whether the address is right")
}

// Impostor listens on a free port until the test ends, and answers each
// connection once it has asked something. With a nil answer it gives the port
// back.
func Impostor(t zktest.T, answer func(net.Conn)) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("%v", err)
	}
	if answer == nil {
		l.Close()
		return l.Addr().String()
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := c.Read(make([]byte, 100)); err != nil {
					return
				}
				answer(c)
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	return l.Addr().String()
}
