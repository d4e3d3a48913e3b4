package doccheck

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/chapter"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// What docs/zookeeper.md says of ZooKeeper, seen on a real server.

const primer = "../../docs/zookeeper.md"

var anyone = zk.WorldACL(zk.PermAll)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// create makes a znode and returns its path, with the number if it has one.
func create(t *testing.T, c *zktest.Client, path string, mode int32) string {
	t.Helper()
	made, err := c.Create(path, nil, mode, anyone)
	must(t, err)
	return made
}

// there tells in a word whether a znode exists.
func there(z *zktest.Zoo, path string) string {
	if _, ok := z.Owner(path); ok {
		return "there"
	}
	return "gone"
}

// Transactions are numbered for the whole server: this test runs alone.
func TestWritesAreNumbered(t *testing.T) {
	z := zktest.New(t)
	c := z.Client("the client")
	last := func() int64 { // the transaction that the server had applied last
		mark := c.Tap.Mark()
		z.Barrier(c)
		for _, f := range c.Tap.Since(mark) {
			if f.Kind == wiretap.Reply && f.Op == wiretap.Exists {
				return f.Zxid
			}
		}
		t.Fatal("no answer to exists")
		return 0
	}
	path := z.Root + "/a"
	for _, step := range []struct {
		what string
		do   func() error
		want int64
	}{
		{"a create", func() error { _, err := c.Create(path, nil, 0, anyone); return err }, 1},
		{"a create in vain", func() error {
			if _, err := c.Create(path, nil, 0, anyone); !errors.Is(err, zk.ErrNodeExists) {
				return fmt.Errorf("the second create answers %v", err)
			}
			return nil
		}, 1},
		{"a list", func() error { _, _, err := c.Children(z.Root); return err }, 0},
		{"a sync", func() error { _, err := c.Sync(path); return err }, 0},
		{"a delete", func() error { return c.Delete(path, -1) }, 1},
	} {
		before := last()
		must(t, step.do())
		got := last() - before
		chapter.SaysIn(t, primer, "%s: %d zxid", step.what, got)
		if got != step.want {
			t.Errorf("want %d", step.want)
		}
	}
}

func TestKindsOfZnodes(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	c := z.Client("the client")
	var kinds []string
	paths := map[string]string{}
	for _, k := range []struct {
		kind string
		mode int32
	}{
		{"persistent", zk.FlagPersistent}, {"persistent sequential", zk.FlagSequence},
		{"ephemeral", zk.FlagEphemeral}, {"ephemeral sequential", zk.FlagEphemeralSequential},
	} {
		kinds = append(kinds, k.kind)
		paths[k.kind] = create(t, c, z.Root+"/"+strings.ReplaceAll(k.kind, " ", "-"), k.mode)
	}
	_, err := c.Create(paths["ephemeral"]+"/child", nil, 0, anyone)
	chapter.SaysIn(t, primer, "a child of an ephemeral znode: %v", err)
	if !errors.Is(err, zk.ErrNoChildrenForEphemerals) {
		t.Errorf("a child of an ephemeral: %v", err)
	}
	c.Close()
	for _, kind := range kinds {
		is := there(z, paths[kind])
		chapter.SaysIn(t, primer, "its session has been closed: the %s znode is %s", kind, is)
		if (is == "gone") != strings.HasPrefix(kind, "ephemeral") {
			t.Error("an ephemeral znode goes with its session, and no other does")
		}
	}
}

// suffix is the number at the end of a sequential znode's name.
func suffix(path string) int {
	n, _ := strconv.Atoi(path[len(path)-10:])
	return n
}

func TestTheNumberCountsCreates(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	c := z.Client("the client")
	dir := z.Root + "/dir"
	create(t, c, dir, 0)
	next := func() int {
		made := create(t, c, dir+"/n-", zk.FlagSequence)
		defer func() { must(t, c.Delete(made, -1)) }()
		return suffix(made)
	}
	says := func(what string, want int) {
		t.Helper()
		n := next()
		chapter.SaysIn(t, primer, "%s: number %d", what, n)
		if n != want {
			t.Errorf("want %d", want)
		}
	}
	says("the first child", 0)
	says("the next, after the first was deleted", 1)
	create(t, c, dir+"/plain", 0)
	says("the next, after one was made without a number", 3)
	must(t, c.Delete(dir+"/plain", -1))
	must(t, c.Delete(dir, -1))
	create(t, c, dir, 0)
	says("the next, after the directory was deleted and made again", 0)
}

