package storm

import (
	"context"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/property"
	"zklock/internal/zktest"
	"zklock/leased"
	reentrant "zklock/step05_reentrant"
)

// withBroken makes a client process use the broken locks.
const withBroken = "STORM_WITH_BROKEN_LOCKS"

func TestMain(m *testing.M) {
	if os.Getenv(withBroken) != "" {
		locks = broken
	}
	Client()
	zktest.Main(m)
}

// Wrong uses of a right lock: leased.Mutex.
var broken = []lock{
	{wrong("deaf", deaf), 1, false},
	{wrong("impatient", impatient), 1, false},
	{longLived(wrong("forgetful", forgetful)), 1, false},
	{mutex, 1, true},
}

func wrong(name string, spoil func(zktest.Way) zktest.Way) property.Subject {
	lock := mutex
	lock.Name = name
	lock.Ways = func(s zktest.Session, path string) (zktest.Way, *zktest.Way) {
		way, _ := mutex.Ways(s, path)
		return spoil(way), nil
	}
	return lock
}

// deaf ignores the notification that the lock is lost.
func deaf(way zktest.Way) zktest.Way {
	right := way.Lock
	way.Lock = func(ctx context.Context) (zktest.Hold, error) {
		held, err := right(ctx)
		if err != nil {
			return nil, err
		}
		return deafHold{held}, nil
	}
	return way
}

type deafHold struct{ zktest.Hold }

func (h deafHold) Context(parent context.Context) context.Context {
	return context.WithoutCancel(h.Hold.Context(parent))
}

// impatient treats a timeout as success.
func impatient(way zktest.Way) zktest.Way {
	right := way.Lock
	way.Lock = func(ctx context.Context) (zktest.Hold, error) {
		waiting, stop := context.WithTimeout(ctx, 200*time.Millisecond)
		defer stop()
		held, err := right(waiting)
		if err != nil {
			nothing := func() error { return nil }
			return zktest.HoldOf(nothing), nil
		}
		return held, nil
	}
	return way
}

// forgetful leaves its znode in the queue at every tenth Unlock.
func forgetful(way zktest.Way) zktest.Way {
	right := way.Lock
	way.Lock = func(ctx context.Context) (zktest.Hold, error) {
		held, err := right(ctx)
		if err != nil {
			return nil, err
		}
		return forgetfulHold{held}, nil
	}
	return way
}

type forgetfulHold struct{ zktest.Hold }

var unlocks atomic.Int32 // of all forgetful holds of this process

func (h forgetfulHold) Unlock() error {
	if unlocks.Add(1)%10 == 0 {
		return nil
	}
	return h.Hold.Unlock()
}

// longLived opens sessions that outlive each fault, so znodes that are left in the queue stay there.
func longLived(lock property.Subject) property.Subject {
	usual := lock.Open
	lock.Open = func(servers []string, _ time.Duration, dial zk.Dialer) (zktest.Session, error) {
		return usual(servers, zktest.SessionTimeout, dial)
	}
	return lock
}

// A storm that finds no mistake proves something only if it would have found one.
func TestTheStormFindsBrokenLocks(t *testing.T) {
	t.Setenv(withBroken, "1")
	usual := locks
	locks = broken
	defer func() { locks = usual }()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()

	enough := func(s *storm) bool {
		deaf, forgetful := s.judge(0), s.judge(2)
		return deaf.together+deaf.alive > 0 && !s.judge(1).lockIsRight && forgetful.orphans > 0
	}
	s, err := run(ctx, Settings{Length: 6 * time.Minute, Seed: 1, enough: enough}, t.Output())
	require.NoError(t, err)
	isRight := s.print()

	deaf, impatient, forgetful := s.judge(0), s.judge(1), s.judge(2)
	assert.Positive(t, deaf.together+deaf.alive, "deaf: holds beside others, or holders that the store refused")
	assert.False(t, impatient.lockIsRight, "impatient: a lock, as porcupine judges")
	assert.Positive(t, impatient.together, "impatient: holds beside others")
	assert.Positive(t, forgetful.orphans, "forgetful: znodes left behind")
	assert.True(t, isRight, "leased.Mutex")
}

// A short storm, with all locks.
func TestStorm(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s, err := run(ctx, Settings{Length: 15 * time.Second, Seed: 42}, t.Output())
	require.NoError(t, err)
	assert.True(t, s.print(), "the production locks: see the table")
	assert.Greater(t, len(s.faults), 5, "faults")
	for i, lock := range locks {
		assert.Positive(t, s.judge(i).turns, lock.Name)
	}
}

