package page

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"zklock/internal/lockcheck"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// A Recording is all that one run has recorded: the scoreboard, the matrix, the
// page and the chapters' pictures are made of it.
type Recording struct {
	Origin  string // of the ZooKeeper
	Began   time.Time
	Took    time.Duration // to the scoreboard
	Largest int           // crowd

	Locks   []Step
	Titles  []story
	Stories []Story
	Queues  []*Queue             // of each lock
	Answers [][]lockcheck.Result // of each lock, in the order of the properties
}

// A Tour is what to record.
type Tour struct {
	Server  *zkserver.Server
	Locks   []Step
	Largest int                              // crowd
	Say     func(format string, args ...any) // is told what is going on
	Scored  func(*Recording)                 // is told the scoreboard; if it is nil, no property is asked

	told func(*recorder, Story) // looks at the stage at the end of each story

	mu     sync.Mutex
	doing  string // what Say was told last
	failed error
}

func (t *Tour) say(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.doing = fmt.Sprintf(format, args...)
	t.Say("%s", t.doing)
}

// Record measures the queues first: they are what is timed. Then the other stories
// are told and the properties asked, several at a time, for they wait for sessions
// to expire, most of the time.
func (t *Tour) Record(ctx context.Context) (*Recording, error) {
	rec := &Recording{Origin: t.Server.Origin, Began: time.Now(), Largest: t.Largest, Locks: t.Locks, Titles: titles(t.Locks, t.Largest)}
	keep := func(r *recorder, s Story) {
		t.mu.Lock()
		defer t.mu.Unlock()
		rec.Stories = append(rec.Stories, s)
		if t.told != nil {
			t.told(r, s)
		}
	}
	if err := t.queues(ctx, rec, keep); err != nil {
		if err = fmt.Errorf("%s: %w", t.doing, err); os.Getenv("ZK_SERVERS") != "" {
			err = fmt.Errorf("%w\n(a server allows 60 connections from one machine, unless its maxClientCnxns says otherwise: try WAITERS=50)", err)
		}
		return rec, err
	}
	told := t.stories(ctx, rec, keep)
	if t.Scored == nil {
		return rec, t.inParallel(ctx, told)
	}
	asked := t.questions(rec, func() {
		t.mu.Lock() // nobody says anything in between
		defer t.mu.Unlock()
		rec.Took = time.Since(rec.Began)
		t.Scored(rec)
	})
	return rec, t.inParallel(ctx, slices.Insert(asked, len(promises)*len(t.Locks), told...))
}

// queues measures a queue of each lock.
func (t *Tour) queues(ctx context.Context, rec *Recording, keep func(*recorder, Story)) error {
	rec.Queues = make([]*Queue, len(t.Locks))
	for _, keys := range together {
		err := zktest.Play(func(z zktest.T) {
			var group []*Queue
			for _, key := range keys {
				if i := slices.IndexFunc(t.Locks, func(lock Step) bool { return lock.Key == key }); i >= 0 {
					rec.Queues[i] = &Queue{Step: t.Locks[i], recorder: stage(ctx, patience, z, t.Server, t.Locks[i], keep)}
					group = append(group, rec.Queues[i])
				}
			}
			if len(group) > 0 {
				measure(z, group, t.Largest, t.say)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Ask asks for the properties, and records nothing else.
func (t *Tour) Ask(ctx context.Context) (*Recording, error) {
	rec := &Recording{Origin: t.Server.Origin, Began: time.Now(), Locks: t.Locks}
	return rec, t.inParallel(ctx, t.questions(rec, func() {}))
}

// titles are the page's stories that some of the locks have a part in.
func titles(locks []Step, largest int) (all []story) {
	for _, s := range stories {
		if s.ID == "crowd" {
			s.Title = fmt.Sprintf(s.Title, number(largest))
		}
		other := func(key string) bool {
			return !slices.ContainsFunc(locks, func(lock Step) bool { return lock.Key == key })
		}
		s.Steps, s.Pair = slices.DeleteFunc(slices.Clone(s.Steps), other), slices.DeleteFunc(slices.Clone(s.Pair), other)
		if len(s.Steps) > 0 && (s.ID != "crowd" || largest > 10) { // else it is the first story
			all = append(all, s)
		}
	}
	return all
}

// stories tell all stories but for those of the queues.
func (t *Tour) stories(ctx context.Context, rec *Recording, keep func(*recorder, Story)) (all []func()) {
	for _, s := range rec.Titles {
		for _, lock := range t.Locks {
			if s.tell == nil || !slices.Contains(s.Steps, lock.Key) {
				continue
			}
			all = append(all, func() {
				t.say("for the page: %s, %s", s.Title, lock.Subject.Name)
				if err := record(ctx, t.Server, lock, s, keep); err != nil {
					t.mu.Lock()
					defer t.mu.Unlock()
					t.failed = err
				}
			})
		}
	}
	return all
}

// promises are the properties that the scoreboard shows.
var promises = []*lockcheck.Property{
	lockcheck.CrashFrees, lockcheck.FirstCome, lockcheck.NoStranger, lockcheck.LostCreateReply, lockcheck.LocksAgain,
}

// questions ask every lock for every property, those of the scoreboard first, and
// then those that take long.
func (t *Tour) questions(rec *Recording, scored func()) (jobs []func()) {
	rec.Answers = make([][]lockcheck.Result, len(t.Locks))
	for i := range t.Locks {
		rec.Answers[i] = make([]lockcheck.Result, len(lockcheck.Properties))
	}
	var answered, promised atomic.Int64
	promised.Store(int64(len(promises) * len(t.Locks)))
	ask := func(p *lockcheck.Property) {
		for i, lock := range slices.Backward(t.Locks) { // zk.Lock has the longest story
			jobs = append(jobs, func() {
				rec.Answers[i][slices.Index(lockcheck.Properties, p)] = lockcheck.Check(t.Server, lock.Subject, p)
				t.say("%d of %d questions answered: %s, %s", answered.Add(1), len(jobs), lock.Subject.Name, p.Name)
				if slices.Contains(promises, p) && promised.Add(-1) == 0 {
					scored()
				}
			})
		}
	}
	for _, p := range promises {
		ask(p)
	}
	for _, p := range slices.Backward(lockcheck.Properties) {
		if !slices.Contains(promises, p) {
			ask(p)
		}
	}
	return jobs
}

// inParallel does the jobs in their order, some at a time.
func (t *Tour) inParallel(ctx context.Context, jobs []func()) error {
	var all sync.WaitGroup
	next := make(chan func())
	for range 12 {
		all.Go(func() {
			for job := range next {
				job()
			}
		})
	}
	for _, job := range jobs {
		if ctx.Err() == nil {
			next <- job
		}
	}
	close(next)
	all.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return t.failed
}

// story is one story of the recording.
func (rec *Recording) story(id, step string) Story {
	return rec.Stories[slices.IndexFunc(rec.Stories, func(s Story) bool { return s.ID == id && s.Step == step })]
}

// measured are the queues of the steps that some keys name, in their order.
func (rec *Recording) measured(keys string) (queues []*Queue) {
	for _, q := range rec.Queues {
		if q.Step.among(keys) {
			queues = append(queues, q)
		}
	}
	return queues
}
