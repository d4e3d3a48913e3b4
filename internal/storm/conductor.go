package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/zkserver"
)

// A storm runs the ensemble, the client processes and the faults.
type storm struct {
	*store
	length    time.Duration
	seed      uint64
	out       io.Writer
	ensemble  *zkserver.Ensemble
	observer  *zk.Conn
	processes []*process
	orders    []chan Order
	idle      chan int
	calm      atomic.Bool // all faults are over

	excused []int // see judge

	faultsMu sync.Mutex
	faults   []fault
}

// A fault is what happened, when, and to whom.
type fault struct {
	Order
	Outcome
	ready, over bool // ready: its witness is
}

// what it was in the end.
func (f fault) what() int {
	if f.Happened {
		return f.Outcome.What
	}
	return f.Order.What
}

// befell tells whether it hit a client: all four of a process that was stopped.
func (f fault) befell(client int) bool {
	switch f.what() {
	case stoppedBriefly, stoppedForLong, stoppedInHandshakeBriefly, stoppedInHandshakeForLong:
		return client >= 0 && f.Client/perProcess == client/perProcess
	}
	return f.Client == client
}

// run makes a storm, and returns when all is quiet again and has been looked
// through. With atFirst it is over soon after the first violation.
func run(ctx context.Context, length time.Duration, seed uint64, atFirst bool, out io.Writer) (s *storm, err error) {
	fmt.Fprintf(out, "a storm of %v, seed %d\n", length, seed)
	// A server that returns gets a whole copy. Told only what it missed, it may miss
	// some of that, too, and never find out: see docs/storm.md.
	// And a server that is cut off finds out after five seconds, not after one.
	ensemble, err := zkserver.StartEnsemble(ctx, "forceSnapshotSync=true", "syncLimit=50")
	if err != nil {
		return nil, err
	}
	s = &storm{store: newStore(), length: length, seed: seed, out: out, ensemble: ensemble, idle: make(chan int, processes)}
	defer func() { err = errors.Join(err, ensemble.Stop()) }()
	s.observer, _, err = zk.Connect(ensemble.Servers(), 30*time.Second, zk.WithLogger(silence{}))
	if err != nil {
		return nil, err
	}
	defer s.observer.Close()
	fmt.Fprintf(out, "%d clients in %d processes, %s\n", clients, processes, ensemble.Origin)
	whole := ctx
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	stop, err := s.startProcesses(fail)
	defer stop()
	if err != nil {
		return nil, err
	}

	blowing, calm := context.WithTimeout(ctx, length)
	defer calm()
	helping, noHelp := context.WithCancel(ctx)
	defer noHelp()
	var faults, helpers sync.WaitGroup
	faults.Go(func() {
		if err = s.serverFaults(blowing); err != nil {
			calm()
		}
	})
	faults.Go(func() { s.clientFaults(blowing) })
	helpers.Go(func() { s.removeOrphans(helping) })
	helpers.Go(func() {
		s.progress(helping, func() {
			if atFirst {
				calm()
			}
		})
	})
	faults.Wait()
	for s.anyTrouble() && rest(ctx, 10*time.Millisecond) { // all are over within patience and a few time-outs
	}
	if err == nil {
		err = s.comeToRest(ctx)
	}
	noHelp()
	helpers.Wait()
	if err != nil {
		return nil, err
	}
	s.lookForLeftovers(ctx)
	if err := s.dismiss(whole); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conclude(time.Now())
	return s, nil
}

// A process has four of the clients.
type process struct {
	*exec.Cmd
	ended chan struct{}
	err   error // once it has
}

