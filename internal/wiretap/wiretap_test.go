package wiretap_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/wiretap"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

var acl = zk.WorldACL(zk.PermAll)

// The tap's counts are the server's own. A server's counters hold everybody's
// traffic, so this test has one to itself. What ZooKeeper 3.8 counts:
//
//   - zk_packets_received, zk_bytes_received_count: requests, with pings and
//     handshakes, whole; and of a four-letter word its 4 letters.
//   - zk_response_bytes: replies without their length prefix, but for those to
//     pings and handshakes; no notification.
//   - zk_watch_bytes: notifications without their length prefix.
//   - zk_sum_node_*_watch_count: watches that fired. Each is a notification,
//     but that a client which watches both the data and the children of a
//     deleted znode is told once.
//   - zk_watch_count: watches, one for each client, znode and kind.
//
// zk_packets_sent counts replies and notifications, and each piece of an
// answer to mntr: as those are nobody's business, it is not exact.
func TestCountsAreTheServersOwn(t *testing.T) {
	z := zktest.NewOn(t, ownServer(t))
	a, b, pinger := z.Client("A"), z.Client("B"), z.Mortal("the pinger")
	clients := []*zktest.Client{z.Observer(), a, b, pinger}

	mntr := func() map[string]int64 {
		counters, err := z.Mntr()
		if err != nil {
			t.Fatal(err)
		}
		return counters
	}
	// The start is a moment at which nothing is on its way: no packet has come
	// between two words.
	start, previous, marks := mntr(), map[string]int64(nil), []int(nil)
	for previous == nil || start["zk_packets_received"] != previous["zk_packets_received"]+1 {
		marks = nil
		for _, c := range clients {
			marks = append(marks, c.Tap.Mark())
		}
		previous, start = start, mntr()
	}
	words := int64(0) // since the start
	kind := map[int32]string{
		wiretap.NodeCreated: "created", wiretap.NodeDeleted: "deleted",
		wiretap.NodeDataChanged: "changed", wiretap.ChildrenChanged: "children",
	}
	tapped := func() map[string]int64 {
		n := map[string]int64{
			"zk_packets_received": words, "zk_bytes_received_count": 4 * words,
			"zk_response_bytes": 0, "zk_watch_bytes": 0, "zk_watch_count": 0,
		}
		for _, k := range kind {
			n["zk_sum_node_"+k+"_watch_count"] = 0
		}
		for i, c := range clients {
			n["zk_watch_count"] += int64(len(c.Tap.Watched()))
			for _, f := range c.Tap.Since(marks[i]) {
				switch {
				case f.Kind == wiretap.Request:
					n["zk_packets_received"]++
					n["zk_bytes_received_count"] += int64(f.Bytes)
				case f.Kind == wiretap.Notification:
					n["zk_watch_bytes"] += int64(f.Bytes - 4)
					n["zk_sum_node_"+kind[f.Event]+"_watch_count"]++
				case f.Op != wiretap.Connect && f.Op != wiretap.Ping:
					n["zk_response_bytes"] += int64(f.Bytes - 4)
				}
			}
		}
		return n
	}
	agree := func(after string) {
		t.Helper()
		for deadline := time.Now().Add(5 * time.Second); ; { // a ping may be on its way
			words++
			server, tap, diff := mntr(), tapped(), []string{}
			for _, key := range slices.Sorted(maps.Keys(tap)) {
				if n := server[key] - start[key]; n != tap[key] {
					diff = append(diff, fmt.Sprintf("%s: server %d, tap %d", key, n, tap[key]))
				}
			}
			if len(diff) == 0 {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("after %s: %s", after, strings.Join(diff, "; "))
			}
		}
	}
	agree("nothing")

	path, short, missing := z.Root+"/a", z.Root+"/short", z.Root+"/missing"
	create(t, a, path, 0)
	create(t, a, short, 0)
	if _, err := a.Create(path, nil, 0, acl); !errors.Is(err, zk.ErrNodeExists) {
		t.Fatal(err)
	}
	last := ""
	for range 3 {
		last = create(t, b, path+"/n-", zk.FlagEphemeralSequential)
	}
	agree("creates")

	for _, c := range []*zktest.Client{a, b} {
		for range 2 { // the server keeps one watch of each
			watch(t, c, path, data, children)
			watch(t, c, last, exists)
			watch(t, c, missing, exists)
		}
		watch(t, c, short, children)
		if _, _, _, err := c.GetW(missing + " too"); !errors.Is(err, zk.ErrNoNode) { // leaves none
			t.Fatal(err)
		}
	}
	agree("watches")

	_, err1 := a.Set(path, []byte("more"), -1)
	err2 := b.Delete(last, -1)
	err3 := b.Delete(short, -1)
	create(t, z.Observer(), missing, 0)
	z.Barrier(a, b)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	agree("notifications")
	if n := wiretap.Count(a.Tap.Frames(), b.Tap.Frames()).Notifications; n != 2*5 {
		t.Errorf("%d notifications, want 10", n)
	}

	z.Await("a ping and its reply", func() bool { return find(pinger.Tap.Frames(), wiretap.Reply, wiretap.Ping) != nil })
	agree("a ping")

	watch(t, a, path, children)
	reconnect(z, a)
	z.Await("A's watch to be set again", func() bool { return find(a.Tap.Frames(), wiretap.Reply, wiretap.SetWatches) != nil })
	agree("a reconnect")

	a.Close()
	b.Tap.Cut() // the server drops its watches with it
	agree("two goodbyes")
}

