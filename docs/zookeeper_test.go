// Package docs tests what its pages claim about ZooKeeper, on real servers. One of these tests prints
// each line of zookeeper.md, watches.md, servers.md and consensus.md that begins with a ». The histories
// of consensus.md are in internal/lab/history, because their judge is a module of its own.
package docs

import (
	"cmp"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/chapter"
	"zklock/internal/wiretap"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// The pages that quote what these tests print.
const (
	znodesPage    = "zookeeper.md"
	watchesPage   = "watches.md"
	serversPage   = "servers.md"
	consensusPage = "consensus.md"
)

var (
	anyone = zk.WorldACL(zk.PermAll)
	quiet  = log.New(io.Discard, "", 0) // in place of the client's own log
)

// start gives a test its share of the server, and a client.
func start(t *testing.T) (*zktest.Zoo, *zktest.Client) {
	t.Helper()
	t.Parallel()
	z := zktest.New(t)
	return z, z.Client("the client")
}

// create makes a znode and returns its path, with the number if it has one.
func create(t *testing.T, c *zktest.Client, path string, mode int32) string {
	t.Helper()
	made, err := c.Create(path, nil, mode, anyone)
	require.NoError(t, err)
	return made
}

// watched makes a znode and watches it.
func watched(t *testing.T, c *zktest.Client, z *zktest.Zoo) (path string, changed <-chan zk.Event) {
	t.Helper()
	path = create(t, c, z.Root+"/a", 0)
	_, _, changed, err := c.GetW(path)
	require.NoError(t, err)
	return path, changed
}

// The changes of a znode.
func makes(c *zktest.Client, path string) error {
	_, err := c.Create(path, nil, 0, anyone)
	return err
}
func sets(c *zktest.Client, path string) error       { _, err := c.Set(path, []byte("new"), -1); return err }
func deletes(c *zktest.Client, path string) error    { return c.Delete(path, -1) }
func makesChild(c *zktest.Client, path string) error { return makes(c, path+"/child") }
func losesChild(c *zktest.Client, path string) error { return deletes(c, path+"/child") }

// isThere reports whether the znode exists.
func isThere(z *zktest.Zoo, path string) bool {
	_, there := z.Owner(path)
	return there
}

// Transactions are numbered for the whole server, so this test runs alone.
func TestWritesAreNumbered(t *testing.T) {
	z := zktest.New(t)
	c := z.Client("the client")
	path := z.Root + "/a"
	last := func() int64 { // the last transaction that the server has applied
		z.Barrier(c)
		frames := c.Tap.Frames()
		return frames[len(frames)-1].Zxid
	}
	var another *zktest.Client
	for _, step := range []struct {
		what   string
		does   func()
		writes int64
	}{
		{"a create", func() { require.NoError(t, makes(c, path)) }, 1},
		{"a create of what exists already", func() { require.Equal(t, zk.ErrNodeExists, makes(c, path)) }, 1},
		{"a list", func() { _, _, err := c.Children(z.Root); require.NoError(t, err) }, 0},
		{"a delete", func() { require.NoError(t, deletes(c, path)) }, 1},
		{"a session begins", func() { another = z.Client("another client") }, 1},
		{"its two ephemeral znodes", func() {
			create(t, another, path, zk.FlagEphemeral)
			create(t, another, z.Root+"/b", zk.FlagEphemeral)
		}, 2},
		{"a session is closed", func() { another.Close() }, 1},
	} {
		before := last()
		step.does()
		numbers := last() - before
		assert.Equal(t, step.writes, numbers, "zxids of %s", step.what)
		chapter.SaysIn(t, serversPage, "%s: %d zxid", step.what, numbers)
	}
	assert.False(t, isThere(z, path), "the znodes went with their session")
}

func TestKindsOfZnodes(t *testing.T) {
	z, c := start(t)
	kinds := map[string]int32{"persistent": zk.FlagPersistent, "persistent sequential": zk.FlagSequence,
		"ephemeral": zk.FlagEphemeral, "ephemeral sequential": zk.FlagEphemeralSequential}
	made := map[string]string{}
	for kind, mode := range kinds {
		made[kind] = create(t, c, z.Root+"/"+strings.ReplaceAll(kind, " ", "-"), mode)
	}
	err := makes(c, made["ephemeral"]+"/child")
	require.ErrorIs(t, err, zk.ErrNoChildrenForEphemerals)
	chapter.SaysIn(t, znodesPage, "a child of an ephemeral znode: %v", err)
	c.Close()
	for kind, path := range made {
		isEphemeral := strings.HasPrefix(kind, "ephemeral")
		assert.Equal(t, !isEphemeral, isThere(z, path), "the %s znode is there when its session has been closed", kind)
		seen := map[bool]string{true: "exists", false: "is deleted"}[isThere(z, path)]
		chapter.SaysIn(t, znodesPage, "its session has been closed: the %s znode %s", kind, seen)
	}
}

// The server reads no request that is longer than its jute.maxbuffer. It closes the connection.
func TestARequestHasALimit(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	c := withTheUsualBuffer(z)
	path := create(t, c, z.Root+"/a", 0)
	const limit = 1<<20 - 1
	sends := func(bytes int) error {
		numbers := 20 // the lengths, the version, the xid and the opcode
		_, err := c.Set(path, make([]byte, bytes-len(path)-numbers), -1)
		return err
	}
	require.NoError(t, sends(limit))
	chapter.SaysIn(t, serversPage, "a request of %d bytes: done", limit)
	err := sends(limit + 1)
	require.Error(t, err, "one byte more")
	chapter.SaysIn(t, serversPage, "a request of %d bytes: %v", limit+1, err)
	z.Await("the client to be connected again", func() bool { return c.State() == zk.StateHasSession })
	_, stat, err := c.Get(path)
	require.NoError(t, err)
	assert.EqualValues(t, 1, stat.Version, "writes that were done")
	assert.Equal(t, c.ID, c.SessionID(), "the connection is another, and the session the same")
}

// withTheUsualBuffer is a client that can send a request of more than 1 MB.
func withTheUsualBuffer(z *zktest.Zoo) *zktest.Client {
	return z.ConnectWith("the client", func(dial zk.Dialer) (*zk.Conn, func(), error) {
		conn, _, err := zk.Connect(z.Servers(), zktest.SessionTimeout, zk.WithDialer(dial), zk.WithLogger(quiet))
		return conn, conn.Close, err
	})
}

// The limit is a property of the server's Java, and no line of zoo.cfg. While this test runs, no other starts a server.
func TestTheLimitOfARequestCanBeRaised(t *testing.T) {
	t.Setenv("JAVA_TOOL_OPTIONS", "-Djute.maxbuffer=4194304")
	server, err := zkserver.StartEnsemble(t.Context(), 1)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Stop()) })
	z := zktest.NewOn(t, server.Server)
	c := withTheUsualBuffer(z)
	path := create(t, c, z.Root+"/a", 0)
	_, err = c.Set(path, make([]byte, 1_400_000), -1)
	assert.NoError(t, err, "a znode with more than 1 MB")
}