// conf reads a number out of the server's configuration, in milliseconds.
func conf(t *testing.T, z *zktest.Zoo, key string) time.Duration {
	t.Helper()
	text, err := z.Word("conf")
	must(t, err)
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), key+"="); ok {
			ms, err := strconv.Atoi(value)
			must(t, err)
			return time.Duration(ms) * time.Millisecond
		}
	}
	t.Fatalf("conf has no %s", key)
	return 0
}

func TestTheServerGrantsTheTimeout(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	shortest, longest := conf(t, z, "minSessionTimeout"), conf(t, z, "maxSessionTimeout")
	for _, c := range []struct {
		says        string
		asked, want time.Duration
	}{
		{"less than minSessionTimeout", shortest - time.Millisecond, shortest},
		{"more than maxSessionTimeout", longest + time.Second, longest},
	} {
		client := z.Connect(c.says, c.asked)
		var granted time.Duration
		z.Await("the server to know the session", func() bool {
			text, err := z.Word("cons")
			_, rest, found := strings.Cut(text, fmt.Sprintf("sid=0x%x,", client.SessionID()))
			_, rest, _ = strings.Cut(rest, ",to=")
			ms, _, _ := strings.Cut(rest, ",")
			n, _ := strconv.Atoi(ms)
			granted = time.Duration(n) * time.Millisecond
			return err == nil && found
		})
		word := map[time.Duration]string{shortest: "minSessionTimeout", longest: "maxSessionTimeout"}[granted]
		chapter.SaysIn(t, primer, "asked for %s: granted %s", c.says, word)
		if granted != c.want {
			t.Errorf("granted %v, want %v", granted, c.want)
		}
	}
}

func TestASessionOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	c := z.Client("the client")
	path := create(t, c, z.Root+"/mine", zk.FlagEphemeral)
	c.Tap.Cut()
	z.Await("the client to notice", func() bool { return c.State() != zk.StateHasSession })
	c.Tap.Restore()
	z.Await("the client to be back", func() bool { return c.State() == zk.StateHasSession })
	same := map[bool]string{true: "the same session", false: "another session"}[c.SessionID() == c.ID]
	chapter.SaysIn(t, primer, "cut off and back in time: %s, and its ephemeral znode is %s", same, there(z, path))
	if c.SessionID() != c.ID {
		t.Error("want the same session")
	}
}

// A client falls silent. The server waits for the time-out, the client knows
// nothing: it believes that it is between two connections.
func TestASilentSessionExpires(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	c := z.Mortal("the client")
	path := create(t, c, z.Root+"/mine", zk.FlagEphemeral)
	_, _, gone, err := c.GetW(z.Root)
	must(t, err)
	frames := c.Tap.Frames()
	heard := frames[len(frames)-1].At
	c.Crash()
	z.Await("the client to give the connection up", func() bool { return c.State() != zk.StateHasSession })
	chapter.SaysIn(t, primer, "silence: the client gives its connection up after %v of the time-out",
		chapter.About(time.Since(heard).Seconds()/zktest.MortalTimeout.Seconds(), 2.5))
	z.Await("the znode to go", func() bool { _, ok := z.Owner(path); return !ok })
	chapter.SaysIn(t, primer, "silence: the server deletes its ephemeral znode after %v of the time-out",
		chapter.About(time.Since(heard).Seconds()/zktest.MortalTimeout.Seconds(), 2.5))
	z.AwaitExpiry(c)
	if state := c.State(); state == zk.StateExpired || state == zk.StateHasSession {
		t.Errorf("the client, still cut off, is in %v", state)
	}
	select {
	case event := <-gone:
		t.Errorf("the watch said %v to a client that is cut off", event)
	default:
	}
	chapter.SaysIn(t, primer, "silence: the session is gone, and the client, still cut off, has not been told")
	c.Tap.Restore()
	event := zktest.AwaitChan(z, "the watch to end", gone)
	chapter.SaysIn(t, primer, "back: the watch says %v (%v)", event.Err, event.Type)
	if !errors.Is(event.Err, zk.ErrSessionExpired) {
		t.Errorf("the watch ends with %v", event.Err)
	}
}

func TestAWatchFiresOnce(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	c := z.Client("the watcher")
	path := create(t, c, z.Root+"/a", 0)
	_, _, changed, err := c.GetW(path)
	must(t, err)
	for range 2 {
		_, err := z.Observer().Set(path, nil, -1)
		must(t, err)
	}
	event := zktest.AwaitChan(z, "the watch to fire", changed)
	z.Barrier(c)
	n := wiretap.Count(c.Tap.Frames()).Notifications
	chapter.SaysIn(t, primer, "one watch, two changes: %d notification (%v)", n, event.Type)
	if n != 1 {
		t.Error("want 1")
	}
}

