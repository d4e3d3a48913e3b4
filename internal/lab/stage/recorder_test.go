package stage

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/actor"
	"zklock/internal/wiretap"
)

// However long clients have polled before an action: a time line begins with the action before it.
func TestPollsPushNoActionOutOfTheTimeline(t *testing.T) {
	r := New()
	waiter := r.Add(0)
	now := 0
	tick := func() int { now++; return now }
	r.Acts(tick(), Action{Do: "lesson"})
	for range 2 * keptFrames {
		poll := actor.Frame{Frame: wiretap.Frame{Kind: wiretap.Request, Op: wiretap.GetChildren}}
		r.Passes(tick, waiter, poll, func() {})
	}
	before := tick()
	r.Acts(before, Action{Do: "kill"})

	story := r.Timeline(tick())
	require.Len(t, story.Phases, 2)
	assert.Equal(t, "lesson", story.Phases[0].Action.Do)
	assert.Equal(t, before-1, story.Phases[1].At, "from the first action to the second")
	assert.Len(t, r.Replay(tick()).Phases, 1, "to be kept: only what is whole")
}

// However long clients poll between two actions, what passed after each action is kept.
func TestPollsBetweenActionsPushOutNoFrame(t *testing.T) {
	r := newPolled()
	r.Acts(r.tick(), Action{Do: "kill"})
	r.polls(100)
	r.Rests(r.now)
	r.polls(2 * keptFrames)
	r.Acts(r.tick(), Action{Do: "delete"})
	r.polls(100)

	story := r.Timeline(r.tick())
	require.Len(t, story.Phases, 2)
	var first, second int
	for _, f := range story.Frames {
		switch {
		case f.From <= 2*100:
			first++
		case f.From > story.Phases[1].At:
			second++
		}
	}
	assert.Equal(t, []int{100, 100}, []int{first, second})
	assert.Less(t, len(story.Frames), 100+keptIdle+100+10)
}

// However long clients poll before the first action and between two: what passed after an action is kept.
func TestPollsBeforeTheFirstActionPushOutNoLaterFrame(t *testing.T) {
	r := newPolled()
	r.Acts(r.tick(), Action{Do: "lesson"})
	r.polls(keptFrames + 200)
	r.Acts(r.tick(), Action{Do: "kill"})
	r.polls(100)
	r.Rests(r.now)
	r.polls(2 * keptFrames)
	r.Acts(r.tick(), Action{Do: "delete"})
	r.polls(keptFrames / 4)

	story := r.Timeline(r.tick())
	require.Len(t, story.Phases, 3)
	kill := story.Phases[1]
	var afterTheKill int
	for _, f := range story.Frames {
		if f.From > kill.At && f.From <= kill.At+2*100 {
			afterTheKill++
		}
	}
	assert.Equal(t, 100, afterTheKill)
	assert.InDelta(t, kill.At+2*100, kill.Over, leastFlight, "it is over with the last of them")
}

// The end of a session belongs to the action that led to it, although no message tells of it.
func TestAPhaseLastsUntilASessionHasEnded(t *testing.T) {
	r := New()
	holder := r.Add(0)
	r.Acts(10, Action{Do: "kill"})
	r.Ends(500, holder)
	r.Acts(900, Action{Do: "delete"})
	story := r.Timeline(1000)
	assert.Equal(t, 500, story.Phases[0].Over+story.Start)
}

// A polled records one client that polls. Its time grows by one at each tick.
type polled struct {
	*Recorder
	waiter *Figure
	now    int
}

func newPolled() *polled {
	r := New()
	return &polled{Recorder: r, waiter: r.Add(0)}
}

func (p *polled) tick() int { p.now++; return p.now }

// polls lets the client poll so many times.
func (p *polled) polls(times int) {
	for range times {
		poll := actor.Frame{Frame: wiretap.Frame{Kind: wiretap.Request, Op: wiretap.GetChildren}}
		p.Passes(p.tick, p.waiter, poll, func() {})
	}
}

// aHolderAndAWaiter returns a recorder of two clients that run, each with its znode.
func aHolderAndAWaiter() (r *Recorder, holder, waiter *Figure) {
	r = New()
	r.Dir = "/lock"
	holder, waiter = r.Add(0), r.Add(0)
	holder.Process, waiter.Process = Running, Running
	r.made(0, "/lock/lock-0000000000", holder.Number, 1)
	r.made(0, "/lock/lock-0000000001", waiter.Number, 2)
	return r, holder, waiter
}

// The znode of a client that was killed stays until its session ends. That is no fault of
// the lock, unless it stays for much longer.
func TestADeadHoldersSessionIsGivenItsTime(t *testing.T) {
	r, holder, waiter := aHolderAndAWaiter()
	waiter.State = actor.Waits
	holder.Process = Dead
	holder.Shows(0)

	r.Warn(1)
	require.Empty(t, r.Banners, "it may be over in a moment")
	r.Warn(1 + settled)
	require.Len(t, r.Banners, 1)
	require.Equal(t, DeadsYet, r.Banners[0].Wrong)
	require.Empty(t, r.Banners[0].Breaks, "nothing is broken")

	r.Warn(overdue)
	r.Warn(overdue + settled)
	require.Len(t, r.Banners, 1)
	require.Equal(t, DeadsLong, r.Banners[0].Wrong)
	require.Equal(t, CrashFrees, r.Banners[0].Breaks)
}

// A list without a znode shows that its client's session has ended. The end is told before the list, although
// the server is asked for the znodes only later.
func TestASessionEndsBeforeTheListThatShowsIt(t *testing.T) {
	r, holder, waiter := aHolderAndAWaiter()
	r.Acts(3, Action{Do: "kill"})
	holder.Process = Dead
	now := 0
	lists := func(at, names int) {
		now = at
		list := wiretap.Frame{Kind: wiretap.Reply, Op: wiretap.GetChildren, Path: "/lock", Names: names}
		r.Passes(func() int { return now }, waiter, actor.Frame{Frame: list}, func() { now++ })
	}

	lists(100, 2)
	r.Looked(110, 120, map[string]int64{"/lock/lock-0000000000": 0, "/lock/lock-0000000001": 0})
	lists(130, 2)
	lists(150, 1) // it shows the end
	lists(170, 1)
	r.Looked(190, 200, map[string]int64{"/lock/lock-0000000001": 0})

	require.Positive(t, holder.Over)
	assert.Less(t, holder.Over, 150, "before the first list that shows it")
	assert.Greater(t, holder.Over, 130, "after the last list that does not")
	story := r.Timeline(300)
	assert.Equal(t, story.Clients[0].Over, story.Nodes[0].To, "its znode is deleted at the same time")
}

// A notification of the deleted znode shows the end of a session, too.
func TestASessionEndsNoLaterThanANotificationShowsIt(t *testing.T) {
	r := New()
	r.Dir, r.Lasts = "/lock", Timeout
	holder, waiter := r.Add(0), r.Add(0)
	r.made(1, "/lock/lock-0000000000", holder.Number, 1)
	holder.beats, holder.Process = []int{1}, Dead
	end := 2 + int(Timeout/time.Microsecond)
	deleted := wiretap.Frame{Kind: wiretap.Notification, Event: wiretap.NodeDeleted, Path: "/lock/lock-0000000000"}
	r.Passes(func() int { return end }, waiter, actor.Frame{Frame: deleted}, func() {})
	r.Ends(end+100_000, holder)
	assert.Equal(t, end, holder.Over)
}