// suffix is the number at the end of a sequential znode's name.
func suffix(t *testing.T, path string) int {
	t.Helper()
	n, err := strconv.Atoi(path[len(path)-10:])
	require.NoError(t, err)
	return n
}

func TestTheNumberCountsCreates(t *testing.T) {
	z, c := start(t)
	dir := create(t, c, z.Root+"/dir", 0)
	gets := func(want int, what string) {
		t.Helper()
		made := create(t, c, dir+"/n-", zk.FlagSequence)
		assert.Equal(t, want, suffix(t, made), what)
		chapter.SaysIn(t, serversPage, "%s: number %d", what, suffix(t, made))
		require.NoError(t, deletes(c, made))
	}
	gets(0, "the first child")
	gets(1, "the next, after the first was deleted")
	create(t, c, dir+"/plain", 0)
	gets(3, "the next, after one was made without a number")
	require.NoError(t, deletes(c, dir+"/plain"))
	require.NoError(t, deletes(c, dir))
	create(t, c, dir, 0)
	gets(0, "the next, after the directory was deleted and created again")
}

// A create that fails does not count. So if the next number's name exists, all creates of this queue fail.
func TestTheNextNumberCanBeTaken(t *testing.T) {
	z, c := start(t)
	dir := create(t, c, z.Root+"/dir", 0)
	create(t, c, dir+"/lock-0000000001", 0) // this create counts: the next number is 1
	for range 3 {
		_, err := c.Create(dir+"/lock-", nil, zk.FlagEphemeralSequential, anyone)
		assert.ErrorIs(t, err, zk.ErrNodeExists)
	}
	create(t, c, dir+"/another name", 0)
	next := create(t, c, dir+"/lock-", zk.FlagEphemeralSequential)
	assert.Equal(t, 2, suffix(t, next), "the number after another create")
}

