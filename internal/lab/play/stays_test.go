package play

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"

	"zklock/internal/lab/browser"
	"zklock/internal/zktest"
)

// sizes are of the windows in which a lesson is followed: a laptop, a large screen, a phone.
var sizes = [][2]int64{{1366, 768}, {1920, 1080}, {390, 844}}

// otherSizes are those in which no text may be cut: a phone, and two more laptops.
var otherSizes = [][2]int64{{390, 844}, {1440, 900}, {1280, 800}}

// resizes gives the window a size, and waits until the page has heard of it: the lesson's title is where a window of
// this size has it, and the drawings have their size. By chance a drawing can have its size before the title has moved.
func (w *window) resizes(size [2]int64) {
	w.Helper()
	w.Do(chromedp.EmulateViewport(size[0], size[1]))
	w.Until(fmt.Sprintf(`innerWidth === %d`, size[0]))
	w.Until(`$("lesson-title").matches("main > *") === (upright.matches && !isInstead)`) // on a phone, above the drawings
	w.Until(`live().every((b) => b.width === b.stage.canvas.clientWidth)`)
}

// places are where the drawings of a lesson stand, in a window of each size.
func (w *window) places() (all []string) {
	w.Helper()
	for _, size := range sizes {
		w.resizes(size)
		browser.Evaluate[any](w.Browser, `scrollTo(0, 0); null`) // on a phone some lessons scroll
		all = append(all, browser.Evaluate[string](w.Browser, `live().map((b) => {
			const at = b.stage.canvas.getBoundingClientRect();
			return [at.x, at.y, at.width, at.height].map(Math.round).join(" ");
		}).join(", ")`))
		if size[0] > 1000 {
			smallest := browser.Evaluate[float64](w.Browser, `Math.min(...live().flatMap((b) => {
				const sizes = [];
				b.stage.text = function (words, x, y, fill, size, ...more) {
					if (words !== "!") sizes.push(size * this.scale); // it is a sign
					Stage.prototype.text.call(this, words, x, y, fill, size, ...more);
				};
				b.draw(performance.now());
				delete b.stage.text;
				return sizes;
			}))`)
			assert.GreaterOrEqual(w, smallest, 10.99, "the smallest text of the drawings, in pixels: %v", size)
		}
		// However long a slow machine leaves clients to poll, their requests have no more than four digits.
		browser.Evaluate[any](w.Browser, `void document.querySelectorAll('[data-count="requests"], [data-count="writes"]').forEach(
			(e) => { if (e.textContent !== "0") e.textContent = "9,999"; })`)
		cut := browser.Evaluate[[]string](w.Browser, `[...document.querySelectorAll(".banners, .tally, .ls")].filter(
			(e) => e.checkVisibility() && e.scrollHeight > e.clientHeight).map((e) => e.textContent)`)
		assert.Empty(w, cut, "what is wrong, the counts, and the queue are seen whole: %v", size)
	}
	return all
}

// isWhole checks that no text is cut, on two more laptops and on a phone.
func (w *window) isWhole(when string) {
	w.Helper()
	for _, size := range otherSizes {
		w.resizes(size)
		const cut = `[...document.querySelectorAll("#lesson, #lesson *, .side, .banners, .ls, #when")].filter((e) => e.checkVisibility() &&
			getComputedStyle(e).overflowY !== "visible" && e.scrollHeight > e.clientHeight).map((e) => e.textContent)`
		assert.Empty(w, browser.Evaluate[[]string](w.Browser, cut), "%s: %v", when, size)
	}
}

