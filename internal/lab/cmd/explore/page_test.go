package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/explore"
	"zklock/internal/lab/browser"
	"zklock/internal/lab/explorer"
)

// The page begins with the promise, has each kind of wrong order, and lets its reader walk
// through all orders: of step 4 four choices come to a wrong one, and of step 5 none does.
func TestThePageInABrowser(t *testing.T) {
	t.Parallel()
	settings := explore.Settings{Clients: 2, Faults: 1, Switches: 0}
	page := func(key string) *browser.Browser {
		file := filepath.Join(t.TempDir(), "explore.html")
		chosen := choose(t, key)
		_, err := explored(t, chosen, settings, func(r explore.Result, players []*explore.Player) {
			out, err := os.Create(file)
			require.NoError(t, err)
			defer out.Close()
			p := explorer.Page{
				Origin: "a test", Lock: chosen.Name, Result: r, Settings: settings, Record: players[0].Record,
			}
			require.NoError(t, p.Write(out))
		})
		require.NoError(t, err)
		return browser.Open(t, "file://"+file, 1366, 768)
	}
	press := func(b *browser.Browser, text string) {
		b.Until(fmt.Sprintf(
			`[...document.querySelectorAll("#options button")].some((b) => b.textContent === %q)`, text))
		browser.Evaluate[any](b, fmt.Sprintf(
			`[...document.querySelectorAll("#options button")].find((b) => b.textContent === %q).click()`, text))
	}

	b := page("4")
	assert.Contains(t, b.Text(".intro"), "at most one client holds it at any moment")
	b.Contains("#story option", "Nobody holds the lock, and a client waits forever") // the gravest of these first
	b.Contains("#watch-for", "The promise: When nobody holds the lock, the next client that waits gets it.")
	steps := browser.Evaluate[int](b, `document.querySelectorAll("#phases button").length`)
	assert.Greater(t, steps, 3)
	for i := range steps { // a step that is pressed is shown as it ends, which is what stands beside it
		step := fmt.Sprintf("#phases button:nth-child(%d)", i+1)
		browser.Evaluate[any](b, fmt.Sprintf(`document.querySelector(%q).click()`, step))
		came := b.Text(step + " small")
		assert.NotEmpty(t, came, step)
		b.Says("#left .caption", came)
		b.Says(`#phases [aria-current="step"] small`, came)
	}
	browser.Evaluate[any](b, `document.getElementById("marked").click()`)
	b.Until(`document.querySelectorAll("#options .doomed").length > 0`)
	press(b, "A asks: create /lock/lock-. The REPLY IS LOST, and the connection breaks")
	b.Until(`[...document.querySelectorAll("#options button")].every((b) => b.classList.contains("doomed"))`)
	press(b, "B asks: create /lock/lock-")
	press(b, "B asks: getChildren /lock")
	press(b, "B asks: getData /lock/lock-…0, and watch")
	b.Contains("#verdict.wrong", "Wrong, after 4 choices: Nobody holds the lock, and a client waits forever")
	b.Contains("#verdict.wrong", "A znode is left behind")
	b.Contains("#verdict.wrong", "What is left behind: /lock/lock-…0")
	browser.Evaluate[any](b, `document.getElementById("language").click()`)
	b.Contains("#verdict.wrong", "出错了，用了 4 次选择：没有人持有锁，却有客户端永远等下去")

	b = page("5")
	b.Contains(".challenge", "the lock keeps its promise in all of these interleavings.")
	assert.Zero(t, browser.Evaluate[int](b, `tree.texts.filter((t) => t.en.startsWith("Nobody holds")).length`))
}
