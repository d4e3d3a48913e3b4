// Package storm lets clients, in three processes, use some locks on an ensemble of three real servers, while
// servers crash, networks fail and processes are paused. README.md says what was found.
//
//	storm.go     the servers, the client processes, and the faults one after the other
//	locks.go     the locks
//	faults.go    the faults
//	client.go    a client process: it takes the locks, and records what it believes
//	store.go     what the locks protect: a number that checks fencing tokens
//	judge.go     what is right and what is wrong in the records
//	report.go    the table
package storm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/process"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// sessionTimeout is short, so that many sessions end in a storm, and longer than an election
// takes.
const sessionTimeout = 2 * time.Second

// The clients, in their processes.
const (
	processes  = 3
	perProcess = 3
)

// Settings are what the command's flags choose.
type Settings struct {
	Length time.Duration // how long faults are made
	Seed   uint64        // the faults and their order; whom they affect, and exactly when, depends on the machine
	First  bool          // end soon after the first mistake of a production lock

	enough func(*storm) bool // if it returns true, the storm ends early
}

type storm struct {
	Settings
	out       io.Writer
	ensemble  *zkserver.Ensemble
	observer  *zk.Conn
	processes []*process.Process
	store
}

// Run makes a storm, and prints its table. It reports whether the production locks were right.
func Run(ctx context.Context, chosen Settings, out io.Writer) (isRight bool, err error) {
	if chosen.First {
		chosen.enough = (*storm).hasMistake
	}
	s, err := run(ctx, chosen, out)
	if s == nil {
		return false, err
	}
	isRight = s.print() // also after an error: the turns until then count
	return isRight && err == nil, err
}

func run(ctx context.Context, chosen Settings, out io.Writer) (*storm, error) {
	// A server that rejoins gets a whole copy. If it gets only the writes that it has missed, ZooKeeper 3.8 may
	// miss some of them again, and never notice. A session's timeout is six ticks, nearly as short as leased allows. And
	// a server that is partitioned notices it after five seconds.
	tick := sessionTimeout / 6
	ensemble, err := zkserver.StartEnsemble(ctx, 3, "forceSnapshotSync=true",
		fmt.Sprintf("tickTime=%d", tick.Milliseconds()), fmt.Sprintf("syncLimit=%d", 5*time.Second/tick))
	if err != nil {
		return nil, err
	}
	defer ensemble.Stop()
	observer, err := zktest.Dial(ensemble.Servers(), 30*time.Second, net.DialTimeout)
	if err != nil {
		return nil, err
	}
	defer observer.Close()
	s := &storm{Settings: chosen, out: out, ensemble: ensemble, observer: observer, store: newStore()}
	fmt.Fprintf(out, "A storm of %v, seed %d: %d clients in %d processes, %s.\n",
		s.Length, s.Seed, processes*perProcess, processes, ensemble.Origin)
	defer s.closeProcesses()
	if err := s.startProcesses(ctx); err != nil {
		return nil, err
	}
	if err := s.blow(ctx); err != nil {
		return s, cmp.Or(ctx.Err(), err)
	}
	return s, ctx.Err()
}

func (s *storm) startProcesses(ctx context.Context) error {
	for range processes {
		p, err := process.Start(role)
		if err != nil {
			return err
		}
		p.Serve(&s.store)
		s.processes = append(s.processes, p)
		context.AfterFunc(ctx, func() { _ = p.Kill() })
	}
	_, err := s.callAll("Begin", func(i int) any { return Assignment{i, s.Seed, s.ensemble.Servers()} })
	return err
}

// callAll calls a method of all client processes at the same time, and returns all that they answer.
func (s *storm) callAll(method string, args func(i int) any) ([]int, error) {
	var calls sync.WaitGroup
	answers, errs := make([][]int, len(s.processes)), make([]error, len(s.processes))
	for i, p := range s.processes {
		calls.Go(func() { errs[i] = p.Call(method, args(i), &answers[i]) })
	}
	calls.Wait()
	return slices.Concat(answers...), errors.Join(errs...)
}

func (s *storm) closeProcesses() {
	for _, p := range s.processes {
		_ = p.Close()
	}
}

// blow makes the faults, and returns when all clients are idle again.
func (s *storm) blow(ctx context.Context) error {
	blowing, calm := context.WithTimeout(ctx, s.Length)
	defer calm()
	watching, done := context.WithCancel(ctx)
	var faults, watchers sync.WaitGroup
	watchers.Go(func() { s.removeOrphans(watching) })
	watchers.Go(func() { s.tellProgress(watching, calm) })

	const streams = 3 // of clients' faults
	errs := make([]error, streams+1)
	for i := range streams {
		faults.Go(func() { errs[i] = s.clientFaults(blowing, uint64(i)) })
	}
	faults.Go(func() { errs[streams] = s.serverFaults(blowing) })
	faults.Wait()

	hung, err := s.callAll("Finish", func(int) any { return true })
	done()
	watchers.Wait()
	s.hung = hung
	s.lookForLeftovers(ctx)
	return errors.Join(append(errs, err)...)
}

