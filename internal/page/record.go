package page

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/lockcheck"
	"zklock/internal/wiretap"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// A recorder is the stage of one story: it writes down what the clients do,
// while their taps write down what passes on the wire.
type recorder struct {
	*zktest.Zoo
	t       zktest.T
	subject lockcheck.Subject
	dir     string // the lock's directory; in step 1 the lock itself
	start   time.Time
	actors  []*actor
	phases  []phase
	ends    []sessionEnd
}

// phase is a part of the story, with the sentence that sums it up at its end.
type phase struct {
	at, over   time.Time
	title, sum string
	window     bool  // it ends with the clock, and else with its last frame
	marks      []int // of the actors' taps
}

// sessionEnd is the server's deletion of what belonged to a session.
type sessionEnd struct {
	actor       int
	after, seen time.Time
	zxid        int64
}

// An actor is a client of the story.
type actor struct {
	*zktest.Client
	lockcheck.Contender
	r       *recorder
	attempt *zktest.Attempt

	mu    sync.Mutex
	moods []mood
}

// mood is what a client believes of itself from a moment on.
type mood struct {
	at time.Time
	is string
}

// What a client can be. The page's script has a sign for each.
const (
	idle    = lockcheck.MoodIdle
	waits   = lockcheck.MoodWaits
	holds   = lockcheck.MoodHolds
	reads   = lockcheck.MoodReads
	crashed = "crashed"
	cutOff  = "cut off, believes it holds"
	told    = "told that it lost the lock"
	failed  = lockcheck.MoodFailed
)

// record tells a story on a server and returns what was recorded.
func record(server *zkserver.Server, step Step, s story) (story Story, err error) {
	err = zktest.Play(func(t zktest.T) {
		z := zktest.NewOn(t, server)
		r := &recorder{Zoo: z, t: t, subject: step.Subject, dir: z.Root + "/lock"}
		if step.Key != "1" { // the queue's directory: making it is no part of the story
			if _, err := z.Observer().Create(r.dir, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
				r.fail("create %s: %v", r.dir, err)
			}
		}
		r.start = time.Now()
		s.tell(r)
		r.endPhase()
		story = r.story()
		story.ID, story.Step = s.ID, step.Key
		r.leave()
	})
	if err != nil {
		err = fmt.Errorf("step %s, %q: %w", step.Key, s.Title, err)
	}
	return story, err
}

func (r *recorder) fail(format string, args ...any) {
	r.t.Errorf(format, args...)
	r.t.FailNow()
}

// join brings a client. A mortal one expires soon after a crash.
func (r *recorder) join(name string, timeout time.Duration) *actor {
	c, contender := r.subject.Join(r.Zoo, name, timeout, r.dir)
	return r.add(&actor{Client: c, Contender: contender, r: r})
}

func (r *recorder) add(a *actor) *actor {
	a.becomes(idle)
	r.actors = append(r.actors, a)
	return a
}

// cast brings clients 0 to n-1, all at once.
func (r *recorder) cast(n int) []*actor {
	first := len(r.actors)
	r.actors = append(r.actors, make([]*actor, n)...)
	each(r.t, r.actors[first:], func(i int, _ *actor) {
		c, contender := r.subject.Join(r.Zoo, fmt.Sprintf("client %d", first+i), zktest.SessionTimeout, r.dir)
		r.actors[first+i] = &actor{Client: c, Contender: contender, r: r, moods: []mood{{time.Now(), idle}}}
	})
	return r.actors[first:]
}

// each does something with all values at once.
func each[V any](t zktest.T, values []V, do func(int, V)) {
	var all sync.WaitGroup
	ok := make([]bool, len(values))
	for i, v := range values {
		all.Add(1)
		go func() {
			defer all.Done() // also when FailNow ends this goroutine
			do(i, v)
			ok[i] = true
		}()
	}
	all.Wait()
	if slices.Contains(ok, false) {
		t.FailNow()
	}
}

func (a *actor) becomes(is string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.moods = append(a.moods, mood{time.Now(), is})
}

// asks calls lock in the background, a.Lock unless another one is given.
func (a *actor) asks() *actor { return a.asksWith(a.Lock, holds) }

func (a *actor) asksWith(lock func(context.Context) error, then string) *actor {
	a.becomes(waits)
	a.attempt = a.r.Go(a.Client, func(ctx context.Context) error {
		err := lock(ctx)
		if err != nil {
			then = failed
		}
		a.becomes(then)
		return err
	})
	return a
}

// takes makes the client hold the lock.
func (a *actor) takes() { a.asks().attempt.Acquired() }

