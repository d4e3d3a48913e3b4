package page

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/check/actor"
	"zklock/internal/check/zktest"
	"zklock/internal/property"
	"zklock/internal/server/wiretap"
	"zklock/internal/upkeep/words"
)

// A recorder is the stage of a story: it writes down what the clients of one
// lock do, while their taps write down what passes on the wire.
type recorder struct {
	*zktest.Zoo
	Step    Step
	t       zktest.T
	tour    *Tour
	dir     string    // the lock's directory; in step 1 the lock itself
	start   time.Time // of the first phase
	members []*zktest.Member
	left    []*zktest.Member // no part of what is told, though others may have been told of them
	turns   []*zktest.Turn
	phases  []Phase
	ends    []sessionEnd
}

// sessionEnd is the server's deletion of what belonged to a session.
type sessionEnd struct {
	member      *zktest.Member
	after, seen time.Time
	zxid        int64
}

// What a client can be besides what zktest says. The page's script has a sign for each.
const (
	crashed = "crashed"
	cutOff  = "cut off, believes it holds"
	told    = "told that it lost the lock"
)

// stage sets up a lock of a step. Its story ends with ctx, at the latest after patience.
func (t *Tour) stage(ctx context.Context, patience time.Duration, z zktest.T, step Step) *recorder {
	r := &recorder{Zoo: zktest.NewOn(z, t.Server), Step: step, t: z, tour: t}
	var cancel context.CancelFunc
	r.Ctx, cancel = context.WithTimeout(ctx, patience)
	z.Cleanup(cancel)
	r.dir = r.Root + "/lock"
	if !strings.HasPrefix(step.Key, "1") { // the queue's directory: making it is no part of the story
		_, err := r.Observer().Create(r.dir, nil, 0, zk.WorldACL(zk.PermAll))
		r.must(err)
	}
	return r
}

func (r *recorder) must(err error) {
	if err != nil {
		r.t.Fatalf("%s: %v", r.Step.Subject.Name, err)
	}
}

// join brings a client.
func (r *recorder) join(name string, timeout time.Duration) *zktest.Member {
	m := r.Step.Subject.JoinAs(r.Zoo, name, property.Seat{Timeout: timeout})
	r.members = append(r.members, m)
	return m
}

