package wiretap_test

import (
	"cmp"
	"encoding/binary"
	"maps"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/wiretap"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

var acl = zk.WorldACL(zk.PermAll)

// The tap's counts are the server's own. A server's counters include the traffic
// of all clients, so this test has a server to itself. What ZooKeeper 3.8 counts:
//
//   - zk_packets_received, zk_bytes_received_count: requests, with pings and
//     handshakes, whole; and of a four-letter word its 4 letters.
//   - zk_response_bytes: replies without their length prefix, but for those to
//     pings and handshakes; no notification.
//   - zk_watch_bytes: notifications without their length prefix.
//   - zk_sum_node_*_watch_count: watches that fired. Each is a notification,
//     except that a client which watches both the data and the children of a
//     deleted znode is notified once.
//   - zk_watch_count: watches, one for each client, znode and kind.
//
// zk_packets_sent counts replies and notifications, and also each piece of an
// answer to mntr, so it is not exact.
func TestCountsAreTheServersOwn(t *testing.T) {
	server, err := zkserver.StartEnsemble(t.Context(), 1)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Stop()) })
	z := zktest.NewOn(t, server.Server)
	a, b, pinger := z.Client("A"), z.Client("B"), z.Connect("the pinger", zktest.MortalTimeout)
	clients := []*zktest.Client{z.Observer(), a, b, pinger}

	// The counts start at a moment when nothing is on its way: no packet has arrived between two
	// four-letter words.
	start, err := z.Mntr()
	require.NoError(t, err)
	marks := make([]int, len(clients))
	for quiet := false; !quiet; {
		for i, c := range clients {
			marks[i] = c.Tap.Mark()
		}
		next, err := z.Mntr()
		require.NoError(t, err)
		quiet = next["zk_packets_received"] == start["zk_packets_received"]+1
		start = next
	}
	words := int64(0) // since the start
	fired := map[int32]string{
		wiretap.NodeCreated: "zk_sum_node_created_watch_count", wiretap.NodeDeleted: "zk_sum_node_deleted_watch_count",
		wiretap.NodeDataChanged: "zk_sum_node_changed_watch_count",
		wiretap.ChildrenChanged: "zk_sum_node_children_watch_count",
	}
	tapped := func() map[string]int64 {
		n := map[string]int64{
			"zk_packets_received":     words,
			"zk_bytes_received_count": 4 * words,
			"zk_response_bytes":       0,
			"zk_watch_bytes":          0,
		}
		for _, key := range fired {
			n[key] = 0
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
					n[fired[f.Event]]++
				case f.Op != wiretap.Connect && f.Op != wiretap.Ping:
					n["zk_response_bytes"] += int64(f.Bytes - 4)
				}
			}
		}
		return n
	}
	agree := func(after string) {
		t.Helper()
		require.EventuallyWithT(t, func(c *assert.CollectT) { // a ping may be on its way
			server, err := z.Mntr()
			words++
			require.NoError(c, err)
			tap := tapped()
			for key := range server {
				server[key] -= start[key]
			}
			maps.DeleteFunc(server, func(key string, _ int64) bool { _, known := tap[key]; return !known })
			assert.Equal(c, server, tap, "after %s", after)
		}, zktest.Patience/2, time.Millisecond)
	}
	agree("nothing")

	path, short, missing := z.Root+"/a", z.Root+"/short", z.Root+"/missing"
	create(t, a, path, 0)
	create(t, a, short, 0)
	_, err = a.Create(path, nil, 0, acl)
	require.ErrorIs(t, err, zk.ErrNodeExists)
	create(t, b, path+"/n-", zk.FlagEphemeralSequential)
	last := create(t, b, path+"/n-", zk.FlagEphemeralSequential)
	agree("creates")

	for _, c := range []*zktest.Client{a, b} {
		for range 2 { // the server keeps one watch of each
			watch(t, c.GetW, path)
			watch(t, c.ChildrenW, path)
			watch(t, c.ExistsW, last)
			watch(t, c.ExistsW, missing)
		}
		watch(t, c.ChildrenW, short)
		_, _, _, err = c.GetW(missing + " too")
		require.ErrorIs(t, err, zk.ErrNoNode, "it leaves no watch")
	}
	agree("watches")

	_, err = a.Set(path, []byte("more"), -1)
	require.NoError(t, err)
	require.NoError(t, b.Delete(last, -1))
	require.NoError(t, b.Delete(short, -1))
	create(t, z.Observer(), missing, 0)
	z.Barrier(a, b)
	agree("notifications")
	assert.Equal(t, 2*5, wiretap.Count(a.Tap.Frames(), b.Tap.Frames()).Notifications)

	z.Await("a ping and its reply", func() bool {
		return find(pinger.Tap.Frames(), wiretap.Reply, wiretap.Ping) != nil
	})
	agree("a ping")

	watch(t, a.ChildrenW, path)
	a.Tap.Cut()
	a.Tap.Restore()
	z.Await("A's watch to be set again", func() bool {
		return find(a.Tap.Frames(), wiretap.Reply, wiretap.SetWatches) != nil
	})
	agree("a reconnect")

	a.Close()
	b.Tap.Cut() // the server drops its watches with it
	agree("the end of two connections")
}