// A list has all children, also those without a number, and not in the order in which they were created.
func TestAListHasNoOrder(t *testing.T) {
	z, c := start(t)
	dir := create(t, c, z.Root+"/dir", 0)
	made := []string{"a-note"} // sorts before the others, as it is created before them
	create(t, c, dir+"/"+made[0], 0)
	for range 30 {
		path := create(t, c, dir+"/lock-", zk.FlagEphemeralSequential)
		made = append(made, path[len(dir)+1:])
	}
	names, _, err := c.Children(dir)
	require.NoError(t, err)
	assert.ElementsMatch(t, made, names, "the list")
	assert.NotEqual(t, made, names, "the list has the order in which the children were created, and of their names")
}

func TestTheNumberHasAnEnd(t *testing.T) {
	t.Parallel()
	z, dirs := zktest.NewAtTheEnd(t)
	c := z.Client("the client")
	makes := func(name string) int { return suffix(t, create(t, c, dirs[0]+"/"+name, zk.FlagSequence)) }
	makes("a-")
	const last = 1<<31 - 1
	first, second, third := makes("a-"), makes("a-"), makes("b-")
	assert.Equal(t, []int{last - 1, last, last}, []int{first, second, third}, "the last number is given twice")
	chapter.SaysIn(t, serversPage, "one more, after %d others: number %d", zktest.FirstAtTheEnd+1, first)
	chapter.SaysIn(t, serversPage, "and the next: number %d", second)
	chapter.SaysIn(t, serversPage, "and the next, with another name: number %d", third)

	const together = 12
	lowest := 0
	for _, dir := range dirs[1:] {
		made := make(chan string, together)
		for i := range together {
			go func() {
				name := fmt.Sprintf("%s/%d-", dir, i) // of its own: the last number may be given twice
				path, err := c.Create(name, nil, zk.FlagSequence, anyone)
				assert.NoError(t, err)
				made <- strings.TrimPrefix(path, name)
			}()
		}
		for range together {
			n, err := strconv.Atoi(<-made)
			require.NoError(t, err)
			lowest = min(lowest, n)
		}
		if lowest < 0 { // as nearly always: the server numbers a create while it does the one before
			break
		}
	}
	assert.Equal(t, -1<<31, lowest, "the lowest number of creates that were sent at once")
	chapter.SaysIn(t, serversPage, "%d sent at once, the lowest: number %d", together, lowest)
}

func TestASessionOutlivesItsConnection(t *testing.T) {
	z, c := start(t)
	path := create(t, c, z.Root+"/mine", zk.FlagEphemeral)
	_, _, changed, err := z.Observer().GetW(path)
	require.NoError(t, err)
	c.Tap.Cut()
	z.Await("the client to notice", func() bool { return c.State() != zk.StateHasSession })
	c.Tap.Restore()
	z.Await("the client to be back", func() bool { return c.State() == zk.StateHasSession })
	assert.Equal(t, c.ID, c.SessionID(), "the session")
	assert.True(t, isThere(z, path), "its ephemeral znode")
	z.Barrier(z.Observer())
	assert.Empty(t, changed, "what a client that watches the znode is told")
	chapter.SaysIn(t, znodesPage, "disconnected, and back in time: the same session, and its ephemeral znode exists")
}

// A client goes silent. The server ends its session after the timeout. The client does not learn
// of that, and believes that it is between two connections.
func TestASilentSessionExpires(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	c := z.Connect("the client", zktest.MortalTimeout)
	path := create(t, c, z.Root+"/mine", zk.FlagEphemeral)
	_, _, gone, err := c.GetW(z.Root)
	require.NoError(t, err)
	c.Crash()
	z.Await("the server to delete the client's znode", func() bool { return !isThere(z, path) })
	chapter.SaysIn(t, znodesPage, "silence: the server deletes its ephemeral znode")
	z.AwaitExpiry(c)
	assert.NotContains(t, []zk.State{zk.StateExpired, zk.StateHasSession}, c.State(), "the client, still cut off")
	assert.Empty(t, gone, "what the watch said to a client that is cut off")
	chapter.SaysIn(t, znodesPage, "silence: the session has ended, and the client, still disconnected, does not know it")
	c.Tap.Restore()
	event := zktest.AwaitChan(z, "the watch to end", gone)
	assert.ErrorIs(t, event.Err, zk.ErrSessionExpired)
	assert.Equal(t, zk.EventNotWatching, event.Type)
}

