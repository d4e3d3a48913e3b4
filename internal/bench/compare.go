package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/lockcheck"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
	predecessorwatch "zklock/step04_predecessor_watch"
	reentrant "zklock/step05_reentrant"
	sharedlock "zklock/step06_shared_lock"
)

// The locks take turns, often and for a short while, so that whatever disturbs
// the machine disturbs all.
const (
	rounds     = 61
	window     = 35 * time.Millisecond // one lock's part of a round
	goroutines = 8
)

// A turn is one hand-over: the caller comes, holds the lock, and goes.
type turn func(context.Context) error

// A contender is a way to take turns. It makes n of them, and the clients over
// whose lines they go.
type contender struct {
	name string
	join func(z *zktest.Zoo, path string, n int) ([]turn, []*zktest.Client)
}

// apart are the locks with a session for each that wants the lock.
var apart = []contender{
	{"create and delete alone", each(func(c *zktest.Client, path string) turn {
		return func(context.Context) error {
			node, err := c.CreateProtectedEphemeralSequential(path+"/lock-", nil, zk.WorldACL(zk.PermAll))
			if err != nil {
				return err
			}
			return c.Delete(node, -1)
		}
	})},
	{"zk.Lock", each(clientLock)},
	{"step 4", each(func(c *zktest.Client, path string) turn {
		lock := predecessorwatch.New(c.Conn, path)
		return func(ctx context.Context) error {
			if err := lock.Lock(ctx); err != nil {
				return err
			}
			return lock.Unlock()
		}
	})},
	{"zk.Lock, once more", each(clientLock)}, // what it differs by is noise
	{"step 5", held(openReentrant, reentrant.New, through)},
	{"step 5, able to give up", held(openReentrant, reentrant.New, throughCancellable)},
	{"step 6, as a writer", held(func(servers []string, dial zk.Dialer) (*sharedlock.Session, error) {
		return sharedlock.Open(servers, zktest.SessionTimeout, sharedlock.WithDialer(dial))
	}, sharedlock.New, through)},
}

// together are the ways in which the goroutines of one process can share one
// session.
var together = []contender{
	{"zk.Lock for each", func(z *zktest.Zoo, path string, n int) (turns []turn, clients []*zktest.Client) {
		c := z.Client("the process")
		for range n {
			turns = append(turns, clientLock(c, path))
		}
		return turns, []*zktest.Client{c}
	}},
	{"zk.Lock behind a mutex", func(z *zktest.Zoo, path string, n int) (turns []turn, clients []*zktest.Client) {
		c := z.Client("the process")
		turns = repeat(n, behindMutex(clientLock(c, path)))
		return turns, []*zktest.Client{c}
	}},
	{"step 5, a Lock for each", func(z *zktest.Zoo, path string, n int) (turns []turn, clients []*zktest.Client) {
		s, c := session(z, "the process", openReentrant)
		for range n {
			turns = append(turns, through(reentrant.New(s, path)))
		}
		return turns, []*zktest.Client{c}
	}},
	{"step 5, a Cohort", func(z *zktest.Zoo, path string, n int) (turns []turn, clients []*zktest.Client) {
		s, c := session(z, "the process", openReentrant)
		turns = repeat(n, through(reentrant.NewCohort(s, path)))
		return turns, []*zktest.Client{c}
	}},
}

// each makes a contender of a turn over a session of its own.
func each(make func(*zktest.Client, string) turn) func(*zktest.Zoo, string, int) ([]turn, []*zktest.Client) {
	return func(z *zktest.Zoo, path string, n int) (turns []turn, clients []*zktest.Client) {
		for i := range n {
			c := z.Client(fmt.Sprintf("client %d", i+1))
			turns = append(turns, make(c, path))
			clients = append(clients, c)
		}
		return turns, clients
	}
}

func clientLock(c *zktest.Client, path string) turn {
	lock := zk.NewLock(c.Conn, path, zk.WorldACL(zk.PermAll))
	return func(context.Context) error {
		if err := lock.Lock(); err != nil {
			return err
		}
		return lock.Unlock()
	}
}

// held makes a contender of steps 5 and 6, with a session for each.
func held[S lockcheck.Session, L lockcheck.Holder](open func([]string, zk.Dialer) (S, error), newLock func(S, string) L, turns func(lockcheck.Holder) turn) func(*zktest.Zoo, string, int) ([]turn, []*zktest.Client) {
	return func(z *zktest.Zoo, path string, n int) (all []turn, clients []*zktest.Client) {
		for i := range n {
			s, c := session(z, fmt.Sprintf("client %d", i+1), open)
			all = append(all, turns(newLock(s, path)))
			clients = append(clients, c)
		}
		return all, clients
	}
}

func openReentrant(servers []string, dial zk.Dialer) (*reentrant.Session, error) {
	return reentrant.Open(servers, zktest.SessionTimeout, reentrant.WithDialer(dial))
}