func create(t *testing.T, c *zktest.Client, path string, mode int32) string {
	t.Helper()
	made, err := c.Create(path, []byte("data"), mode, acl)
	require.NoError(t, err)
	return made
}

// watch sets a watch on a znode, with one of the client's three calls for it.
func watch[V any](t *testing.T, set func(string) (V, *zk.Stat, <-chan zk.Event, error), path string) {
	t.Helper()
	_, _, _, err := set(path)
	require.NoError(t, err, "watch %s", path)
}

// resumed waits for the client's next connection, which must have the same session.
func resumed(t *testing.T, z *zktest.Zoo, c *zktest.Client) {
	t.Helper()
	reconnected(z, c)
	assert.Equal(t, c.ID, c.SessionID(), "the session is another")
}

func reconnected(z *zktest.Zoo, c *zktest.Client) {
	z.Await("the client to be connected again", func() bool {
		return find(c.Tap.Frames()[2:], wiretap.Reply, wiretap.Connect) != nil && c.State() == zk.StateHasSession
	})
}

// find returns the first frame of a kind.
func find(frames []wiretap.Frame, kind wiretap.Kind, op wiretap.Op) *wiretap.Frame {
	i := slices.IndexFunc(frames, func(f wiretap.Frame) bool { return f.Kind == kind && f.Op == op })
	if i < 0 {
		return nil
	}
	return &frames[i]
}

