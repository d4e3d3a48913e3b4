package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/lockcheck"
	"zklock/internal/peers"
	"zklock/internal/steps"
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

// A contender is a way to take turns. open opens a session for the lock at path;
// each call of newTurn makes one more lock over it.
type contender struct {
	name  string
	open  func(z *zktest.Zoo, name, path string) (c *zktest.Client, newTurn func() turn)
	share bool // the goroutines of a process use one lock together
}

// apart are the locks with a session for each that wants the lock.
var apart = []contender{
	{name: "create and delete alone", open: overConn(createAndDelete)},
	{name: "zk.Lock", open: overConn(clientLock)},
	{name: "step 4", open: overConn(step4)},
	{name: "zk.Lock, once more", open: overConn(clientLock)}, // what it differs by is noise
	{name: "step 4, looks one release early", open: overConn(func(c *zk.Conn, path string) turn { return inTurn(newEarly(c, path)) })},
	{name: "step 5", open: overSession(steps.OpenReentrant, reentrant.New, through)},
	{name: "step 5, able to give up", open: overSession(steps.OpenReentrant, reentrant.New, throughCancellable)},
	{name: "step 6, as a writer", open: overSession(steps.OpenShared, sharedlock.New, through)},
}

// together are the ways in which the goroutines of one process can share one
// session.
var together = []contender{
	{name: "zk.Lock for each", open: overConn(clientLock)},
	{name: "zk.Lock behind a mutex", open: overConn(behindMutex), share: true},
	{name: "step 5, a Lock for each", open: overSession(steps.OpenReentrant, reentrant.New, through)},
	{name: "step 5, a Cohort", open: overSession(steps.OpenReentrant, reentrant.NewCohort, through), share: true},
}

// overConn opens a plain session of the client's.
func overConn(newTurn func(*zk.Conn, string) turn) func(*zktest.Zoo, string, string) (*zktest.Client, func() turn) {
	return func(z *zktest.Zoo, name, path string) (*zktest.Client, func() turn) {
		c := z.Client(name)
		return c, func() turn { return newTurn(c.Conn, path) }
	}
}

// overSession opens a session of step 5 or 6.
func overSession[S zktest.Session, L lockcheck.Holder](
	open func([]string, time.Duration, zk.Dialer) (S, error), newLock func(S, string) L, take func(lockcheck.Holder) turn,
) func(*zktest.Zoo, string, string) (*zktest.Client, func() turn) {
	return func(z *zktest.Zoo, name, path string) (*zktest.Client, func() turn) {
		var s S
		c := z.ConnectWith(name, func(dial zk.Dialer) (_ *zk.Conn, end func(), err error) {
			if s, err = open(z.Servers(), zktest.SessionTimeout, dial); err != nil {
				return nil, nil, err
			}
			return s.Conn(), s.Close, nil
		})
		return c, func() turn { return take(newLock(s, path)) }
	}
}

func createAndDelete(conn *zk.Conn, path string) turn {
	return func(context.Context) error {
		node, err := conn.CreateProtectedEphemeralSequential(path+"/lock-", nil, zk.WorldACL(zk.PermAll))
		if err != nil {
			return err
		}
		return conn.Delete(node, -1)
	}
}

func step4(conn *zk.Conn, path string) turn { return inTurn(predecessorwatch.New(conn, path)) }

// inTurn is the turn of a lock as steps 1 to 4 offer it.
func inTurn(lock zktest.Locker) turn {
	return func(ctx context.Context) error {
		if err := lock.Lock(ctx); err != nil {
			return err
		}
		return lock.Unlock()
	}
}

func clientLock(conn *zk.Conn, path string) turn {
	lock := zk.NewLock(conn, path, zk.WorldACL(zk.PermAll))
	return func(context.Context) error {
		if err := lock.Lock(); err != nil {
			return err
		}
		return lock.Unlock()
	}
}

func behindMutex(conn *zk.Conn, path string) turn {
	var mu sync.Mutex
	take := clientLock(conn, path)
	return func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		return take(ctx)
	}
}

