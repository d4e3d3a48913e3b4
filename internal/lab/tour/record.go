package tour

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/actor"
	"zklock/internal/lab/stage"
	"zklock/internal/lang"
	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// A scene is one lock with its clients. Either it is measured, and nothing stands between
// the clients and the server but taps, or a camera records it for the page.
type scene struct {
	*zktest.Zoo
	Lock    Exhibit
	t       zktest.T
	dir     string // the lock's directory; in step 1 the lock itself
	members []*zktest.Member
	turns   []*zktest.Turn

	camera *stage.Camera // nil: the scene is measured
	filmed map[*wiretap.Tap]filmed
}

// A filmed client is what the camera sees of a member.
type filmed struct {
	*stage.Figure
	calls *actor.Client
}

// scene sets up a lock. It ends with ctx, at the latest after patience.
func (t *Tour) scene(ctx context.Context, patience time.Duration, z zktest.T, lock Exhibit) *scene {
	s := &scene{Zoo: zktest.NewOn(z, t.Server), Lock: lock, t: z}
	var cancel context.CancelFunc
	s.Ctx, cancel = context.WithTimeout(ctx, patience)
	z.Cleanup(cancel)
	s.dir = s.Root + "/lock"
	if !lock.Znode { // the queue's directory: making it is no part of the story
		_, err := s.Observer().Create(s.dir, nil, 0, zk.WorldACL(zk.PermAll))
		s.must(err)
	}
	return s
}

// film records the scene: every client that comes has a gate.
func (s *scene) film() {
	s.camera = stage.Film(s.Observer().Conn, s.dir, s.Lock.Znode)
	s.filmed = map[*wiretap.Tap]filmed{}
	s.Tapped = func(name string, tap *wiretap.Tap) {
		figure, calls := s.camera.Follow(called(name), tap)
		s.filmed[tap] = filmed{figure, calls} // they come one after the other
	}
}

// called is a client's name in both languages.
func called(name string) lang.Text {
	chinese := strings.NewReplacer("client", "客户端", "reader", "读者", "writer", "写者")
	return lang.Text{EN: name, ZH: chinese.Replace(name)}
}

// names is called, of a client.
func names(m *zktest.Member) lang.Text { return called(m.Name) }

func (s *scene) must(err error) {
	if err != nil {
		s.t.Fatalf("%s: %v", s.Lock.Subject.Name, err)
	}
}

// join brings a client.
func (s *scene) join(name string, timeout time.Duration) *zktest.Member {
	m := s.Lock.Subject.JoinAs(s.Zoo, name, property.Seat{Timeout: timeout})
	s.shows(m)
	s.members = append(s.members, m)
	return m
}

// crowdTimeout is the session timeout of a cast, the longest that the server grants: while
// many come, a busy machine can keep the holder's requests waiting for seconds, and the lease
// of leased must not be over by then.
const crowdTimeout = time.Minute

// cast brings n clients: all at once, or, before a camera, one after the other, for the page
// shows them in their order.
func (s *scene) cast(n int) []*zktest.Member {
	come := make([]*zktest.Member, n)
	join := func(i int, _ *zktest.Member) {
		name := fmt.Sprintf("client %d", len(s.members)+i)
		come[i] = s.Lock.Subject.JoinAs(s.Zoo, name, property.Seat{Timeout: crowdTimeout})
	}
	if s.camera == nil {
		each(s.t, come, join)
	} else {
		for i := range come {
			join(i, nil)
		}
	}
	for _, m := range come {
		s.shows(m)
	}
	s.members = append(s.members, come...)
	return come
}

// shows lets the camera see what becomes of a client that calls Lock and Unlock.
func (s *scene) shows(m *zktest.Member) {
	if s.camera == nil {
		return
	}
	calls := s.filmed[m.Tap].calls
	m.Way = shown(calls, m.Way, actor.Holds)
	if m.Reader != nil {
		m.Reader.Way = shown(calls, m.Reader.Way, actor.Reads)
	}
}

// shown is a way whose calls a client makes that tells its states.
func shown(calls *actor.Client, w zktest.Way, inside string) zktest.Way {
	way := w
	w.Lock = func(ctx context.Context) (zktest.Hold, error) {
		hold, err := calls.Lock(ctx, way, inside)()
		if err != nil {
			return nil, err
		}
		return shownHold{hold, calls}, nil
	}
	return w
}