// ownServer is a server that no other test binary uses.
func ownServer(t *testing.T) *zkserver.Server {
	t.Helper()
	if os.Getenv("ZK_SERVERS") == "" {
		server, err := zktest.Shared()
		if err != nil {
			t.Fatal(err)
		}
		return server
	}
	t.Setenv("ZK_SERVERS", "")
	t.Setenv("ZK_BACKEND", "")
	server, err := zkserver.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Stop() })
	return server
}

func create(t *testing.T, c *zktest.Client, path string, mode int32) string {
	t.Helper()
	made, err := c.Create(path, []byte("data"), mode, acl)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

const data, children, exists = "data", "children", "exists"

// watch sets watches of some kinds on a znode.
func watch(t *testing.T, c *zktest.Client, path string, kinds ...string) {
	t.Helper()
	for _, kind := range kinds {
		var err error
		switch kind {
		case data:
			_, _, _, err = c.GetW(path)
		case children:
			_, _, _, err = c.ChildrenW(path)
		case exists:
			_, _, _, err = c.ExistsW(path)
		}
		if err != nil {
			t.Fatalf("watch %s of %s: %v", kind, path, err)
		}
	}
}

// reconnect makes the client lose its connection and get another.
func reconnect(z *zktest.Zoo, c *zktest.Client) {
	c.Tap.Cut()
	z.Await(c.Name+" to know that it is cut off", func() bool { return c.State() != zk.StateHasSession })
	c.Tap.Restore()
	z.Await(c.Name+" to be connected again", func() bool { return c.State() == zk.StateHasSession })
}

// find returns the first frame of a kind.
func find(frames []wiretap.Frame, kind wiretap.Kind, op wiretap.Op) *wiretap.Frame {
	i := slices.IndexFunc(frames, func(f wiretap.Frame) bool { return f.Kind == kind && f.Op == op })
	if i < 0 {
		return nil
	}
	return &frames[i]
}

// Each request and its reply, as they stand in the record.
func TestRequestsAndRepliesAreUnderstood(t *testing.T) {
	z := zktest.New(t)
	c := z.Client("the client")
	dir := z.Root + "/dir"
	create(t, c, dir, 0)
	req, rep, ok := wiretap.Request, wiretap.Reply, wiretap.OK
	for _, test := range []struct {
		name string
		do   func() error
		want []wiretap.Frame
	}{
		{"create", func() error { _, err := c.Create(dir+"/n-", nil, zk.FlagEphemeralSequential, acl); return err }, []wiretap.Frame{
			{Kind: req, Op: wiretap.Create, Path: dir + "/n-"},
			{Kind: rep, Op: wiretap.Create, Path: dir + "/n-0000000000"}}},
		{"create what is there", func() error { _, err := c.Create(dir, nil, 0, acl); return err }, []wiretap.Frame{
			{Kind: req, Op: wiretap.Create, Path: dir},
			{Kind: rep, Op: wiretap.Create, Path: dir, Err: wiretap.NodeExists}}},
		{"getChildren", func() error { _, _, err := c.Children(dir); return err }, []wiretap.Frame{
			{Kind: req, Op: wiretap.GetChildren, Path: dir},
			{Kind: rep, Op: wiretap.GetChildren, Path: dir, Names: 1}}},
		{"getChildren and watch", func() error { _, _, _, err := c.ChildrenW(dir); return err }, []wiretap.Frame{
			{Kind: req, Op: wiretap.GetChildren, Path: dir, Watch: true},
			{Kind: rep, Op: wiretap.GetChildren, Path: dir, Watch: true, Names: 1}}},
		{"getData", func() error { _, _, err := c.Get(dir); return err }, []wiretap.Frame{
			{Kind: req, Op: wiretap.GetData, Path: dir},
			{Kind: rep, Op: wiretap.GetData, Path: dir}}},
		{"getData and watch what is not there", func() error { _, _, _, err := c.GetW(dir + "/x"); return err }, []wiretap.Frame{
			{Kind: req, Op: wiretap.GetData, Path: dir + "/x", Watch: true},
			{Kind: rep, Op: wiretap.GetData, Path: dir + "/x", Watch: true, Err: wiretap.NoNode}}},
		{"exists", func() error { _, _, err := c.Exists(dir); return err }, []wiretap.Frame{
			{Kind: req, Op: wiretap.Exists, Path: dir},
			{Kind: rep, Op: wiretap.Exists, Path: dir}}},
		{"exists and watch what is not there", func() error { _, _, _, err := c.ExistsW(dir + "/y"); return err }, []wiretap.Frame{
			{Kind: req, Op: wiretap.Exists, Path: dir + "/y", Watch: true},
			{Kind: rep, Op: wiretap.Exists, Path: dir + "/y", Watch: true, Err: wiretap.NoNode}}},
		{"setData", func() error { _, err := c.Set(dir, []byte("new"), -1); return err }, []wiretap.Frame{
			{Kind: req, Op: wiretap.SetData, Path: dir},
			{Kind: rep, Op: wiretap.SetData, Path: dir}}},
		{"sync", func() error { _, err := c.Sync(dir); return err }, []wiretap.Frame{
			{Kind: req, Op: wiretap.Sync, Path: dir},
			{Kind: rep, Op: wiretap.Sync, Path: dir}}},
		{"delete, and be told", func() error { return c.Delete(dir+"/n-0000000000", -1) }, []wiretap.Frame{
			{Kind: req, Op: wiretap.Delete, Path: dir + "/n-0000000000"},
			{Kind: wiretap.Notification, Path: dir, Event: wiretap.ChildrenChanged},
			{Kind: rep, Op: wiretap.Delete, Path: dir + "/n-0000000000"}}},
		{"multi", func() error { _, err := c.Multi(&zk.CheckVersionRequest{Path: dir, Version: -1}); return err }, []wiretap.Frame{
			{Kind: req, Op: wiretap.Multi},
			{Kind: rep, Op: wiretap.Multi}}},
		{"setAuth", func() error { return c.AddAuth("digest", []byte("a:b")) }, []wiretap.Frame{
			{Kind: req, Op: wiretap.SetAuth},
			{Kind: rep, Op: wiretap.SetAuth}}},
		{"close", func() error { c.Close(); return nil }, []wiretap.Frame{
			{Kind: req, Op: wiretap.Close},
			{Kind: rep, Op: wiretap.Close}}},
	} {
		mark, begin := c.Tap.Mark(), time.Now()
		_ = test.do() // its error is in the reply
		end := time.Now()
		frames := slices.DeleteFunc(c.Tap.Since(mark), func(f wiretap.Frame) bool { return f.Op == wiretap.Ping })
		xid := frames[0].Xid
		for i := range frames {
			f := &frames[i]
			if f.At.Before(begin) || f.At.After(end) {
				t.Errorf("%s: frame %d passed at %v, not in its turn between %v and %v", test.name, i, f.At, begin, end)
			}
			begin = f.At
			if f.Kind == rep && (f.Xid != xid || f.Zxid <= 0 && f.Op != wiretap.SetAuth) {
				t.Errorf("%s: the request had xid %d, the reply %d, and zxid %#x", test.name, xid, f.Xid, f.Zxid)
			}
			if f.Bytes < 12 {
				t.Errorf("%s: a frame of %d bytes", test.name, f.Bytes)
			}
			*f = wiretap.Frame{Kind: f.Kind, Op: f.Op, Path: f.Path, Watch: f.Watch, Err: f.Err, Names: f.Names, Event: f.Event}
		}
		if !reflect.DeepEqual(frames, test.want) {
			t.Errorf("%s:\n got %v\nwant %v", test.name, frames, test.want)
		}
	}
	first := c.Tap.Frames()[:2]
	if first[0].Kind != req || first[0].Op != wiretap.Connect || first[1].Kind != rep || first[1].Op != wiretap.Connect || first[1].Err != ok {
		t.Errorf("the record begins with %v, not with a handshake", first)
	}
}

// After a reconnect the client sets its watches again, and the tap knows them.
// What has happened meanwhile is told at once.
func TestWatchesAreSetAgain(t *testing.T) {
	z := zktest.New(t)
	c := z.Client("the client")
	kept, gone, missing := z.Root+"/kept", z.Root+"/gone", z.Root+"/missing"
	create(t, c, kept, 0)
	create(t, c, gone, 0)
	watch(t, c, kept, data, children)
	watch(t, c, gone, data)
	watch(t, c, missing, exists)
	watched(t, c, gone, kept, kept, missing)

	c.Tap.Cut()
	watched(t, c)
	if err := z.Observer().Delete(gone, -1); err != nil {
		t.Fatal(err)
	}
	mark := c.Tap.Mark()
	c.Tap.Restore()
	z.Await("the watches to be set again", func() bool { return find(c.Tap.Since(mark), wiretap.Reply, wiretap.SetWatches) != nil })
	z.Barrier(c)
	watched(t, c, kept, kept, missing)
	if n := wiretap.Count(c.Tap.Since(mark)).Notifications; n != 1 {
		t.Errorf("%d notifications of what happened meanwhile, want 1", n)
	}

	create(t, z.Observer(), missing, 0)
	create(t, z.Observer(), kept+"/child", 0)
	z.Barrier(c)
	watched(t, c, kept)
}

func watched(t *testing.T, c *zktest.Client, want ...string) {
	t.Helper()
	if got := c.Tap.Watched(); !slices.Equal(got, want) {
		t.Errorf("watched: %v, want %v", got, want)
	}
}

// call runs a request in the background.
func call(request func() error) <-chan error {
	answer := make(chan error, 1)
	go func() { answer <- request() }()
	return answer
}

func TestLoseRequest(t *testing.T) {
	z := zktest.New(t)
	c := z.Client("the client")
	lost := c.Tap.LoseRequest(wiretap.Create, 2)
	create(t, c, z.Root+"/first", 0)
	notYet(t, lost.Sprung())
	_, err := c.Create(z.Root+"/second", nil, 0, acl)
	zktest.AwaitChan(z, "the request to be lost", lost.Sprung())
	if err == nil {
		t.Error("the request is lost, and its call answered nil")
	}
	if names := z.Names(z.Root); !slices.Equal(names, []string{"first"}) {
		t.Errorf("the server has heard of %v", names)
	}
	lostFrames(t, c, "request create "+z.Root+"/second (lost)")
	z.Await("the client to be connected again", func() bool { return c.State() == zk.StateHasSession })
	create(t, c, z.Root+"/third", 0) // a trap springs once
}

func TestLoseReply(t *testing.T) {
	z := zktest.New(t)
	c := z.Client("the client")
	lost := c.Tap.LoseReply(wiretap.Create, 1)
	if _, err := c.Create(z.Root+"/a", nil, 0, acl); !errors.Is(err, zk.ErrConnectionClosed) {
		t.Errorf("the reply is lost, and the call answered %v", err)
	}
	zktest.AwaitChan(z, "the reply to be lost", lost.Sprung())
	if _, there := z.Owner(z.Root + "/a"); !there {
		t.Error("the server has not done what was asked")
	}
	zxid := find(c.Tap.Frames(), wiretap.Reply, wiretap.Create).Zxid
	lostFrames(t, c, fmt.Sprintf("reply create %s/a error 0 zxid %#x (lost)", z.Root, zxid))
	z.Await("the client to be connected again", func() bool { return c.State() == zk.StateHasSession })
	if c.SessionID() != c.ID {
		t.Error("the session is another")
	}
}

func TestSwallowReply(t *testing.T) {
	z := zktest.New(t)
	c := z.Client("the client")
	lost := c.Tap.SwallowReply(wiretap.Delete, 1)
	create(t, c, z.Root+"/a", 0)
	answer := call(func() error { return c.Delete(z.Root+"/a", -1) })
	zktest.AwaitChan(z, "the reply to be lost", lost.Sprung())
	mark := c.Tap.Mark()
	z.Barrier(c) // the connection stays
	if find(c.Tap.Since(mark), wiretap.Request, wiretap.Connect) != nil {
		t.Error("the client had to connect again")
	}
	notYet(t, answer)
	if _, there := z.Owner(z.Root + "/a"); there {
		t.Error("the server has not done what was asked")
	}
	c.Tap.Cut()
	if err := zktest.AwaitChan(z, "the call to return", answer); !errors.Is(err, zk.ErrConnectionClosed) {
		t.Errorf("the call answered %v", err)
	}
}

func TestHoldRequest(t *testing.T) {
	z := zktest.New(t)
	c := z.Client("the client")
	held := c.Tap.HoldRequest(wiretap.Create, 1)
	first := call(func() error { _, err := c.Create(z.Root+"/first", nil, 0, acl); return err })
	zktest.AwaitChan(z, "the request to be held", held.Sprung())
	second := call(func() error { _, err := c.Create(z.Root+"/second", nil, 0, acl); return err })
	if names := z.Names(z.Root); len(names) > 0 {
		t.Errorf("the server has heard of %v", names)
	}
	notYet(t, first)
	notYet(t, second)
	held.Let()
	held.Let() // does nothing
	for _, answer := range []<-chan error{first, second} {
		if err := zktest.AwaitChan(z, "the calls to return", answer); err != nil {
			t.Error(err)
		}
	}
	lostFrames(t, c)
}

func TestHoldReply(t *testing.T) {
	z := zktest.New(t)
	c := z.Client("the client")
	held := c.Tap.HoldReply(wiretap.Create, 1)
	first := call(func() error { _, err := c.Create(z.Root+"/first", nil, 0, acl); return err })
	zktest.AwaitChan(z, "the reply to be held", held.Sprung())
	second := call(func() error { _, err := c.Create(z.Root+"/second", nil, 0, acl); return err })
	z.Await("the server to do both", func() bool { return len(z.Names(z.Root)) == 2 })
	notYet(t, first)
	notYet(t, second)
	held.Let()
	for _, answer := range []<-chan error{first, second} {
		if err := zktest.AwaitChan(z, "the calls to return", answer); err != nil {
			t.Error(err)
		}
	}
}

func TestLetBeforeTheFrameDisarms(t *testing.T) {
	z := zktest.New(t)
	c := z.Client("the client")
	c.Tap.HoldRequest(wiretap.Create, 1).Let()
	create(t, c, z.Root+"/a", 0)
}

func TestRestoreTakesTrapsAway(t *testing.T) {
	z := zktest.New(t)
	c := z.Client("the client")
	held := c.Tap.HoldRequest(wiretap.Create, 1)
	notYetSprung := c.Tap.LoseRequest(wiretap.Delete, 1)
	answer := call(func() error { _, err := c.Create(z.Root+"/a", nil, 0, acl); return err })
	zktest.AwaitChan(z, "the request to be held", held.Sprung())
	c.Tap.Restore()
	if err := zktest.AwaitChan(z, "the call to return", answer); err != nil {
		t.Error(err)
	}
	if err := c.Delete(z.Root+"/a", -1); err != nil {
		t.Error(err)
	}
	notYet(t, notYetSprung.Sprung())
	if c.SessionID() != c.ID || find(c.Tap.Frames()[2:], wiretap.Request, wiretap.Connect) != nil {
		t.Error("a line that was up has been closed")
	}
}

// Any is whatever comes next, but no ping and no handshake.
func TestAny(t *testing.T) {
	z := zktest.New(t)
	c := z.Mortal("the client") // it pings often
	held := c.Tap.HoldRequest(wiretap.Any, 2)
	z.Await("a ping", func() bool { return find(c.Tap.Frames(), wiretap.Request, wiretap.Ping) != nil })
	lost := c.Tap.LoseRequest(wiretap.Ping, 1)
	zktest.AwaitChan(z, "a ping to be lost", lost.Sprung())
	z.Await("a second handshake", func() bool {
		frames := c.Tap.Frames()
		return find(frames[2:], wiretap.Reply, wiretap.Connect) != nil && c.State() == zk.StateHasSession
	})
	create(t, c, z.Root+"/a", 0)
	notYet(t, held.Sprung())
	answer := call(func() error { return c.Delete(z.Root+"/a", -1) })
	zktest.AwaitChan(z, "the second request to be held", held.Sprung())
	notYet(t, answer)
	held.Let()
	if err := zktest.AwaitChan(z, "the call to return", answer); err != nil {
		t.Error(err)
	}
}

// While a request is on hold the client sends no ping, so the server hears
// nothing and the client hears nothing: at last it takes the line for dead.
func TestRequestOnHoldEndsWithItsConnection(t *testing.T) {
	z := zktest.New(t)
	c := z.Mortal("the client")
	held := c.Tap.HoldRequest(wiretap.Create, 1)
	answer := call(func() error { _, err := c.Create(z.Root+"/a", nil, 0, acl); return err })
	zktest.AwaitChan(z, "the request to be held", held.Sprung())
	if err := zktest.AwaitChan(z, "the call to return", answer); err == nil {
		t.Error("the call answered nil")
	}
	z.Await("the client to be connected again", func() bool { return c.State() == zk.StateHasSession })
	if names := z.Names(z.Root); len(names) > 0 {
		t.Errorf("the server has heard of %v", names)
	}
}

func TestCut(t *testing.T) {
	z := zktest.New(t)
	c := z.Client("the client")
	held := c.Tap.HoldReply(wiretap.Create, 1)
	answer := call(func() error { _, err := c.Create(z.Root+"/a", nil, zk.FlagEphemeral, acl); return err })
	zktest.AwaitChan(z, "the reply to be held", held.Sprung())
	c.Tap.Cut() // a frame on hold does not stop it
	if err := zktest.AwaitChan(z, "the call to return", answer); !errors.Is(err, zk.ErrConnectionClosed) {
		t.Errorf("the call answered %v", err)
	}
	if conn, err := c.Tap.Dial("tcp", z.Addr, time.Second); err == nil {
		conn.Close()
		t.Error("a new connection was let through")
	}
	if owner, _ := z.Owner(z.Root + "/a"); owner != c.ID {
		t.Errorf("the znode belongs to %#x: want the session %#x, which lives on", owner, c.ID)
	}
	c.Tap.Restore()
	z.Await("the client to be connected again", func() bool { return c.State() == zk.StateHasSession })
	if c.SessionID() != c.ID {
		t.Error("the session is another")
	}
}

func TestSilence(t *testing.T) {
	z := zktest.New(t)
	c, other := z.Mortal("the client"), z.Client("the other")
	watch(t, c, z.Root, children)
	c.Tap.Silence()
	mark := c.Tap.Mark()
	answer := call(func() error { _, err := c.Create(z.Root+"/a", nil, 0, acl); return err })
	create(t, other, z.Root+"/b", 0)
	z.Await("both ways to be silent", func() bool {
		frames := c.Tap.Since(mark)
		return find(frames, wiretap.Request, wiretap.Create) != nil && slices.ContainsFunc(frames, func(f wiretap.Frame) bool { return f.Kind == wiretap.Notification })
	})
	for _, f := range c.Tap.Since(mark) {
		if !f.Lost {
			t.Errorf("the line is silent, and this passed: %v", f)
		}
	}
	z.AwaitExpiry(c)
	if names := z.Names(z.Root); !slices.Equal(names, []string{"b"}) {
		t.Errorf("the server has heard of %v", names)
	}
	if err := zktest.AwaitChan(z, "the call to return", answer); err == nil {
		t.Error("nothing passed, and the call answered nil")
	}
	c.Tap.Restore()
	z.Await("the client to have a new session", func() bool { return c.State() == zk.StateHasSession && c.SessionID() != c.ID })
}

// What was silent for a moment only is closed by Restore: frames are missing.
func TestRestoreClosesASilentLine(t *testing.T) {
	z := zktest.New(t)
	c := z.Client("the client")
	c.Tap.Silence()
	answer := call(func() error { _, err := c.Create(z.Root+"/a", nil, 0, acl); return err })
	z.Await("the request to be lost", func() bool { return find(c.Tap.Frames(), wiretap.Request, wiretap.Create) != nil })
	c.Tap.Restore()
	if err := zktest.AwaitChan(z, "the call to return", answer); err == nil {
		t.Error("the request is lost, and its call answered nil")
	}
	z.Await("the client to be connected again", func() bool { return c.State() == zk.StateHasSession })
	if c.SessionID() != c.ID {
		t.Error("the session is another")
	}
}

func TestDelay(t *testing.T) {
	const late = 30 * time.Millisecond
	z := zktest.New(t)
	c := z.Client("the client")
	c.Tap.Delay(late)
	for range 3 {
		begin := time.Now()
		z.Barrier(c)
		if took := time.Since(begin); took < late {
			t.Errorf("an answer came after %v, want %v late", took, late)
		}
	}
	c.Tap.Delay(0)
	z.Await("an answer without delay", func() bool {
		begin := time.Now()
		z.Barrier(c)
		return time.Since(begin) < late
	})
}

// A connection closes at once, whatever is on hold, and what is on hold ends.
func TestCloseDoesNotWait(t *testing.T) {
	z := zktest.New(t)
	tap := wiretap.New()
	held := tap.HoldRequest(wiretap.Connect, 1)
	conn, err := tap.Dial("tcp", z.Addr, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	writing := call(func() error { _, err := conn.Write(make([]byte, 48)); return err })
	zktest.AwaitChan(z, "the frame to be held", held.Sprung())
	zktest.AwaitChan(z, "Close to return", call(conn.Close))
	if err := zktest.AwaitChan(z, "Write to return", writing); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Write answered %v", err)
	}
}

// A server that is no ZooKeeper does not make the tap take all memory.
func TestFrameThatIsTooLong(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		if conn, err := listener.Accept(); err == nil {
			conn.Write(binary.BigEndian.AppendUint32(nil, 1<<31))
			conn.Close()
		}
	}()
	conn, err := wiretap.New().Dial("tcp", listener.Addr().String(), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 10)); err == nil || !strings.Contains(err.Error(), "not ZooKeeper's protocol") {
		t.Errorf("Read answered %v", err)
	}
}

// notYet tests that a channel has nothing to say so far.
func notYet[V any](t *testing.T, ch <-chan V) {
	t.Helper()
	select {
	case v := <-ch:
		t.Errorf("too early: %v", v)
	default:
	}
}

// lostFrames tests which frames have not arrived.
func lostFrames(t *testing.T, c *zktest.Client, want ...string) {
	t.Helper()
	var got []string
	for _, f := range c.Tap.Frames() {
		if f.Lost {
			got = append(got, f.String())
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("lost: %q, want %q", got, want)
	}
}
