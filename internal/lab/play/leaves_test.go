package play

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/lab/browser"
	"zklock/internal/zktest"
)

// The reader may look at the list of lessons before a task has its result: the drawings go on, and the lesson is still
// there. A drawing that fails does not end the later ones.
func TestALessonIsLeftBeforeItsResultInABrowser(t *testing.T) {
	t.Parallel()
	p := begins(t, zktest.New(t), nil, "")
	p.patience(3 * time.Minute)
	w := &window{browser.Open(t, p.address.String()+"#lesson-5/1", 1366, 768), p}
	w.at(5, 1)
	w.pressNext()
	w.Until(`isDoing() && boards[0].is.counters.since > service.course.since`)
	w.press("header [data-do=lessons]")
	w.Until(`!$("start").hidden && !isDoing()`)
	browser.Evaluate[any](w.Browser, `animate(); render(); null`)
	w.press("header [data-do=lessons]")
	w.done(1)
	w.Until(`!dirty && boards.every((b) => b.stage.kept().last?.client === 0)`)

	browser.Evaluate[any](w.Browser, `
		window.onerror = () => true; // these two failures are meant
		failed = [];
		for (const [of, name] of [[boards[0], "draw"], [boards[0], "words"]]) {
			of[name] = () => { failed.push(name); delete of[name]; throw new Error(name + " fails"); };
		}
		animate();
		soon();
		null`)
	w.Until(`failed.length === 2 && !moving && !dirty`)
	browser.Evaluate[any](w.Browser, `
		drawn = [];
		boards[0].draw = function (...all) { drawn.push("draw"); return Board.prototype.draw.apply(this, all); };
		boards[0].words = function (...all) { drawn.push("words"); return Board.prototype.words.apply(this, all); };
		animate();
		soon();
		null`)
	w.Until(`drawn.includes("draw") && drawn.includes("words")`)
	assert.True(t, browser.Evaluate[bool](w.Browser, `$("start").hidden`))
}

// At any moment of a lesson a teacher can go on with all controls: on the lesson's clients, or with another lock.
func TestALessonIsLeftForAllControlsInABrowser(t *testing.T) {
	t.Parallel()
	p := begins(t, zktest.New(t), nil, "")
	p.patience(3 * time.Minute)
	w := &window{browser.Open(t, p.address.String()+"#lesson-3/1", 1366, 768), p}
	w.at(3, 1)
	const link = `header [data-do="freely"]`
	seen := func(selector string) bool {
		return browser.Evaluate[bool](w.Browser, fmt.Sprintf(`document.querySelector(%q).checkVisibility()`, selector))
	}
	assert.False(t, seen("#all") || seen("#lock0"), "a lesson shows only what it needs")
	require.True(t, seen(link), "the link, before any task is done")
	clients := browser.Evaluate[int](w.Browser, `crowd().length`)
	w.Do(chromedp.Click(chromedp.CSS(link)))
	w.Until(`$("all").checkVisibility() && $("lock0").checkVisibility()`)
	assert.False(t, seen(link), "all controls are there")
	assert.Equal(t, clients, browser.Evaluate[int](w.Browser, `crowd().length`))
	w.Choose("#lock0", "1")
	w.Until(`boards[0].is.lock === "1" && $("lesson").hidden`)
	w.press("header [data-do=lessons]")
	w.Until(`!$("start").hidden`)
	assert.False(t, seen(link), "there is no lesson to leave")
}