// Each request and its reply, as the record has them.
func TestRequestsAndRepliesAreUnderstood(t *testing.T) {
	z := zktest.New(t)
	c := z.Client("the client")
	dir := z.Root + "/dir"
	create(t, c, dir, 0)
	type frame = wiretap.Frame
	for i, test := range []struct {
		do      func()
		request frame
		reply   frame // what it does not take from the request
	}{
		{
			func() { c.Create(dir+"/n-", nil, zk.FlagEphemeralSequential, acl) },
			frame{Op: wiretap.Create, Path: dir + "/n-"},
			frame{Path: dir + "/n-0000000000"},
		},
		{func() { c.Create(dir, nil, 0, acl) }, frame{Op: wiretap.Create, Path: dir}, frame{Err: wiretap.NodeExists}},
		{func() { c.Children(dir) }, frame{Op: wiretap.GetChildren, Path: dir}, frame{Names: 1}},
		{func() { c.ChildrenW(dir) }, frame{Op: wiretap.GetChildren, Path: dir, Watch: true}, frame{Names: 1}},
		{func() { c.Get(dir) }, frame{Op: wiretap.GetData, Path: dir}, frame{}},
		{
			func() { c.GetW(dir + "/x") },
			frame{Op: wiretap.GetData, Path: dir + "/x", Watch: true},
			frame{Err: wiretap.NoNode},
		},
		{func() { c.Exists(dir) }, frame{Op: wiretap.Exists, Path: dir}, frame{}},
		{
			func() { c.ExistsW(dir + "/y") },
			frame{Op: wiretap.Exists, Path: dir + "/y", Watch: true},
			frame{Err: wiretap.NoNode},
		},
		{func() { c.Set(dir, []byte("new"), -1) }, frame{Op: wiretap.SetData, Path: dir}, frame{}},
		{func() { c.Sync(dir) }, frame{Op: wiretap.Sync, Path: dir}, frame{}},
		{func() { c.Delete(dir+"/n-0000000000", -1) }, frame{Op: wiretap.Delete, Path: dir + "/n-0000000000"}, frame{}},
		{func() { c.Multi(&zk.CheckVersionRequest{Path: dir, Version: -1}) }, frame{Op: wiretap.Multi}, frame{}},
		{func() { c.AddAuth("digest", []byte("a:b")) }, frame{Op: wiretap.SetAuth}, frame{}},
		{func() { c.Close() }, frame{Op: wiretap.Close}, frame{}},
	} {
		mark, begin := c.Tap.Mark(), time.Now()
		test.do() // its error is in the reply
		end := time.Now()
		frames := slices.DeleteFunc(c.Tap.Since(mark), func(f frame) bool {
			return f.Op == wiretap.Ping || f.Kind == wiretap.Notification
		})
		require.Len(t, frames, 2, "row %d: %v", i, frames)
		request, reply := frames[0], frames[1]
		assert.Equal(t, request.Xid, reply.Xid)
		assert.Equal(t, request.At, reply.Asked)
		assert.True(t, reply.Zxid > 0 || reply.Op == wiretap.SetAuth, "the reply has a zxid: %v", reply)
		for j := range frames {
			f := &frames[j]
			assert.WithinRange(t, f.At, begin, end, "each passes in its turn: %v", f)
			assert.GreaterOrEqual(t, f.Bytes, 12, "the length of %v", f)
			begin, f.At, f.Asked, f.Xid, f.Zxid, f.Bytes = f.At, time.Time{}, time.Time{}, 0, 0, 0
		}
		test.reply.Kind, test.reply.Op, test.reply.Watch = wiretap.Reply, test.request.Op, test.request.Watch
		test.reply.Path = cmp.Or(test.reply.Path, test.request.Path)
		assert.Equal(t, []frame{test.request, test.reply}, frames)
	}
	told := find(c.Tap.Frames(), wiretap.Notification, 0)
	require.NotNil(t, told, "a child was deleted, and the children watched")
	assert.Equal(t, wiretap.ChildrenChanged, told.Event)
	assert.Equal(t, dir, told.Path)
	assert.Equal(t, wiretap.Connect, c.Tap.Frames()[0].Op, "the record begins with the handshake")
	assert.Equal(t, wiretap.Connect, c.Tap.Frames()[1].Op)
}

// A connection that is cut is down until Restore. Then the client resumes its session and sets its
// watches again. It is notified at once of what has happened meanwhile.
func TestCut(t *testing.T) {
	z := zktest.New(t)
	c := z.Client("the client")
	kept, gone, missing := z.Root+"/kept", z.Root+"/gone", z.Root+"/missing"
	create(t, c, kept, 0)
	create(t, c, gone, 0)
	watch(t, c.GetW, kept)
	watch(t, c.ChildrenW, kept)
	watch(t, c.GetW, gone)
	watch(t, c.ExistsW, missing)
	assert.Equal(t, []string{gone, kept, kept, missing}, c.Tap.Watched())

	c.Tap.Cut()
	assert.Empty(t, c.Tap.Watched(), "the server drops a connection's watches with it")
	_, err := c.Tap.Dial("tcp", z.Addr, time.Second)
	assert.Error(t, err, "a new connection was let through")
	require.NoError(t, z.Observer().Delete(gone, -1))
	mark := c.Tap.Mark()
	c.Tap.Restore()
	resumed(t, z, c)
	z.Await("the watches to be set again", func() bool {
		return find(c.Tap.Since(mark), wiretap.Reply, wiretap.SetWatches) != nil
	})
	z.Barrier(c)
	assert.Equal(t, []string{kept, kept, missing}, c.Tap.Watched())
	assert.Equal(t, 1, wiretap.Count(c.Tap.Since(mark)).Notifications, "what happened meanwhile")

	create(t, z.Observer(), missing, 0)
	create(t, z.Observer(), kept+"/child", 0)
	z.Barrier(c)
	assert.Equal(t, []string{kept}, c.Tap.Watched(), "two have fired")
}

