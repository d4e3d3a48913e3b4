package reentrant

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/chapter"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// tapped opens a session with a tap on its line. It ends with the test.
func tapped(z *zktest.Zoo, name string, timeout time.Duration) (s *Session, c *zktest.Client) {
	c = z.ConnectWith(name, func(dial zk.Dialer) (*zk.Conn, func(), error) {
		var err error
		if s, err = Open(z.Servers(), timeout, WithDialer(dial)); err != nil {
			return nil, nil, err
		}
		return s.Conn(), s.Close, nil
	})
	return s, c
}

// inTurn takes the lock, calls inside, and releases it.
func inTurn(ctx context.Context, lock mutex, inside func(held context.Context)) error {
	held, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	inside(held)
	return lock.Unlock(held)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// asked lists what a client has asked since the mark, in order.
func asked(c *zktest.Client, mark int) (ops []string) {
	for _, f := range c.Tap.Since(mark) {
		if wiretap.Count([]wiretap.Frame{f}).All() == 1 {
			ops = append(ops, f.Op.String())
		}
	}
	return ops
}

// The eight goroutines of one process want the lock, in three ways. The ways
// take turns, so that noise hits all alike. This test runs alone.
func TestThreeWays(t *testing.T) {
	const turns, rounds = 5, 9
	goroutines := chapter.Size(t, 8)
	z := zktest.New(t)
	ways := []struct {
		name string
		turn func(*Session) []func() error // one for each goroutine
	}{
		{"everyone queues at ZooKeeper", func(s *Session) (all []func() error) {
			for range goroutines {
				lock := New(s, z.Root+"/queue")
				all = append(all, func() error { return inTurn(z.Ctx, lock, func(context.Context) {}) })
			}
			return all
		}},
		{"local first", func(s *Session) []func() error {
			lock := New(s, z.Root+"/local")
			var mu sync.Mutex
			return slices.Repeat([]func() error{func() error {
				mu.Lock()
				defer mu.Unlock()
				return inTurn(z.Ctx, lock, func(context.Context) {})
			}}, goroutines)
		}},
		{"local first, and handed on", func(s *Session) []func() error {
			lock := NewCohort(s, z.Root+"/handed-on")
			return slices.Repeat([]func() error{func() error {
				return inTurn(z.Ctx, lock, func(context.Context) {})
			}}, goroutines)
		}},
	}
	clients := make([]*zktest.Client, len(ways))
	all := make([][]func() error, len(ways))
	for i, way := range ways {
		var s *Session
		s, clients[i] = tapped(z, way.name, zktest.SessionTimeout)
		all[i] = way.turn(s)
		must(t, all[i][0]()) // makes the directory
	}
	ratios, requests, writes := make([][]float64, len(ways)), make([][]float64, len(ways)), make([][]float64, len(ways))
	for range rounds {
		var first time.Duration
		for i := range ways {
			mark, begin := clients[i].Tap.Mark(), time.Now()
			var group sync.WaitGroup
			for _, turn := range all[i] {
				group.Go(func() {
					for range turns {
						if err := turn(); err != nil {
							t.Error(err)
						}
					}
				})
			}
			group.Wait()
			took := time.Since(begin)
			if i == 0 {
				first = took
			}
			ratios[i] = append(ratios[i], float64(first)/float64(took))
			ops := asked(clients[i], mark)
			requests[i] = append(requests[i], float64(len(ops))/float64(goroutines*turns))
			ops = slices.DeleteFunc(ops, func(op string) bool { return op != "create" && op != "delete" })
			writes[i] = append(writes[i], float64(len(ops))/float64(goroutines*turns))
		}
	}
	middle := func(values []float64) float64 { slices.Sort(values); return values[len(values)/2] }
	chapter.Says(t, "| %d goroutines of one process | hand-overs | requests each | writes among them |", goroutines)
	chapter.Says(t, "| %s | %d | %v | %v |", ways[0].name, 1, chapter.About(middle(requests[0]), 1.3), middle(writes[0]))
	chapter.Says(t, "| %s | %v | %v | %v |", ways[1].name, chapter.About(middle(ratios[1]), 4), middle(requests[1]), middle(writes[1]))
	chapter.Says(t, "| %s | %v | %v | %v |", ways[2].name, chapter.About(middle(ratios[2]), 8), chapter.About(middle(requests[2]), 3), chapter.About(middle(writes[2]), 3))
	if n := middle(requests[2]); n >= 1 {
		t.Errorf("handed on, a hand-over takes %v requests: want less than one", n)
	}
}

// What a lock and an unlock cost the client, the directory being there.
func TestRequestsForOneHold(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	s1, a := tapped(z, "A", zktest.SessionTimeout)
	s2, b := tapped(z, "B", zktest.SessionTimeout)
	first, second := New(s1, z.Root+"/lock"), New(s2, z.Root+"/lock")
	must(t, inTurn(z.Ctx, first, func(context.Context) {})) // makes the directory

	alone := a.Tap.Mark()
	again, token := 0, 0
	must(t, inTurn(z.Ctx, first, func(held context.Context) {
		mark := a.Tap.Mark()
		must(t, inTurn(held, first, func(context.Context) {}))
		again = len(asked(a, mark))
		mark = a.Tap.Mark()
		if n, ok := Token(held); !ok || n <= 0 {
			t.Errorf("the hold's token is %d, %v", n, ok)
		}
		token = len(asked(a, mark))
	}))
	ops := asked(a, alone)
	chapter.Says(t, "a hold, alone: %d requests: %s", len(ops), strings.Join(ops, ", "))
	chapter.Says(t, "locking again inside it: %d requests", again)
	chapter.Says(t, "reading its token: %d requests", token)
	if len(ops) != 3 || again != 0 || token != 0 {
		t.Errorf("want 3, 0 and 0")
	}

	held, err := first.Lock(z.Ctx)
	must(t, err)
	waiting := z.Go(b, func(ctx context.Context) error { return inTurn(ctx, second, func(context.Context) {}) })
	if how := waiting.Waits(); how != zktest.Silently {
		t.Fatalf("B %v", how)
	}
	must(t, first.Unlock(held))
	waiting.Acquired()
	ops = asked(b, 0)
	chapter.Says(t, "a hold, after a wait: %d requests: %s", len(ops), strings.Join(ops, ", "))
	if len(ops) != 5 {
		t.Errorf("want 5")
	}
}

// The server carries out a create, and the connection breaks before it can say
// so. In step 4 everybody waited for ever.
func TestLostCreateReply(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	s, c := tapped(z, "the unlucky client", zktest.SessionTimeout)
	lock := New(s, z.Root+"/lock")
	must(t, inTurn(z.Ctx, lock, func(context.Context) {})) // makes the directory

	mark := c.Tap.Mark()
	c.Tap.LoseReply(wiretap.Create, 1)
	must(t, inTurn(z.Ctx, lock, func(context.Context) {
		names := z.Names(z.Root + "/lock")
		if len(names) != 1 {
			t.Fatalf("want the holder's znode alone: %v", names)
		}
		guid := strings.TrimSuffix(strings.TrimPrefix(names[0], "_c_"), "-lock-0000000001")
		frames := record(c, mark)
		for i, f := range frames {
			f = strings.ReplaceAll(strings.ReplaceAll(f, guid, "<guid>"), z.Root, "")
			frames[i] = fmt.Sprintf("%d. %s", i+1, f)
		}
		chapter.Says(t, "a create, and its reply is lost:\n»   %s\n» nobody waits: the client holds the lock, with %d znode",
			strings.Join(frames, "\n»   "), len(names))
	}))

	mark = c.Tap.Mark()
	must(t, inTurn(z.Ctx, lock, func(context.Context) {
		mark = c.Tap.Mark()
		c.Tap.LoseReply(wiretap.Delete, 1)
	}))
	frames := record(c, mark)
	for i, f := range frames {
		f, _, _ = strings.Cut(f, " /")
		_, answer, _ := strings.Cut(frames[i], ": ")
		frames[i] = f + strings.Repeat(" ("+answer+")", min(len(answer), 1))
	}
	chapter.Says(t, "a delete, and its reply is lost: %s: released", strings.Join(frames, ", "))
	if left := z.Names(z.Root + "/lock"); len(left) > 0 {
		t.Errorf("left in the queue: %v", left)
	}
}

// record tells each request since the mark with the answer that it got.
func record(c *zktest.Client, mark int) (told []string) {
	frames := c.Tap.Since(mark)
	for i, f := range frames {
		if f.Kind != wiretap.Request || f.Op == wiretap.Ping {
			continue
		}
		text := strings.TrimSpace(fmt.Sprintf("%v %s", f.Op, f.Path))
		for _, answer := range frames[i:] {
			if answer.Kind != wiretap.Reply || answer.Op != f.Op || answer.Xid != f.Xid {
				continue
			}
			switch {
			case answer.Lost:
				text += ": no reply arrives"
			case answer.Err == wiretap.NoNode:
				text += ": no such node"
			case f.Op == wiretap.GetChildren && answer.Names == 1:
				text += ": 1 name"
			case f.Op == wiretap.GetChildren:
				text += fmt.Sprintf(": %d names", answer.Names)
			}
			break
		}
		told = append(told, text)
	}
	return told
}

// The holder is cut off. It counts from the sending of the last question that
// the leader answered, the server from its arrival, which is later: so the
// holder's time is up first.
func TestLeaseEndsFirst(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	s, c := tapped(z, "the holder", zktest.MortalTimeout)
	lock := New(s, z.Root+"/lock")
	held, err := lock.Lock(z.Ctx)
	must(t, err)
	other, o := tapped(z, "the next", zktest.SessionTimeout)
	next := z.Go(o, func(ctx context.Context) error {
		return inTurn(ctx, New(other, z.Root+"/lock"), func(context.Context) {
			if held.Err() == nil {
				t.Error("the next one is inside, and the holder has not been told")
			}
		})
	})
	if how := next.Waits(); how != zktest.Silently {
		t.Fatalf("the next %v", how)
	}

	c.Crash()
	zktest.AwaitChan(z, "the holder to be told", held.Done())
	told := time.Now()
	if cause := context.Cause(held); !errors.Is(cause, ErrLost) {
		t.Errorf("held was cancelled because %v", cause)
	}
	var open []time.Time
	var proof time.Time // when the last question was sent that the leader answered
	for _, f := range c.Tap.Frames() {
		switch {
		case f.Lost:
		case f.Kind == wiretap.Request:
			open = append(open, f.At)
		case f.Kind == wiretap.Reply: // in the order of the questions
			if slices.Contains([]wiretap.Op{wiretap.Connect, wiretap.Create, wiretap.Delete}, f.Op) {
				proof = open[0]
			}
			open = open[1:]
		}
	}
	chapter.Says(t, "cut off, the holder is told after %v of the session time-out, before the next one is let in",
		chapter.About(told.Sub(proof).Seconds()/zktest.MortalTimeout.Seconds(), 2))
	next.Acquired()
}

// Only the leader's answers renew the lease, and pings are not among them. So a
// long hold costs a sync now and then.
func TestALongHoldAsksTheLeader(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	s, c := tapped(z, "the holder", zktest.MortalTimeout)
	lock := New(s, z.Root+"/lock")
	held, err := lock.Lock(z.Ctx)
	must(t, err)
	begin, mark := time.Now(), c.Tap.Mark()
	z.Await("two session time-outs to pass", func() bool { return time.Since(begin) > 2*zktest.MortalTimeout })
	asked := wiretap.Count(c.Tap.Since(mark))
	if err := held.Err(); err != nil {
		t.Fatalf("the hold ended: %v", context.Cause(held))
	}
	must(t, lock.Unlock(held))
	writes := asked.Requests[wiretap.Delete]
	// A server that is slow is asked less often: each write waits for the last one's
	// answer.
	chapter.Says(t, "a hold of two session time-outs: %v writes in vain", chapter.About(float64(writes), 5))
	if asked.All() != writes {
		t.Errorf("requests during the hold: %v", asked.Requests)
	}
}

// store is what the lock protects: one value, somewhere else. A store that
// checks tokens refuses one that is smaller than the greatest it has seen.
type store struct {
	*httptest.Server
	checks bool
	goOn   chan struct{} // lets whoever asks for the next job have it

	mu       sync.Mutex
	greatest int64
	value    string
	writes   []string // in the order in which they came
}

func newStore(t *testing.T, checks bool) *store {
	s := &store{checks: checks, goOn: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /value", func(w http.ResponseWriter, r *http.Request) {
		token, _ := strconv.ParseInt(r.FormValue("token"), 10, 64)
		fmt.Fprint(w, s.write(token, r.FormValue("value")))
	})
	mux.HandleFunc("GET /job", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-s.goOn:
		case <-r.Context().Done():
		}
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *store) write(token int64, value string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.checks && token < s.greatest {
		s.writes = append(s.writes, value+" (refused)")
		return "refused"
	}
	s.greatest = max(s.greatest, token)
	s.value = value
	s.writes = append(s.writes, value)
	return "written"
}