// The program that holds the lock hangs in its work: it sends no request more, and does not unlock. But its client
// library pings, so its session lives.
func TestTheZnodeOfAHungHolderStays(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	holder := z.Connect("a holder that hangs", zktest.MortalTimeout)
	path := create(t, holder, z.Root+"/lock", zk.FlagEphemeral)
	_, _, gone, err := z.Observer().GetW(path)
	require.NoError(t, err)
	mark, since := holder.Tap.Mark(), time.Now()
	z.Await("an answer to a ping, two timeouts later", func() bool {
		return slices.ContainsFunc(holder.Tap.Since(mark), func(f wiretap.Frame) bool {
			return f.Kind == wiretap.Reply && f.Op == wiretap.Ping && f.At.Sub(since) > 2*zktest.MortalTimeout
		})
	})
	keepAlive := []wiretap.Op{wiretap.Ping, wiretap.Connect} // a slow machine may break the connection
	for _, f := range holder.Tap.Since(mark) {
		require.Contains(t, keepAlive, f.Op, "what passes between the holder's client and the server")
	}
	owner, _ := z.Owner(path)
	assert.Equal(t, holder.ID, owner, "the session that the znode belongs to: the holder's")
	assert.Empty(t, gone, "what a waiter's watch said")
}

// A client that is closed ends its watches, also while it is disconnected. The server does not know of that: the
// session lives on until its timeout.
func TestAClosedClientEndsItsWatches(t *testing.T) {
	z, c := start(t)
	path := create(t, c, z.Root+"/mine", zk.FlagEphemeral)
	_, _, changed, err := c.GetW(path)
	require.NoError(t, err)
	c.Tap.Cut()
	z.Await("the client to notice", func() bool { return c.State() != zk.StateHasSession })
	c.Close()
	event := zktest.AwaitChan(z, "the watch to end", changed)
	assert.ErrorIs(t, event.Err, zk.ErrClosing)
	assert.True(t, isThere(z, path), "the session's ephemeral znode")
}

func TestAWatchFiresOnce(t *testing.T) {
	z, c := start(t)
	conn, another, path := c.Conn, z.Observer(), create(t, c, z.Root+"/a", 0)
	_, _, changed, err := conn.GetW(path) // reads the data, and sets a watch
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, sets(another, path)) // another client writes
	}
	event := <-changed // sleeps until the notification
	z.Barrier(c)
	notifications := wiretap.Count(c.Tap.Frames()).Notifications
	assert.Equal(t, 1, notifications, "notifications of two changes")
	chapter.SaysIn(t, watchesPage, "one watch, two changes: %d notification (%v)", notifications, event.Type)
}

// The read that sets a watch decides which changes the watch reports. Each change is made twice. A
// cell of the page's table is what the server then sent to a client that had read once. The first
// cell is for two changes: a child is created, and one is deleted.
func TestTheReadDecidesWhatAWatchTells(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	text, err := os.ReadFile(serversPage)
	require.NoError(t, err)
	type step = func(c *zktest.Client, path string) error
	columns := []struct{ before, change []step }{
		{[]step{makes}, []step{makesChild, losesChild}},
		{[]step{makes, makesChild}, []step{losesChild, makesChild}},
		{[]step{makes}, []step{sets, sets}},
		{[]step{makes}, []step{deletes, makes, deletes}},
		{nil, []step{makes, deletes, makes}},
	}
	for name, read := range map[string]step{
		"getData":     func(c *zktest.Client, path string) error { _, _, _, err := c.GetW(path); return err },
		"exists":      func(c *zktest.Client, path string) error { _, _, _, err := c.ExistsW(path); return err },
		"getChildren": func(c *zktest.Client, path string) error { _, _, _, err := c.ChildrenW(path); return err },
	} {
		var cells []string
		for i, column := range columns {
			path, c := fmt.Sprintf("%s/%s%d", z.Root, name, i), z.Client("a client that reads by "+name)
			for _, step := range column.before {
				require.NoError(t, step(z.Observer(), path))
			}
			mark, told := c.Tap.Mark(), []string{}
			if err := read(c, path); err != nil {
				told = append(told, "no watch: "+err.Error())
			}
			for _, step := range column.change {
				require.NoError(t, step(z.Observer(), path))
			}
			z.Barrier(c)
			for _, f := range c.Tap.Since(mark) {
				if f.Kind == wiretap.Notification {
					told = append(told, "`"+zk.EventType(f.Event).String()+"`")
				}
			}
			cells = append(cells, cmp.Or(strings.Join(told, ", "), "–"))
		}
		assert.Equal(t, cells[0], cells[1], "what %s with a watch tells of a child that is created, and of one that is deleted", name)
		row := "| " + name + " | " + strings.Join(cells[1:], " | ")
		assert.Contains(t, string(text), row+" |\n", "what %s with a watch tells, a row of %s", name, serversPage)
	}
}