// startProcesses starts the client processes. They end when stop is called, or
// when this process ends. When one ends, fail is called.
func (s *storm) startProcesses(fail func(error)) (stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return func() {}, err
	}
	server := rpc.NewServer()
	if err := server.RegisterName("Storm", &remote{s.store, s}); err != nil {
		return func() {}, err
	}
	stop = func() {
		listener.Close()
		for _, p := range s.processes {
			_ = p.Process.Kill() // as a rule it has ended
			<-p.ended
		}
	}
	program, err := os.Executable()
	if err != nil {
		return stop, err
	}
	for i := range processes {
		p := &process{Cmd: exec.Command(program, strconv.Itoa(i), strconv.FormatUint(s.seed, 10), listener.Addr().String()), ended: make(chan struct{})}
		p.Env = append(os.Environ(), "ZKTEST_CHILD=worker", "ZKTEST_CHILD_SERVERS="+strings.Join(s.ensemble.Servers(), ","))
		p.Stderr = os.Stderr
		if _, err := p.StdinPipe(); err != nil { // it ends when this pipe does
			return stop, err
		}
		s.orders = append(s.orders, make(chan Order, 100))
		if err := p.Start(); err != nil {
			return stop, err
		}
		s.processes = append(s.processes, p)
		go func() {
			p.err = p.Wait()
			close(p.ended)
			fail(fmt.Errorf("client process %d has ended: %v", i, p.ProcessState))
		}()
	}
	go func() { // now that all is there that they ask for
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go server.ServeConn(conn)
		}
	}()
	return stop, nil
}

// begin notes that a fault is on its way.
func (s *storm) begin(o Order) Order {
	s.faultsMu.Lock()
	defer s.faultsMu.Unlock()
	o.Number = len(s.faults)
	s.faults = append(s.faults, fault{Order: o})
	return o
}

// end notes what became of it.
func (s *storm) end(r Outcome) {
	s.faultsMu.Lock()
	defer s.faultsMu.Unlock()
	s.faults[r.Number].Outcome = r
	s.faults[r.Number].over = true
}

// serverFaults lets the servers' faults happen, one after the other.
func (s *storm) serverFaults(ctx context.Context) error {
	for o := range list(s.seed, 0, serverFaults) {
		if !rest(ctx, 3*time.Second) {
			return nil
		}
		if !o.witnessed() {
			o.Client = -1
		} else if o.Client = s.untroubled(ctx, o.Client); o.Client < 0 {
			return nil
		}
		o = s.begin(o)
		from := time.Now()
		err := s.serverFault(o)
		s.end(Outcome{o.Number, o.What, true, from, time.Now()})
		if err != nil {
			return fmt.Errorf("%s: %w", faultNames[o.What], err)
		}
		if err := s.serversAgree(ctx); err != nil {
			return fmt.Errorf("after a fault, %s: %w", faultNames[o.What], err)
		}
	}
	return nil
}

// serverFault makes one fault, and returns when all servers serve again.
func (s *storm) serverFault(o Order) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	leader, followers, err := s.ensemble.Roles(ctx)
	if err != nil {
		return err
	}
	follower := followers[o.Number%len(followers)]
	switch o.What {
	case leaderKilled:
		err = leader.Kill()
		time.Sleep(o.For)
		err = errors.Join(err, leader.Restart(ctx))
	case followerPaused:
		err = follower.Pause()
		time.Sleep(o.For)
		err = errors.Join(err, follower.Resume())
	case followerCutOff:
		follower.CutOff()
		time.Sleep(o.For)
		follower.Rejoin()
	case ensembleRestarted:
		err = zkserver.StartAgain(ctx, s.ensemble.Members)
	case leaderDeposed:
		s.callWitness(o, leader)
		leader.CutOff()
		err = zkserver.StartAgain(ctx, followers)
		time.Sleep(o.For)
		leader.Rejoin()
		_, _, deposed := s.ensemble.Roles(ctx) // there is one only when the old one knows
		err = errors.Join(err, deposed)
	case stalledThenCutOff:
		s.callWitness(o, follower)
		follower.CutOff()
		time.Sleep(o.For)
		follower.Rejoin()
	}
	return errors.Join(err, s.ensemble.Serving(ctx))
}

