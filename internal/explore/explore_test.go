package explore_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/chapter"
	"zklock/internal/explore"
	"zklock/internal/property"
	"zklock/internal/steps"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) {
	besides := []property.Subject{steps.Client, steps.Watched, curators}
	for _, s := range slices.Concat(steps.All, besides, wrongLocks) {
		explore.Acts(s)
	}
	zktest.Main(m)
}

// How much is played: usually the orders without a switch, seconds each; wide: trees that
// take minutes; all: a quarter of an hour.
var (
	isAll  = os.Getenv("ZKLOCK_EXPLORE") == "all"
	isWide = os.Getenv("ZKLOCK_EXPLORE") == "wide" || isAll
)

// processes play the orders of one tree, beside other tests.
const processes = 2

// trees are those that have been played: several tests look at them.
var trees sync.Map

// two clients, no bound on the switches.
func two(faults int) explore.Settings {
	return explore.Settings{Clients: 2, Faults: faults, Switches: explore.Unbound}
}

// explored plays a tree, if no other test has done so, and says what it comes to.
func explored(t *testing.T, s explore.Settings, name string) explore.Result {
	t.Helper()
	s.WakesOne = s.Readers == 0 && wakesOne[name]
	s.Znode = name == steps.Watched.Name
	tree := fmt.Sprintf("%s %+v", name, s)
	once, _ := trees.LoadOrStore(tree, sync.OnceValues(func() (explore.Result, error) { return playedBy(t, s, name) }))
	r, err := once.(func() (explore.Result, error))()
	require.NoError(t, err)
	switches := "any"
	if s.Switches != explore.Unbound {
		switches = strconv.Itoa(s.Switches)
	}
	reads := "in one order"
	if s.Full {
		reads = "in both orders"
	}
	t.Logf("%s; clients: %d, readers: %d, faults: %d, switches: %s, reads: %s; orders: %d, wrong: %d",
		name, s.Clients, s.Readers, s.Faults, switches, reads, r.Orders, r.Wrong)
	return r
}

// wakesOne are the locks that promise that a release wakes at most one.
var wakesOne = map[string]bool{"step 4": true, "step 5": true, "step 6": true,
	"zk.Lock": true, curators.Name: true}

// played plays a tree.
func played(t *testing.T, s explore.Settings, name string) explore.Result {
	t.Helper()
	r, err := playedBy(t, s, name)
	require.NoError(t, err)
	return r
}

func playedBy(t *testing.T, s explore.Settings, name string) (explore.Result, error) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		return explore.Result{}, err
	}
	return exploredBy(t, program, s, name, func(explore.Result) bool { return false })
}

// exploredBy plays a tree by processes of a program, as far as it needs to be.
func exploredBy(t *testing.T, program string, s explore.Settings, name string,
	isEnough func(explore.Result) bool) (explore.Result, error) {
	t.Helper()
	z := zktest.New(t)
	s.Servers = z.Servers()
	s.Root = z.Root
	players, err := explore.Start(processes, s, name, program)
	require.NoError(t, err)
	defer func() { require.NoError(t, explore.End(players)) }()
	ctx, enough := context.WithCancel(t.Context())
	defer enough()
	return explore.Explore(ctx, players, func(r explore.Result) {
		if isEnough(r) {
			enough()
		}
	})
}

func outcomes(r explore.Result) []string { return slices.Sorted(maps.Keys(r.Outcomes)) }

// breaks is for exploredBy: an order has been found that breaks an invariant.
func breaks(invariant string) func(explore.Result) bool {
	return func(r explore.Result) bool {
		_, found := r.Findings[invariant]
		return found
	}
}

// The same choices give the same run, and so the same numbers. And nobody has to think of
// the lost reply of step 4: it is found.
func TestTheLostReplyOfStep4IsFoundEachTime(t *testing.T) {
	t.Parallel()
	s := two(1)
	s.Switches = 0
	first := explored(t, s, "step 4")
	s.WakesOne = true
	second := played(t, s, "step 4")
	assert.Equal(t, first.Outcomes, second.Outcomes)
	require.Equal(t, first.Broken(), second.Broken())
	for _, invariant := range first.Broken() {
		a, b := first.Findings[invariant], second.Findings[invariant]
		assert.Equal(t, a.Orders, b.Orders, invariant)
		assert.Equal(t, a.Shortest.Tell(), b.Shortest.Tell(), invariant)
	}
	f, found := first.Findings["nobody holds the lock, and a client waits forever"]
	require.True(t, found, "what is wrong: %v", first.Broken())
	told := f.Shortest.Tell()
	assert.Contains(t, told[0], "A asks: create /lock/lock-. The REPLY IS LOST")
	assert.Contains(t, told[len(told)-1], "B waits forever")
}

// What is left out comes to what is played.
func TestTheReducedTreeHasTheOutcomesOfTheFullOne(t *testing.T) {
	t.Parallel()
	t.Run("a lock with a gap", func(t *testing.T) {
		s := two(0)
		reduced := played(t, s, "gap")
		s.Full = true
		full := played(t, s, "gap")
		assert.Equal(t, outcomes(full), outcomes(reduced))
		assert.Greater(t, len(outcomes(full)), 2, "different outcomes: %v", full.Outcomes)
		assert.Less(t, reduced.Orders, full.Orders)
	})
	both := map[string]int{"step 3": 0, "step 4": 0, "step 5": 0}
	if isWide {
		both = map[string]int{"step 3": 1}
	}
	if isAll {
		both = map[string]int{"step 3": 1, "step 4": 1, "zk.Lock": 1}
	}
	for name, faults := range both {
		t.Run(name, func(t *testing.T) {
			s := two(faults)
			reduced := explored(t, s, name)
			s.Full = true
			full := explored(t, s, name)
			assert.Equal(t, outcomes(full), outcomes(reduced))
			assert.Equal(t, full.Broken(), reduced.Broken())
			assert.Less(t, reduced.Orders, full.Orders)
		})
	}
}

