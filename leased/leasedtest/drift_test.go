package leasedtest_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/leased"
	"zklock/leased/leasedtest"

	"zklock/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// A lock is a Mutex or an RWMutex, of leased or of leasedtest.
type lock interface {
	Lock(context.Context) (*leased.Hold, error)
	TryLock(context.Context) (*leased.Hold, error)
	Queue(context.Context) ([]leased.Participant, error)
}

type sharedLock interface {
	lock
	RLock(context.Context) (*leased.Hold, error)
	TryRLock(context.Context) (*leased.Hold, error)
}

type election interface {
	Campaign(context.Context, func(context.Context, int64) error) error
	Leader(context.Context) (string, error)
}

// A process has a session, and one lock of each kind. The election is on the path of the Mutex.
type process struct {
	session interface {
		Close()
		Done() <-chan struct{}
		Stats() leased.Stats
	}
	mutex    lock
	rwmutex  sharedLock
	election election
	lose     func(why leased.Reason)
}

// A story runs once with processes over ZooKeeper, and once with processes in memory. It records what the
// calls return. The two records must be equal.
type story struct {
	t    *testing.T
	ctx  context.Context
	join func(label string, through ...func(zk.Dialer) zk.Dialer) *process
	says []string
}

// say records the result of a call.
func (s *story) say(call string, err error) { s.says = append(s.says, call+": "+inWords(err)) }

// inWords describes an error by what a caller can check with errors.Is and errors.As.
func inWords(err error) string {
	if err == nil {
		return "ok"
	}
	words := ""
	var locked *leased.LockedError
	if errors.As(err, &locked) {
		words = fmt.Sprintf("by %s, same process %t: %s", locked.Label, locked.SameProcess, withoutPaths(err.Error()))
	}
	for _, known := range []error{
		leased.ErrLocked, leased.ErrNoAnswer, leased.ErrNotHeld, leased.ErrLost, leased.ErrUpgrade,
		context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, known) {
			words += "<" + known.Error() + ">"
		}
	}
	var lost *leased.LostError
	if errors.As(err, &lost) {
		words += " " + string(lost.Reason)
	}
	if closed := "the session is closed: open another one"; strings.Contains(err.Error(), closed) {
		words += closed
	}
	if words == "" {
		return err.Error()
	}
	return words
}

// withoutPaths leaves out what differs between a lock over ZooKeeper and one in memory: the path and the numbers.
func withoutPaths(text string) string {
	return znodeName.ReplaceAllString(lockPath.ReplaceAllString(text, "lock PATH: "), "GUID-$1NUMBER")
}

var (
	lockPath  = regexp.MustCompile(`lock \S+: `)
	znodeName = regexp.MustCompile(`_c_[0-9a-f]{16}-(lock-|__READ__|__WRIT__)[0-9]{10}`)
)

// take calls a method that takes a lock, and records what it returns.
func (s *story) take(call string, lock func(context.Context) (*leased.Hold, error), ctx context.Context) *leased.Hold {
	s.t.Helper()
	hold, err := lock(ctx)
	s.say(call, err)
	return hold
}

// begin calls such a method on a goroutine of its own, and returns when the call is queued behind all earlier
// ones. The result arrives on the channel.
func (s *story) begin(in lock, call func(context.Context) (*leased.Hold, error), ctx context.Context) <-chan result {
	s.t.Helper()
	before := len(s.queue(in))
	results := make(chan result, 1)
	go func() {
		hold, err := call(ctx)
		results <- result{hold, err}
	}()
	s.await("one more in the queue", func() bool { return len(s.queue(in)) == before+1 })
	return results
}

// givesUp lets a call wait behind another one and give up. It returns its error, and how many calls of the
// process waited. If the call is canceled before a server has named the holder, the error says so, and
// givesUp tries again.
func (s *story) givesUp(p *process) (waited int, err error) {
	s.t.Helper()
	for {
		ctx, cancel := context.WithCancel(s.ctx)
		waiting := s.begin(p.mutex, p.mutex.Lock, ctx)
		waited = p.session.Stats().Waiting
		cancel()
		err = (<-waiting).err
		s.await("it to leave the queue", func() bool { return len(s.queue(p.mutex)) == 1 })
		if !errors.Is(err, leased.ErrNoAnswer) {
			return waited, err
		}
	}
}