// cast brings n clients, all at once.
func (r *recorder) cast(n int) []*zktest.Member {
	come := make([]*zktest.Member, n)
	each(r.t, come, func(i int, _ *zktest.Member) {
		come[i] = r.Step.Subject.Join(r.Zoo, fmt.Sprintf("client %d", len(r.members)+i))
	})
	r.members = append(r.members, come...)
	return come
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

// since is when the client has last changed its mind.
func since(m *zktest.Member) time.Time {
	moods := m.Moods()
	return moods[len(moods)-1].At
}

// asks calls Lock in the background.
func (r *recorder) asks(m *zktest.Member) *zktest.Turn {
	turn := m.Start()
	r.turns = append(r.turns, turn)
	return turn
}

// takes makes the client hold the lock.
func (r *recorder) takes(m *zktest.Member) *zktest.Turn {
	turn := r.asks(m)
	turn.Acquired()
	return turn
}

// lines makes clients stand in line, one after the other.
func (r *recorder) lines(members ...*zktest.Member) (turns []*zktest.Turn) {
	for _, m := range members {
		turn := r.asks(m)
		turn.Waits()
		r.mustWait(turn)
		turns = append(turns, turn)
	}
	return turns
}

// mustWait ends the story if the client, who is not the first, is inside.
func (r *recorder) mustWait(turn *zktest.Turn) {
	if turn.Returned() {
		r.t.Fatalf("%s was let in beside the holder; its Lock answered %v", turn.Name, turn.Err())
	}
}

// expire returns when the clients have crashed, and the server has ended their
// sessions, all in one moment.
func (r *recorder) expire(dead ...*zktest.Member) {
	begin := time.Now()
	var clients []*zktest.Client
	for _, m := range dead {
		m.Becomes(crashed)
		clients = append(clients, m.Client)
	}
	r.Expire(clients...)
	r.ended(begin, dead...)
}

// ended notes that the server has deleted, since then, what belonged to the
// sessions of some clients.
func (r *recorder) ended(after time.Time, gone ...*zktest.Member) {
	seen := time.Now()
	// The children of the directory have changed last when the last session ended.
	// The others are taken to have ended right before it.
	_, stat, err := r.Observer().Exists(r.dir)
	r.must(err)
	for i, m := range gone {
		r.ends = append(r.ends, sessionEnd{m, after, seen, stat.Pzxid - int64(len(gone)-1-i)})
	}
}

// settles returns when all that has happened has had its effect on those who wait.
func (r *recorder) settles(waiting []*zktest.Turn) {
	each(r.t, waiting, func(_ int, turn *zktest.Turn) {
		r.Barrier(turn.Client)
		r.Await("all who wait to settle down", func() bool {
			r.mustWait(turn)
			silently, polling := turn.Tap.Waiting(0)
			return silently || polling
		})
	})
}

// served returns whoever of the waiting is let in next, and the others.
func (r *recorder) served(waiting []*zktest.Turn) (next *zktest.Turn, others []*zktest.Turn) {
	i := -1
	r.Await("the next in line to be let in", func() bool {
		i = slices.IndexFunc(waiting, (*zktest.Turn).Returned)
		return i >= 0
	})
	next = waiting[i]
	next.Acquired()
	return next, slices.Delete(slices.Clone(waiting), i, i+1)
}

// counting counts what passes between clients and the server from now on, but for the
// proofs of a session, which are not what a release costs. The function that it
// returns gives the sum up to a moment.
func counting(turns ...*zktest.Turn) func(until time.Time) wiretap.Counts {
	marks := make([]int, len(turns))
	for i, turn := range turns {
		marks[i] = turn.Tap.Mark()
	}
	return func(until time.Time) wiretap.Counts {
		var all [][]wiretap.Frame
		for i, turn := range turns {
			all = append(all, slices.DeleteFunc(turn.Tap.Since(marks[i]), func(f wiretap.Frame) bool {
				return f.At.After(until) || actor.IsProof(f.Path)
			}))
		}
		return wiretap.Count(all...)
	}
}

// phase begins a part of the story. The story begins with the first: what was before
// is no part of it.
func (r *recorder) phase(title string, args ...any) {
	if len(r.phases) == 0 {
		r.start = time.Now()
	}
	r.phases = append(r.phases, Phase{At: r.now(), Title: sentence(title, args...)})
}

// now is in microseconds from the story's start.
func (r *recorder) now() int { return int(time.Since(r.start).Microseconds()) }

// sum ends the present phase with a sentence.
func (r *recorder) sum(format string, args ...any) {
	p := &r.phases[len(r.phases)-1]
	p.Over, p.Sum = r.now(), sentence(format, args...)
}

// sentence begins with a capital letter.
func sentence(format string, args ...any) words.Text { return words.Of(format, args...).Capital() }

// window says that the present phase ends with the clock.
func (r *recorder) window() { r.phases[len(r.phases)-1].window = true }

// tells makes a story of the phases so far, if the page has one of that name.
func (r *recorder) tells(id string) {
	if !slices.ContainsFunc(stories, func(s story) bool { return s.ID == id && slices.Contains(s.Steps, r.Step.Key) }) {
		return
	}
	s := r.story()
	s.ID, s.Step = id, r.Step.Key
	r.tour.mu.Lock()
	defer r.tour.mu.Unlock()
	r.tour.Stories = append(r.tour.Stories, s)
	if r.tour.told != nil {
		r.tour.told(r, s)
	}
}

// leave ends all sessions at once: one after the other, each would wake others.
// The client library can leave a goroutine behind when it is closed with a
// request on its way: so who was cut off connects again first, and who waits
// gives up.
func (r *recorder) leave() {
	each(r.t, r.members, func(_ int, m *zktest.Member) {
		m.Tap.Restore()
		r.Await(words.Of("%v to have a session", m.Name), func() bool { return m.State() == zk.StateHasSession })
	})
	each(r.t, r.turns, func(_ int, turn *zktest.Turn) { _ = turn.Cancel() }) // it may have returned long ago
	each(r.t, r.members, func(_ int, m *zktest.Member) { m.Close() })
}