// put writes to the store over the network, with the token of a hold.
func put(store string, held context.Context, value string) (answer string, err error) {
	token, _ := Token(held)
	form := url.Values{"token": {strconv.FormatInt(token, 10)}, "value": {value}}
	response, err := http.PostForm(store+"/value", form)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// pausedHolder is the child process. It looks whether it still holds the lock,
// and then waits for a job to arrive before it writes. The test stops it there:
// a garbage collector or a sleeping laptop does the same.
func pausedHolder(servers, args []string) {
	path, store := args[0], args[1]
	s, err := Open(servers, zktest.MortalTimeout)
	if err != nil {
		zktest.Say("%v", err)
		return
	}
	held, err := New(s, path).Lock(context.Background())
	if err != nil {
		zktest.Say("%v", err)
		return
	}
	first, err1 := put(store, held, "first")
	if held.Err() == nil {
		zktest.Say("holds with session %d: %s %v", s.Conn().SessionID(), first, err1)
	}
	job, err2 := http.Get(store + "/job") // here it is stopped
	if err2 == nil {
		job.Body.Close()
	}
	late, err3 := put(store, held, "first, late")
	<-held.Done()
	zktest.Say("late write: %s %v, and then: %v", late, errors.Join(err2, err3), context.Cause(held))
}

// A holder is stopped until its session has expired, and goes on. No lock can
// help: at the time of the late write, nobody could tell the holder anything.
func TestPausedHolder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		checks           bool
		says             string
		order, late, has string
	}{
		{false, "a store that does not look at tokens takes: %s; it keeps %q",
			"first, second, first, late", "written", "first, late"},
		{true, "a store that looks at tokens takes: %s; it keeps %q",
			"first, second, first, late (refused)", "refused", "second"},
	} {
		t.Run(fmt.Sprintf("checks_%v", c.checks), func(t *testing.T) {
			t.Parallel()
			z := zktest.New(t)
			store, path := newStore(t, c.checks), z.Root+"/lock"
			child := z.Process("paused holder", path, store.URL)
			var id int64
			line := child.Line()
			if _, err := fmt.Sscanf(line, "holds with session %d: written <nil>", &id); err != nil {
				t.Fatalf("the child said %q", line)
			}

			child.Signal(syscall.SIGSTOP)
			z.AwaitExpiry(&zktest.Client{Name: "the stopped process", ID: id})
			s, _ := tapped(z, "the second holder", zktest.SessionTimeout)
			must(t, inTurn(z.Ctx, New(s, path), func(held context.Context) {
				if answer, err := put(store.URL, held, "second"); answer != "written" || err != nil {
					t.Errorf("the second holder's write: %s %v", answer, err)
				}
				close(store.goOn) // the job has arrived, and the process does not run
				child.Signal(syscall.SIGCONT)
				want := fmt.Sprintf("late write: %s <nil>, and then: %v", c.late, ErrLost)
				if line := child.Line(); line != want {
					t.Errorf("the child said %q, want %q", line, want)
				}
			}))
			store.mu.Lock()
			defer store.mu.Unlock()
			order := strings.Join(store.writes, ", ")
			chapter.Says(t, c.says, order, store.value)
			if order != c.order || store.value != c.has {
				t.Errorf("want %s, and %q kept", c.order, c.has)
			}
		})
	}
}