// call runs a request in the background.
func call(request func() error) <-chan error {
	answer := make(chan error, 1)
	go func() { answer <- request() }()
	return answer
}

// creating is a create in the background.
func creating(c *zktest.Client, path string) <-chan error {
	return call(func() error { _, err := c.Create(path, nil, 0, acl); return err })
}

// notYet tests that a channel has no value so far.
func notYet[V any](t *testing.T, ch <-chan V) {
	t.Helper()
	select {
	case v := <-ch:
		assert.Fail(t, "too early", "%v", v)
	default:
	}
}

func TestLostFrames(t *testing.T) {
	for name, test := range map[string]struct {
		lose func(*wiretap.Tap, wiretap.Op, int) *wiretap.Trap
		lost wiretap.Kind
	}{
		"LoseRequest": {(*wiretap.Tap).LoseRequest, wiretap.Request},
		"LoseReply":   {(*wiretap.Tap).LoseReply, wiretap.Reply},
	} {
		t.Run(name, func(t *testing.T) {
			z := zktest.New(t)
			c := z.Client("the client")
			trap := test.lose(c.Tap, wiretap.Create, 2)
			create(t, c, z.Root+"/first", 0)
			notYet(t, trap.Sprung())
			answer := creating(c, z.Root+"/second")
			zktest.AwaitChan(z, "the frame to be lost", trap.Sprung())
			assert.ErrorIs(t, zktest.AwaitChan(z, "the call to return", answer), zk.ErrConnectionClosed)
			resumed(t, z, c)
			_, done := z.Owner(z.Root + "/second")
			assert.Equal(t, test.lost == wiretap.Reply, done, "whether the server has done what was asked")
			create(t, c, z.Root+"/third", 0) // a trap springs once
			lost := slices.DeleteFunc(c.Tap.Frames(), func(f wiretap.Frame) bool { return !f.Lost })
			require.Len(t, lost, 1)
			assert.Equal(t, test.lost, lost[0].Kind)
			assert.Equal(t, z.Root+"/second", lost[0].Path)
		})
	}
}

func TestFramesOnHold(t *testing.T) {
	for name, test := range map[string]struct {
		hold func(*wiretap.Tap, wiretap.Op, int) *wiretap.Trap
		done int // creates that the server carries out meanwhile
	}{
		"HoldRequest": {(*wiretap.Tap).HoldRequest, 0},
		"HoldReply":   {(*wiretap.Tap).HoldReply, 2},
	} {
		t.Run(name, func(t *testing.T) {
			z := zktest.New(t)
			c := z.Client("the client")
			trap := test.hold(c.Tap, wiretap.Create, 1)
			first := creating(c, z.Root+"/first")
			zktest.AwaitChan(z, "the frame to be held", trap.Sprung())
			second := creating(c, z.Root+"/second")
			z.Await("the server to do what it has heard of", func() bool { return len(z.Names(z.Root)) == test.done })
			notYet(t, first)
			notYet(t, second)
			trap.Let()
			trap.Let() // does nothing
			assert.NoError(t, zktest.AwaitChan(z, "the first to return", first))
			assert.NoError(t, zktest.AwaitChan(z, "the second to return", second))
			assert.Len(t, z.Names(z.Root), 2)
		})
	}
}

func TestTrapsAreTakenAway(t *testing.T) {
	z := zktest.New(t)
	c := z.Client("the client")
	c.Tap.HoldRequest(wiretap.Create, 1).Let() // before the frame arrives
	create(t, c, z.Root+"/a", 0)

	held, unused := c.Tap.HoldRequest(wiretap.Create, 1), c.Tap.LoseRequest(wiretap.Delete, 1)
	answer := creating(c, z.Root+"/b")
	zktest.AwaitChan(z, "the request to be held", held.Sprung())
	c.Tap.Restore()
	assert.NoError(t, zktest.AwaitChan(z, "the call to return", answer))
	assert.NoError(t, c.Delete(z.Root+"/b", -1))
	notYet(t, unused.Sprung())
	assert.Nil(t, find(c.Tap.Frames()[2:], wiretap.Request, wiretap.Connect), "a line that was up has been closed")
}