func TestNoOrderOfSteps5And6IsWrong(t *testing.T) {
	t.Parallel()
	tree := func(name string, s explore.Settings) {
		t.Run(fmt.Sprintf("%s, %d clients, %d read", name, s.Clients, s.Readers), func(t *testing.T) {
			r := explored(t, s, name)
			assert.Empty(t, r.Broken())
			assert.Greater(t, r.Orders, 10)
		})
	}
	writers := two(1)
	besides := writers // what is played beside steps 5 and 6 among writers
	if !isAll {
		besides.Switches = 1
	}
	if !isWide {
		writers.Switches = 0
		besides.Switches = 0
	}
	mixed, readers := besides, besides
	mixed.Readers = 1
	readers.Readers = 2
	tree("step 5", writers)
	tree("step 6", writers)
	tree("step 6", mixed)
	if !isWide {
		return
	}
	tree("step 6", readers)
	three := explore.Settings{Clients: 3, Switches: 2}
	tree("step 5", three)
	tree("step 6", three)
}

// The table stands on the page of the explorer, in both languages.
func TestTheTableOfOrders(t *testing.T) {
	t.Parallel()
	locks := []string{"step 3", "step 3w", "step 4", "step 5", "step 6", "zk.Lock"}
	s := two(1)
	label := inBoth{"interrupted at any place", "允许抢占"}
	if !isWide {
		s.Switches = 0
		label = inBoth{"no client is interrupted", "不抢占"}
	}
	var orders, wrong []string
	for _, name := range locks {
		r := explored(t, s, name)
		orders = append(orders, withComma(r.Orders))
		wrong = append(wrong, withComma(r.Wrong))
	}
	for i, page := range []string{"../../docs/explore.md", "../../docs/explore.zh-CN.md"} {
		chapter.SaysIn(t, page, inBoth{"| interleavings, %s | %s |", "| 次序总数（%s） | %s |"}[i], label[i], strings.Join(orders, " | "))
		chapter.SaysIn(t, page, inBoth{"| wrong, %s | %s |", "| 其中出错（%s） | %s |"}[i], label[i], strings.Join(wrong, " | "))
	}
}

// withComma is a number below a million as the pages have it.
func withComma(n int) string {
	digits := strconv.Itoa(n)
	if thousands := len(digits) - 3; thousands > 0 {
		return digits[:thousands] + "," + digits[thousands:]
	}
	return digits
}

// inBoth is a text in English and in Chinese.
type inBoth [2]string

// Without a fault the number of orders is known beforehand. A lock whose waiter sends k
// requests: so many of them as come before the holder's delete stand in three places, before
// its list, its Unlock and its delete.
func TestTheNumberOfOrdersIsTheFormulas(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]int{"step 3": 2, "step 4": 3, "step 5": 3} {
		s := two(0)
		s.Full = true
		r := explored(t, s, name)
		assert.Equal(t, (k+1)*(k+2)*(k+3)/3, r.Orders, name)
		sum := 0
		for i := range k + 1 {
			sum += (i + 1) * (i + 2) / 2
		}
		assert.Equal(t, 2*sum, r.Orders, name)
	}
}

// Each invariant is broken by a lock that is made for that, or by one of the steps.
func TestEachInvariantCanBeBroken(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	require.NoError(t, err)
	three := explore.Settings{Clients: 3, Switches: 1, WakesOne: true}
	for _, c := range []struct {
		lock     string
		settings explore.Settings
		breaks   string
	}{
		{"open", two(0), "two clients hold the lock at once"},
		{"stays", two(0), "a znode is left behind"},
		{"fails", two(0), "a call that should succeed fails"},
		{"hangs", two(0), "a call does not return"},
		{"asks", two(0), "a client polls without end"},
		{"step 3", three, "a release wakes more than one"},
	} {
		t.Run(c.lock+", "+c.breaks, func(t *testing.T) {
			r, _ := exploredBy(t, program, c.settings, c.lock, breaks(c.breaks))
			assert.Contains(t, r.Broken(), c.breaks)
		})
	}
}

// A lock that throws dice has orders that cannot be repeated, and one that asks from time to
// time does what nobody has chosen. The explorer says so, and takes neither for wrong.
func TestWhatCannotBeExploredIsAnError(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	require.NoError(t, err)
	for lock, says := range map[string]string{
		"dice":  "this interleaving cannot be repeated",
		"rests": "a client sends a request after a pause",
	} {
		_, err = exploredBy(t, program, two(0), lock, func(explore.Result) bool { return false })
		require.ErrorContains(t, err, says, lock)
	}
}

// Of such a lock, some interleavings are played, and none is wrong.
func TestMineOfALockThatCannotBeRepeated(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, err := explore.Mine(t.Context(), z.Servers(), z.Root, "3", "")
	require.NoError(t, err)
	assert.True(t, a.Differs)
	assert.False(t, a.All)
	assert.Empty(t, a.Wrong, a.Story)
	assert.NotZero(t, a.Orders)
}

// A connection that breaks at a read may lose a write of the same client as well. No step before 5 survives that.
func TestMineOfALockThatSendsTwoRequestsAtOnce(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, err := explore.Mine(t.Context(), z.Servers(), z.Root, "4", "")
	require.NoError(t, err)
	assert.True(t, a.All)
	assert.Empty(t, a.Wrong, a.Story)
}