// The server reads and sets the watch in one step, so no change can happen between the two.
func TestReadAndWatchAreOneStep(t *testing.T) {
	t.Parallel()
	for when, hold := range map[string]func(*wiretap.Tap, wiretap.Op, int) *wiretap.Trap{
		"before": (*wiretap.Tap).HoldRequest, "after": (*wiretap.Tap).HoldReply,
	} {
		z := zktest.New(t)
		c := z.Client("the client")
		slow := hold(c.Tap, wiretap.GetChildren, 1)
		listed := make(chan []string, 1)
		go func() {
			names, _, _, err := c.ChildrenW(z.Root)
			assert.NoError(t, err)
			listed <- names
		}()
		zktest.AwaitChan(z, "the list to be under way", slow.Sprung())
		create(t, z.Observer(), z.Root+"/new", 0)
		slow.Let()
		names := zktest.AwaitChan(z, "the list", listed)
		z.Barrier(c)
		notifications := wiretap.Count(c.Tap.Frames()).Notifications
		assert.Equal(t, 1, len(names)+notifications, "the change is in the list, or fires the watch")
		chapter.SaysIn(t, watchesPage,
			"a child is created just %s the server reads: names in the list: %d, notifications: %d",
			when, len(names), notifications)
	}
}

func TestTheNotificationComesBeforeTheChange(t *testing.T) {
	z, c := start(t)
	path, _ := watched(t, c, z)
	mark := c.Tap.Mark()
	require.NoError(t, sets(z.Observer(), path))
	data, _, err := c.Get(path) // does not wait for the notification
	require.NoError(t, err)
	var order []string
	for _, f := range c.Tap.Since(mark) {
		switch {
		case f.Kind == wiretap.Notification:
			order = append(order, "the notification")
		case f.Kind == wiretap.Reply && f.Op == wiretap.GetData:
			order = append(order, fmt.Sprintf("the data %q", data))
		}
	}
	assert.Equal(t, []string{"the notification", `the data "new"`}, order, "on the line")
}

// After a reconnection the order is another one. The Go client sends its watches to the server behind the requests that
// wait already. So the reply to such a read may come before the notification of what it shows.
func TestAfterAReconnectionAReadMayComeBeforeTheNotification(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	order := func() (seen []string) {
		c := z.Client("the client")
		path := z.Root + "/" + strconv.FormatInt(c.ID, 16)
		require.NoError(t, makes(c, path))
		_, _, changed, err := c.GetW(path)
		require.NoError(t, err)
		c.Tap.Cut()
		require.NoError(t, sets(z.Observer(), path))
		z.Await("the client to notice", func() bool { return c.State() != zk.StateHasSession })
		mark := c.Tap.Mark()
		read := make(chan string, 1)
		go func() {
			for {
				if data, _, err := c.Get(path); err == nil {
					read <- string(data)
					return
				}
				if z.Ctx.Err() != nil {
					return
				}
			}
		}()
		c.Tap.Restore()
		data := zktest.AwaitChan(z, "the read", read)
		zktest.AwaitChan(z, "the watch to fire", changed)
		for _, f := range c.Tap.Since(mark) {
			switch {
			case f.Kind == wiretap.Notification:
				seen = append(seen, "the notification")
			case f.Kind == wiretap.Reply && f.Op == wiretap.GetData && f.Err == 0:
				seen = append(seen, fmt.Sprintf("the data %q", data))
			}
		}
		return seen
	}
	z.Await("a read that waits for the connection to come before the notification", func() bool {
		return slices.Equal(order(), []string{`the data "new"`, "the notification"})
	})
}

