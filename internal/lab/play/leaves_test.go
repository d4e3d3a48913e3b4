package play

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

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
