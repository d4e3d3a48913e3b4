// Package tour measures the locks on a real ZooKeeper, checks each lock for the properties, and
// records for a page how the locks work. It counts and times runs in which nothing delays the
// messages. The page draws other runs, which a camera recorded: the camera delays each message.
package tour

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"zklock/internal/lab/stage"
	"zklock/internal/property"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// A Recording is everything that one run has found. The scoreboard, the matrix and the page are
// made from it.
type Recording struct {
	Origin  string // of the ZooKeeper
	Began   time.Time
	Took    time.Duration // from Began to the scoreboard
	Largest int           // how many clients wait in the largest crowd

	Locks   []Exhibit
	Titles  []stage.Title
	Stories []stage.Replay
	Queues  []*Queue            // one for each lock
	Answers [][]property.Result // for each lock, in the order of the properties
}

// A Tour is a run with some locks, and with crowds of at most Largest waiters.
type Tour struct {
	Recording
	Server *zkserver.Server
	Say    func(doing string, done, all int) // receives what the tour does, and how many of all jobs are done
	Scored func()                            // is called once there is a scoreboard; nil: Record checks no property

	ended func(*scene, stage.Replay) // if not nil, is called at the end of each story

	done, jobs atomic.Int64
	mu         sync.Mutex
	doing      string // the last value that Say received
}

func (t *Tour) say(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.doing = fmt.Sprintf(format, args...)
	t.Say(t.doing, int(t.done.Load()), int(t.jobs.Load()))
}

// Record first measures the queues. Then it checks the properties of the scoreboard. At the end it
// records the stories, and checks the other properties.
func (t *Tour) Record(ctx context.Context) error {
	t.limitGarbage()
	t.Origin, t.Began = t.Server.Origin, time.Now()
	tellings := t.tellings(ctx)
	var promised, others []func() error
	if t.Scored != nil {
		promised, others = t.questions(true), t.questions(false)
	}
	t.jobs.Store(int64(len(tellings) + len(promised) + len(others) + queueJobs*len(t.Locks)))
	if err := t.queues(ctx); err != nil {
		return t.explained(err)
	}
	if err := t.inParallel(ctx, promised); err != nil {
		return err
	}
	t.Took = time.Since(t.Began)
	if t.Scored != nil {
		t.Scored()
	}
	return t.inParallel(ctx, append(tellings, others...))
}

// explained adds to an error what the tour was doing and, on a server that the tour did not start,
// what may help.
func (t *Tour) explained(err error) error {
	err = fmt.Errorf("%s: %w", t.doing, err)
	if os.Getenv("ZK_SERVERS") == "" {
		return err
	}
	return fmt.Errorf("%w\n(a server allows 60 connections from one machine, "+
		"unless its maxClientCnxns says otherwise: try WAITERS=50)", err)
}

// queueJobs is how many jobs one queue counts for, because a queue takes longer than a job.
const queueJobs = 20