// A watcher that was disconnected is notified when it is back, if what it watches was written in the meantime. The
// server compares numbers of writes, not data: so a change that was undone is told as a change.
func TestAWatchOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	type step = func(*zktest.Client, string) error
	getData := func(c *zktest.Client, path string) (<-chan zk.Event, error) {
		_, _, changed, err := c.GetW(path)
		return changed, err
	}
	getChildren := func(c *zktest.Client, path string) (<-chan zk.Event, error) {
		_, _, changed, err := c.ChildrenW(path)
		return changed, err
	}
	setsBack := func(c *zktest.Client, path string) error { _, err := c.Set(path, nil, -1); return err }
	for _, c := range []struct {
		what    string
		read    func(*zktest.Client, string) (<-chan zk.Event, error)
		happens []step
		told    zk.EventType
	}{
		{"its znode was deleted", getData, []step{deletes}, zk.EventNodeDeleted},
		{"its znode was deleted and created again", getData, []step{deletes, makes}, zk.EventNodeDataChanged},
		{"its znode's data was set, and set back", getData, []step{sets, setsBack}, zk.EventNodeDataChanged},
		{"a child was created and deleted", getChildren, []step{makesChild, losesChild}, zk.EventNodeChildrenChanged},
	} {
		z := zktest.New(t)
		client := z.Client("the client")
		path := create(t, client, z.Root+"/a", 0)
		changed, err := c.read(client, path)
		require.NoError(t, err)
		client.Tap.Cut()
		for _, change := range c.happens {
			require.NoError(t, change(z.Observer(), path))
		}
		client.Tap.Restore()
		event := zktest.AwaitChan(z, "the watch to fire", changed)
		require.NoError(t, event.Err, "the watch's event")
		assert.Equal(t, c.told, event.Type, "while the watcher was disconnected, %s", c.what)
		chapter.SaysIn(t, serversPage,
			"while the watcher was disconnected, %s: its notification is %v", c.what, event.Type)
	}
}

// The one change whose undoing leaves no trace: the watch is on a znode that does not exist. While the watcher is
// disconnected, the znode is created and deleted again, and with it the number of its last write. The watch stays set,
// and the next change fires it.
func TestAChangeThatWasUndoneIsNotTold(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	client := z.Client("the client")
	path := z.Root + "/not there"
	there, _, changed, err := client.ExistsW(path)
	require.NoError(t, err)
	require.False(t, there)
	client.Tap.Cut()
	require.NoError(t, makes(z.Observer(), path))
	require.NoError(t, deletes(z.Observer(), path))
	z.Await("the client to notice", func() bool { return client.State() != zk.StateHasSession })
	client.Tap.Restore()
	z.Await("the client to be back", func() bool { return client.State() == zk.StateHasSession })
	z.Barrier(client)
	told := wiretap.Count(client.Tap.Frames()).Notifications
	assert.Zero(t, told, "notifications of a znode that was made and deleted while the watcher was cut off")
	chapter.SaysIn(t, serversPage,
		"while the watcher was disconnected, a znode that did not exist was created and deleted: %d notifications", told)
	require.NoError(t, makes(z.Observer(), path))
	event := zktest.AwaitChan(z, "the watch to fire", changed)
	assert.Equal(t, zk.EventNodeCreated, event.Type, "what the watch tells of the next change")
}

func TestGivingUpLeavesTheWatch(t *testing.T) {
	z, waiter := start(t)
	watches := func(path string) int {
		all, err := z.Watches()
		require.NoError(t, err)
		return len(all[path])
	}
	holders := create(t, z.Observer(), z.Root+"/lock-", zk.FlagEphemeralSequential)
	own := create(t, waiter, z.Root+"/lock-", zk.FlagEphemeralSequential)
	_, _, gone, err := waiter.GetW(holders)
	require.NoError(t, err)
	require.NoError(t, deletes(waiter, own))
	left := watches(holders)
	assert.Equal(t, 1, left, "watches of a waiter that has given up")
	require.NoError(t, deletes(z.Observer(), holders))
	zktest.AwaitChan(z, "the notification that nobody waits for", gone)
	told, left := wiretap.Count(waiter.Tap.Frames()).Notifications, watches(holders)
	assert.Zero(t, left, "watches on a znode that is gone")
	assert.Equal(t, 1, told, "notifications of a waiter that has given up")
}