// callWitness lets the fault's client take its locks at a server, and keep them
// until the fault is over. If there are none, the fault has no witness.
func (s *storm) callWitness(o Order, server *zkserver.Peer) {
	o.Server = server.Addr
	s.orders[o.Client/perProcess] <- o
	ready := func() bool {
		s.faultsMu.Lock()
		defer s.faultsMu.Unlock()
		return s.faults[o.Number].ready
	}
	for late := time.Now().Add(patience + sessionTimeout); !ready() && time.Now().Before(late); {
		time.Sleep(5 * time.Millisecond)
	}
}

// clientFaults lets the clients' faults happen, each to a client that has none
// at the time and had none just before.
func (s *storm) clientFaults(ctx context.Context) {
	for o := range list(s.seed, serverFaults+1, resetAtAny) {
		if !rest(ctx, 700*time.Millisecond) {
			break
		}
		if o.Client = s.untroubled(ctx, o.Client); o.Client < 0 {
			break
		}
		o = s.begin(o)
		s.orders[o.Client/perProcess] <- o
	}
}

// untroubled returns the client, or the next one that has no fault. -1 means that
// ctx has ended.
func (s *storm) untroubled(ctx context.Context, client int) int {
	for s.troubled(client) {
		if client = (client + 1) % clients; client == 0 && !rest(ctx, 100*time.Millisecond) {
			return -1
		}
	}
	return client
}

// troubled tells whether a client has a fault, or had one a second ago.
func (s *storm) troubled(client int) bool {
	s.faultsMu.Lock()
	defer s.faultsMu.Unlock()
	for _, f := range s.faults {
		if f.befell(client) && (!f.over || time.Since(f.To) < time.Second) {
			return true
		}
	}
	return false
}

func (s *storm) anyTrouble() bool {
	s.faultsMu.Lock()
	defer s.faultsMu.Unlock()
	for _, f := range s.faults {
		if !f.over && f.Client >= 0 {
			return true
		}
	}
	return false
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

// remote is what the client processes call, besides the store.
type remote struct {
	*store
	storm *storm
}

// Next returns the next order for a process.
func (r *remote) Next(process int, o *Order) error {
	*o = <-r.storm.orders[process]
	return nil
}

// Happened takes what became of an order.
func (r *remote) Happened(o Outcome, _ *bool) error {
	r.storm.end(o)
	return nil
}

// Witness is told that a client holds its locks for a fault of the servers. It
// returns when the fault is over.
func (r *remote) Witness(number int, _ *bool) error {
	over := func() bool {
		r.storm.faultsMu.Lock()
		defer r.storm.faultsMu.Unlock()
		return r.storm.faults[number].over
	}
	r.storm.faultsMu.Lock()
	r.storm.faults[number].ready = true
	r.storm.faultsMu.Unlock()
	for !over() {
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

// Idle is told when a process has come to rest.
func (r *remote) Idle(process int, _ *bool) error {
	r.storm.idle <- process
	return nil
}

// Stop asks to be stopped for a while.
type Stop struct {
	Process int
	For     time.Duration
}

// Stop stops the process that asks.
func (r *remote) Stop(stop Stop, _ *bool) error {
	p := r.storm.processes[stop.Process].Process
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	time.Sleep(stop.For)
	return p.Signal(syscall.SIGCONT)
}

// comeToRest lets everybody finish: all faults are over.
func (s *storm) comeToRest(ctx context.Context) error {
	s.calm.Store(true)
	for _, orders := range s.orders {
		orders <- Order{What: finish}
	}
	deadline := time.After(2 * hung)
	for range processes {
		select {
		case <-s.idle:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline:
			return errors.New("the clients do not come to rest")
		}
	}
	return nil
}

// dismiss makes the client processes close their sessions and end.
func (s *storm) dismiss(ctx context.Context) error {
	for i, p := range s.processes {
		s.orders[i] <- Order{What: leave}
		select {
		case <-p.ended:
			if p.err != nil {
				return fmt.Errorf("client process %d: %w", i, p.err)
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(30 * time.Second):
			return fmt.Errorf("client process %d does not end", i)
		}
	}
	return nil
}
