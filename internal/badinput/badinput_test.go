// Package badinput holds the public calls of all six steps against what cannot
// work: each has to come back in time, with an error that names the path or the
// address and says what to do, and to leave nothing behind.
package badinput

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"math"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
	plainnode "zklock/step01_plain_node"
	sequentialspin "zklock/step02_sequential_spin"
	childrenwatch "zklock/step03_children_watch"
	predecessorwatch "zklock/step04_predecessor_watch"
	reentrant "zklock/step05_reentrant"
	sharedlock "zklock/step06_shared_lock"
)

func TestMain(m *testing.M) { zktest.Main(m) }

var steps = [...]string{1: "step01_plain_node", "step02_sequential_spin", "step03_children_watch",
	"step04_predecessor_watch", "step05_reentrant", "step06_shared_lock"}

// A way to take a lock and to release it is a row of the table. The tests are
// its columns.
type way struct {
	step    int
	calls   string // what is called, as go doc names it
	open    opener
	at      func(l link, path string) door
	notHeld error // what a release has to say to a caller who holds nothing
}

// A link is what a lock is made over: a *zk.Conn or a Session, which is nil
// where the link is.
type link interface{ Close() }

type opener func(servers []string, timeout time.Duration, dial zk.Dialer) (link, error)

// A door is a lock as one client has it.
type door struct {
	lock   func(context.Context) (held context.Context, err error)
	unlock func(held context.Context) error
}

var table = []way{
	{1, "New Lock.Lock Lock.Unlock", connect, over(plainnode.New), zk.ErrNoNode},
	{1, "NewEphemeral Lock.Lock Lock.Unlock", connect, over(plainnode.NewEphemeral), zk.ErrNoNode},
	{2, "New Lock.Lock Lock.Unlock", connect, over(sequentialspin.New), sequentialspin.ErrNotHeld},
	{3, "New Lock.Lock Lock.Unlock", connect, over(childrenwatch.New), childrenwatch.ErrNotHeld},
	{4, "New Lock.Lock Lock.Unlock", connect, over(predecessorwatch.New), predecessorwatch.ErrNotHeld},
	{5, "New Lock.Lock Lock.Unlock", open5, mutex((*reentrant.Lock).Lock), reentrant.ErrNotHeld},
	{5, "New Lock.TryLock Lock.Unlock", open5, mutex(try((*reentrant.Lock).TryLock, 0)), reentrant.ErrNotHeld},
	{5, "New Lock.TryLock(wait) Lock.Unlock", open5, mutex(try((*reentrant.Lock).TryLock, time.Hour)), reentrant.ErrNotHeld},
	{5, "NewCohort Cohort.Lock Cohort.Unlock", open5, cohort((*reentrant.Cohort).Lock), reentrant.ErrNotHeld},
	{5, "NewCohort Cohort.TryLock Cohort.Unlock", open5, cohort(try((*reentrant.Cohort).TryLock, 0)), reentrant.ErrNotHeld},
	{5, "NewCohort Cohort.TryLock(wait) Cohort.Unlock", open5, cohort(try((*reentrant.Cohort).TryLock, time.Hour)), reentrant.ErrNotHeld},
	{6, "New RWLock.Lock RWLock.Unlock", open6, writer((*sharedlock.RWLock).Lock), sharedlock.ErrNotHeld},
	{6, "New RWLock.TryLock RWLock.Unlock", open6, writer(try((*sharedlock.RWLock).TryLock, 0)), sharedlock.ErrNotHeld},
	{6, "New RWLock.TryLock(wait) RWLock.Unlock", open6, writer(try((*sharedlock.RWLock).TryLock, time.Hour)), sharedlock.ErrNotHeld},
	{6, "New RWLock.RLock RWLock.RUnlock", open6, reader((*sharedlock.RWLock).RLock), sharedlock.ErrNotHeld},
	{6, "New RWLock.TryRLock RWLock.RUnlock", open6, reader(try((*sharedlock.RWLock).TryRLock, 0)), sharedlock.ErrNotHeld},
	{6, "New RWLock.TryRLock(wait) RWLock.RUnlock", open6, reader(try((*sharedlock.RWLock).TryRLock, time.Hour)), sharedlock.ErrNotHeld},
}

// The calls that take no lock have tests of their own.
var others = map[int]string{
	5: "Open WithDialer Token " + methods,
	6: "Open WithDialer Token " + methods,
}

