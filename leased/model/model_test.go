package model

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	page    = "README.md"
	chinese = "README.zh-CN.md"
)

// How much is tried. ZKLOCK_MODEL=full also tries each case that takes seconds, ZKLOCK_MODEL=wide also those
// that take minutes. Without this variable, an exploration that becomes large is left out.
var (
	isWide = os.Getenv("ZKLOCK_MODEL") == "wide"
	isFull = os.Getenv("ZKLOCK_MODEL") == "full" || isWide
)

// most is how many states an exploration may have. More than 25 million states need more than three
// gigabytes.
var most = map[bool]int{true: 25_000_000, false: 110_000}[isFull]

// isCoarse says that the unit is longer.
var isCoarse = false

func read(t *testing.T, file string) string {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// TestRules tries each rule, and README.md must have the result. With -v it prints the orders with two
// holders.
func TestRules(t *testing.T) {
	did := map[string]bool{}
	leftOut := 0
	for _, c := range Cases {
		t.Run(c.Rule.name+"; "+c.Setting.name+"; "+c.clock.unit, func(t *testing.T) {
			isInThePage(t, "\n"+c.title())
			r, err := explored(c)
			if err != nil {
				leftOut++
				t.Log("left out: ", err)
				return
			}
			t.Logf("%s\n%s", c.Row(r), c.Tell(r))
			assert.Equal(t, c.holds, r.Order == nil, "whether the rule holds")
			if !isCoarse {
				isInThePage(t, "\n"+c.Row(r)+"\n")
			}
			if !isCoarse && c.told {
				isInThePage(t, "\n```text\n"+c.Tell(r)+"\n```\n")
			}
			for action := range r.did {
				did[action] = true
			}
		})
	}
	t.Logf("%d rules in a setting, of which %d are left out", len(Cases), leftOut)
	if isCoarse || !isFull {
		require.Less(t, leftOut, len(Cases)*2/3, "what is left out")
		return
	}
	require.LessOrEqual(t, leftOut, 2, "what is left out")
	for _, a := range actionsAndClockwork {
		assert.True(t, did[a.name], "it never happens that %s", a.name)
	}
}

// explored returns an error for a case that is left out.
func explored(c Case) (Result, error) {
	if c.wide && !isWide {
		return Result{}, errors.New("it takes ZKLOCK_MODEL=wide")
	}
	if isCoarse && c.clock == quarters {
		c.clock = halves
	}
	r, err := c.explore(most)
	if err != nil && isFull && !isCoarse {
		panic(err)
	}
	return r, err
}

func isInThePage(t *testing.T, words string) {
	t.Helper()
	if !strings.Contains(read(t, page), words) {
		t.Errorf("%s does not say what came of it:%s", page, words)
	}
}

// Each row of the page's tables is of a rule that is tried.
func TestThePageHasNoOtherRules(t *testing.T) {
	t.Parallel()
	rows := regexp.MustCompile(`(?m)^\|.*\|.*\| [0-9,]+ \| [✓✗].*\|$`).FindAllString(read(t, page), -1)
	assert.Len(t, rows, len(Cases), "lines of tables in %s", page)
}

// How long the space between writes 1 and 2 must be, for each longest gap between two questions of the
// leader.
func TestTheSpaceIsLongerThanTheLongestGap(t *testing.T) {
	if isCoarse || !isFull {
		t.Skip("it takes ZKLOCK_MODEL=full, and not the race detector")
	}
	const quarterTick = percent(5)
	for quarters, space := range map[percent]string{2: "½ tick", 3: "¾ tick", 4: "1 tick", 5: "1¼ ticks"} {
		row := "| " + space + " |"
		for gap := uint8(2); gap <= 4; gap++ {
			rule := Rule{lease: 90, requests: []request{{write, 0}, {write, quarters * quarterTick}, {write, 0}}}
			m := model{rule, stalls}
			m.clock.longestGap = gap
			r, err := m.explore(most)
			require.NoError(t, err)
			row += map[bool]string{true: " ✓ |", false: " ✗ |"}[r.Order == nil]
		}
		t.Log(row)
		isInThePage(t, "\n"+row+"\n")
	}
}

// The Chinese page has the same time lines, in its own words.
func TestTheChinesePageHasTheSameTimeLines(t *testing.T) {
	t.Parallel()
	timeLine := regexp.MustCompile("(?ms)^```text\n([0-9].*?)^```")
	number := regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)
	numbers := func(file string) (all []string) {
		for _, block := range timeLine.FindAllString(read(t, file), -1) {
			for line := range strings.Lines(block) {
				all = append(all, strings.Join(number.FindAllString(line, -1), " "))
			}
		}
		return all
	}
	assert.Equal(t, numbers(page), numbers(chinese), "the numbers in the time lines of %s and %s", page, chinese)
}

func TestAnExplorationThatDoesNotEndIsAnError(t *testing.T) {
	t.Parallel()
	_, err := Cases[0].explore(1000)
	require.ErrorContains(t, err, "more than 1000 states")
}

func TestNothingOvertakesAnythingOnALine(t *testing.T) {
	t.Parallel()
	l := line(0).with(question).with(counted).with(question).with(question).with(counted).with(counted)
	var came []message
	for ; l != 0; l = l.withoutFirst() {
		came = append(came, l.first())
	}
	assert.Equal(t, []message{question, counted, question, counted, counted}, came)
	full := line(0)
	for range longestLine {
		full = full.with(counted)
	}
	assert.Panics(t, func() { full.with(counted) }, "a full line")
}
