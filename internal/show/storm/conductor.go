package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/check/zktest"
	"zklock/internal/server/process"
	"zklock/internal/server/zkserver"
)

// A storm runs the ensemble, the client processes and the faults.
type storm struct {
	*store
	settings
	out       io.Writer
	ensemble  *zkserver.Ensemble
	observer  *zk.Conn
	processes []*process.Process
	fail      context.CancelCauseFunc // ends all, and kills the processes
	calm      atomic.Bool             // all faults are over

	faults  []*fault // guarded by mu
	excused []int    // see judge
}

// run makes a storm, and returns when all is quiet again and has been looked through.
func run(ctx context.Context, chosen settings, out io.Writer) (s *storm, err error) {
	s = &storm{store: newStore(), settings: chosen, out: out}
	fmt.Fprintf(out, "a storm of %v, seed %d\n", chosen.length, chosen.seed)
	return s, zktest.Play(func(t zktest.T) {
		// A server that returns gets a whole copy. Told only what it missed, it may miss
		// some of that, too, and never find out: see docs/storm.md.
		// And a server that is cut off finds out after five seconds, not after one.
		s.ensemble, _, _ = zktest.Ensemble(t, "forceSnapshotSync=true", "syncLimit=50")
		observer, err := zktest.Dial(s.ensemble.Servers(), 30*time.Second, net.DialTimeout)
		must(t, err)
		t.Cleanup(observer.Close)
		s.observer = observer
		fmt.Fprintf(out, "%d clients in %d processes, %s\n", clients, processes, s.ensemble.Origin)
		ctx, fail := context.WithCancelCause(ctx)
		s.fail = fail
		s.startProcesses(ctx, t)
		s.askAll(ctx, t, "Begin")
		s.blow(ctx, t)
		s.lookForLeftovers(ctx)
		left := s.askAll(ctx, t, "Leave")
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, l := range left {
			s.breaches.broken(nothingRuns, l.Kind, []int{l.Client}, time.Now(), "%s", l.Failure)
		}
		s.conclude(time.Now())
	})
}

// must ends the storm if there is an error.
func must(t zktest.T, err error) {
	if err != nil {
		t.Fatalf("%v", err)
	}
}

// startProcesses starts the client processes. When one ends, the storm fails, and
// they all end.
func (s *storm) startProcesses(ctx context.Context, t zktest.T) {
	for i := range processes {
		p, err := process.Start("client")
		must(t, err)
		s.processes = append(s.processes, p)
		p.Serve(&remote{s, p})
		go func() {
			<-p.Ended()
			s.fail(fmt.Errorf("client process %d has ended: %v", i, p.Close()))
		}()
	}
	spare := context.AfterFunc(ctx, func() {
		for _, p := range s.processes {
			_ = p.Kill()
		}
	})
	t.Cleanup(func() {
		spare()
		for _, p := range s.processes {
			if err := p.Close(); err != nil {
				t.Errorf("%v", err)
			}
		}
	})
}

// askAll asks all client processes for the same, and returns what they tell.
func (s *storm) askAll(ctx context.Context, t zktest.T, what string) []Turn {
	told, err := process.CallAll[Turn](
		s.processes,
		what,
		func(i int) any { return Assignment{i, s.seed, s.ensemble.Servers()} },
	)
	must(t, cmp.Or(context.Cause(ctx), err))
	return told
}

// blow lets the faults happen, and returns when all clients are idle again.
func (s *storm) blow(ctx context.Context, t zktest.T) {
	blowing, calm := context.WithTimeout(ctx, s.length)
	defer calm()
	helping, noHelp := context.WithCancel(ctx)
	var faults, helpers sync.WaitGroup
	defer helpers.Wait()
	defer noHelp()
	var err error
	faults.Go(func() {
		err = s.serverFaults(blowing)
		calm()
	})
	faults.Go(func() { s.clientFaults(blowing) })
	helpers.Go(func() { s.removeOrphans(helping) })
	helpers.Go(func() {
		s.progress(helping, func() {
			if s.atFirst {
				calm()
			}
		})
	})
	faults.Wait()
	s.calm.Store(true)
	must(t, err)
	s.askAll(ctx, t, "Finish")
}

// A fault is what was ordered, and what became of it.
type fault struct {
	Order
	Outcome
	ready chan struct{} // closed when its witness holds the locks
	over  chan struct{} // closed when it is over
}