type result struct {
	hold *leased.Hold
	err  error
}

// end waits for the result of begin, and records it.
func (s *story) end(call string, results <-chan result) *leased.Hold {
	s.t.Helper()
	select {
	case r := <-results:
		s.say(call, r.err)
		return r.hold
	case <-s.ctx.Done():
		require.Fail(s.t, "timed out", "waiting for %s to return", call)
		return nil
	}
}

// waits records whether a call has not returned yet.
func (s *story) waits(call string, results <-chan result) {
	s.say(fmt.Sprintf("%s waits %t", call, len(results) == 0), nil)
}

func (s *story) await(what string, cond func() bool) {
	s.t.Helper()
	for !cond() {
		require.NoError(s.t, s.ctx.Err(), "waiting for %s", what)
		time.Sleep(time.Millisecond)
	}
}

// queue returns the queue in words.
func (s *story) queue(in lock) (words []string) {
	s.t.Helper()
	participants, err := in.Queue(s.ctx)
	require.NoError(s.t, err)
	for _, p := range participants {
		require.WithinDuration(s.t, time.Now(), p.Since, time.Hour)
		words = append(words, fmt.Sprintf("%s reads %t holds %t", p.Label, p.Reads, p.Holds))
	}
	return words
}

// context records why a hold's context has ended, if it has.
func (s *story) context(hold *leased.Hold) {
	s.say("the hold's context", context.Cause(hold.Context(s.ctx)))
}

// told waits until the holder is notified of a loss, and records why.
func (s *story) told(hold *leased.Hold) {
	s.t.Helper()
	s.await("the holder to be notified", func() bool { return hold.Context(s.ctx).Err() != nil })
	s.context(hold)
}

