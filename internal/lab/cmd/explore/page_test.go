package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/explore"
	"zklock/internal/lab/browser"
	"zklock/internal/lab/explorer"
)

// page explores a lock, and opens the page that make explore writes.
func page(t *testing.T, key string, s explore.Settings) *browser.Browser {
	t.Helper()
	s.Points = true
	chosen := choose(t, key)
	r, err := explored(t, chosen, s)
	require.NoError(t, err)
	p, err := explorer.Explored(chosen, r, s)
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "explore.html")
	file, err := os.Create(name)
	require.NoError(t, err)
	defer file.Close()
	require.NoError(t, p.Write(file))
	return browser.Open(t, "file://"+name, 1366, 768)
}

// The page begins with the hunt: how a lock breaks is shown to a reader who gives up.
func TestThePageInABrowser(t *testing.T) {
	t.Parallel()
	b := page(t, "4", explore.Settings{Clients: 2, Faults: 1, Switches: 0})
	b.Says("#asks", "You choose what happens next. Can you make the lock break its promise?")
	b.Says("#goals", "One waits forevernot found yetA znode is left behindnot found yet")
	b.Do(chromedp.Click(chromedp.CSS("#give summary")))
	b.Contains("#goals", "the fewest: 4 choices")
	b.Contains("#counts", "14 end wrong")
	b.Do(chromedp.Click(chromedp.CSS("#answers button")))
	b.Contains("#says", "This breaks it, in 4 choices: One waits forever; A znode is left behind.")
	b.Contains("#says", "nobody deletes that znode, and B waits for it.")
	browser.Evaluate[any](b, `document.getElementById("language").click()`)
	b.Contains("#says", "这样就攻破了，用了 4 次选择：有一个永远等下去")
}

// Of a lock that is right, nobody finds a wrong interleaving.
func TestThePageOfARightLockInABrowser(t *testing.T) {
	t.Parallel()
	b := page(t, "5", explore.Settings{Clients: 2, Switches: 0})
	b.Contains("#goals", "not found yet")
	browser.Evaluate[any](b, `void (path = rest(game, 0), played = path.length, show())`)
	b.Do(chromedp.Click(chromedp.CSS("#every")))
	b.Contains("#goals", "cannot happen ✓")
	b.Contains("#counts", "None is wrong.")
	b.Contains("#sound", "none is wrong.")
}

// A published mistake begins with what the step that it is made in survives, and with the fewest faults.
func TestThePageOfAMistakeInABrowser(t *testing.T) {
	t.Parallel()
	b := page(t, "W11", explore.Settings{Clients: 2, Faults: 0, Switches: explore.Unbound})
	goals := browser.Evaluate[[]string](b, `[...document.querySelectorAll(".goal b")].map((e) => e.textContent)`)
	assert.Equal(t, "One waits forever", goals[0])
	b.Contains("#beside-title", "step 4")
}