// Readers do each other no harm, and yet they wait for one another.
func TestStillBrokenReadersTakeTurns(t *testing.T) {
	t.Parallel()
	const readers, reading = 10, 50 * time.Millisecond
	z := zktest.New(t)
	type turn struct{ in, out time.Time }
	turns := make(chan turn, readers)
	var inside, most atomic.Int32
	var attempts []*zktest.Attempt
	for i := range readers {
		s, c := tapped(z, fmt.Sprintf("reader %d", i+1), zktest.SessionTimeout)
		lock := New(s, z.Root+"/lock")
		attempts = append(attempts, z.Go(c, func(ctx context.Context) error {
			return inTurn(ctx, lock, func(context.Context) {
				if n := inside.Add(1); n > most.Load() {
					most.Store(n)
				}
				in := time.Now()
				time.Sleep(reading) // stands for the reading
				turns <- turn{in, time.Now()}
				inside.Add(-1)
			})
		}))
	}
	for _, a := range attempts {
		a.Acquired()
	}
	// The time for which somebody was inside, as a multiple of one turn: what
	// passes between two turns is not counted.
	close(turns)
	var sum, busy time.Duration
	var until time.Time
	all := []turn{}
	for u := range turns {
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b turn) int { return a.in.Compare(b.in) })
	for _, u := range all {
		sum += u.out.Sub(u.in)
		if u.in.After(until) {
			until = u.in
		}
		if u.out.After(until) {
			busy += u.out.Sub(until)
			until = u.out
		}
	}
	times := float64(busy) / (float64(sum) / readers)
	chapter.Says(t, "%d readers: at most %d inside at a time, and together they read %.0f times as long as one", readers, most.Load(), times)
	if most.Load() != 1 || times < readers-0.5 {
		t.Errorf("want 1 inside, and %d turns, one after the other", readers)
	}
}