// The stories.
var stories = map[string]func(*story){
	"one after the other": func(s *story) {
		a, b, c := s.join("a"), s.join("b"), s.join("c")
		first := s.take("a", a.mutex.Lock, s.ctx)
		s.context(first)
		s.take("b tries", b.mutex.TryLock, s.ctx)
		second := s.begin(b.mutex, b.mutex.Lock, s.ctx)
		third := s.begin(c.mutex, c.mutex.Lock, s.ctx)
		s.says = append(s.says, s.queue(c.mutex)...)
		s.waits("b", second)
		s.say("a unlocks", first.Unlock())
		s.context(first)
		next := s.end("b", second)
		s.waits("c", third)
		s.say(fmt.Sprintf("the token is greater: %t", next.Token() > first.Token()), nil)
		s.say("b unlocks", next.Unlock())
		s.say("c unlocks", s.end("c", third).Unlock())
		s.say("a tries, and unlocks", s.take("a tries", a.mutex.TryLock, s.ctx).Unlock())
		s.say("Unlock too many", first.Unlock())
		s.says = append(s.says, s.queue(c.mutex)...)
	},
	"a lock within the lock": func(s *story) {
		a := s.join("a")
		hold := s.take("a", a.mutex.Lock, s.ctx)
		inner := s.take("a within", a.mutex.Lock, hold.Context(s.ctx))
		s.take("a within, by another lock", a.rwmutex.TryLock, hold.Context(s.ctx))
		s.say(fmt.Sprintf("the same hold: %t", hold == inner), nil)
		s.say("inner Unlock", inner.Unlock())
		s.context(hold)
		s.say("outer Unlock", hold.Unlock())
		s.take("a with the context of a hold that has ended", a.mutex.Lock, hold.Context(s.ctx))
	},
	"a client gives up": func(s *story) {
		a, b := s.join("a"), s.join("b")
		hold := s.take("a", a.mutex.Lock, s.ctx)
		waiting, err := s.givesUp(b)
		s.say(fmt.Sprintf("waiting: %d", waiting), nil)
		s.say("b gives up", err)
		ctx, cancel := context.WithCancel(s.ctx)
		cancel()
		s.take("b with a context that has ended", b.mutex.Lock, ctx)
		_, err = b.mutex.Queue(ctx)
		s.say("the queue with a context that has ended", err)
		s.say("a unlocks", hold.Unlock())
	},
	"readers and writers": func(s *story) {
		a, b, c := s.join("a"), s.join("b"), s.join("c")
		one := s.take("a reads", a.rwmutex.RLock, s.ctx)
		two := s.take("b reads", b.rwmutex.TryRLock, s.ctx)
		s.take("a wants to write within", a.rwmutex.Lock, one.Context(s.ctx))
		s.take("c tries to write", c.rwmutex.TryLock, s.ctx)
		writing := s.begin(c.rwmutex, c.rwmutex.Lock, s.ctx)
		s.take("a tries to read behind the writer", a.rwmutex.TryRLock, s.ctx)
		behind := s.begin(a.rwmutex, a.rwmutex.RLock, s.ctx)
		s.says = append(s.says, s.queue(a.rwmutex)...)
		s.say("a unlocks", one.Unlock())
		s.waits("c", writing)
		s.say("b unlocks", two.Unlock())
		writer := s.end("c writes", writing)
		s.waits("a", behind)
		s.say("c unlocks, having read within", s.take("c reads within", c.rwmutex.RLock, writer.Context(s.ctx)).Unlock())
		s.say("c unlocks", writer.Unlock())
		s.say("a unlocks", s.end("a reads", behind).Unlock())
	},
	"two requests of one process": func(s *story) {
		a := s.join("a")
		hold := s.take("one request", a.mutex.Lock, s.ctx)
		s.take("another request tries", a.mutex.TryLock, s.ctx)
		s.take("another request tries the other lock", a.rwmutex.TryRLock, s.ctx)
		s.say("the first one unlocks", hold.Unlock())
		s.take("and tries to write", a.rwmutex.TryLock, s.ctx)
	},
	"Do": func(s *story) {
		a := s.join("a")
		var work context.Context
		do := a.mutex.(interface {
			Do(context.Context, func(context.Context, *leased.Hold) error) error
		}).Do
		s.say("a does its work, and fails", do(s.ctx, func(ctx context.Context, hold *leased.Hold) error {
			work = ctx
			s.say(fmt.Sprintf("with a token: %t", hold.Token() > 0), nil)
			return errors.New("the work has failed")
		}))
		s.say("the context of the work", context.Cause(work))
		s.say("a is given no work", do(s.ctx, nil))
		s.say("a loses the lock", do(s.ctx, func(ctx context.Context, _ *leased.Hold) error {
			a.lose(leased.ReasonExpired)
			<-ctx.Done()
			return nil
		}))
		s.says = append(s.says, s.queue(a.mutex)...)
	},
	"a Mutex does not see an RWMutex": func(s *story) {
		a, b := s.join("a"), s.join("b")
		one, other := s.take("a", a.mutex.Lock, s.ctx), s.take("b", b.rwmutex.TryLock, s.ctx)
		s.say("unlock", errors.Join(one.Unlock(), other.Unlock()))
	},
	"told of a loss, and the others wait for Unlock": func(s *story) {
		const believed = zktest.MortalTimeout // by a: the servers keep the session for longer
		a, b := s.join("a", zktest.Handshake{Tell: believed}.Through), s.join("b")
		hold := s.take("a", a.mutex.Lock, s.ctx)
		waiting := s.begin(b.mutex, b.mutex.Lock, s.ctx)
		a.lose(leased.ReasonLeaseOver)
		s.told(hold)
		s.take("a within", a.mutex.Lock, hold.Context(context.WithoutCancel(hold.Context(s.ctx))))
		s.waits("b", waiting)
		s.say("a unlocks", hold.Unlock())
		s.say("b unlocks", s.end("b", waiting).Unlock())
		s.say("a unlocks", s.take("a, once more", a.mutex.Lock, s.ctx).Unlock())
		s.say(fmt.Sprintf("lost: %v", a.session.Stats().Lost), nil)
	},
	"an election": func(s *story) {
		a, b := s.join("a"), s.join("b")
		campaign := func(p *process, lead func(held context.Context) error) func(context.Context) (*leased.Hold, error) {
			return func(ctx context.Context) (*leased.Hold, error) {
				return nil, p.election.Campaign(ctx, func(held context.Context, _ int64) error { return lead(held) })
			}
		}
		leader := func() {
			who, err := a.election.Leader(s.ctx)
			s.say(fmt.Sprintf("leader %q", who), err)
		}
		leader()
		s.take("a wants no function", func(ctx context.Context) (*leased.Hold, error) {
			return nil, a.election.Campaign(ctx, nil)
		}, s.ctx)
		first := s.begin(a.mutex, campaign(a, func(held context.Context) error {
			<-held.Done()
			return context.Cause(held)
		}), s.ctx)
		leader()
		s.take("b tries the Mutex", b.mutex.TryLock, s.ctx)
		second := s.begin(b.mutex, campaign(b, func(context.Context) error { return errors.New("enough") }), s.ctx)
		leader()
		a.lose(leased.ReasonExpired)
		s.end("a leads no more", first)
		s.end("b leads no more", second)
		leader()
	},
	"expired": func(s *story) {
		a, b := s.join("a"), s.join("b")
		hold := s.take("a", a.mutex.Lock, s.ctx)
		waiting := s.begin(b.mutex, b.mutex.Lock, s.ctx)
		a.lose(leased.ReasonExpired)
		s.told(hold)
		next := s.end("b, before a has called Unlock", waiting)
		s.say("a unlocks", hold.Unlock())
		s.say("b unlocks", next.Unlock())
		s.say("a unlocks", s.take("a, once more", a.mutex.Lock, s.ctx).Unlock())
		s.say(fmt.Sprintf("lost: %v", a.session.Stats().Lost), nil)
	},
	"a znode that was deleted": func(s *story) {
		a, b := s.join("a"), s.join("b")
		hold := s.take("a", a.mutex.Lock, s.ctx)
		waiting := s.begin(b.mutex, b.mutex.Lock, s.ctx)
		a.lose(leased.ReasonDeleted)
		next := s.end("b, before a has called Unlock", waiting)
		s.context(hold)
		s.say("a unlocks", hold.Unlock())
		s.say("b unlocks", next.Unlock())
	},
	"closed": func(s *story) {
		a, b := s.join("a"), s.join("b")
		hold := s.take("a", a.mutex.Lock, s.ctx)
		waiting := s.begin(b.mutex, b.mutex.Lock, s.ctx)
		behind := s.begin(a.mutex, a.mutex.Lock, s.ctx)
		a.session.Close()
		s.told(hold)
		s.end("a, that waited", behind)
		next := s.end("b, before a has called Unlock", waiting)
		s.say("a unlocks", hold.Unlock())
		s.take("a, closed", a.mutex.Lock, s.ctx)
		_, err := a.mutex.Queue(s.ctx)
		s.say("the queue, closed", err)
		<-a.session.Done()
		s.say("b unlocks", next.Unlock())
	},

	"closed, and the locks are free": func(s *story) {
		a, b := s.join("a"), s.join("b")
		a.session.Close()
		s.take("a locks", a.mutex.Lock, s.ctx)
		s.take("a tries", a.mutex.TryLock, s.ctx)
		s.take("a locks to read", a.rwmutex.RLock, s.ctx)
		s.say("a campaigns", a.election.Campaign(s.ctx, func(context.Context, int64) error {
			s.say("a leads", nil)
			return nil
		}))
		s.say("b unlocks", s.take("b locks", b.mutex.Lock, s.ctx).Unlock())
		s.say("b unlocks", s.take("b locks to write", b.rwmutex.Lock, s.ctx).Unlock())
	},
}