// Any is the next frame that is no ping and no handshake.
func TestAny(t *testing.T) {
	z := zktest.New(t)
	c := z.Connect("the client", zktest.MortalTimeout) // it pings often
	held := c.Tap.HoldRequest(wiretap.Any, 2)
	zktest.AwaitChan(z, "a ping to be lost", c.Tap.LoseRequest(wiretap.Ping, 2).Sprung())
	reconnected(z, c)
	create(t, c, z.Root+"/a", 0)
	notYet(t, held.Sprung())
	answer := creating(c, z.Root+"/b")
	zktest.AwaitChan(z, "the second request to be held", held.Sprung())
	held.Let()
	assert.NoError(t, zktest.AwaitChan(z, "the call to return", answer))
}

// A client polls if it sends one request three times, unless that request proves its session. It
// waits silently while the last watch that it has set has not fired.
func TestHowAClientWaits(t *testing.T) {
	z := zktest.New(t)
	c := z.Client("the client")
	is := func(wantSilent, wantPolls bool, what string, mark int) {
		t.Helper()
		silent, polls := c.Tap.Waiting(mark)
		assert.Equal(t, wantSilent, silent, "%s: silently", what)
		assert.Equal(t, wantPolls, polls, "%s: polling", what)
	}
	node := z.Root + "/a"
	mark := c.Tap.Mark()
	is(false, false, "it has asked nothing", mark)
	proves := func() { assert.ErrorIs(t, c.Delete("/zklock-nobody-1/nothing", -1), zk.ErrNoNode) }
	for range 3 {
		proves()
	}
	is(false, false, "it has proved its session three times", mark)
	for n := 1; n <= 3; n++ {
		_, _, err := c.Exists(node)
		assert.NoError(t, err)
		is(false, n == 3, "it has asked whether a znode exists", mark)
	}
	_, _, _, err := c.ExistsW(node)
	assert.NoError(t, err)
	is(true, false, "it has set a watch", mark)
	proves()
	is(true, false, "it has proved its session once more", mark)
	create(t, c, node, 0)
	z.Await("the watch to have fired", func() bool { return len(c.Tap.Watched()) == 0 })
	is(false, false, "the watch has fired", mark)
}

// While a request is on hold, the client sends no ping, so neither side receives anything. At last
// the client gives up the connection.
func TestRequestOnHoldEndsWithItsConnection(t *testing.T) {
	z := zktest.New(t)
	c := z.Connect("the client", zktest.MortalTimeout)
	held := c.Tap.HoldRequest(wiretap.Create, 1)
	answer := creating(c, z.Root+"/a")
	zktest.AwaitChan(z, "the request to be held", held.Sprung())
	assert.Error(t, zktest.AwaitChan(z, "the call to return", answer))
	reconnected(z, c)
	assert.Empty(t, z.Names(z.Root), "the server has heard of the request")
}

// A silent connection loses what is sent either way. Restore closes it, because frames are missing.
func TestSilence(t *testing.T) {
	z := zktest.New(t)
	c := z.Client("the client")
	watch(t, c.ChildrenW, z.Root)
	c.Tap.Silence()
	mark := c.Tap.Mark()
	answer := creating(c, z.Root+"/a")
	create(t, z.Observer(), z.Root+"/b", 0)
	z.Await("both ways to be silent", func() bool {
		frames := c.Tap.Since(mark)
		return find(frames, wiretap.Request, wiretap.Create) != nil && find(frames, wiretap.Notification, 0) != nil
	})
	notYet(t, answer)
	for _, f := range c.Tap.Since(mark) {
		assert.True(t, f.Lost, "the line is silent, and this passed: %v", f)
	}
	c.Tap.Restore()
	assert.Error(t, zktest.AwaitChan(z, "the call to return", answer), "the request is lost")
	resumed(t, z, c)
	assert.Equal(t, []string{"b"}, z.Names(z.Root), "what the server has heard of")
}