// through takes turns as with zk.Lock: nobody can give up.
func through(lock lockcheck.Holder) turn {
	take := throughCancellable(lock)
	return func(ctx context.Context) error { return take(context.WithoutCancel(ctx)) }
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

// compare measures contenders with n goroutines on some sessions, round by round,
// and prints what it has found. The first zk.Lock among them is what the others
// are compared with.
func (s stage) compare(title string, contenders []contender, n, sessions int) {
	say("%s, %d rounds", title, rounds)
	ctx, cancel := context.WithTimeout(s.ctx, 3*time.Minute) // on a busy machine it takes more than a test's patience
	defer cancel()
	rates := make([][]float64, len(contenders)) // hand-overs a second, by round
	s.on(func(s stage, z *zktest.Zoo) {
		z.Untapped = true // the taps' own work would count
		turns := make([][]turn, len(contenders))
		for i, c := range contenders {
			turns[i], _ = s.join(z, c, n, sessions)
		}
		for r := range rounds {
			for j := range contenders {
				i := (r + j) % len(contenders) // nobody is always the first
				had := s.run(ctx, turns[i], window)
				rates[i] = append(rates[i], float64(len(had))/took(had).Seconds())
			}
		}
	})
	totals := make([]int, len(contenders))
	counts := make([]wiretap.Counts, len(contenders))
	s.on(func(s stage, z *zktest.Zoo) {
		for i, c := range contenders {
			turns, clients := s.join(z, c, n, sessions)
			counted := z.CountClients(clients...)
			totals[i] = len(s.run(ctx, turns, 10*window))
			counts[i] = counted()
		}
	})

	line("\n%s", title)
	line("  %-32s %10s %8s %14s %10s %8s", "", "a second", "ratio", "", "requests", "bytes")
	base := slices.IndexFunc(contenders, func(c contender) bool { return strings.HasPrefix(c.name, "zk.Lock") })
	for i, c := range contenders {
		ratios := make([]float64, rounds)
		for r := range rounds {
			ratios[r] = rates[i][r] / rates[base][r]
		}
		line("  %-32s %10.0f %8.2f %14s %10.2f %8.0f", c.name, median(rates[i]), median(ratios),
			fmt.Sprintf("%.2f to %.2f", slices.Min(ratios), slices.Max(ratios)),
			float64(counts[i].All())/float64(totals[i]), float64(counts[i].Sent+counts[i].Received)/float64(totals[i]))
	}
}

// join brings n goroutines on some sessions to a lock of their own, and lets each
// take a turn.
func (s stage) join(z *zktest.Zoo, c contender, n, sessions int) (turns []turn, clients []*zktest.Client) {
	path := fmt.Sprintf("%s/lock-%08x", z.Root, rand.Uint32()) // all of one length: bytes are counted
	_, err := z.Observer().Create(path, nil, 0, zk.WorldACL(zk.PermAll))
	s.must(err)
	var newTurn func() turn
	for i := range n {
		if i < sessions {
			var client *zktest.Client
			client, newTurn = c.open(z, fmt.Sprintf("client %d", i+1), path)
			clients = append(clients, client)
		}
		if i > 0 && c.share {
			turns = append(turns, turns[0])
		} else {
			turns = append(turns, newTurn())
		}
	}
	s.run(z.Ctx, turns, 0)
	return turns, clients
}

// run takes turns on as many goroutines as there are, for d and at least once each.
func (s stage) run(ctx context.Context, turns []turn, d time.Duration) []peers.Turn {
	s.must(s.ctx.Err())
	had, err := takeTurns(ctx, turns, d)
	s.must(err)
	return had
}

func takeTurns(ctx context.Context, turns []turn, d time.Duration) (all []peers.Turn, err error) {
	var running sync.WaitGroup
	had := make([][]peers.Turn, len(turns))
	errs := make([]error, len(turns))
	begin := time.Now()
	for i, take := range turns {
		running.Go(func() {
			for had[i] == nil || time.Since(begin) < d {
				asked := time.Since(begin)
				if errs[i] = take(ctx); errs[i] != nil {
					return
				}
				had[i] = append(had[i], peers.Turn{Client: i, Asked: asked, Done: time.Since(begin)})
			}
		})
	}
	running.Wait()
	return slices.Concat(had...), errors.Join(errs...)
}

// took is the time until all turns were done.
func took(turns []peers.Turn) (last time.Duration) {
	for _, t := range turns {
		last = max(last, t.Done)
	}
	return last
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