// queues measures a queue of each lock. First, and apart from the others, it measures the locks
// whose waiters poll: they would disturb the others. Then it measures the others, the locks with a
// herd last:
// a holder of leased has to renew its lease in time, and cannot wait until the server has answered
// a herd of a thousand.
func (t *Tour) queues(ctx context.Context) error {
	t.Queues = make([]*Queue, len(t.Locks))
	for _, poll := range []bool{true, false} {
		err := zktest.Tell(func(z zktest.T) {
			var group []*Queue
			for i, lock := range slices.Backward(t.Locks) {
				if lock.Polls == poll {
					part := zktest.NewSection(z)
					t.Queues[i] = &Queue{scene: t.scene(ctx, patience, part, lock), part: part, largest: t.Largest}
					group = append(group, t.Queues[i])
				}
			}
			if len(group) > 0 {
				t.measure(z, group)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Ask checks the properties, and does nothing else.
func (t *Tour) Ask(ctx context.Context) error {
	t.Origin = t.Server.Origin
	questions := append(t.questions(true), t.questions(false)...)
	t.jobs.Store(int64(len(questions)))
	return t.inParallel(ctx, questions)
}

// told returns the stories in which at least one of the locks takes part.
func (t *Tour) told() (all []episode) {
	isMissing := func(key string) bool {
		return !slices.ContainsFunc(t.Locks, func(l Exhibit) bool { return l.Key == key })
	}
	for _, s := range stories {
		s.Steps = slices.DeleteFunc(slices.Clone(s.Steps), isMissing)
		s.Pair = slices.DeleteFunc(slices.Clone(s.Pair), isMissing)
		isTooLarge := s.ID == "crowd" && t.Largest < crowded
		if len(s.Steps) > 0 && !isTooLarge {
			all = append(all, s)
		}
	}
	return all
}

// tellings returns the jobs that record all stories, each with every lock that takes part in it.
func (t *Tour) tellings(ctx context.Context) (jobs []func() error) {
	t.Titles, t.Stories = nil, nil
	for _, s := range t.told() {
		t.Titles = append(t.Titles, s.Title)
		for _, lock := range t.Locks {
			if !slices.Contains(s.Steps, lock.Key) {
				continue
			}
			at := len(t.Stories)
			t.Stories = append(t.Stories, stage.Replay{})
			jobs = append(jobs, func() error { return t.tell(ctx, s, lock, at) })
		}
	}
	return jobs
}

// tell records a story with a lock, and stores it as t.Stories[at].
func (t *Tour) tell(ctx context.Context, s episode, lock Exhibit, at int) error {
	t.say("for the page: %s, %s", s.Title.Title, lock.Subject.Name)
	err := zktest.Tell(func(z zktest.T) {
		scene := t.scene(ctx, zktest.Patience, z, lock)
		scene.film()
		s.tell(scene)
		recorded := scene.story()
		recorded.ID, recorded.Step = s.ID, lock.Key
		if t.ended != nil {
			t.mu.Lock()
			t.ended(scene, recorded)
			t.mu.Unlock()
		}
		scene.leave()
		t.Stories[at] = recorded
	})
	if err != nil {
		return fmt.Errorf("%s, %q: %w", lock.Subject.Name, s.Title.Title, err)
	}
	return nil
}

// promises lists the properties that the scoreboard shows.
var promises = []*property.Property{
	property.CrashFrees, property.FirstCome, property.OnlyHolder, property.LostCreateReply, property.LocksAgain,
}

// questions returns the jobs that check every lock for the promises, or for all other properties.
// The last properties and the last locks come first, because their checks take long.
func (t *Tour) questions(promised bool) (jobs []func() error) {
	if t.Answers == nil {
		for range t.Locks {
			t.Answers = append(t.Answers, make([]property.Result, len(property.Properties)))
		}
	}
	for j, p := range slices.Backward(property.Properties) {
		if slices.Contains(promises, p) != promised {
			continue
		}
		for i, lock := range slices.Backward(t.Locks) { // zk.Lock takes longest
			jobs = append(jobs, func() error {
				t.say("%s: %s?", lock.Subject.Name, p.Name)
				t.Answers[i][j] = property.Check(t.Server, lock.Subject, p)
				return nil
			})
		}
	}
	return jobs
}

// inParallel starts the jobs in their order, and runs some of them at the same time, because they
// mostly wait for sessions to expire.
func (t *Tour) inParallel(ctx context.Context, jobs []func() error) error {
	var all sync.WaitGroup
	errs, slots := make([]error, len(jobs)), make(chan struct{}, 12)
	for i, job := range jobs {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if ctx.Err() == nil {
				errs[i] = job()
				t.done.Add(1)
			}
		})
	}
	all.Wait()
	return cmp.Or(ctx.Err(), errors.Join(errs...))
}

// measured returns the queues of the locks with these keys, in the order of the locks.
func (rec *Recording) measured(keys ...string) (queues []*Queue) {
	return slices.DeleteFunc(slices.Clone(rec.Queues), func(q *Queue) bool { return !q.Lock.among(keys...) })
}