// begin yields the seed's faults of a deck, with a pause before each, until ctx
// ends. Each befalls a client that has none at the time and had none just before.
func (s *storm) begin(ctx context.Context, stream uint64, deck []faultKind, pause time.Duration) iter.Seq[*fault] {
	return func(yield func(*fault) bool) {
		for o := range list(s.seed, stream, deck) {
			if !rest(ctx, pause) {
				return
			}
			if o.Reach == theServers && !o.Witnessed {
				o.Client = -1
			} else if o.Client = s.untroubled(ctx, o.Client); o.Client < 0 {
				return
			}
			s.mu.Lock()
			o.Number = len(s.faults)
			f := &fault{Order: o, ready: make(chan struct{}), over: make(chan struct{})}
			s.faults = append(s.faults, f)
			s.mu.Unlock()
			if !yield(f) {
				return
			}
		}
	}
}

// end notes what became of it.
func (s *storm) end(f *fault, r Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.Outcome = r
	close(f.over)
}

// reach is whom it befell, in the end.
func (f *fault) reach() reach {
	if f.happened() && f.Was != f.What {
		return aLock
	}
	return f.Reach
}

// befell tells whether it hit a client.
func (f *fault) befell(client int) bool {
	if f.reach() == aProcess {
		return client >= 0 && f.Client/perProcess == client/perProcess
	}
	return f.Client == client
}

// serverFaults lets the servers' faults happen, one after the other.
func (s *storm) serverFaults(ctx context.Context) error {
	for f := range s.begin(ctx, 0, serverDeck, 3*time.Second) {
		from := time.Now()
		err := s.strike(f)
		s.end(f, Outcome{f.What, from, time.Now()})
		if err == nil {
			err = s.serversAgree(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.What, err)
		}
	}
	return nil
}

// strike makes a fault of the servers, and returns when all serve again.
func (s *storm) strike(f *fault) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	leader, followers, err := s.ensemble.Roles(ctx)
	if err != nil {
		return err
	}
	at := servers{s, leader, followers[f.Number%len(followers)], followers}
	return errors.Join(kindOf(f.What).atServers(ctx, f, at), s.ensemble.Serving(ctx))
}

// callWitness lets the client that a fault needs, if it needs one, take its locks
// at a server, and keep them until the fault is over. If there are none, the fault
// has no witness.
func (s *storm) callWitness(f *fault, server *zkserver.Peer) {
	if !f.Witnessed {
		return
	}
	o := f.Order
	o.Server = server.Addr
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		s.order(o)
	}()
	select {
	case <-f.ready:
	case <-gone:
	}
}

// order lets a client's process make a fault, and returns what became of it. That
// a process has ended is noticed elsewhere.
func (s *storm) order(o Order) (r Outcome) {
	_ = s.processes[o.Client/perProcess].Call("Fault", o, &r)
	return r
}

// clientFaults lets the clients' faults happen, and returns when all are over.
func (s *storm) clientFaults(ctx context.Context) {
	var faults sync.WaitGroup
	for f := range s.begin(ctx, 7, clientDeck, 700*time.Millisecond) {
		faults.Go(func() { s.end(f, s.order(f.Order)) })
	}
	faults.Wait()
}

// untroubled returns the client, or the next one, that has no fault, and had none a
// second ago. -1 means that ctx has ended.
func (s *storm) untroubled(ctx context.Context, client int) int {
	for {
		s.mu.Lock()
		troubled := slices.ContainsFunc(s.faults, func(f *fault) bool {
			isRecent := f.To.IsZero() || time.Since(f.To) < time.Second // To is zero while it lasts
			return isRecent && f.befell(client)
		})
		s.mu.Unlock()
		switch {
		case !troubled:
			return client
		case client == 0 && !rest(ctx, 100*time.Millisecond):
			return -1
		}
		client = (client + 1) % clients
	}
}

// rest waits; false means that ctx has ended.
func rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// remote is what a client process calls, besides the store.
type remote struct {
	*storm
	process *process.Process
}

// Witness is told that a client holds its locks for a fault of the servers. It
// returns when the fault is over.
func (r *remote) Witness(number int, _ *bool) error {
	r.mu.Lock()
	f := r.faults[number]
	r.mu.Unlock()
	close(f.ready)
	<-f.over
	return nil
}

// Stop stops the process that asks for a while.
func (r *remote) Stop(d time.Duration, _ *bool) error {
	err := r.process.Stop()
	time.Sleep(d)
	return errors.Join(err, r.process.Continue())
}