const methods = "Session.Ask Session.Close Session.Closed Session.Conn Session.Go Session.Keep Session.Lease Session.Prove Session.Retry Session.Timeout"

func TestEveryPublicCallIsHere(t *testing.T) {
	for step, dir := range steps {
		if dir == "" {
			continue
		}
		tested := map[string]bool{}
		for _, name := range strings.Fields(others[step]) {
			tested[name] = true
		}
		for _, w := range table {
			for _, name := range strings.Fields(w.calls) {
				if name, _, _ = strings.Cut(name, "("); w.step == step {
					tested[name] = true
				}
			}
		}
		public, have := publicCalls(t, "../../"+dir), slices.Sorted(maps.Keys(tested))
		if !slices.Equal(public, have) {
			t.Errorf("%s: its public calls are\n%v, bad input is given to\n%v", dir, public, have)
		}
	}
}

// publicCalls names the exported functions and methods of the package in dir.
func publicCalls(t *testing.T, dir string) (calls []string) {
	t.Helper()
	files := token.NewFileSet()
	paths, err := filepath.Glob(dir + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var parsed []*ast.File
	for _, path := range paths {
		f, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(path, "_test.go") {
			parsed = append(parsed, f)
		}
	}
	pkg, err := doc.NewFromFiles(files, parsed, dir)
	if err != nil {
		t.Fatal(err)
	}
	functions := pkg.Funcs
	for _, typ := range pkg.Types {
		functions = append(functions, typ.Funcs...)
		for _, method := range typ.Methods {
			calls = append(calls, typ.Name+"."+method.Name)
		}
	}
	for _, f := range functions {
		calls = append(calls, f.Name)
	}
	slices.Sort(calls)
	return calls
}

// ---- The columns.

func TestWhatIsRefusedWithoutAsking(t *testing.T) {
	eachWay(t, func(t *testing.T, z *zktest.Zoo, w way) {
		a := w.join(z, "A")
		mark := a.Tap.Mark()
		var none context.Context
		cancelled, cancel := context.WithCancel(z.Ctx)
		cancel()
		overdue, cancel := context.WithDeadline(z.Ctx, time.Now())
		defer cancel()

		says(t, lock(a.door, none), nil, "the context is nil", "give context.Background()")
		says(t, lock(a.door, cancelled), context.Canceled, a.path)
		says(t, lock(a.door, overdue), context.DeadlineExceeded, a.path)
		says(t, lock(w.at(nil, a.path), z.Ctx), nil, "is nil: give the one that")
		for _, path := range []string{"", "/", "locks/orders", "/locks/", "//locks", "/locks//orders", "/locks/../orders", "/."} {
			at, advice := w.at(a.link, path), "want an absolute path below the root, such as /locks/orders"
			says(t, lock(at, z.Ctx), nil, strconv.Quote(path), advice)
			if w.step == 1 || w.step >= 5 {
				says(t, at.unlock(z.Ctx), nil, strconv.Quote(path), advice)
			} else { // it holds nothing, whatever the path
				says(t, at.unlock(z.Ctx), w.notHeld, path)
			}
		}
		says(t, lock(w.at(a.link, "/locks/\x00"), z.Ctx), zk.ErrInvalidPath, "/locks/")
		if w.step >= 5 {
			says(t, a.unlock(none), nil, "the context is nil", "what Lock returned")
			says(t, w.at(nil, a.path).unlock(z.Ctx), nil, "the session is nil", "Open")
		}
		if w.step > 1 {
			says(t, a.unlock(z.Ctx), w.notHeld, a.path)
		}
		z.Barrier(a.Client)
		a.link.Close() // waits for what is done in the background
		if sent := wiretap.Count(a.Tap.Since(mark)); sent.All() > 0 {
			t.Errorf("requests were sent: %v", sent.Requests)
		}
	})
}

func TestAReleaseTooMany(t *testing.T) {
	eachWay(t, func(t *testing.T, z *zktest.Zoo, w way) {
		a := w.join(z, "A")
		says(t, a.unlock(z.Ctx), w.notHeld, a.path)
		held := a.holds(t, z)
		if err := a.unlock(held); err != nil {
			t.Error(err)
		}
		says(t, a.unlock(held), w.notHeld, a.path)
	})
}

func TestASessionClosedBefore(t *testing.T) {
	eachWay(t, func(t *testing.T, z *zktest.Zoo, w way) {
		a := w.join(z, "A")
		held := a.holds(t, z)
		a.link.Close()
		says(t, a.unlock(held), w.closed(), a.path)
		says(t, lock(a.door, z.Ctx), nil, a.path, "closed")
		w.wasClosed(z)
	})
}

// While a call waits for an answer, or stands in the queue, the session is
// closed. Requests and replies are held to make it so.
func TestASessionClosedDuringTheCall(t *testing.T) {
	eachWay(t, func(t *testing.T, z *zktest.Zoo, w way) {
		for _, ctx := range []context.Context{z.Ctx, context.Background()} { // one that can end, and one that cannot
			for _, op := range w.asks() {
				b := w.holder(z)
				a := w.join(z, "A")
				reply := a.Tap.HoldReply(op, 1)
				call := z.Go(a.Client, func(context.Context) error { return lock(a.door, ctx) })
				z.Await(fmt.Sprintf("the reply to A's %v, or an answer", op), func() bool {
					select {
					case <-reply.Sprung():
						return true
					default:
						return call.Returned()
					}
				})
				a.closeDuring(call, reply)
				says(t, call.Err(), nil, a.path)
				b.link.Close()
				w.wasClosed(z)
			}
		}

		b := w.holder(z)
		a := w.join(z, "A")
		call := z.Go(a.Client, func(ctx context.Context) error { return lock(a.door, ctx) })
		call.Waits()
		a.link.Close()
		says(t, call.Err(), nil, a.path)
		b.link.Close()
		w.wasClosed(z)

		a = w.join(z, "A")
		held := a.holds(t, z)
		reply := a.Tap.HoldReply(wiretap.Delete, 1)
		call = z.Go(a.Client, func(context.Context) error { return a.unlock(held) })
		zktest.AwaitChan(z, "the server to carry out A's delete", reply.Sprung())
		a.closeDuring(call, reply)
		says(t, call.Err(), w.closed(), a.path)
	})
}

func TestNoPermission(t *testing.T) {
	eachWay(t, func(t *testing.T, z *zktest.Zoo, w way) {
		a := w.join(z, "A")
		if _, err := z.Observer().Create(w.dir(z), nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		without := func(permission int32) {
			if _, err := z.Observer().SetACL(w.dir(z), zk.WorldACL(zk.PermAll&^permission), -1); err != nil {
				t.Fatal(err)
			}
		}
		advice := []string{a.path, "look at the ACL there", "AddAuth"}
		without(zk.PermCreate)
		says(t, lock(a.door, z.Ctx), zk.ErrNoAuth, advice...)
		if w.step > 1 { // which asks for no list
			without(zk.PermRead)
			says(t, lock(a.door, z.Ctx), zk.ErrNoAuth, advice...)
			without(0)
			z.Await("the znode of a caller who must not look to be removed", func() bool { return len(z.Names(w.dir(z))) == 0 })
		}

		without(zk.PermDelete)
		held := a.holds(t, z)
		node := w.dir(z) + "/" + z.Names(w.dir(z))[0]
		says(t, a.unlock(held), zk.ErrNoAuth, append(advice, node)...)
		without(0)
		if err := a.unlock(held); err != nil {
			t.Errorf("Unlock, called again once it is permitted: %v", err)
		}
	})
}

func TestAParentThatCanHaveNoChildren(t *testing.T) {
	eachWay(t, func(t *testing.T, z *zktest.Zoo, w way) {
		parent := z.Root + "/ephemeral"
		if _, err := z.Observer().Create(parent, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		a := w.join(z, "A")
		says(t, lock(w.at(a.link, parent+"/lock"), z.Ctx), zk.ErrNoChildrenForEphemerals, parent+"/lock", "ephemeral", "choose another path")
		_ = z.Observer().Delete(parent, -1)
	})
}

// A server that turns out to be none: it has done what was asked, and instead of
// its reply comes something else. The client itself makes room for any length
// that a frame claims, and panics if a frame is too short, and nobody reads the
// frames before it does: such frames are not tried.
func TestAReplyThatIsNone(t *testing.T) {
	eachWay(t, func(t *testing.T, z *zktest.Zoo, w way) {
		var telling sync.WaitGroup // most of the time is spent waiting
		for what, lie := range lies {
			telling.Go(func() { aReplyThatIsNone(t, z, w, what, &liar{says: lie.says, hangs: lie.hangs}) })
		}
		telling.Wait()
	})
}

func aReplyThatIsNone(t *testing.T, z *zktest.Zoo, w way, what string, liar *liar) {
	const always = 1 << 30
	dir := w.dir(z) + "/" + strings.ReplaceAll(what, " ", "-")
	a := w.joinAt(z, "A", zktest.MortalTimeout, w.in(dir), liar.dial)

	// The call that takes the lock is lied to each time, and gives up.
	liar.lies.Store(always)
	ctx, cancel := context.WithTimeout(z.Ctx, 200*time.Millisecond)
	defer cancel()
	err := lock(a.door, ctx)
	liar.lies.Store(0)
	if w.step >= 5 {
		says(t, err, context.DeadlineExceeded, a.path)
	} else {
		says(t, err, zk.ErrConnectionClosed, a.path, "nobody knows", "look at the znodes there")
		for _, name := range z.Names(dir) { // as it says
			_ = z.Observer().Delete(dir+"/"+name, -1)
		}
	}
	z.Await(what+": the znode of the call that gave up to go", func() bool { return len(z.Names(dir)) == 0 })

	// Both calls are lied to once.
	if w.step >= 5 {
		liar.lies.Store(1)
	}
	held := a.holds(t, z)
	liar.lies.Store(1)
	switch err := a.unlock(held); {
	case w.step < 5:
		says(t, err, zk.ErrConnectionClosed, a.path, "nobody knows", "look at the znodes there")
		says(t, a.unlock(held), zk.ErrNoNode, a.path)
	case err != nil:
		t.Errorf("%s, once, and Unlock answers %v", what, err)
	}

	// The release is lied to each time: it gives up after a session time-out.
	if w.step >= 5 {
		held := a.holds(t, z)
		liar.lies.Store(always)
		says(t, a.unlock(held), w.closed(), a.path)
		liar.lies.Store(0)
	}
	z.Await(what+": the znode of the release that gave up to go", func() bool { return len(z.Names(dir)) == 0 })
	_ = z.Observer().Delete(dir, -1)
}

// One directory with 10,000 children of somebody else, some of which look like
// the queue's, serves all.
func TestADirectoryFullOfForeignChildren(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	z.Root += "/full"
	names := []string{"lock-", "_c_", "_c_short", "_c_-lock-", "_c_-lock-abc", "lock-99999999999999999999", "lock--99999999999999999999",
		"lock-0000000000 ", "lock-0x1", "lock-1e3", "lock-٣", "LOCK-0000000000", "lock_0000000000", "0000000000", "-1", "замок-0000000000", "锁",
		"__READ__", "__WRIT__", "_c_-__WRIT__x", "__READ__99999999999999999999", "__lock__0000000000", "_c_0123456789abcdef0123456789abcdef-lock-"}
	for len(names) < 10_000 {
		names = append(names, fmt.Sprintf("foreign-%07d", len(names)))
	}
	inMany := func(op func(path string) any) {
		for some := range slices.Chunk(names, 250) { // of which each multi fits the observer's buffer
			var ops []any
			for _, name := range some {
				ops = append(ops, op(z.Root+"/"+name))
			}
			if _, err := z.Observer().Multi(ops...); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := z.Observer().Create(z.Root, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	inMany(func(path string) any { return &zk.CreateRequest{Path: path, Acl: zk.WorldACL(zk.PermAll)} })
	t.Cleanup(func() { inMany(func(path string) any { return &zk.DeleteRequest{Path: path, Version: -1} }) })
	slices.Sort(names)
	for _, w := range table {
		a := w.joinAt(z, "A", zktest.SessionTimeout, w.in(z.Root), nil)
		if err := a.unlock(a.holds(t, z)); err != nil {
			t.Errorf("%v: %v", w, err)
		}
		a.link.Close()
		if left := slices.Sorted(slices.Values(z.Names(z.Root))); !slices.Equal(left, names) {
			t.Errorf("%v: of %d foreign children, %d names are left: they are not the same", w, len(names), len(left))
		}
	}
}

// No lock gets as far as a session. Where the client is the caller's, only what
// sends no frame is tried, as above.
func TestAServerThatIsNone(t *testing.T) {
	for what, answer := range map[string]func(net.Conn){
		"nobody listens":  nil,
		"it says nothing": func(net.Conn) {},
		"it hangs up":     func(c net.Conn) { c.Close() },
	} {
		t.Run(strings.ReplaceAll(what, " ", "_"), func(t *testing.T) {
			t.Parallel()
			z := zktest.New(t)
			address := serve(t, answer)
			var calls sync.WaitGroup
			for _, w := range table {
				if w.step >= 5 { // there, Open says it
					continue
				}
				calls.Go(func() {
					l, err := w.open([]string{address}, 100*time.Millisecond, net.DialTimeout)
					if err != nil {
						t.Error(err)
						return
					}
					defer l.Close()
					path := w.in(w.dir(z))
					at := w.at(l, path)
					says(t, lock(at, z.Ctx), zk.ErrNoServer, path, "is the address right", "does ZooKeeper run")
					says(t, at.unlock(z.Ctx), nil, path)
				})
			}
			calls.Wait()
		})
	}
}

// ---- The calls that take no lock.

var anywhere = []string{"127.0.0.1:2181"}

// A session is opened in one way in both steps that have one.
var sessions = map[string]struct {
	open                 func(servers []string, timeout time.Duration) (link, error)
	nilOption, nilDialer func() (link, error)
	token                func(context.Context) (int64, bool)
	lost                 error
}{
	steps[5]: {
		func(servers []string, timeout time.Duration) (link, error) { return reentrant.Open(servers, timeout) },
		func() (link, error) { return reentrant.Open(anywhere, time.Second, nil) },
		func() (link, error) { return reentrant.Open(anywhere, time.Second, reentrant.WithDialer(nil)) },
		reentrant.Token, reentrant.ErrLost,
	},
	steps[6]: {
		func(servers []string, timeout time.Duration) (link, error) { return sharedlock.Open(servers, timeout) },
		func() (link, error) { return sharedlock.Open(anywhere, time.Second, nil) },
		func() (link, error) { return sharedlock.Open(anywhere, time.Second, sharedlock.WithDialer(nil)) },
		sharedlock.Token, sharedlock.ErrLost,
	},
}

func TestOpenRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	for _, s := range sessions {
		for _, c := range []struct {
			servers []string
			timeout time.Duration
			says    []string
		}{
			{nil, time.Second, []string{"servers []", "want host:port"}},
			{anywhere, 0, []string{"time-out 0s", "want host:port and 1ms to"}},
			{anywhere, -time.Second, []string{"time-out -1s"}},
			{anywhere, time.Microsecond, []string{"time-out 1µs"}},
			{anywhere, math.MaxInt64, []string{"time-out 2562047h47m16.854775807s"}},
			{[]string{"no-such-host.invalid:2181"}, time.Second, []string{"connect to", "no-such-host.invalid"}},
			{[]string{"::1::"}, time.Second, []string{"connect to", "::1::"}},
		} {
			_, err := s.open(c.servers, c.timeout)
			says(t, err, nil, c.says...)
		}
		_, err := s.nilOption()
		says(t, err, nil, "an option is nil", "leave it out")
		_, err = s.nilDialer()
		says(t, err, nil, "the dialer is nil", "leave WithDialer out")
	}
}

// Each of these is something else than a ZooKeeper. Open says what it met. It
// takes its ten seconds, and so all are opened at the same time.
func TestOpenSaysWhatKeptItFromASession(t *testing.T) {
	t.Parallel()
	// granted is an answer to the handshake: a session, with a time-out of t ms.
	granted := func(ms int) string {
		b := binary.BigEndian.AppendUint32(nil, 36)
		b = binary.BigEndian.AppendUint32(b, 0)
		b = binary.BigEndian.AppendUint32(b, uint32(ms))
		b = binary.BigEndian.AppendUint64(b, 7)
		return string(append(binary.BigEndian.AppendUint32(b, 16), make([]byte, 16)...))
	}
	said := func(text string) func(net.Conn) {
		return func(c net.Conn) { _, _ = io.WriteString(c, text) }
	}
	const notZooKeeper = "this is not ZooKeeper"
	var opening sync.WaitGroup
	for what, c := range map[string]struct {
		answer func(net.Conn)
		says   string
	}{
		"nobody listens":      {nil, "connection refused"},
		"it says nothing":     {said(""), "did not answer the handshake"},
		"it hangs up":         {func(c net.Conn) { c.Close() }, "did not answer the handshake"},
		"it speaks HTTP":      {said("HTTP/1.1 400 Bad Request\r\n\r\n"), `answered the handshake with "HTTP/1.1`},
		"a frame of 2 GB":     {said("\x7f\xff\xff\xff" + granted(1000)[4:]), notZooKeeper},
		"a frame of -1 bytes": {said("\xff\xff\xff\xff" + granted(1000)[4:]), notZooKeeper},
		"a frame too short":   {said("\x00\x00\x00\x04" + granted(1000)[4:]), notZooKeeper},
		"no password":         {said("\x00\x00\x00\x10" + granted(1000)[4:20]), "zk: buffer too small"},
		"a time-out of 0":     {said(granted(0)), notZooKeeper},
		"a negative time-out": {said(granted(-1000)), notZooKeeper},
		"only half an answer": {said(granted(1000)[:10]), "did not answer the handshake"},
	} {
		for step, s := range sessions {
			address := serve(t, c.answer)
			opening.Go(func() {
				_, err := s.open([]string{address}, zktest.MortalTimeout) // a busy machine must not be what it met
				says(t, fmt.Errorf("%s: %s: %w", step, what, err), nil, "no session after 10s", "does ZooKeeper run at", address, c.says)
			})
		}
	}
	opening.Wait()
}

func TestCloseTwiceAndWhatIsLeftOfASession(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	for step, s := range sessions {
		l, err := s.open(z.Servers(), zktest.SessionTimeout)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		l.Close()
		if _, _, err := l.(interface{ Conn() *zk.Conn }).Conn().Exists(z.Root); !errors.Is(err, zk.ErrConnectionClosed) {
			t.Errorf("%s: a closed session's connection answers %v", step, err)
		}
	}
}

// session is what both steps' sessions offer to a lock.
type session interface {
	Ask() error
	Close()
	Closed() bool
	Conn() *zk.Conn
	Go(func()) bool
	Keep(lease context.Context) (rest func())
	Lease() context.Context
	Prove(write func() error) error
	Retry(error) bool
	Timeout() time.Duration
}

// A lock may use its session after the end of it.
func TestAClosedSessionsMethods(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	for step, opened := range sessions {
		l, err := opened.open(z.Servers(), zktest.SessionTimeout)
		if err != nil {
			t.Fatal(err)
		}
		s := l.(session)
		lease := s.Lease()
		rest := s.Keep(lease)
		waiting := make(chan struct{})
		if s.Closed() || lease.Err() != nil || !s.Go(func() { <-waiting }) {
			t.Errorf("%s: a session that is open: closed %v, its lease %v", step, s.Closed(), lease.Err())
		}
		closed := make(chan struct{})
		go func() {
			s.Close()
			close(closed)
		}()
		zktest.AwaitChan(z, "the lease to end", lease.Done())
		close(waiting)
		zktest.AwaitChan(z, "Close to return, while the lease is kept", closed)

		if cause := context.Cause(lease); cause != opened.lost {
			t.Errorf("%s: its lease ended with %v", step, cause)
		}
		says(t, s.Ask(), zk.ErrConnectionClosed)
		own := errors.New("the write's own error")
		says(t, s.Prove(func() error { return own }), own)
		for _, err := range []error{nil, zk.ErrConnectionClosed, zk.ErrClosing, zk.ErrNoAuth} {
			if s.Retry(err) {
				t.Errorf("%s: closed, and %v is to be tried again", step, err)
			}
		}
		if err := s.Prove(func() error { return nil }); err != nil || s.Lease().Err() == nil {
			t.Errorf("%s: closed, and a write's answer (%v) begins a lease", step, err)
		}
		if !s.Closed() || s.Go(func() { t.Errorf("%s: closed, and begins something", step) }) || s.Timeout() != zktest.SessionTimeout {
			t.Errorf("%s: closed %v, time-out %v", step, s.Closed(), s.Timeout())
		}
		rest()
		rest()
		s.Keep(s.Lease())()
		s.Close()
	}
}

// Nothing in place of a function, or of a lease, is the caller's mistake, and as
// everywhere in Go it panics. Whoever recovers has a session that works.
func TestASessionsMethodsGivenNothing(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	var none context.Context
	for step, opened := range sessions {
		l, err := opened.open(z.Servers(), zktest.SessionTimeout)
		if err != nil {
			t.Fatal(err)
		}
		s := l.(session)
		for what, call := range map[string]func(){
			"Prove": func() { _ = s.Prove(nil) },
			"Keep":  func() { s.Keep(none) },
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s: %s(nil) does not panic", step, what)
					}
				}()
				call()
			}()
		}
		if s.Retry(nil) {
			t.Errorf("%s: what was answered is to be tried again", step)
		}
		if err := s.Ask(); err != nil || s.Lease().Err() != nil {
			t.Errorf("%s: then Ask answers %v, and its lease %v", step, err, s.Lease().Err())
		}
		s.Close()
	}
}

func TestTokenOfNoHold(t *testing.T) {
	t.Parallel()
	for step, s := range sessions {
		for _, ctx := range []context.Context{nil, context.Background()} {
			if token, ok := s.token(ctx); token != 0 || ok {
				t.Errorf("%s: the token of %v is %d, %v", step, ctx, token, ok)
			}
		}
	}
}

// ---- The rows' own code.

func connect(servers []string, timeout time.Duration, dial zk.Dialer) (link, error) {
	conn, _, err := zk.Connect(servers, timeout, zk.WithDialer(dial), zk.WithLogger(silence{}))
	return conn, err
}

type silence struct{}

func (silence) Printf(string, ...any) {}

func open5(servers []string, timeout time.Duration, dial zk.Dialer) (link, error) {
	s, err := reentrant.Open(servers, timeout, reentrant.WithDialer(dial))
	if err != nil {
		return nil, err
	}
	return s, nil
}

func open6(servers []string, timeout time.Duration, dial zk.Dialer) (link, error) {
	s, err := sharedlock.Open(servers, timeout, sharedlock.WithDialer(dial))
	if err != nil {
		return nil, err
	}
	return s, nil
}

func over[L zktest.Locker](newLock func(*zk.Conn, string) L) func(link, string) door {
	return func(l link, path string) door {
		conn, _ := l.(*zk.Conn)
		lock := newLock(conn, path)
		return door{
			func(ctx context.Context) (context.Context, error) { return ctx, lock.Lock(ctx) },
			func(context.Context) error { return lock.Unlock() },
		}
	}
}

type locking[L any] func(L, context.Context) (context.Context, error)

func try[L any](try func(L, context.Context, time.Duration) (context.Context, error), wait time.Duration) locking[L] {
	return func(l L, ctx context.Context) (context.Context, error) { return try(l, ctx, wait) }
}

func mutex(lock locking[*reentrant.Lock]) func(link, string) door {
	return func(l link, path string) door {
		s, _ := l.(*reentrant.Session)
		m := reentrant.New(s, path)
		return door{func(ctx context.Context) (context.Context, error) { return lock(m, ctx) }, m.Unlock}
	}
}

func cohort(lock locking[*reentrant.Cohort]) func(link, string) door {
	return func(l link, path string) door {
		s, _ := l.(*reentrant.Session)
		c := reentrant.NewCohort(s, path)
		return door{func(ctx context.Context) (context.Context, error) { return lock(c, ctx) }, c.Unlock}
	}
}

func writer(lock locking[*sharedlock.RWLock]) func(link, string) door {
	return shared(lock, (*sharedlock.RWLock).Unlock)
}

func reader(lock locking[*sharedlock.RWLock]) func(link, string) door {
	return shared(lock, (*sharedlock.RWLock).RUnlock)
}

func shared(lock locking[*sharedlock.RWLock], unlock func(*sharedlock.RWLock, context.Context) error) func(link, string) door {
	return func(l link, path string) door {
		s, _ := l.(*sharedlock.Session)
		rw := sharedlock.New(s, path)
		return door{
			func(ctx context.Context) (context.Context, error) { return lock(rw, ctx) },
			func(held context.Context) error { return unlock(rw, held) },
		}
	}
}

// ---- What the columns are told in.

func (w way) String() string { return fmt.Sprintf("step %d: %s", w.step, w.calls) }

// eachWay runs a test for each row, and fails it if anything is left at the
// server but an empty directory for the lock's queue.
func eachWay(t *testing.T, test func(*testing.T, *zktest.Zoo, way)) {
	t.Parallel()
	for _, w := range table {
		t.Run(strings.ReplaceAll(w.String(), " ", "_"), func(t *testing.T) {
			t.Parallel()
			z := zktest.New(t)
			test(t, z, w)
			if left := z.Names(w.dir(z)); len(left) > 0 {
				t.Errorf("left in the lock's directory: %v", left)
			}
			if left := z.Names(z.Root); len(left) > 1 || len(left) == 1 && left[0] != "queue" {
				t.Errorf("left at the server: %v", left)
			}
		})
	}
}

// dir is the directory that holds the lock's znodes.
func (w way) dir(z *zktest.Zoo) string { return z.Root + "/queue" }

// in is the path to give to a lock whose znodes are to be in dir.
func (w way) in(dir string) string {
	if w.step == 1 { // the znode is the lock
		return dir + "/lock"
	}
	return dir
}

// A client has joined a lock over a tapped line.
type client struct {
	*zktest.Client
	door
	link link
	path string
}

func (w way) join(z *zktest.Zoo, name string) *client {
	return w.joinAt(z, name, zktest.SessionTimeout, w.in(w.dir(z)), nil)
}

// joinAt brings a client over a line of its own, if dial is not nil.
func (w way) joinAt(z *zktest.Zoo, name string, timeout time.Duration, path string, dial zk.Dialer) *client {
	c := &client{path: path}
	c.Client = z.ConnectWith(name, func(tapped zk.Dialer) (*zk.Conn, func(), error) {
		if dial == nil {
			dial = tapped
		}
		l, err := w.open(z.Servers(), timeout, dial)
		if err != nil {
			return nil, nil, err
		}
		c.link = l
		conn, plain := l.(*zk.Conn)
		if !plain {
			conn = l.(interface{ Conn() *zk.Conn }).Conn()
		}
		return conn, l.Close, nil
	})
	c.door = w.at(c.link, path)
	return c
}

// holder brings a client that holds the lock alone.
func (w way) holder(z *zktest.Zoo) *client {
	alone := table[slices.IndexFunc(table, func(o way) bool { return o.step == w.step })]
	b := alone.join(z, "B")
	call := z.Go(b.Client, func(ctx context.Context) error { return lock(b.door, context.WithoutCancel(ctx)) })
	call.Acquired()
	return b
}

func (c *client) holds(t *testing.T, z *zktest.Zoo) (held context.Context) {
	t.Helper()
	held, err := c.lock(z.Ctx)
	if err != nil {
		t.Fatal(err)
	}
	return held
}

// closeDuring closes the link while the call is under way and a reply on hold,
// which is let go once the call has come back.
func (c *client) closeDuring(call *zktest.Attempt, reply *wiretap.Trap) {
	closed := make(chan struct{})
	go func() {
		c.link.Close()
		close(closed)
	}()
	_ = call.Err()
	reply.Let()
	<-closed
}

// asks lists what a call to Lock asks of the server while somebody else holds
// the lock.
func (w way) asks() []wiretap.Op {
	switch w.step {
	case 1:
		return []wiretap.Op{wiretap.Create}
	case 2, 3:
		return []wiretap.Op{wiretap.Create, wiretap.GetChildren}
	default:
		return []wiretap.Op{wiretap.Create, wiretap.GetChildren, wiretap.GetData}
	}
}

// closed is what a release has to say when the session was closed.
func (w way) closed() error {
	switch w.step {
	case 5:
		return reentrant.ErrLost
	case 6:
		return sharedlock.ErrLost
	default:
		return zk.ErrConnectionClosed
	}
}

// wasClosed removes the znode of step 1, which outlives its session.
func (w way) wasClosed(z *zktest.Zoo) {
	if w.step == 1 {
		_ = z.Observer().Delete(w.in(w.dir(z)), -1)
	}
}

func lock(d door, ctx context.Context) error {
	_, err := d.lock(ctx)
	return err
}

// says fails the test unless err is an error of the kind wanted, if any, and
// holds all the words.
func says(t *testing.T, err, want error, words ...string) {
	t.Helper()
	if err == nil || want != nil && !errors.Is(err, want) {
		t.Errorf("%v: want an error that is %v and says %q", err, want, words)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
}

// serve listens on a free port until the test ends, and answers each connection
// once it has asked something. With a nil answer it gives the port back.
func serve(t *testing.T, answer func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
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

func (l *liar) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	conn, err := net.DialTimeout(network, address, timeout)
	return &lying{Conn: conn, liar: l}, err
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