// The server grants the session timeout that a client asks for, between two limits: by default 2 and 20 ticks.
func TestTheServerLimitsTheSessionTimeout(t *testing.T) {
	t.Parallel()
	server, err := zkserver.StartEnsemble(t.Context(), 1, "tickTime=2000", "maxSessionTimeout=-1") // the defaults
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Stop()) })
	z := zktest.NewOn(t, server.Server)
	for asked, granted := range map[time.Duration]int{1 * time.Second: 4000, 30 * time.Second: 30_000, 60 * time.Second: 40_000} {
		c := z.Connect("a client", asked)
		said, err := server.Word("cons")
		require.NoError(t, err)
		assert.Regexp(t, fmt.Sprintf(`sid=%#x,.*,to=%d,`, c.ID, granted), said, "asked for %v", asked)
	}
}

// The client's names for its state, in the order in which it reports them.
func TestStates(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	told := make(chan zk.State, 1000)
	c := z.ConnectWith("the client", func(dial zk.Dialer) (*zk.Conn, func(), error) {
		conn, _, err := zk.Connect(z.Servers(), 2*zktest.MortalTimeout, zk.WithDialer(dial), zk.WithLogger(quiet),
			zk.WithEventCallback(func(event zk.Event) { told <- event.State }))
		return conn, conn.Close, err
	})
	take := func(until zk.State) string {
		var states []string
		for state := zk.StateUnknown; state != until; {
			state = zktest.AwaitChan(z, "the client to report "+until.String(), told)
			states = append(states, strings.TrimPrefix(state.String(), "State"))
		}
		return strings.Join(slices.Compact(states), ", ") // how many servers it tries differs from run to run
	}
	says := func(what, want string) {
		t.Helper()
		states := take(zk.StateHasSession)
		assert.Equal(t, want, states, "the states of a client that %s", what)
		chapter.SaysIn(t, serversPage, "the states of a client that %s: %s", what, states)
	}
	says("is new", "Connecting, Connected, HasSession")
	c.Tap.Cut()
	before := take(zk.StateDisconnected)
	assert.Equal(t, "Disconnected", before, "the states of a client that is cut off")
	c.Tap.Restore()
	after := take(zk.StateHasSession)
	assert.Equal(t, "Connecting, Connected, HasSession", after, "the states of a client that is back in time")
	chapter.SaysIn(t, serversPage,
		"the states of a client that was disconnected, and is back in time: %s, %s", before, after)
	c.Crash()
	z.AwaitExpiry(c)
	c.Tap.Restore()
	says("could not be heard, and is back too late",
		"Disconnected, Connecting, Connected, Expired, Disconnected, Connecting, Connected, HasSession")
}

// Two faults lead to one error: the request was lost, or its reply.
func TestTheErrorDoesNotTellWhatHappened(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lost   string
		fault  func(*wiretap.Tap)
		frames int // on the connection until the loss
		there  bool
	}{
		{"request", (*wiretap.Tap).Silence, 1, false},
		{"reply", func(tap *wiretap.Tap) { tap.LoseReply(wiretap.Create, 1) }, 2, true},
	} {
		z := zktest.New(t)
		client := z.Client("the client")
		mark := client.Tap.Mark()
		c.fault(client.Tap)
		answer := make(chan error, 1)
		go func() { answer <- makes(client, z.Root+"/a") }()
		z.Await("the "+c.lost+" to be lost", func() bool { return len(client.Tap.Since(mark)) >= c.frames })
		client.Tap.Restore()
		err := zktest.AwaitChan(z, "the create's answer", answer)
		assert.ErrorIs(t, err, zk.ErrConnectionClosed, "the %s is lost", c.lost)
		assert.Equal(t, c.there, isThere(z, z.Root+"/a"), "the znode is there when the %s is lost", c.lost)
		chapter.SaysIn(t, serversPage, "a create, and its %s is lost: error %q, and the znode %s",
			c.lost, err, map[bool]string{true: "exists", false: "does not exist"}[c.there])
	}
}
