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

// A recorder is the stage of a story: it writes down what the clients of one
// lock do, while their taps write down what passes on the wire.
type recorder struct {
	*zktest.Zoo
	t      zktest.T
	step   Step
	told   func(*recorder, Story) // hears of each story that is told
	dir    string                 // the lock's directory; in step 1 the lock itself
	start  time.Time
	actors []*actor
	phases []phase
	ends   []sessionEnd
}

// phase is a part of the story, with the sentence that sums it up at its end.
type phase struct {
	at, over   time.Time
	title, sum string
	window     bool // it ends with the clock, and else with its last frame
}

// sessionEnd is the server's deletion of what belonged to a session.
type sessionEnd struct {
	actor       int
	after, seen time.Time
	zxid        int64
}

// An actor is a client of the story.
type actor struct {
	*zktest.Member
	r    *recorder
	turn *zktest.Turn // the last call to Lock; nil: none yet
	left bool         // it is no part of what is told from now on
	dead bool         // it has crashed
}

// What a client can be. The page's script has a sign for each.
const (
	idle    = zktest.MoodIdle
	waits   = zktest.MoodWaits
	holds   = zktest.MoodHolds
	reads   = zktest.MoodReads
	crashed = "crashed"
	cutOff  = "cut off, believes it holds"
	told    = "told that it lost the lock"
	failed  = zktest.MoodFailed
)

// record tells a story of a step on a server.
func record(ctx context.Context, server *zkserver.Server, step Step, s story, told func(*recorder, Story)) error {
	err := zktest.Play(func(t zktest.T) {
		r := stage(ctx, zktest.Patience, t, server, step, told)
		s.tell(r)
		r.tells(s.ID)
		r.leave()
	})
	if err != nil {
		return fmt.Errorf("%s, %q: %w", step.Subject.Name, s.Title, err)
	}
	return nil
}

// stage sets up a lock of a step. Its story ends with ctx, at the latest after patience.
func stage(ctx context.Context, patience time.Duration, t zktest.T, server *zkserver.Server, step Step, told func(*recorder, Story)) *recorder {
	z := zktest.NewOn(t, server)
	var cancel context.CancelFunc
	z.Ctx, cancel = context.WithTimeout(ctx, patience)
	t.Cleanup(cancel)
	r := &recorder{Zoo: z, t: t, step: step, told: told, dir: z.Root + "/lock"}
	if !strings.HasPrefix(step.Key, "1") { // the queue's directory: making it is no part of the story
		_, err := z.Observer().Create(r.dir, nil, 0, zk.WorldACL(zk.PermAll))
		r.must(err)
	}
	r.begin()
	return r
}

// begin says that what was before is no part of the story.
func (r *recorder) begin() { r.start, r.phases = time.Now(), nil }

func (r *recorder) must(err error) {
	if err != nil {
		r.t.Errorf("%s: %w", r.step.Subject.Name, err)
		r.t.FailNow()
	}
}

// join brings a client. A mortal one expires soon after a crash.
func (r *recorder) join(name string, timeout time.Duration) *actor {
	a := r.meet(name, timeout)
	r.actors = append(r.actors, a)
	return a
}

func (r *recorder) meet(name string, timeout time.Duration) *actor {
	a := &actor{Member: r.step.Subject.JoinAs(r.Zoo, name, lockcheck.Seat{Timeout: timeout, Path: r.dir}), r: r}
	a.Becomes(idle)
	return a
}

// cast brings n clients, all at once.
func (r *recorder) cast(n int) []*actor {
	first := len(r.actors)
	r.actors = append(r.actors, make([]*actor, n)...)
	each(r.t, r.actors[first:], func(i int, _ *actor) {
		r.actors[first+i] = r.meet(fmt.Sprintf("client %d", first+i), zktest.SessionTimeout)
	})
	return slices.Clone(r.actors[first:])
}

// each does something with all values at once.
func each[V any](t zktest.T, values []V, do func(int, V)) {
	var all sync.WaitGroup
	ok := make([]bool, len(values))
	for i, v := range values {
		all.Go(func() {
			do(i, v)
			ok[i] = true // not when FailNow has ended this goroutine
		})
	}
	all.Wait()
	if slices.Contains(ok, false) {
		t.FailNow()
	}
}

// last is when the client has last changed its mind.
func (a *actor) last() time.Time {
	moods := a.Moods()
	return moods[len(moods)-1].At
}

// asks calls Lock in the background.
func (a *actor) asks() *actor {
	a.turn = a.Start()
	return a
}

// takes makes the client hold the lock.
func (a *actor) takes() { a.asks().turn.Acquired() }

// lines makes clients stand in line, one after the other.
func (r *recorder) lines(actors ...*actor) {
	for _, a := range actors {
		a.asks().turn.Waits()
		a.mustWait()
	}
}