// Which changes a watch tells depends on the read that has set it.
func TestTheReadDecidesWhatAWatchTells(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what    string
		happens func(o *zktest.Client, path string) error
		want    string
	}{
		{"its data is set", func(o *zktest.Client, path string) error { _, err := o.Set(path, nil, -1); return err }, "getData"},
		{"it gets a child", func(o *zktest.Client, path string) error { _, err := o.Create(path+"/b", nil, 0, anyone); return err }, "getChildren"},
		{"it is deleted", func(o *zktest.Client, path string) error { return o.Delete(path, -1) }, "getData, getChildren"},
	} {
		z := zktest.New(t)
		w := z.Client("the watcher")
		path := create(t, w, z.Root+"/a", 0)
		_, _, data, err := w.GetW(path)
		must(t, err)
		_, _, children, err := w.ChildrenW(path)
		must(t, err)
		must(t, c.happens(z.Observer(), path))
		z.Barrier(w) // the client hands out a notification before the next answer
		var told []string
		for _, watch := range []struct {
			read string
			gone <-chan zk.Event
		}{{"getData", data}, {"getChildren", children}} {
			select {
			case <-watch.gone:
				told = append(told, watch.read)
			default:
			}
		}
		chapter.SaysIn(t, primer, "a znode is watched, and %s: told is the watch of %s", c.what, strings.Join(told, ", "))
		if strings.Join(told, ", ") != c.want {
			t.Errorf("want %s", c.want)
		}
	}
}

func TestTheNotificationComesBeforeTheChange(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	c := z.Client("the watcher")
	path := create(t, c, z.Root+"/a", 0)
	_, _, _, err := c.GetW(path)
	must(t, err)
	mark := c.Tap.Mark()
	_, err = z.Observer().Set(path, []byte("new"), -1)
	must(t, err)
	data, _, err := c.Get(path) // does not wait for the notification
	must(t, err)
	var order []string
	for _, f := range c.Tap.Since(mark) {
		switch {
		case f.Kind == wiretap.Notification:
			order = append(order, "the notification")
		case f.Kind == wiretap.Reply && f.Op == wiretap.GetData:
			order = append(order, fmt.Sprintf("the data %q", data))
		}
	}
	chapter.SaysIn(t, primer, "in this order on the line: %s", strings.Join(order, ", "))
	if len(order) != 2 || order[0] != "the notification" || !bytes.Equal(data, []byte("new")) {
		t.Error("want the notification before the new data")
	}
}

// What happens while the watcher is cut off is told afterwards, as far as the
// difference shows.
func TestAWatchOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what    string
		happens func(*zktest.Client, string) error
		want    zk.EventType
	}{
		{"deleted", func(o *zktest.Client, path string) error { return o.Delete(path, -1) }, zk.EventNodeDeleted},
		{"deleted and made again", func(o *zktest.Client, path string) error {
			if err := o.Delete(path, -1); err != nil {
				return err
			}
			_, err := o.Create(path, nil, 0, anyone)
			return err
		}, zk.EventNodeDataChanged},
	} {
		z := zktest.New(t)
		w := z.Client("the watcher")
		path := create(t, w, z.Root+"/a", 0)
		_, _, changed, err := w.GetW(path)
		must(t, err)
		w.Tap.Cut()
		must(t, c.happens(z.Observer(), path))
		w.Tap.Restore()
		event := zktest.AwaitChan(z, "the watch to fire", changed)
		chapter.SaysIn(t, primer, "while the watcher was cut off, its znode was %s: it is told %v", c.what, event.Type)
		if event.Type != c.want || event.Err != nil {
			t.Errorf("want %v, got %v", c.want, event)
		}
	}
}