// The same znode may be the first of a queue at this many looks, a second apart. No client holds a lock for
// that long: the session of a client that is disconnected or paused ends before.
const looksAtAnOrphan = 25

// removeOrphans does what an operator would do: it deletes a znode that blocks a lock for a long time, so
// that the storm can continue, and counts it.
func (s *storm) removeOrphans(ctx context.Context) {
	looks := map[string]int{} // at which a path was the first
	for rest(ctx, time.Second) {
		for i := range locks {
			queue, err := s.queue(i)
			if err != nil || len(queue) == 0 { // no server answers now, or the queue is empty
				continue
			}
			first := queue[0]
			looks[first]++
			if looks[first] >= looksAtAnOrphan && s.observer.Delete(first, -1) == nil {
				s.orphan(i)
			}
		}
	}
}

// lookForLeftovers counts the znodes that exist when all clients are idle, with their
// sessions open. A delete that is under way gets two session timeouts.
func (s *storm) lookForLeftovers(ctx context.Context) {
	deadline := time.Now().Add(2 * sessionTimeout)
	for i := range locks {
		queue, err := s.queue(i)
		for (err != nil || len(queue) > 0) && time.Now().Before(deadline) && rest(ctx, 50*time.Millisecond) {
			queue, err = s.queue(i)
		}
		for range queue {
			s.orphan(i)
		}
	}
}

// queue lists the paths in a lock's directory, in the order of their numbers.
func (s *storm) queue(lock int) (paths []string, err error) {
	names, _, err := s.observer.Children(directory(lock))
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	slices.SortFunc(names, zktest.BySequence)
	for _, name := range names {
		paths = append(paths, directory(lock)+"/"+name)
	}
	return paths, err
}

// directory is the directory of a lock's znodes.
func directory(lock int) string { return fmt.Sprintf("/storm/%d", lock) }

// serverFaults makes the servers' faults, one after the other.
func (s *storm) serverFaults(ctx context.Context) error {
	random := rand.New(rand.NewPCG(s.Seed, 10))
	for f := range deal(random, serverFaults) {
		duration, lock := anyDuration(random), random.IntN(len(locks))
		if !rest(ctx, 2*time.Second) {
			return nil
		}
		end, _ := s.begin(f.name, everybody)
		err := s.strike(f, duration, lock)
		end()
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

// strike makes a fault of the servers, and returns when all of them serve again.
func (s *storm) strike(f serverFault, d time.Duration, lock int) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	leader, followers, err := s.ensemble.Roles(ctx)
	if err != nil {
		return err
	}
	holders := func() *zkserver.Peer { return s.serverOfHolder(ctx, lock) }
	at := servers{s.ensemble.Members, leader, followers, holders}
	return errors.Join(f.strike(ctx, at, d), s.ensemble.Serving(ctx))
}

// serverOfHolder returns the server to which the holder of a lock is connected.
func (s *storm) serverOfHolder(ctx context.Context, lock int) *zkserver.Peer {
	_, addr, _ := s.awaitHolder(ctx, lock)
	for _, member := range s.ensemble.Members {
		if member.Addr == addr {
			return member
		}
	}
	return s.ensemble.Members[0]
}

// awaitHolder returns a client that has just begun a long hold, and its server. ok is false if there is none
// soon.
func (s *storm) awaitHolder(ctx context.Context, lock int) (client int, server string, ok bool) {
	for range 60 {
		if client, server, ok = s.holder(lock); ok {
			return client, server, true
		}
		if !rest(ctx, 50*time.Millisecond) {
			break
		}
	}
	return 0, "", false
}

// clientFaults makes faults of clients, one after the other, each of a client that holds a
// lock.
func (s *storm) clientFaults(ctx context.Context, stream uint64) error {
	random := rand.New(rand.NewPCG(s.Seed, stream))
	for f := range deal(random, clientFaults) {
		duration, lock := anyDuration(random), random.IntN(len(locks))
		if !rest(ctx, time.Second) {
			return nil
		}
		client, _, ok := s.awaitHolder(ctx, lock)
		if !ok {
			continue
		}
		end, ok := s.begin(f.name, client)
		if !ok {
			continue // it already has a fault
		}
		its := s.processes[processOf(client)]
		var err error
		if f.strike == nil {
			err = stop(its, duration)
		} else {
			err = its.Call("Fault", Fault{f.name, client, duration}, new(bool))
		}
		end()
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

// stop pauses a process for a while.
func stop(p *process.Process, d time.Duration) error {
	err := p.Stop()
	time.Sleep(d)
	return errors.Join(err, p.Continue())
}

func processOf(client int) int { return client / perProcess }

// anyDuration returns how long a fault lasts: less than a session timeout, or more.
func anyDuration(random *rand.Rand) time.Duration {
	d := time.Duration(random.Int64N(int64(sessionTimeout / 2)))
	isShort := random.IntN(2) == 0
	if isShort {
		return sessionTimeout/10 + d
	}
	return sessionTimeout*5/4 + d
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
