package docs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/steps"
	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
	"zklock/internal/upkeep/chapter"
	reentrant "zklock/step05_reentrant"
)

// start gives a test its share of the server, and a client.
func start(t *testing.T) (*zktest.Zoo, *zktest.Client) {
	t.Helper()
	z := zktest.New(t)
	return z, z.Client("the client")
}

// watched makes a znode and watches it.
func watched(t *testing.T, c *zktest.Client, z *zktest.Zoo) (path string, changed <-chan zk.Event) {
	t.Helper()
	path = create(t, c, z.Root+"/a", 0)
	_, _, changed, err := c.GetW(path)
	require.NoError(t, err)
	return path, changed
}

// Transactions are numbered for the whole server: this test runs alone.
func TestWritesAreNumbered(t *testing.T) {
	z, c := start(t)
	path := z.Root + "/a"
	last := func() int64 { // the transaction that the server had applied last
		z.Barrier(c)
		frames := c.Tap.Frames()
		return frames[len(frames)-1].Zxid
	}
	creates := func() error { return makes(c, path) }
	var another *zktest.Client
	for _, step := range []struct {
		what string
		does func() error
		want error
	}{
		{"a create", creates, nil},
		{"a create in vain", creates, zk.ErrNodeExists},
		{"a list", func() error { _, _, err := c.Children(z.Root); return err }, nil},
		{"a sync", func() error { _, err := c.Sync(path); return err }, nil},
		{"a delete", func() error { return c.Delete(path, -1) }, nil},
		{"a session begins", func() error { another = z.Client("another client"); return nil }, nil},
		{"its two ephemeral znodes", func() error {
			create(t, another, path, zk.FlagEphemeral)
			create(t, another, z.Root+"/b", zk.FlagEphemeral)
			return nil
		}, nil},
		{"a session is closed", func() error { another.Close(); return nil }, nil},
	} {
		before := last()
		require.Equal(t, step.want, step.does(), "the answer to %s", step.what)
		chapter.SaysIn(t, "zookeeper.md", "%s: %d zxid", step.what, last()-before)
	}
}

func TestKindsOfZnodes(t *testing.T) {
	t.Parallel()
	z, c := start(t)
	kinds := map[string]int32{"persistent": zk.FlagPersistent, "persistent sequential": zk.FlagSequence,
		"ephemeral": zk.FlagEphemeral, "ephemeral sequential": zk.FlagEphemeralSequential}
	made := map[string]string{}
	for kind, mode := range kinds {
		made[kind] = create(t, c, z.Root+"/"+strings.ReplaceAll(kind, " ", "-"), mode)
	}
	_, err := c.Create(made["ephemeral"]+"/child", nil, 0, anyone)
	chapter.SaysIn(t, "zookeeper.md", "a child of an ephemeral znode: %v", err)
	c.Close()
	for kind, path := range made {
		chapter.SaysIn(t, "zookeeper.md", "its session has been closed: the %s znode is %s", kind, is(z, path))
	}
}

// The server reads no request that is longer than its jute.maxbuffer: it hangs up.
// The client's own buffer is larger than that, and not much.
func TestARequestHasALimit(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	c := z.ConnectWith("the client", func(dial zk.Dialer) (*zk.Conn, func(), error) { // with its usual buffer
		conn, _, err := zk.Connect(z.Servers(), zktest.SessionTimeout, zk.WithDialer(dial), zk.WithLogger(quiet))
		return conn, conn.Close, err
	})
	path := create(t, c, z.Root+"/a", 0)
	const limit = 1<<20 - 1
	sends := func(bytes int) (sent int, err error) {
		mark := c.Tap.Mark()
		// the rest is numbers: lengths, the version, which request it is
		_, err = c.Set(path, make([]byte, bytes-len(path)-20), -1)
		z.Await("the client to be connected", func() bool { return c.State() == zk.StateHasSession })
		return frames(c, mark, wiretap.Request, wiretap.SetData), err
	}
	_, err := sends(limit)
	require.NoError(t, err)
	data, before, err := c.Get(path)
	require.NoError(t, err)
	chapter.SaysIn(
		t,
		"zookeeper.md",
		"a request of %d bytes: done, and the znode has %d bytes of data",
		limit,
		len(data),
	)
	sent, err := sends(limit + 1)
	if cut := (*net.OpError)(nil); errors.As(err, &cut) { // the server has hung up before all was sent
		err = zk.ErrConnectionClosed
	}
	_, after, unread := c.Get(path)
	require.NoError(t, unread)
	chapter.SaysIn(t, "zookeeper.md", "a request of %d bytes: sent %d time, error %q", limit+1, sent, err)
	chapter.SaysIn(
		t,
		"zookeeper.md",
		"after it: %s, on a new connection; writes to the znode: %d",
		sameSession(c),
		after.Version-before.Version,
	)
	sent, err = sends(2 << 20)
	chapter.SaysIn(t, "zookeeper.md", "a request of %d bytes: sent %d times, error %q", 2<<20, sent, err)
}

