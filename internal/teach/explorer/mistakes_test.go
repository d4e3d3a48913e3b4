package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/explore"
	"zklock/internal/check/tables"
	"zklock/internal/upkeep/chapter"
	"zklock/internal/upkeep/words"
)

// isWide: trees are played that take minutes.
var isWide = os.Getenv("ZKLOCK_EXPLORE") == "wide"

// bounds are what a mistake is given, one after the other, until something is wrong that is
// right in the step that it is made in. So the order that is found has the fewest faults,
// then the fewest switches, and then the fewest choices; however many processes play, it
// is the same one. Only .ci/night has time for faults.
func bounds() []explore.Settings {
	all := []explore.Settings{
		{Clients: 2, Faults: 0, Switches: explore.Unbound},
		{Clients: 2, Faults: 1, Switches: 0},
		{Clients: 2, Faults: 1, Switches: 1},
		{Clients: 2, Faults: 1, Switches: explore.Unbound},
	}
	if !isWide {
		return all[:1]
	}
	return all
}

// madeIn is the step whose lock has the mistake. Those published with step 5 are made in the
// lock of step 4, so that no other thing of step 5 helps.
func madeIn(step string) string { return min(step, "4") }

// asks are mistakes in a lock whose waiters ask from time to time.
const asks = "this order cannot be repeated|a client goes on by itself after a while"

var none = inBoth{"–", "–"}

// No mistake is told to the explorer. The table in docs/mistakes.md has what it finds.
func TestThePublishedMistakesAreExplored(t *testing.T) {
	right := map[string]explore.Result{}
	all := bounds()
	for _, step := range []string{"3", "4"} {
		r, err := explored(t, locks[step], all[len(all)-1])
		require.NoError(t, err)
		right[step] = r
	}
	for _, m := range tables.Mistakes {
		name := m.Key()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := find(name)
			require.NoError(t, err)
			for _, s := range all {
				r, err := explored(t, l, s)
				if err != nil {
					assert.Regexp(t, asks, err.Error())
					row(
						t,
						name,
						inBoth{"cannot be explored: who waits asks from time to time", "无法探索：等待者隔一会儿就询问一次"},
						none,
						"–",
					)
					return
				}
				if run, found := news(r, right[madeIn(m.Step)]); found {
					t.Log(strings.Join(run.Tell(), "\n"))
					row(t, name, translated(run.Wrong), before(run), run.Requests())
					return
				}
			}
			if isWide {
				row(t, name, inBoth{"nothing, with two clients and one fault", "两个客户端、一次故障之内，没有出错"}, none, "–")
			}
		})
	}
}

// The next one is let in when a waiter dies: that takes a third client.
func TestAThirdClientFindsW8(t *testing.T) {
	if !isWide {
		t.Skip("in .ci/night")
	}
	t.Parallel()
	l, err := find("W8")
	require.NoError(t, err)
	three := explore.Settings{Clients: 3, Faults: 1, Switches: 1, Mild: true}
	r, err := until(t, l, three, func(r explore.Result) bool { return r.Wrong > 0 })
	require.ErrorIs(t, err, context.Canceled, "something is wrong before all orders are played")
	run := r.Findings[r.Broken()[0]].Shortest
	t.Log(strings.Join(run.Tell(), "\n"))
	assert.Equal(t, []string{"two clients are inside"}, run.Wrong)
}

// news is the shortest order that is wrong in a way in which none is in a lock without the
// mistake, with the same faults.
func news(r, right explore.Result) (shortest explore.Run, found bool) {
	for kind, f := range r.Kinds {
		if _, known := right.Kinds[kind]; known {
			continue
		}
		if !found || f.Shortest.IsShorterThan(shortest) {
			shortest, found = f.Shortest, true
		}
	}
	return shortest, found
}

// inBoth is a text in English and in Chinese.
type inBoth [2]string

// before is what has failed in an order, in words.
func before(r explore.Run) inBoth {
	if len(r.Faults) == 0 {
		return inBoth{"nothing", "无"}
	}
	deed, op, _ := strings.Cut(r.Faults[0], " ")
	switch deed {
	case "give-up":
		return inBoth{"a client gives up", "有客户端放弃"}
	case "crash":
		return inBoth{"a client crashes", "有客户端崩溃"}
	case "expire":
		return inBoth{"a session expires", "会话过期"}
	case "lose-reply":
		return inBoth{"the reply to " + op + " is lost", op + " 的应答丢失"}
	}
	return inBoth{"the request " + op + " is lost", op + " 的请求丢失"}
}

// translated are the invariants that are broken, in both languages.
func translated(invariants []string) inBoth {
	var chinese []string
	for _, invariant := range invariants {
		chinese = append(chinese, words.Whole(invariant).ZH)
	}
	return inBoth{strings.Join(invariants, "; "), strings.Join(chinese, "；")}
}

// row holds both pages against a row of the table.
func row(t *testing.T, name string, wrong, fails inBoth, requests any) {
	t.Helper()
	for i, page := range []string{"docs/mistakes.md", "docs/zh-CN/mistakes.md"} {
		chapter.SaysIn(t, page, "| %s | %s | %s | %v |", name, wrong[i], fails[i], requests)
	}
}
