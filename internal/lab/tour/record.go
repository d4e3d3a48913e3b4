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

// A scene is one lock with its clients. Either it is measured, with only taps on the connections, or
// a camera records it for the page.
type scene struct {
	*zktest.Zoo
	Lock    Exhibit
	t       zktest.T
	dir     string // the lock's directory or, for a lock that is one znode, its path
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

// scene sets up a lock. The scene ends with ctx, at the latest after patience.
func (t *Tour) scene(ctx context.Context, patience time.Duration, z zktest.T, lock Exhibit) *scene {
	s := &scene{Zoo: zktest.NewOn(z, t.Server), Lock: lock, t: z}
	var cancel context.CancelFunc
	s.Ctx, cancel = context.WithTimeout(ctx, patience)
	z.Cleanup(cancel)
	s.dir = s.Root + "/lock"
	if !lock.Znode { // creating the directory of the queue is not part of the story
		_, err := s.Observer().Create(s.dir, nil, 0, zk.WorldACL(zk.PermAll))
		s.must(err)
	}
	return s
}

// film lets a camera record the scene. Every client that joins later gets a gate.
func (s *scene) film() {
	s.camera = stage.Film(s.Observer().Conn, s.dir, s.Lock.Znode)
	s.filmed = map[*wiretap.Tap]filmed{}
	s.Tapped = func(name string, tap *wiretap.Tap) {
		figure, calls := s.camera.Follow(called(name), tap)
		s.filmed[tap] = filmed{figure, calls} // no mutex: if a camera records, clients join one after the other
	}
}

// called returns a client's name in both languages.
func called(name string) lang.Text {
	chinese := strings.NewReplacer("client", "客户端", "reader", "读者", "writer", "写者")
	return lang.Text{EN: name, ZH: chinese.Replace(name)}
}

// names returns the name of a member in both languages.
func names(m *zktest.Member) lang.Text { return called(m.Name) }

func (s *scene) must(err error) {
	if err != nil {
		s.t.Fatalf("%s: %v", s.Lock.Subject.Name, err)
	}
}

// join adds a client to the scene.
func (s *scene) join(name string, timeout time.Duration) *zktest.Member {
	m := s.Lock.Subject.JoinAs(s.Zoo, name, property.Seat{Timeout: timeout})
	s.shows(m)
	s.members = append(s.members, m)
	return m
}

// crowdTimeout is the session timeout of a cast, the longest that the server grants. While many
// clients arrive on a busy machine, the holder's requests may wait for seconds, and the lease of
// leased must not end meanwhile.
const crowdTimeout = time.Minute

// cast adds n clients to the scene, all at the same time. If a camera records, it adds them one
// after the other, because the page shows them in this order.
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

// shows makes a member report its states to the camera, if there is one.
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

// shown returns a way whose calls report the client's states. While the client holds the lock, its
// state is inside.
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

// shownHold is a hold whose Unlock reports the client's states.
type shownHold struct {
	zktest.Hold
	calls *actor.Client
}

func (h shownHold) Unlock() error { return h.calls.Unlock(h.Hold.Unlock)() }

// each calls do for all values at the same time, and returns when all calls have returned.
func each[V any](t zktest.T, values []V, do func(int, V)) {
	var all sync.WaitGroup
	ok := make([]bool, len(values))
	for i, v := range values {
		all.Go(func() {
			do(i, v)
			ok[i] = true // stays false if FailNow has ended this goroutine
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

// lines makes clients join the queue, one after the other.
func (s *scene) lines(members ...*zktest.Member) (turns []*zktest.Turn) {
	for _, m := range members {
		turn := s.asks(m)
		turn.Waits()
		s.mustWait(turn)
		turns = append(turns, turn)
	}
	return turns
}

// mustWait fails the story if the client's Lock has returned although another client holds the lock.
func (s *scene) mustWait(turn *zktest.Turn) {
	if turn.Returned() {
		s.t.Fatalf("%s did not wait although another client holds it; its Lock returned %v", turn.Name, turn.Err())
	}
}

// expire makes the clients crash. It returns when the server has ended their sessions, all at the
// same moment.
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

// ended tells the camera that sessions have ended, because no client is notified of that.
func (s *scene) ended(dead ...*zktest.Member) {
	if s.camera == nil {
		return
	}
	for _, m := range dead {
		s.camera.Ends(s.filmed[m.Tap].Figure)
	}
}

// settles returns when all waiters have reacted to what has happened so far, and wait again.
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

// counting counts the traffic between clients and the server from now on. It leaves out the proofs
// of a session, because a release does not cause them. The function that it returns returns the sum
// up to a moment.
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

// phase begins a part of the story. The story begins with its first phase, and leaves out everything
// before it.
func (s *scene) phase(en, zh string, args ...any) {
	if s.camera != nil {
		s.camera.Phase(sentence(en, zh, args...))
	}
}

// sum ends the present phase with a sentence about its result.
func (s *scene) sum(en, zh string, args ...any) {
	if s.camera != nil {
		s.camera.Sum(sentence(en, zh, args...), false)
	}
}

// sumOfWindow is sum for a phase that lasts until now, whether or not anything has happened.
func (s *scene) sumOfWindow(en, zh string, args ...any) {
	if s.camera != nil {
		s.camera.Sum(sentence(en, zh, args...), true)
	}
}

// sentence returns a text whose English begins with a capital letter.
func sentence(en, zh string, args ...any) lang.Text {
	t := lang.Of(en, zh, args...)
	t.EN = strings.ToUpper(t.EN[:1]) + t.EN[1:]
	return t
}

// story returns what the camera has recorded.
func (s *scene) story() stage.Replay {
	return s.camera.Replay()
}

// leave ends all sessions at the same time: if it ended one after the other, each end would wake
// other clients. If a connection is closed while a request is on its way, the client library can
// leave a goroutine behind. So first the clients that were disconnected connect again, and the
// waiters give up.
func (s *scene) leave() {
	each(s.t, s.members, func(_ int, m *zktest.Member) {
		m.Tap.Restore()
		s.Await(fmt.Sprintf("%v to have a session", m.Name), func() bool { return m.State() == zk.StateHasSession })
	})
	each(s.t, s.turns, func(_ int, turn *zktest.Turn) { _ = turn.Cancel() }) // it may have returned long ago
	each(s.t, s.members, func(_ int, m *zktest.Member) { m.Close() })
}
