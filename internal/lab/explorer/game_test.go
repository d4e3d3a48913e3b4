package explorer

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/explore"
	"zklock/internal/lab/locks"
)

// chance returns how probable it is that somebody reaches a goal who takes any choice at each point.
func chance(g *Game, goal Goal) float64 {
	var from func(point int, faults string) float64
	known := map[[2]any]float64{}
	from = func(point int, faults string) (sum float64) {
		key := [2]any{point, faults}
		if p, done := known[key]; done {
			return p
		}
		moves := g.moves(point)
		if len(moves) == 0 && goal.isReached(g.wrong(point), faults) {
			sum = 1
		}
		for _, m := range moves {
			after := faults
			if m.isFault() {
				after = m.fault() // the games of the levels have one fault
			}
			sum += from(m.to, after) / float64(len(moves))
		}
		known[key] = sum
		return sum
	}
	return from(0, "")
}

// isReached does not look at the lock beside: of a goal that this lock mends, it takes each run with the fault.
func (goal Goal) isReached(wrong []string, faults string) bool {
	isAsked := slices.Contains(wrong, goal.Kind) || goal.Mends && len(wrong) == 0
	return isAsked && (goal.Faults == nil || slices.Contains(goal.Faults, faults))
}

// What a level asks for can be reached, and seldom by pressing at random. The last level cannot be won.
func TestEachLevelIsAHunt(t *testing.T) {
	t.Parallel()
	for i, l := range hunts {
		g, err := Recorded(l.Key)
		require.NoError(t, err)
		p := chance(g, l.Goals[0])
		t.Logf("%s: one win in %.0f", l.Key, 1/p)
		assert.LessOrEqual(t, p, 0.05, "%s by pressing at random", l.Key)
		for k, goal := range l.Goals {
			isLast := i == len(hunts)-1
			assert.Equal(t, isLast, chance(g, goal) == 0, "goal %d of %s cannot be reached", k+1, l.Key)
		}
	}
}

// The code that a level shows is in the repository: what is wrong in a test of published mistakes, what repairs it in a
// lock.
func TestTheCodeOfTheRepairs(t *testing.T) {
	t.Parallel()
	all := func(pattern string) (text string) {
		names, err := filepath.Glob("../../../step0[45]_*/" + pattern)
		require.NoError(t, err)
		for _, name := range names {
			part, err := os.ReadFile(name)
			require.NoError(t, err)
			text += string(part)
		}
		return text
	}
	in := map[byte]string{'-': all("wrong_test.go"), '+': all("*.go"), ' ': all("*.go")}
	for _, l := range hunts[:4] {
		require.NotEmpty(t, l.Repairs, l.Key)
		for _, repair := range l.Repairs {
			for line := range strings.Lines(repair.Code) {
				assert.Contains(t, in[line[0]], "\t"+strings.TrimSpace(line[1:])+"\n", l.Key)
			}
		}
	}
}

// Every committed game has been played by the same settings, and its kinds are those of its lock.
func TestTheCommittedGames(t *testing.T) {
	t.Parallel()
	for _, key := range Committed {
		g, err := Recorded(key)
		require.NoError(t, err)
		assert.Equal(t, [2]int{AsCommitted.Clients, AsCommitted.Faults}, [2]int{g.Clients, g.Faults}, key)
		assert.Equal(t, key != "5", g.Wrong > 0, key)
		assert.Equal(t, key != "5", len(g.kinds()) > 0, key)
		for point := range g.Points {
			isOver := g.Points[point][1] >= 0
			assert.Equal(t, isOver, len(g.moves(point)) == 0, "point %d of %s is an end", point, key)
		}
	}
}

// Part A goes wrong in one way only, as its level says.
func TestPartAGoesWrongInOneWay(t *testing.T) {
	t.Parallel()
	g, err := Recorded(locks.PartA)
	require.NoError(t, err)
	assert.Equal(t, []int{2944, 14}, []int{g.Orders, g.Wrong}, "interleavings, and the wrong ones")
	assert.Equal(t, map[explore.Kind]bool{{Invariant: explore.TwoInside, Faults: "expire"}: true}, g.kinds())
}