// leasedtest returns what leased returns with a real server. Over ZooKeeper, each story has a path of its
// own.
func TestLeasedtestAnswersAsLeasedDoes(t *testing.T) {
	t.Parallel()
	for name, tell := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			z := zktest.New(t)
			real := &story{t: t, ctx: z.Ctx, join: func(label string, through ...func(zk.Dialer) zk.Dialer) *process {
				return overZooKeeper(t, z, label, through...)
			}}
			tell(real)
			var servers leasedtest.Servers
			fake := &story{t: t, ctx: z.Ctx, join: func(label string, _ ...func(zk.Dialer) zk.Dialer) *process {
				return inMemory(&servers, label)
			}}
			tell(fake)
			require.Equal(t, real.says, fake.says, "expected: over ZooKeeper; actual: in memory")
		})
	}
}

func inMemory(servers *leasedtest.Servers, label string) *process {
	s := servers.Open(label)
	return &process{
		session:  s,
		mutex:    leasedtest.NewMutex(s, "/locks/orders"),
		rwmutex:  leasedtest.NewRWMutex(s, "/locks/orders"),
		election: leasedtest.NewElection(s, "/locks/orders"),
		lose:     s.Lose,
	}
}

func overZooKeeper(
	t *testing.T, z *zktest.Zoo, label string, through ...func(zk.Dialer) zk.Dialer,
) *process {
	var s *leased.Session
	client := z.ConnectWith(label, func(dial zk.Dialer) (*zk.Conn, func(), error) {
		for _, change := range through {
			dial = change(dial)
		}
		var err error
		s, err = leased.Open(z.Ctx, z.Servers(), zktest.SessionTimeout, leased.WithDialer(dial), leased.WithLabel(label))
		if err != nil {
			return nil, nil, err
		}
		return s.Conn(), s.Close, nil
	})
	path := z.Root + "/orders"
	return &process{
		session:  s,
		mutex:    leased.NewMutex(s, path),
		rwmutex:  leased.NewRWMutex(s, path),
		election: leased.NewElection(s, path),
		lose: func(why leased.Reason) {
			switch why {
			case leased.ReasonLeaseOver:
				client.Tap.Silence()
				z.Await("the lease to be over", func() bool { return s.Stats().Lost[why] > 0 })
				client.Tap.Restore()
			case leased.ReasonExpired:
				z.EndSession(client)
			case leased.ReasonDeleted:
				queue, err := leased.NewMutex(s, path).Queue(z.Ctx)
				require.NoError(t, err)
				shared, err := leased.NewRWMutex(s, path).Queue(z.Ctx)
				require.NoError(t, err)
				require.NoError(t, z.Observer().Delete(append(queue, shared...)[0].Znode, -1))
			}
		},
	}
}

