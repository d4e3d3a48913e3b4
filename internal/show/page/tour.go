package page

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"zklock/internal/check/zktest"
	"zklock/internal/property"
	"zklock/internal/server/zkserver"
	"zklock/internal/upkeep/words"
)

// A Recording is all that one run has recorded: the scoreboard, the matrix, the
// page and the chapters' pictures are made of it.
type Recording struct {
	Origin  words.Text // of the ZooKeeper
	Began   time.Time
	Took    time.Duration // to the scoreboard
	Largest int           // crowd

	Locks   []Step
	Titles  []story
	Stories []Story
	Queues  []*Queue            // of each lock
	Answers [][]property.Result // of each lock, in the order of the properties
}

// A Tour records some locks, and crowds of at most so many clients.
type Tour struct {
	Recording
	Server *zkserver.Server
	Say    func(format string, args ...any) // is told what is going on
	Scored func()                           // is told that there is a scoreboard; if it is nil, no property is asked

	told     func(*recorder, Story) // looks at the stage at the end of each story
	answered atomic.Int64           // questions

	mu    sync.Mutex
	doing words.Text // what Say was told last
}

func (t *Tour) say(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.doing = words.Of(format, args...)
	t.Say("%s", t.doing)
}

// Record measures the queues first: they are what is timed. Then the properties of the
// scoreboard are asked. At last the other stories are told and the other properties
// asked.
func (t *Tour) Record(ctx context.Context) error {
	t.Origin, t.Began, t.Titles = words.Whole(t.Server.Origin), time.Now(), titles(t.Locks, t.Largest)
	if err := t.queues(ctx); err != nil {
		if err = words.Errorf("%s: %w", t.doing, err); os.Getenv("ZK_SERVERS") != "" {
			err = words.Errorf(
				"%w\n(a server allows 60 connections from one machine, unless its maxClientCnxns says otherwise: try WAITERS=50)",
				err,
			)
		}
		return err
	}
	jobs := t.tellings(ctx)
	if t.Scored != nil {
		if err := inParallel(ctx, t.questions(true)); err != nil {
			return err
		}
		t.Took = time.Since(t.Began)
		t.Scored()
		jobs = append(jobs, t.questions(false)...)
	}
	return inParallel(ctx, jobs)
}

// queues measures a queue of each lock: first of those who poll, for they would disturb
// the others, and then of the others, those last whose herds come. For a holder of steps
// 5 and 6 must keep its session proved: it does not wait until a herd of a thousand has
// passed.
func (t *Tour) queues(ctx context.Context) error {
	t.Queues = make([]*Queue, len(t.Locks))
	for _, poll := range []bool{true, false} {
		err := zktest.Play(func(z zktest.T) {
			var group []*Queue
			for i, lock := range slices.Backward(t.Locks) {
				if lock.among("12") == poll {
					part := zktest.NewSection(z)
					t.Queues[i] = &Queue{recorder: t.stage(ctx, patience, part, lock), part: part}
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

// Ask asks for the properties, and records nothing else.
func (t *Tour) Ask(ctx context.Context) error {
	t.Origin = words.Whole(t.Server.Origin)
	return inParallel(ctx, append(t.questions(true), t.questions(false)...))
}

// titles are the page's stories that some of the locks have a part in.
func titles(locks []Step, largest int) (all []story) {
	missing := func(key string) bool {
		return !slices.ContainsFunc(locks, func(lock Step) bool { return lock.Key == key })
	}
	for _, s := range stories {
		if s.ID == "crowd" {
			s.Title = words.Of("A release, %s waiting", number(largest))
		}
		s.Steps = slices.DeleteFunc(slices.Clone(s.Steps), missing)
		s.Pair = slices.DeleteFunc(slices.Clone(s.Pair), missing)
		isTheFirstAgain := s.ID == "crowd" && largest <= 10
		if len(s.Steps) > 0 && !isTheFirstAgain {
			all = append(all, s)
		}
	}
	return all
}

// tellings tell all stories but for those of the queues.
func (t *Tour) tellings(ctx context.Context) (jobs []func() error) {
	for _, s := range t.Titles {
		for _, lock := range t.Locks {
			if s.tell == nil || !slices.Contains(s.Steps, lock.Key) {
				continue
			}
			jobs = append(jobs, func() error {
				t.say("for the page: %s, %s", s.Title, lock.Subject.Name)
				err := zktest.Play(func(z zktest.T) {
					r := t.stage(ctx, zktest.Patience, z, lock)
					s.tell(r)
					r.tells(s.ID)
					r.leave()
				})
				if err != nil {
					return words.Errorf("%s, %q: %w", lock.Subject.Name, s.Title, err)
				}
				return nil
			})
		}
	}
	return jobs
}

// promises are the properties that the scoreboard shows.
var promises = []*property.Property{
	property.CrashFrees, property.FirstCome, property.NoStranger, property.LostCreateReply, property.LocksAgain,
}

// questions ask every lock for the promises, or for all other properties. The last of
// them take long.
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
		for i, lock := range slices.Backward(t.Locks) { // zk.Lock has the longest story
			jobs = append(jobs, func() error {
				t.Answers[i][j] = property.Check(t.Server, lock.Subject, p, 0)
				t.say(
					"%d of %d questions answered: %s, %s",
					t.answered.Add(1),
					len(t.Locks)*len(property.Properties),
					lock.Subject.Name,
					p.Name,
				)
				return nil
			})
		}
	}
	return jobs
}

// inParallel does the jobs in their order, some at a time: they mostly wait for
// sessions to expire.
func inParallel(ctx context.Context, jobs []func() error) error {
	var all sync.WaitGroup
	errs, slots := make([]error, len(jobs)), make(chan struct{}, 12)
	for i, job := range jobs {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if ctx.Err() == nil {
				errs[i] = job()
			}
		})
	}
	all.Wait()
	return cmp.Or(ctx.Err(), errors.Join(errs...))
}

// story is one story of the recording.
func (rec *Recording) story(id, step string) Story {
	return rec.Stories[slices.IndexFunc(rec.Stories, func(s Story) bool { return s.ID == id && s.Step == step })]
}

// measured are the queues of the steps that some keys name, in their order.
func (rec *Recording) measured(keys string) (queues []*Queue) {
	return slices.DeleteFunc(slices.Clone(rec.Queues), func(q *Queue) bool { return !q.Step.among(keys) })
}