// lines makes clients stand in line, one after the other.
func (r *recorder) lines(actors ...*actor) {
	for _, a := range actors {
		if a.asks().attempt.Waits() == zktest.Returned {
			r.fail("%s was let in beside the holder; its Lock answered %v", a.Name, a.attempt.Err())
		}
	}
}

// crowds makes many clients stand in line. They look around for the first time
// when all stand there: else each arrival would wake the others.
func (r *recorder) crowds(actors ...*actor) {
	looks := make([]*wiretap.Trap, len(actors))
	for i, a := range actors {
		looks[i] = a.Tap.HoldRequest(wiretap.GetChildren, 1)
		a.asks()
		if i%50 == 49 { // not all at once: the order is kept, and the line is short
			a.attempt.Queued()
		}
	}
	for _, a := range actors {
		a.attempt.Queued()
	}
	for _, look := range looks {
		look.Let()
	}
	each(r.t, actors, func(_ int, a *actor) { a.attempt.Waits() })
}

// releases calls unlock, a.Unlock unless another one is given.
func (a *actor) releases() { a.releasesWith(a.Unlock) }

func (a *actor) releasesWith(unlock func() error) {
	if err := unlock(); err != nil {
		a.r.fail("%s: Unlock: %v", a.Name, err)
	}
	a.becomes(idle)
}

// crashes makes the client go silent, and returns when that was.
func (a *actor) crashes(then string) time.Time {
	a.Crash()
	a.becomes(then)
	return time.Now()
}

// expires returns when the server has ended a crashed client's session.
func (r *recorder) expires(a *actor, after time.Time) {
	r.AwaitExpiry(a.Client)
	seen := time.Now()
	// The children of the directory have changed last when the session ended.
	_, stat, err := r.Observer().Exists(r.dir)
	if err != nil {
		r.fail("look at %s: %v", r.dir, err)
	}
	r.ends = append(r.ends, sessionEnd{slices.Index(r.actors, a), after, seen, stat.Pzxid})
}

// settles returns when all that has happened has had its effect on those who
// still wait.
func (r *recorder) settles() {
	each(r.t, r.actors, func(_ int, a *actor) {
		if a.attempt != nil && !a.attempt.Returned() {
			a.attempt.StillWaits()
		}
	})
}

// served returns whoever of the waiting is let in next.
func (r *recorder) served(waiting []*actor) (next *actor) {
	r.Await("the next in line to be let in", func() bool {
		i := slices.IndexFunc(waiting, func(a *actor) bool { return a.attempt.Returned() })
		if i >= 0 {
			next = waiting[i]
		}
		return i >= 0
	})
	next.attempt.Acquired()
	return next
}

// begin forgets what came before: the story starts here.
func (r *recorder) begin() { r.start = time.Now() }

// phase begins a part of the story.
func (r *recorder) phase(title string, args ...any) {
	r.endPhase()
	p := phase{at: time.Now(), title: sentence(title, args)}
	for _, a := range r.actors {
		p.marks = append(p.marks, a.Tap.Mark())
	}
	r.phases = append(r.phases, p)
}

func (r *recorder) endPhase() {
	if n := len(r.phases); n > 0 && r.phases[n-1].over.IsZero() {
		r.phases[n-1].over = time.Now()
	}
}

// sum ends the present phase with a sentence.
func (r *recorder) sum(format string, args ...any) {
	r.endPhase()
	r.phases[len(r.phases)-1].sum = sentence(format, args)
}

// sentence begins with a capital letter.
func sentence(format string, args []any) string {
	s := fmt.Sprintf(format, args...)
	return strings.ToUpper(s[:1]) + s[1:]
}

// window says that the present phase ends with the clock.
func (r *recorder) window() { r.phases[len(r.phases)-1].window = true }

// counts is the traffic of some clients in the present phase, else of all.
func (r *recorder) counts(of ...*actor) wiretap.Counts {
	marks := r.phases[len(r.phases)-1].marks
	var all [][]wiretap.Frame
	for i, a := range r.actors {
		mark := 0
		if len(of) > 0 && !slices.Contains(of, a) {
			continue
		}
		if i < len(marks) {
			mark = marks[i]
		}
		all = append(all, a.Tap.Since(mark))
	}
	return wiretap.Count(all...)
}

// leave ends all sessions at once: one after the other, each would wake others.
// The client library can leave a goroutine behind when it is closed with a
// request on its way: so who was cut off connects again first, and who waits
// gives up.
func (r *recorder) leave() {
	each(r.t, r.actors, func(_ int, a *actor) {
		a.Tap.Restore()
		r.Await(a.Name+" to have a session", func() bool { return a.State() == zk.StateHasSession })
		if a.attempt != nil {
			_ = a.attempt.Cancel() // it may have returned long ago
		}
		a.Close()
	})
}