// leasedtest has all methods of leased, except those that need a connection.
func TestLeasedtestHasTheMethodsOfLeased(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		real, fake any
		missing    []string // in leasedtest
		more       []string // in leasedtest
	}{
		{&leased.Mutex{}, &leasedtest.Mutex{}, nil, nil},
		{&leased.Cohort{}, &leasedtest.Mutex{}, nil, nil},
		{&leased.RWMutex{}, &leasedtest.RWMutex{}, nil, nil},
		{&leased.Election{}, &leasedtest.Election{}, nil, nil},
		{&leased.Session{}, &leasedtest.Session{}, []string{"Conn"}, []string{"Lose"}},
	} {
		real, fake := methods(c.real), methods(c.fake)
		for _, name := range c.missing {
			delete(real, name)
		}
		for _, name := range c.more {
			delete(fake, name)
		}
		require.Equal(t, real, fake, "methods of %T, and of %T", c.real, c.fake)
	}
}

// methods returns the exported methods, each with its parameters and results.
func methods(of any) map[string]string {
	all := map[string]string{}
	for i := range reflect.TypeOf(of).NumMethod() {
		method := reflect.TypeOf(of).Method(i)
		var in []string
		for j := 1; j < method.Type.NumIn(); j++ { // 0 is the receiver
			in = append(in, method.Type.In(j).String())
		}
		var out []string
		for j := range method.Type.NumOut() {
			out = append(out, method.Type.Out(j).String())
		}
		all[method.Name] = fmt.Sprint(in, out)
	}
	return all
}

// Each reason of leased can be given to Lose, and is the cause with which the hold's contexts end. The
// exception is a znode that was deleted, which only Unlock reports.
func TestLoseForEachReason(t *testing.T) {
	t.Parallel()
	reasons := []leased.Reason{
		leased.ReasonLeaseOver, leased.ReasonExpired, leased.ReasonClosed, leased.ReasonDeleted,
	}
	for _, why := range reasons {
		var servers leasedtest.Servers
		s := servers.Open("a")
		hold, err := leasedtest.NewMutex(s, "/locks/orders").Lock(t.Context())
		require.NoError(t, err)
		s.Lose(why)
		var lost *leased.LostError
		told := errors.As(context.Cause(hold.Context(t.Context())), &lost)
		require.Equal(t, why != leased.ReasonDeleted, told, "told of %q", why)
		require.ErrorAs(t, hold.Unlock(), &lost)
		require.Equal(t, why, lost.Reason)
	}
	slices.Sort(reasons)
	require.Len(t, slices.Compact(reasons), 4)
	require.Panics(t, func() { new(leasedtest.Servers).Open("a").Lose("a whim") })
}