// suffix is the number at the end of a sequential znode's name.
func suffix(t *testing.T, path string) int {
	t.Helper()
	n, err := strconv.Atoi(path[len(path)-10:])
	require.NoError(t, err)
	return n
}

func TestTheNumberCountsCreates(t *testing.T) {
	t.Parallel()
	z, c := start(t)
	dir := create(t, c, z.Root+"/dir", 0)
	says := func(what string) {
		t.Helper()
		made := create(t, c, dir+"/n-", zk.FlagSequence)
		chapter.SaysIn(t, "zookeeper.md", "%s: number %d", what, suffix(t, made))
		require.NoError(t, c.Delete(made, -1))
	}
	says("the first child")
	says("the next, after the first was deleted")
	create(t, c, dir+"/plain", 0)
	says("the next, after one was made without a number")
	require.NoError(t, c.Delete(dir+"/plain", -1))
	require.NoError(t, c.Delete(dir, -1))
	create(t, c, dir, 0)
	says("the next, after the directory was deleted and made again")
}

func TestTheNumberHasAnEnd(t *testing.T) {
	t.Parallel()
	z, dirs := zktest.NewAtTheEnd(t)
	c := z.Client("the client")
	makes := func(name string) string { return create(t, c, dirs[0]+"/"+name, zk.FlagSequence) }
	makes("a-")
	before := zktest.FirstAtTheEnd + 1
	chapter.SaysIn(t, "zookeeper.md", "one more, after %d others: number %d", before, suffix(t, makes("a-")))
	chapter.SaysIn(t, "zookeeper.md", "and the next: number %d", suffix(t, makes("a-")))
	chapter.SaysIn(t, "zookeeper.md", "and the next, with another name: number %d", suffix(t, makes("b-")))
	_, err := c.Create(dirs[0]+"/a-", nil, zk.FlagSequence, anyone)
	chapter.SaysIn(t, "zookeeper.md", "and the next, with the same name: no number, but the error %q", err)
}

func TestTheServerGrantsTheTimeout(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	conf, err := z.Word("conf")
	require.NoError(t, err)
	for what, beyond := range map[string]time.Duration{
		"less than minSessionTimeout": -time.Millisecond,
		"more than maxSessionTimeout": time.Second,
	} {
		limit := strings.Fields(what)[2]
		line := regexp.MustCompile(limit + `=(\d+)`).FindStringSubmatch(conf)
		require.NotNil(t, line, conf)
		timeout, err := time.ParseDuration(line[1] + "ms")
		require.NoError(t, err)
		m := step5.JoinAs(z, "the client", lockcheck.Seat{Timeout: timeout + beyond})
		require.Equal(t, timeout, m.Session.(*reentrant.Session).Timeout())
		chapter.SaysIn(t, "zookeeper.md", "asked for %s: granted %s", what, limit)
	}
}

func TestASessionOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	z, c := start(t)
	path := create(t, c, z.Root+"/mine", zk.FlagEphemeral)
	c.Tap.Cut()
	z.Await("the client to notice", func() bool { return c.State() != zk.StateHasSession })
	c.Tap.Restore()
	z.Await("the client to be back", func() bool { return c.State() == zk.StateHasSession })
	chapter.SaysIn(
		t,
		"zookeeper.md",
		"cut off and back in time: %s, and its ephemeral znode is %s",
		sameSession(c),
		is(z, path),
	)
}

// A client falls silent. The server waits for the time-out, the client knows
// nothing: it believes that it is between two connections.
func TestASilentSessionExpires(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	c := z.Mortal("the client")
	path := create(t, c, z.Root+"/mine", zk.FlagEphemeral)
	_, _, gone, err := c.GetW(z.Root)
	require.NoError(t, err)
	frames := c.Tap.Frames()
	heard := frames[len(frames)-1].At
	part := func() chapter.Rough {
		return chapter.About(time.Since(heard).Seconds()/zktest.MortalTimeout.Seconds(), 2.5)
	}
	c.Crash()
	z.Await("the client to give the connection up", func() bool { return c.State() != zk.StateHasSession })
	chapter.SaysIn(t, "zookeeper.md", "silence: the client gives its connection up after %v of the time-out", part())
	z.Await("the znode to go", func() bool { return is(z, path) == "gone" })
	chapter.SaysIn(
		t,
		"zookeeper.md",
		"silence: the server deletes its ephemeral znode after %v of the time-out",
		part(),
	)
	z.AwaitExpiry(c)
	assert.NotContains(t, []zk.State{zk.StateExpired, zk.StateHasSession}, c.State(), "the client, still cut off")
	assert.Empty(t, gone, "what the watch said to a client that is cut off")
	chapter.SaysIn(t, "zookeeper.md", "silence: the session is gone, and the client, still cut off, has not been told")
	c.Tap.Restore()
	event := zktest.AwaitChan(z, "the watch to end", gone)
	chapter.SaysIn(t, "zookeeper.md", "back: the watch says %v (%v)", event.Err, event.Type)
}