// mustWait ends the story if the client, who is not the first, is inside.
func (a *actor) mustWait() {
	if a.turn.Returned() {
		a.r.must(fmt.Errorf("%s was let in beside the holder; its Lock answered %v", a.Name, a.turn.Err()))
	}
}

// releases ends the hold.
func (a *actor) releases() { a.r.must(a.turn.Unlock(a.turn.Held())) }

// crashes makes the client go silent, and returns when that was.
func (a *actor) crashes(then string) time.Time {
	a.Crash()
	a.Becomes(then)
	a.dead = true
	return time.Now()
}

// expires returns when the server has ended a crashed client's session.
func (r *recorder) expires(a *actor, after time.Time) {
	r.AwaitExpiry(a.Client)
	r.ended(after, a)
}

// ended notes that the server has deleted, since then, what belonged to the
// sessions of some clients.
func (r *recorder) ended(after time.Time, gone ...*actor) {
	seen := time.Now()
	// The children of the directory have changed last when the last session ended.
	// The others are taken to have ended right before it.
	_, stat, err := r.Observer().Exists(r.dir)
	r.must(err)
	for i, a := range gone {
		r.ends = append(r.ends, sessionEnd{slices.Index(r.actors, a), after, seen, stat.Pzxid - int64(len(gone)-1-i)})
	}
}

// settles returns when all that has happened has had its effect on those who
// still wait.
func (r *recorder) settles() {
	waiting := slices.DeleteFunc(slices.Clone(r.actors), func(a *actor) bool { return a.left || a.dead || a.turn == nil || a.turn.Returned() })
	each(r.t, waiting, func(_ int, a *actor) { r.Barrier(a.Client) })
	r.Await("all who wait to settle down", func() bool {
		waiting = slices.DeleteFunc(waiting, func(a *actor) bool {
			silently, polling := a.Tap.Waiting(0)
			return silently || polling || a.turn.Returned()
		})
		return len(waiting) == 0
	})
}

// served returns whoever of the waiting is let in next.
func (r *recorder) served(waiting []*actor) (next *actor) {
	r.Await("the next in line to be let in", func() bool {
		i := slices.IndexFunc(waiting, func(a *actor) bool { return a.turn.Returned() })
		if i >= 0 {
			next = waiting[i]
		}
		return i >= 0
	})
	next.turn.Acquired()
	return next
}

// proof is the path of the write in vain with which steps 5 and 6 prove a session
// that has been there for long. It is left out: that is not what a release costs.
const proof = "/zklock-nobody/nothing"

// counting counts what passes between clients and the server from now on. The
// function that it returns gives the sum up to a moment.
func counting(actors ...*actor) func(until time.Time) wiretap.Counts {
	marks := make([]int, len(actors))
	for i, a := range actors {
		marks[i] = a.Tap.Mark()
	}
	return func(until time.Time) wiretap.Counts {
		var all [][]wiretap.Frame
		for i, a := range actors {
			all = append(all, slices.DeleteFunc(a.Tap.Since(marks[i]), func(f wiretap.Frame) bool { return f.At.After(until) || f.Path == proof }))
		}
		return wiretap.Count(all...)
	}
}

// phase begins a part of the story.
func (r *recorder) phase(title string, args ...any) {
	r.phases = append(r.phases, phase{at: time.Now(), title: sentence(title, args...)})
}

// sum ends the present phase with a sentence.
func (r *recorder) sum(format string, args ...any) {
	p := &r.phases[len(r.phases)-1]
	p.over, p.sum = time.Now(), sentence(format, args...)
}

// sentence begins with a capital letter.
func sentence(format string, args ...any) string {
	s := fmt.Sprintf(format, args...)
	return strings.ToUpper(s[:1]) + s[1:]
}

// window says that the present phase ends with the clock.
func (r *recorder) window() { r.phases[len(r.phases)-1].window = true }

// tells makes a story of the phases so far, if the page has one of that name.
func (r *recorder) tells(id string) {
	if i := slices.IndexFunc(stories, func(s story) bool { return s.ID == id }); i < 0 || !slices.Contains(stories[i].Steps, r.step.Key) {
		return
	}
	s := r.story()
	s.ID, s.Step = id, r.step.Key
	r.told(r, s)
}

// leave ends all sessions at once: one after the other, each would wake others.
// The client library can leave a goroutine behind when it is closed with a
// request on its way: so who was cut off connects again first, and who waits
// gives up.
func (r *recorder) leave() {
	each(r.t, r.actors, func(_ int, a *actor) {
		if a.left {
			return
		}
		a.left = true
		a.Tap.Restore()
		r.Await(a.Name+" to have a session", func() bool { return a.State() == zk.StateHasSession })
		if a.turn != nil {
			_ = a.turn.Cancel() // it may have returned long ago
		}
		a.Close()
	})
}