func TestDelay(t *testing.T) {
	const late = 30 * time.Millisecond
	z := zktest.New(t)
	c := z.Client("the client")
	takes := func() time.Duration {
		begin := time.Now()
		z.Barrier(c)
		return time.Since(begin)
	}
	c.Tap.Delay(late)
	for range 3 {
		assert.GreaterOrEqual(t, takes(), late)
	}
	c.Tap.Delay(0)
	z.Await("an answer without delay", func() bool { return takes() < late })
}

// If the server is no ZooKeeper, the tap does not take all memory.
func TestFrameThatIsTooLong(t *testing.T) {
	address := zktest.Impostor(t, func(conn net.Conn) { conn.Write(binary.BigEndian.AppendUint32(nil, 1<<31)) })
	conn, err := wiretap.New().Dial("tcp", address, 5*time.Second)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write(make([]byte, 48))
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 10))
	assert.ErrorContains(t, err, "not ZooKeeper's protocol")
}

// connectShut connects a client whose gate, set by gate, is shut for some frames until open is called. shut
// receives each frame that waits there.
func connectShut(
	z *zktest.Zoo, timeout time.Duration, gate func(*wiretap.Tap, func(wiretap.Frame)), isShut func(wiretap.Frame) bool,
) (c *zktest.Client, tap *wiretap.Tap, shut <-chan wiretap.Frame, open func()) {
	stand, opened := make(chan wiretap.Frame, 10), make(chan bool)
	tap = wiretap.New()
	gate(tap, func(f wiretap.Frame) {
		if isShut(f) {
			stand <- f
			<-opened
		}
	})
	c = z.ConnectWith("the client", func(zk.Dialer) (*zk.Conn, func(), error) {
		conn, err := zktest.Dial(z.Servers(), timeout, tap.Dial)
		return conn, conn.Close, err
	})
	return c, tap, stand, func() { close(opened) }
}

// A connection may be held up for longer than its session's timeout, because pings pass the frames
// that wait. In each direction frames keep their order.
func TestASessionOutlivesAGateThatIsShut(t *testing.T) {
	z := zktest.New(t)
	isShut := func(f wiretap.Frame) bool { return f.Op == wiretap.Create || f.Kind == wiretap.Notification }
	c, tap, shut, open := connectShut(z, zktest.MortalTimeout, (*wiretap.Tap).Gate, isShut)
	_, _, changed, err := c.ChildrenW(z.Root)
	require.NoError(t, err)
	first, second := creating(c, z.Root+"/a"), creating(c, z.Root+"/b")
	require.Equal(t, wiretap.Request, zktest.AwaitChan(z, "a create to stand before the gate", shut).Kind)
	for began := time.Now(); time.Since(began) < 2*zktest.MortalTimeout; {
		_, _, err := c.Exists("/")
		require.NoError(t, err, "what may go past")
	}
	require.Equal(t, c.ID, c.SessionID(), "the session")
	require.Empty(t, z.Names(z.Root), "what the server has heard of")
	notYet(t, first)
	open()
	require.NoError(t, zktest.AwaitChan(z, "the first to return", first))
	require.NoError(t, zktest.AwaitChan(z, "the second to return", second))
	zktest.AwaitChan(z, "the notification", changed)
	require.Empty(t, tap.Frames(), "what is kept")
}

// A client whose answer stands before a gate does not know yet that it has to wait.
func TestWaitingBeginsBehindTheGate(t *testing.T) {
	z := zktest.New(t)
	isShut := func(f wiretap.Frame) bool { return f.Op == wiretap.GetChildren && f.Kind == wiretap.Reply }
	c, tap, shut, open := connectShut(z, zktest.SessionTimeout, (*wiretap.Tap).GateOnRecord, isShut)
	mark := tap.Mark()
	listed := make(chan error, 1)
	go func() {
		_, _, _, err := c.ChildrenW(z.Root)
		listed <- err
	}()
	zktest.AwaitChan(z, "the answer to stand before the gate", shut)
	require.Equal(t, []string{z.Root}, tap.Watched(), "what the server watches")
	silently, _ := tap.Waiting(mark)
	assert.False(t, silently, "the client has no answer yet")
	open()
	require.NoError(t, zktest.AwaitChan(z, "the list", listed))
	z.Await("the client to wait silently", func() bool {
		silently, _ := tap.Waiting(mark)
		return silently
	})
}