func TestAWatchFiresOnce(t *testing.T) {
	t.Parallel()
	z, c := start(t)
	path, changed := watched(t, c, z)
	for range 2 {
		_, err := z.Observer().Set(path, nil, -1)
		require.NoError(t, err)
	}
	event := zktest.AwaitChan(z, "the watch to fire", changed)
	z.Barrier(c)
	chapter.SaysIn(
		t,
		"zookeeper.md",
		"one watch, two changes: %d notification (%v)",
		wiretap.Count(c.Tap.Frames()).Notifications,
		event.Type,
	)
}

// What happens to a znode that is watched.
func sets(c *zktest.Client, path string) error { _, err := c.Set(path, []byte("new"), -1); return err }
func makes(c *zktest.Client, path string) error {
	_, err := c.Create(path, nil, 0, anyone)
	return err
}
func deletes(c *zktest.Client, path string) error { return c.Delete(path, -1) }

// Which changes a watch tells depends on the read that has set it. Each change is
// made twice, and each cell of the page's table is what the server then sent to a
// client that had read once.
func TestTheReadDecidesWhatAWatchTells(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	page, err := os.ReadFile("zookeeper.md")
	require.NoError(t, err)
	makesChild := func(c *zktest.Client, path string) error {
		_, err := c.Create(path+"/child-", nil, zk.FlagSequence, anyone)
		return err
	}
	type step = func(c *zktest.Client, path string) error
	changes := [][]step{{makes, deletes, makes}, {sets, sets}, {makesChild, makesChild}, {deletes, makes, deletes}}
	for name, read := range map[string]step{
		"getData":     func(c *zktest.Client, path string) error { _, _, _, err := c.GetW(path); return err },
		"exists":      func(c *zktest.Client, path string) error { _, _, _, err := c.ExistsW(path); return err },
		"getChildren": func(c *zktest.Client, path string) error { _, _, _, err := c.ChildrenW(path); return err },
	} {
		row := "| " + name
		for i, change := range changes {
			path, c := fmt.Sprintf("%s/%s%d", z.Root, name, i), z.Client("a client that reads by "+name)
			if i > 0 { // else it is not there yet
				require.NoError(t, makes(z.Observer(), path))
			}
			mark, told := c.Tap.Mark(), []string{}
			if err := read(c, path); err != nil {
				told = append(told, "no watch: "+err.Error())
			}
			for _, step := range change {
				require.NoError(t, step(z.Observer(), path))
			}
			z.Barrier(c)
			for _, f := range c.Tap.Since(mark) {
				if f.Kind == wiretap.Notification {
					told = append(told, "`"+zk.EventType(f.Event).String()+"`")
				}
			}
			row += " | " + cmp.Or(strings.Join(told, ", "), "–")
		}
		assert.Contains(t, string(page), row+" |\n", "what %s with a watch tells", name)
	}
}

func TestTheNotificationComesBeforeTheChange(t *testing.T) {
	t.Parallel()
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
	chapter.SaysIn(t, "zookeeper.md", "in this order on the line: %s", strings.Join(order, ", "))
}

// What happens while the watcher is cut off is told afterwards, as far as the
// difference shows.
func TestAWatchOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	for what, happens := range map[string][]func(*zktest.Client, string) error{
		"deleted": {deletes}, "deleted and made again": {deletes, makes},
	} {
		z, c := start(t)
		path, changed := watched(t, c, z)
		c.Tap.Cut()
		for _, change := range happens {
			require.NoError(t, change(z.Observer(), path))
		}
		c.Tap.Restore()
		event := zktest.AwaitChan(z, "the watch to fire", changed)
		require.NoError(t, event.Err, "the watch's event")
		chapter.SaysIn(
			t,
			"zookeeper.md",
			"while the watcher was cut off, its znode was %s: it is told %v",
			what,
			event.Type,
		)
	}
}

// watching lists the sessions that the server would notify of a znode's change.
func watching(t *testing.T, z *zktest.Zoo, path string) (sessions []int64) {
	t.Helper()
	watches, err := z.Watches()
	require.NoError(t, err)
	return watches[path]
}