// A judge that finds no mistakes would make every storm a success.
func TestTheJudge(t *testing.T) {
	began := time.Now()
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	hold := func(from, until int) Turn {
		return Turn{Called: at(0), From: at(from), Until: at(until), Ended: at(until + 1)}
	}
	wrote := func(t Turn, base int64) Turn {
		t.Read, t.Wrote, t.Base = t.From, t.Until, base
		return t
	}
	neverEnded := func(t Turn) Turn { t.Ended = time.Time{}; return t }
	told := func(t Turn, why string) Turn { t.Told, t.Why = t.Until, why; return t }
	first := hold(1, 10)
	for name, c := range map[string]struct {
		turns []Turn
		wrong string
	}{
		"one after the other":            {turns: []Turn{first, hold(20, 30)}},
		"the order of the notes":         {turns: []Turn{hold(20, 30), first}},
		"nobody knows when it has ended": {turns: []Turn{neverEnded(first), hold(20, 30)}},
		"two at one time":                {turns: []Turn{first, hold(8, 20)}, wrong: "lock"},
		"one inside the other":           {turns: []Turn{hold(1, 100), hold(50, 60)}, wrong: "lock"},
		"not next to one another":        {turns: []Turn{hold(1, 100), hold(20, 30), hold(50, 60)}, wrong: "lock"},
		"told of a loss, and why":        {turns: []Turn{told(first, string(leased.ReasonExpired))}},
		"told of a loss, and not why":    {turns: []Turn{told(first, why(reentrant.ErrLost))}, wrong: "reason"},
		"an increment each":              {turns: []Turn{wrote(first, 0), wrote(hold(20, 30), 1)}},
		"an increment was overwritten":   {turns: []Turn{wrote(first, 0), wrote(hold(20, 30), 0)}, wrong: "number"},
		"an increment without a turn":    {turns: []Turn{wrote(first, 0), wrote(hold(20, 30), 2)}, wrong: "number"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore()
			for _, turn := range c.turns {
				require.NoError(t, s.Note(turn, nil))
			}
			v := s.judge(0)
			assert.Equal(t, c.wrong != "lock", v.lockIsRight, "porcupine")
			assert.Equal(t, c.wrong != "lock", v.together == 0, "%d holds beside another", v.together)
			assert.Equal(t, c.wrong != "number", v.numberIsRight, "the number")
			assert.Equal(t, c.wrong == "", v.isRight())
		})
	}
}

func TestTheStoreRefusesWhatIsStale(t *testing.T) {
	s := newStore()
	use := func(u Use) Answer {
		var answer Answer
		require.NoError(t, s.Use(u, &answer))
		return answer
	}
	assert.Equal(t, Answer{Number: 0}, use(Use{Token: 5}))
	assert.Equal(t, Answer{Number: 1}, use(Use{Token: 5, Write: true, Base: 0}), "the same holder comes again")
	assert.Equal(t, Answer{Number: 1}, use(Use{Token: 7}))
	assert.True(t, use(Use{Token: 5, Write: true, Base: 1}).Refused, "somebody with a greater token was here")
	assert.Equal(t, Answer{Number: 2}, use(Use{Token: 7, Write: true, Base: 1}))
	assert.Zero(t, s.judge(0).lost)
	use(Use{Write: true, Base: 1})
	assert.Equal(t, 1, s.judge(0).lost, "a lock without tokens has written over an increment")
	assert.Equal(t, 1, s.judge(0).refused)
}

func TestTheSeedIsTheOrderOfTheFaults(t *testing.T) {
	first := func(seed uint64) (names []string) {
		for f := range deal(rand.New(rand.NewPCG(seed, 0)), clientFaults) {
			if names = append(names, f.name); len(names) == 2*len(clientFaults) {
				break
			}
		}
		return names
	}
	assert.Equal(t, first(42), first(42))
	assert.NotEqual(t, first(42), first(43))
	for _, f := range clientFaults {
		assert.Contains(t, first(42)[:len(clientFaults)], f.name, "each comes once before any comes twice")
	}
}

// The fault that affected a client is its own last one, one of its process, or one of the servers.
func TestWhatBefellAClient(t *testing.T) {
	s := newStore()
	endOwn, _ := s.begin("cut off", 0)
	_, ok := s.begin("silent", 0)
	assert.False(t, ok, "it has a fault already")
	assert.Equal(t, "cut off", s.faultAt(0, time.Now()))
	assert.Equal(t, "no fault at that time", s.faultAt(1, time.Now()))
	endStop, ok := s.begin(stopped, perProcess)
	assert.True(t, ok)
	assert.Equal(t, stopped, s.faultAt(perProcess+1, time.Now()), "of the same process")
	endOwn()
	endStop()
	assert.Equal(t, "no fault at that time", s.faultAt(0, time.Now().Add(2*sessionTimeout)))
	end, _ := s.begin("leader killed", everybody)
	defer end()
	assert.Equal(t, "leader killed", s.faultAt(0, time.Now()))
}