// Whatever a lesson says, its drawing stays where it is, and as large as it is. Nobody is seen
// awake before the first move, and what has happened can be looked at again.
func TestTheDrawingStaysInABrowser(t *testing.T) {
	t.Parallel()
	p := begins(t, zktest.New(t), nil, "")
	p.patience(4 * time.Minute)
	w := &window{browser.Open(t, p.address.String(), 1366, 768), p}
	w.Until(`document.querySelectorAll("#start .cards button").length === 6`)
	for _, l := range lessons {
		w.press(fmt.Sprintf("#start li:nth-child(%d) button", l.N))
		w.Until(fmt.Sprintf(`service.course.lesson === %d && isSet()`, l.N))
		w.Until(`document.querySelector("#lesson li.now") !== null`)
		if l.N != 1 && l.N != 2 { // whose clients ask all the time
			w.Until(`boards.every((b) => !b.is || b.story.frames.length === 0)`)
			assert.Zero(t, browser.Evaluate[int](w.Browser, `live().flatMap((b) => b.story.awake).length`), "awake")
		}
		places := w.places()
		for i, task := range l.Tasks {
			if task.Do != "" {
				w.pressNext()
			}
			w.done(i + 1)
			assert.Equal(t, places, w.places(), "lesson %d, after task %d", l.N, i+1)
			if l.N == 4 || l.N == 5 {
				w.isWhole(fmt.Sprintf("lesson %d, after task %d", l.N, i+1))
			}
		}
		w.resizes(sizes[0])
		w.press("#earlier")
		w.Until(`past.at !== null && boards[0].stage.story.past && !$("now").hidden`)
		assert.Equal(t, places[0], w.places()[0], "lesson %d, in its past", l.N)
		w.press("#now")
		w.Until(`past.at === null && boards[0].stage.story === boards[0].story`)
		w.press("header [data-do=lessons]")
		w.Until(`!document.querySelector("#start").hidden`)
	}
}

// rings are the colours in which the sessions' rings are drawn, if so much is left of each.
func (w *window) rings(left float64) []string {
	w.Helper()
	return browser.Evaluate[[]string](w.Browser, fmt.Sprintf(`(() => {
		const { stage } = boards[0], { ring } = stage, drawn = [];
		stage.left = () => %f;
		stage.ring = function (...all) {
			const { ink, color } = this, named = {};
			for (const name of ["request", "bad"]) {
				ink.strokeStyle = color[name];
				named[ink.strokeStyle] = name;
			}
			ring.apply(this, all);
			drawn.push(named[ink.strokeStyle]); // the last one that was set: that of what is left
		};
		boards[0].draw(performance.now());
		delete stage.left;
		delete stage.ring;
		return drawn;
	})()`, left))
}

// A session's ring is full when the server has heard of its client, and empties when the
// client is dead, until the session ends. Only that of a client in trouble turns red.
func TestASessionRunsOutInABrowser(t *testing.T) {
	t.Parallel()
	w := shows(t, "2", 2)
	left := `(c => (boards[0].stage.t = performance.now(), boards[0].stage.left(c)))(boards[0].clients[0])`
	w.click(0, "lock")
	w.becomes(0, "holds")
	assert.Nil(t, browser.Evaluate[any](w.Browser, left), "its session is in order: nothing is to be seen")
	assert.Equal(t, []string{"request", "request"}, w.rings(0.3), "the colours: nobody is in trouble")
	// The page notes what is left: a busy machine may look too late to see it.
	browser.Evaluate[any](w.Browser, `void (window.seen = [], setInterval(() => seen.push(`+left+`), 50))`)
	w.click(0, "kill")
	w.becomes(0, "crashed")
	assert.Equal(t, []string{"request", "request"}, w.rings(0.7), "the crash is not an old one")
	assert.Equal(t, []string{"bad", "request"}, w.rings(0.3), "it is the crashed client's ring that turns red")
	const strikes = `(() => {
		const { stage } = boards[0], at = stage.clientAt(0), drawn = [], draws = cross;
		cross = (ink, p, size, ...all) => { drawn.push([p.x - at.x, p.y - at.y, Number(size > Math.SQRT2 * stage.dot)]); draws(ink, p, size, ...all); };
		boards[0].draw(performance.now());
		cross = draws;
		return drawn;
	})()`
	whole := [][]float64{{0, 0, 1}}
	assert.Equal(t, whole, browser.Evaluate[[][]float64](w.Browser, strikes), "the circle of the crashed client is struck through, whole")
	w.Until(left + ` === 0`)
	assert.True(t, browser.Evaluate[bool](w.Browser, `seen.some((part) => part > 0 && part < 1)`), "it empties bit by bit")
	w.Contains("#log", "The server has heard nothing from client 0 for 5 s")
}