// Who gives up deletes its znode. Its watch, on the znode before, stays until that
// goes, or the session.
func TestAWaiterThatGivesUpLeavesItsWatch(t *testing.T) {
	t.Parallel()
	const waiters = 20
	step4 := steps.All[3]
	for _, order := range []string{"the first of them first", "the last of them first"} {
		z := zktest.New(t)
		line := step4.Line(z, waiters)
		holder, line := line[0], line[1:]
		if order == "the last of them first" {
			slices.Reverse(line)
		}
		inVain := 0
		for i, waiter := range line {
			count := z.Count(line[:i]...)
			require.ErrorIs(t, waiter.Cancel(), context.Canceled)
			z.Settle(line[i+1:]...)
			inVain += count().Notifications
		}
		require.Len(t, holder.Queue(), 1, "the queue: only the holder")
		left := len(watching(t, z, holder.Znode()))
		chapter.SaysIn(
			t,
			"zookeeper.md",
			"%d waiters give up, %s: watches on the holder's znode: %d, notifications in vain: %d",
			waiters,
			order,
			left,
			inVain,
		)

		last := line[len(line)-1]
		last.Close()
		z.Await("the watch to end with the session", func() bool { return len(watching(t, z, holder.Znode())) < left })
		left = len(watching(t, z, holder.Znode()))
		count := z.Count(line[:len(line)-1]...)
		holder.Release()
		chapter.SaysIn(
			t,
			"zookeeper.md",
			"the session of the last to give up ends: watches: %d; the holder releases: notifications in vain: %d, watches: %d",
			left,
			count().Notifications,
			len(watching(t, z, holder.Znode())),
		)
	}

	z := zktest.New(t)
	holder, impatient := step4.Join(z, "the holder").Acquire(), step4.Join(z, "one that gives up")
	for range waiters {
		waiting := impatient.Start()
		waiting.MustWait("the lock is held")
		require.ErrorIs(t, waiting.Cancel(), context.Canceled)
	}
	chapter.SaysIn(
		t,
		"zookeeper.md",
		"one client gives up %d times behind the same holder: watches on the holder's znode: %d, channels in the client: %d",
		waiters,
		len(watching(t, z, holder.Znode())),
		channels(impatient.Conn),
	)
	holder.Release()
}

// channels is how many watches the client library has given out that have not fired.
func channels(conn *zk.Conn) (n int) {
	watchers := reflect.ValueOf(conn).Elem().FieldByName("watchers")
	for each := watchers.MapRange(); each.Next(); {
		n += each.Value().Len()
	}
	return n
}

// A change falls between a read and its watch? There is nothing in between.
func TestReadAndWatchAreOneStep(t *testing.T) {
	t.Parallel()
	for when, hold := range map[string]func(*wiretap.Tap, wiretap.Op, int) *wiretap.Trap{
		"before": (*wiretap.Tap).HoldRequest, "after": (*wiretap.Tap).HoldReply,
	} {
		z, c := start(t)
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
		chapter.SaysIn(
			t,
			"zookeeper.md",
			"a child is made just %s the server reads: names in the list: %d, notifications: %d",
			when,
			len(names),
			wiretap.Count(c.Tap.Frames()).Notifications,
		)
	}
}

// The client's words for its state, in the order in which they come.
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
			state = zktest.AwaitChan(z, "the client to be told "+until.String(), told)
			states = append(states, strings.TrimPrefix(state.String(), "State"))
		}
		// Servers may be tried in vain, how many is a matter of luck.
		return strings.Join(slices.Compact(states), ", ")
	}
	says := func(what string) {
		t.Helper()
		chapter.SaysIn(t, "zookeeper.md", "the states of a client that %s: %s", what, take(zk.StateHasSession))
	}
	says("is new")
	c.Tap.Cut()
	take(zk.StateDisconnected)
	c.Tap.Restore()
	says("was cut off, and is back in time")
	c.Crash()
	z.AwaitExpiry(c)
	c.Tap.Restore()
	says("was silenced, and is back too late")
}

// Two faults, one error: the request was lost, or its reply.
func TestTheErrorDoesNotTellWhatHappened(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lost   string
		fault  func(*wiretap.Tap)
		frames int // on the line until then
	}{
		{"request", (*wiretap.Tap).Silence, 1},
		{"reply", func(tap *wiretap.Tap) { tap.LoseReply(wiretap.Create, 1) }, 2},
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
		chapter.SaysIn(t, "zookeeper.md", "a create, and its %s is lost: error %q, and the znode is %s",
			c.lost, err, strings.ReplaceAll(is(z, z.Root+"/a"), "gone", "not there"))
	}
}
