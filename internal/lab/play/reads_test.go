package play

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"

	"zklock/internal/lab/browser"
	"zklock/internal/zktest"
)

// isRead reports whether the whole text of the lesson can be read on a laptop and on a large screen.
func (w *window) isRead(when string) {
	w.Helper()
	for _, size := range sizes[:2] {
		w.resizes(size)
		w.Until(`$("lesson").scrollTop === 0 && $("lesson").scrollHeight <= $("lesson").clientHeight`)
		assert.True(w, w.inSight("#lesson-title"), "%s: %v", when, size)
		assert.True(w, w.inSight("#fold summary"), "%s: %v", when, size)
	}
	w.Do(chromedp.EmulateViewport(sizes[0][0], sizes[0][1]))
}

// A lesson has the whole column: its text is read without scrolling. The clients and the log are in a fold
// below it, and return to the column when the lesson is left.
func TestALessonIsReadWholeInABrowser(t *testing.T) {
	t.Parallel()
	p := begins(t, zktest.New(t), nil, "")
	p.patience(3 * time.Minute)
	w := &window{browser.Open(t, p.address.String()+"#lesson-5/1", 1366, 768), p}
	w.at(5, 1)
	w.isRead("before the task")
	assert.False(t, browser.Evaluate[bool](w.Browser, `$("log").checkVisibility() || $("clients").checkVisibility()`), "folded")
	const tallies = `[...document.querySelectorAll(".tally")].map((e) => getComputedStyle(e).visibility)`
	assert.Equal(t, []string{"hidden", "hidden"}, browser.Evaluate[[]string](w.Browser, tallies), "no task is done")
	browser.Evaluate[any](w.Browser, `notes(0, "1"); notes(1, "0"); null`) // accepted, refused
	w.pressNext()
	w.done(1)
	w.Contains("#lesson .guesses", "Step 4: you guessed accepted ✓, measured: accepted")
	w.Contains("#lesson .guesses", "Step 5: you guessed refused ✓, measured: refused")
	const red = `[...document.querySelectorAll("#lesson .guess .bad")].map((e) => e.textContent)`
	assert.Equal(t, []string{"accepted"}, browser.Evaluate[[]string](w.Browser, red), "the outcome that does harm, although it was guessed")
	w.isRead("at the end")
	assert.Equal(t, []string{"visible", "visible"}, browser.Evaluate[[]string](w.Browser, tallies), "a task is done")
	w.press("#fold summary")
	w.Until(`$("log").checkVisibility() && $("clients").checkVisibility()`)
	w.press("[data-do=freely]")
	w.Until(`$("fold").hidden && $("log").checkVisibility() && $("clients").checkVisibility()`)
}