// shownHold is a hold whose end is recorded.
type shownHold struct {
	zktest.Hold
	calls *actor.Client
}

func (h shownHold) Unlock() error { return h.calls.Unlock(h.Hold.Unlock)() }

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

// asks calls Lock in the background.
func (s *scene) asks(m *zktest.Member) *zktest.Turn {
	turn := m.Start()
	s.turns = append(s.turns, turn)
	return turn
}

// takes makes the client hold the lock.
func (s *scene) takes(m *zktest.Member) *zktest.Turn {
	turn := s.asks(m)
	turn.Acquired()
	return turn
}

// lines makes clients stand in line, one after the other.
func (s *scene) lines(members ...*zktest.Member) (turns []*zktest.Turn) {
	for _, m := range members {
		turn := s.asks(m)
		turn.Waits()
		s.mustWait(turn)
		turns = append(turns, turn)
	}
	return turns
}

// mustWait ends the story if the client holds the lock although it is not the first.
func (s *scene) mustWait(turn *zktest.Turn) {
	if turn.Returned() {
		s.t.Fatalf("%s did not wait although another client holds it; its Lock returned %v", turn.Name, turn.Err())
	}
}

// expire returns when the clients have crashed, and the server has ended their
// sessions, all in one moment.
func (s *scene) expire(dead ...*zktest.Member) {
	var clients []*zktest.Client
	for _, m := range dead {
		if s.camera != nil {
			s.filmed[m.Tap].calls.Crash()
		}
		clients = append(clients, m.Client)
	}
	s.Expire(clients...)
	s.ended(dead...)
}

// ended lets the camera see that sessions have ended: no client is notified of that.
func (s *scene) ended(dead ...*zktest.Member) {
	if s.camera == nil {
		return
	}
	for _, m := range dead {
		s.camera.Ends(s.filmed[m.Tap].Figure)
	}
}

// settles returns when all that has happened has had its effect on those who wait.
func (s *scene) settles(waiting []*zktest.Turn) {
	each(s.t, waiting, func(_ int, turn *zktest.Turn) {
		s.Barrier(turn.Client)
		s.Await("all who wait to settle down", func() bool {
			s.mustWait(turn)
			silently, polling := turn.Tap.Waiting(0)
			return silently || polling
		})
	})
}

// served returns the waiting client that acquires the lock next, and the others.
func (s *scene) served(waiting []*zktest.Turn) (next *zktest.Turn, others []*zktest.Turn) {
	i := -1
	s.Await("the next client to get the lock", func() bool {
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
				return f.At.After(until) || f.Class() == wiretap.OfProof
			}))
		}
		return wiretap.Count(all...)
	}
}

// phase begins a part of the story. The story begins with the first: what was before
// is no part of it.
func (s *scene) phase(en, zh string, args ...any) {
	if s.camera != nil {
		s.camera.Phase(sentence(en, zh, args...))
	}
}

// sum ends the present phase with a sentence.
func (s *scene) sum(en, zh string, args ...any) {
	if s.camera != nil {
		s.camera.Sum(sentence(en, zh, args...), false)
	}
}

// sumOfWindow is sum of a phase that ends with the clock, whether or not anything happens.
func (s *scene) sumOfWindow(en, zh string, args ...any) {
	if s.camera != nil {
		s.camera.Sum(sentence(en, zh, args...), true)
	}
}

// sentence begins with a capital letter.
func sentence(en, zh string, args ...any) lang.Text {
	t := lang.Of(en, zh, args...)
	t.EN = strings.ToUpper(t.EN[:1]) + t.EN[1:]
	return t
}

// story is what the camera has recorded.
func (s *scene) story() stage.Replay {
	return s.camera.Replay()
}

// leave ends all sessions at once: one after the other, each would wake others.
// The client library can leave a goroutine behind when it is closed with a
// request on its way: so who was cut off connects again first, and who waits
// gives up.
func (s *scene) leave() {
	each(s.t, s.members, func(_ int, m *zktest.Member) {
		m.Tap.Restore()
		s.Await(fmt.Sprintf("%v to have a session", m.Name), func() bool { return m.State() == zk.StateHasSession })
	})
	each(s.t, s.turns, func(_ int, turn *zktest.Turn) { _ = turn.Cancel() }) // it may have returned long ago
	each(s.t, s.members, func(_ int, m *zktest.Member) { m.Close() })
}