func session[S lockcheck.Session](z *zktest.Zoo, name string, open func([]string, zk.Dialer) (S, error)) (s S, c *zktest.Client) {
	c = z.ConnectWith(name, func(dial zk.Dialer) (*zk.Conn, func(), error) {
		var err error
		if s, err = open(z.Servers(), dial); err != nil {
			return nil, nil, err
		}
		return s.Conn(), s.Close, nil
	})
	return s, c
}

// through takes turns as with zk.Lock: nobody can give up.
func through(lock lockcheck.Holder) turn {
	t := throughCancellable(lock)
	return func(ctx context.Context) error { return t(context.WithoutCancel(ctx)) }
}

func throughCancellable(lock lockcheck.Holder) turn {
	return func(ctx context.Context) error {
		held, err := lock.Lock(ctx)
		if err != nil {
			return err
		}
		return lock.Unlock(held)
	}
}

func behindMutex(t turn) turn {
	var mu sync.Mutex
	return func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		return t(ctx)
	}
}

func repeat(n int, t turn) []turn { return slices.Repeat([]turn{t}, n) }

// A figure is what has been measured of one contender.
type figure struct {
	name            string
	rate            float64   // hand-overs a second, the median of the rounds
	ratios          []float64 // to the one that all are compared with, round by round, sorted
	requests, bytes float64   // a hand-over
}

// compare measures contenders, round by round. The first zk.Lock among them is
// what the others are compared with.
func (s stage) compare(contenders []contender, n int) []figure {
	base := slices.IndexFunc(contenders, func(c contender) bool { return strings.HasPrefix(c.name, "zk.Lock") })
	ctx, cancel := context.WithTimeout(s.ctx, 3*time.Minute) // on a busy machine it takes more than a test's patience
	defer cancel()
	rates := make([][]float64, len(contenders))
	s.on(func(s stage, z *zktest.Zoo) {
		z.Untapped = true // the taps' own work would count
		turns := make([][]turn, len(contenders))
		for i, c := range contenders {
			turns[i], _ = s.join(z, c, n)
		}
		for r := range rounds {
			for j := range contenders {
				i := (r + j) % len(contenders) // nobody is always the first
				done, took := s.run(ctx, turns[i], window)
				rates[i] = append(rates[i], float64(done)/took.Seconds())
			}
		}
	})
	totals := make([]int, len(contenders))
	counts := make([]wiretap.Counts, len(contenders))
	s.on(func(s stage, z *zktest.Zoo) {
		for i, c := range contenders {
			turns, clients := s.join(z, c, n)
			marks := make([]int, len(clients))
			for k, c := range clients {
				marks[k] = c.Tap.Mark()
			}
			totals[i], _ = s.run(ctx, turns, 10*window)
			var frames [][]wiretap.Frame
			for k, c := range clients {
				frames = append(frames, c.Tap.Since(marks[k]))
			}
			counts[i] = wiretap.Count(frames...)
		}
	})
	figures := make([]figure, len(contenders))
	for i, c := range contenders {
		f := figure{name: c.name, rate: median(rates[i])}
		for r := range rates[i] {
			f.ratios = append(f.ratios, rates[i][r]/rates[base][r])
		}
		slices.Sort(f.ratios)
		f.requests = float64(counts[i].All()) / float64(totals[i])
		f.bytes = float64(counts[i].Sent+counts[i].Received) / float64(totals[i])
		figures[i] = f
	}
	return figures
}

// join brings a contender to a lock of its own, and lets each take a turn.
func (s stage) join(z *zktest.Zoo, c contender, n int) ([]turn, []*zktest.Client) {
	path := fmt.Sprintf("%s/lock-%08x", z.Root, rand.Uint32()) // all of one length: bytes are counted
	_, err := z.Observer().Create(path, nil, 0, zk.WorldACL(zk.PermAll))
	s.must(err)
	turns, clients := c.join(z, path, n)
	s.run(z.Ctx, turns, 0)
	return turns, clients
}

// run takes turns on as many goroutines as there are, for d and at least once
// each, and returns how many were taken in what time.
func (s stage) run(ctx context.Context, turns []turn, d time.Duration) (done int, took time.Duration) {
	s.must(s.ctx.Err())
	var all sync.WaitGroup
	counts := make([]int, len(turns))
	errs := make([]error, len(turns))
	begin := time.Now()
	for i, t := range turns {
		all.Go(func() {
			for counts[i] == 0 || time.Since(begin) < d {
				if errs[i] = t(ctx); errs[i] != nil {
					return
				}
				counts[i]++
			}
		})
	}
	all.Wait()
	took = time.Since(begin)
	for i := range turns {
		s.must(errs[i])
		done += counts[i]
	}
	return done, took
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