// A change falls between a read and its watch? There is nothing in between.
func TestReadAndWatchAreOneStep(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		when  string
		hold  func(*wiretap.Tap) *wiretap.Trap
		names int
		told  int
	}{
		{"before", func(tap *wiretap.Tap) *wiretap.Trap { return tap.HoldRequest(wiretap.GetChildren, 1) }, 1, 0},
		{"after", func(tap *wiretap.Tap) *wiretap.Trap { return tap.HoldReply(wiretap.GetChildren, 1) }, 0, 1},
	} {
		z := zktest.New(t)
		reader := z.Client("the reader")
		slow := c.hold(reader.Tap)
		listed := make(chan int, 1)
		go func() {
			names, _, _, err := reader.ChildrenW(z.Root)
			if err != nil {
				t.Error(err)
			}
			listed <- len(names)
		}()
		zktest.AwaitChan(z, "the list to be under way", slow.Sprung())
		create(t, z.Observer(), z.Root+"/new", 0)
		slow.Let()
		names := zktest.AwaitChan(z, "the list", listed)
		z.Barrier(reader)
		told := wiretap.Count(reader.Tap.Frames()).Notifications
		chapter.SaysIn(t, primer, "a child is made just %s the server reads: names in the list: %d, notifications: %d", c.when, names, told)
		if names != c.names || told != c.told {
			t.Errorf("want %d and %d", c.names, c.told)
		}
	}
}

// The client's words for its state, in the order in which they come.
func TestStates(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	stories := []struct{ what, want string }{
		{"is new", "Connecting, Connected, HasSession"},
		{"was cut off, and is back in time", "Connecting, Connected, HasSession"},
		{"was silenced, and is back too late", "Disconnected, Connecting, Connected, Expired, Disconnected, Connecting, Connected, HasSession"},
	}
	// On a busy machine a session so short may be lost in between: then again.
	var told []string
	asWanted := func() bool {
		return slices.EqualFunc(told, stories, func(got string, s struct{ what, want string }) bool { return got == s.want })
	}
	for try := 0; try < 3 && !asWanted(); try++ {
		told = states(t, z)
	}
	for i, s := range stories {
		chapter.SaysIn(t, primer, "the states of a client that %s: %s", s.what, told[i])
		if told[i] != s.want {
			t.Errorf("want %s", s.want)
		}
	}
}

// states returns what a client is told of its connection, in three stories.
func states(t *testing.T, z *zktest.Zoo) (told []string) {
	t.Helper()
	var mu sync.Mutex
	var seen []string
	c := z.ConnectWith("the client", func(dial zk.Dialer) (*zk.Conn, func(), error) {
		conn, _, err := zk.Connect(z.Servers(), zktest.MortalTimeout, zk.WithDialer(dial), zk.WithLogger(quiet{}),
			zk.WithEventCallback(func(event zk.Event) {
				mu.Lock()
				defer mu.Unlock()
				if event.Type == zk.EventSession {
					seen = append(seen, strings.TrimPrefix(event.State.String(), "State"))
				}
			}))
		return conn, conn.Close, err
	})
	defer c.Close()
	take := func(until string) string {
		var states []string
		z.Await("the client to be told "+until, func() bool {
			mu.Lock()
			defer mu.Unlock()
			at := slices.Index(seen, until)
			if at >= 0 {
				states, seen = seen[:at+1:at+1], seen[at+1:]
			}
			return at >= 0
		})
		// Servers may be tried in vain, how many is a matter of luck.
		return strings.Join(slices.Compact(states), ", ")
	}
	told = append(told, take("HasSession"))
	c.Tap.Cut()
	take("Disconnected")
	c.Tap.Restore()
	z.Await("the client to be back", func() bool { return c.State() == zk.StateHasSession })
	told = append(told, take("HasSession"))
	c.Crash()
	z.AwaitExpiry(c)
	c.Tap.Restore()
	told = append(told, take("HasSession"))
	if c.SessionID() == c.ID {
		t.Error("want a new session")
	}
	return told
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// Two faults, one error: the request was lost, or its reply.
func TestTheErrorDoesNotTellWhatHappened(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lost, says string
	}{
		{"request", "not there"},
		{"reply", "there"},
	} {
		z := zktest.New(t)
		client := z.Client("the client")
		if c.lost == "reply" {
			client.Tap.LoseReply(wiretap.Create, 1)
		} else {
			client.Tap.Silence()
		}
		answer := make(chan error, 1)
		go func() {
			_, err := client.Create(z.Root+"/a", nil, 0, anyone)
			answer <- err
		}()
		if c.lost == "request" {
			z.Await("the create to be sent", func() bool {
				return wiretap.Count(client.Tap.Frames()).Requests[wiretap.Create] > 0
			})
			client.Tap.Restore()
		}
		err := zktest.AwaitChan(z, "the create's answer", answer)
		is := map[string]string{"there": "there", "gone": "not there"}[there(z, z.Root+"/a")]
		chapter.SaysIn(t, primer, "a create, and its %s is lost: error %q, and the znode is %s", c.lost, err, is)
		if is != c.says || !errors.Is(err, zk.ErrConnectionClosed) {
			t.Errorf("want the znode %s, and the connection closed", c.says)
		}
	}
}
