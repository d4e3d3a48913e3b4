package play

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"zklock/internal/lab/browser"
	"zklock/internal/zktest"
)

// clipped lists the elements that hide a part of their text. A reader can scroll in the lesson's column, on a phone,
// and in the chart of a thousand clients.
const clipped = `[...document.querySelectorAll("main *")].filter((e) => {
	const { overflowY, overflowX } = getComputedStyle(e);
	const isOpen = overflowY === "visible" && overflowX === "visible";
	const isNone = e.matches(".side, #lesson, #herd, canvas, svg, svg *, select, option");
	if (isOpen || isNone || !e.checkVisibility({ visibilityProperty: true })) return false;
	return e.clientHeight > 1 && (e.scrollHeight > e.clientHeight + 1 || e.scrollWidth > e.clientWidth + 1);
}).map((e) => (e.id || e.className) + ": " + e.textContent.trim())`

// hidesNothing asserts that no text is clipped, on three screens and in both languages.
func (w *window) hidesNothing(when string) {
	w.Helper()
	for range 2 {
		for _, size := range otherSizes {
			w.resizes(size)
			browser.Evaluate[any](w.Browser, `render(); null`)
			assert.Empty(w, browser.Evaluate[[]string](w.Browser, clipped), "%s, %v", when, size)
		}
		w.press("#language")
	}
}

// opensLesson opens a lesson on a board of 1280 to 800.
func (w *window) opensLesson(n int) {
	w.Helper()
	w.Until(`service.course !== undefined`)
	browser.Evaluate[any](w.Browser, fmt.Sprintf(`location.hash = "#lesson-%d/1"; null`, n))
	w.Until(fmt.Sprintf(`service.course?.lesson === %d && service.course.done === 0 && isSet()`, n))
}

// The drawings use the room that they have: few clients are large, and no name cuts the circle in the middle.
func TestTheDrawingsUseTheirRoomInABrowser(t *testing.T) {
	t.Parallel()
	p := begins(t, zktest.New(t), nil, "")
	p.patience(4 * time.Minute)
	w := &window{browser.Open(t, p.address.String(), 1280, 800), p}
	dot := func() float64 { return browser.Evaluate[float64](w.Browser, `boards[0].stage.dot`) }

	w.opensLesson(3)
	ofEleven := dot()
	w.opensLesson(1)
	assert.Greater(t, dot(), 1.3*ofEleven, "four clients, one board")
	w.Until(`boards[0].stage.clientAt(1).x - boards[0].stage.clientAt(3).x > 0.65 * boards[0].width`) // it fills its board
	w.pressNext()
	w.done(1)
	w.hidesNothing("lesson 1, the client is killed")
	w.done(2)
	w.hidesNothing("lesson 1, the session has ended")
	w.pressNext()
	w.done(3)
	w.hidesNothing("lesson 1, the znode is deleted")
	w.pressNext()
	w.done(4)
	w.Until(`document.querySelectorAll("#board0 .banners p").length === 2`)
	w.hidesNothing("lesson 1, at its end")

	w.opensLesson(2)
	assert.Greater(t, dot(), 1.3*ofEleven, "four clients, two boards")
	browser.Evaluate[any](w.Browser, `
		names = 0;
		cut = []; // the names that were written over the circle in the middle
		Stage.prototype.draw = ((draws) => function (...all) {
			draws.apply(this, all);
			const { middle, radius: { hub } } = this;
			for (const { x, y, w, h, words } of this.labelled) {
				names++;
				for (let i = 0; i < 720; i++) {
					const px = middle.x + hub * Math.cos(i * Math.PI / 360), py = middle.y + hub * Math.sin(i * Math.PI / 360);
					if (px > x + 1 && px < x + w - 1 && py > y + 1 && py < y + h - 1) return cut.push(words);
				}
			}
		})(Stage.prototype.draw);
		null`)
	w.Until(`names > 50`) // they poll
	assert.Empty(t, browser.Evaluate[[]string](w.Browser, `cut`))
	browser.Evaluate[any](w.Browser, `
		crashes = []; // how many milliseconds after the news the drawing shows that client 0 has crashed
		Board.prototype.take = ((takes) => function (...all) {
			takes.apply(this, all);
			const { at, is } = this.clients?.[0]?.states.at(-1) ?? {};
			if (is === "crashed") crashes[this.i] ??= Math.round(at - performance.now());
		})(Board.prototype.take);
		null`)
	w.pressNext()
	w.done(1)
	for _, late := range browser.Evaluate[[]int](w.Browser, `crashes`) {
		assert.LessOrEqual(t, late, 0, "no poll under way delays the crash on the left")
	}
	w.hidesNothing("lesson 2, the client is killed")
	w.done(2)
	w.hidesNothing("lesson 2, at its end")
	size := `parseFloat(getComputedStyle(document.querySelector("#board1 [data-count=%s]")).fontSize)`
	for _, count := range []string{"requests", "writes"} {
		assert.Greater(t, browser.Evaluate[float64](w.Browser, fmt.Sprintf(size, count)), 24.0, "what polling costs is large")
	}
}

// At the moment of a release, a line leads from each notified client to what it has watched.
func TestTheHerdIsDrawnInABrowser(t *testing.T) {
	t.Parallel()
	p := begins(t, zktest.New(t), nil, "")
	p.patience(4 * time.Minute)
	w := &window{browser.Open(t, p.address.String(), 1280, 800), p}
	w.opensLesson(3)
	w.hidesNothing("lesson 3, before the release")
	w.pressNext()
	w.done(1)
	w.hidesNothing("lesson 3, at its end")
	ringed := browser.Evaluate[[]int](w.Browser, `boards.map(({ stage }) => {
		const { ink, color } = stage;
		let rings = 0;
		ink.strokeStyle = color.notification;
		const orange = ink.strokeStyle;
		ink.stroke = () => { if (ink.strokeStyle === orange && ink.lineWidth === 3) rings++; };
		stage.draw(performance.now(), null);
		delete ink.stroke;
		return rings;
	})`)
	assert.Equal(t, []int{10, 1}, ringed, "those that were notified are still marked")
	w.press("#lesson [data-do=moment]")
	w.Until(`Boolean(past.focus?.decides) && !dirty && boards.every((b) => b.stage.story.past)`)
	w.Contains("#when", "The server notifies 10 clients.")
	w.Says("#board0 [data-count=notifications]", "10") // as the sentence says
	lines := browser.Evaluate[[][]string](w.Browser, `boards.map(({ stage }) => {
		const found = [], says = [], { watch, text } = stage;
		stage.watch = ({ client, on }, stroke) => {
			if (stroke === stage.color.notification) found.push(client + " to " + (on ? number(on) : "the directory"));
		};
		stage.text = (words) => says.push(words);
		stage.draw(stage.t, null);
		Object.assign(stage, { watch, text });
		return [...found.sort(), ...says.filter((words) => words === "/lock: children")];
	})`)
	var herd []string
	for _, i := range []int{1, 10, 2, 3, 4, 5, 6, 7, 8, 9} {
		herd = append(herd, fmt.Sprintf("%d to the directory", i))
	}
	assert.Equal(t, [][]string{append(herd, "/lock: children"), {"1 to 0"}}, lines)
	last := browser.Evaluate[string](w.Browser, `(() => {
		const { stage } = boards[0], drawn = [], { text } = stage;
		stage.text = (words) => drawn.push(words);
		stage.draw(stage.t, null);
		Object.assign(stage, { text });
		return drawn.slice(-10).join("");
	})()`)
	assert.Equal(t, strings.Repeat("!", 10), last, "the signs of the ten notifications are over every name")

	w.press("#later")
	w.Until(`past.at === null || !past.focus.decides`)
	assert.NotContains(t, w.Text("#when"), "left: The server notifies client ", "the ten notifications on the left are one event")
	browser.Evaluate[any](w.Browser, `shows(null); null`)
	w.press("[data-do=instead]")
	w.press(".herd-guess button:not(.herd-reveal)")
	w.Until(`figure?.isSeen() && document.querySelectorAll(".herd-chart polyline").length >= 2`)
	assert.Greater(t, browser.Evaluate[float64](w.Browser, `document.querySelector(".herd-chart").clientWidth`), 500.0)
}

// Lesson 6 shows what each client wants in its circle. At its end all six steps are measured.
func TestTheSixStepsAreComparedInABrowser(t *testing.T) {
	t.Parallel()
	p := begins(t, zktest.New(t), nil, "")
	p.patience(4 * time.Minute)
	w := &window{browser.Open(t, p.address.String(), 1280, 800), p}
	w.opensLesson(6)
	inside := browser.Evaluate[[]string](w.Browser, `boards.map(({ stage }) => {
		const found = [], { text } = stage;
		stage.text = (words, x, y) => stage.story.clients.forEach((_, i) => {
			const p = stage.clientAt(i);
			if (/^[RW]$/.test(words) && Math.hypot(x - p.x, y - p.y) < stage.dot) found.push(words + i);
		});
		stage.draw(performance.now(), null);
		stage.text = text;
		return found.join(" ");
	})`)
	assert.Equal(t, []string{"R0 R1 R2 W3 R4 R5", "R0 R1 R2 W3 R4 R5"}, inside)
	w.Says("#lesson li.now > button[data-do]", "Let them ask") // not all of them
	w.pressNext()
	w.done(1)
	w.Contains("#lesson li.now", "Now let clients 4 and 5 ask, to read.")
	states := func() []string {
		return browser.Evaluate[[]string](w.Browser, `boards[1].clients.map((_, i) => boards[1].state(i))`)
	}
	assert.Equal(t, []string{"reads", "reads", "reads", "waits", "idle", "idle"}, states(), "no reader waits before the guess")
	assert.NotContains(t, w.Text("#lesson"), "overtake", "the answer, before the guess")
	browser.Evaluate[any](w.Browser, `notes(0, "0"); notes(1, "1"); null`) // no, yes
	w.press("#lesson li.now button[data-do=lock].next")
	w.done(2)
	w.Contains("#lesson .guesses", "Step 5: you guessed no ✓, measured: no")
	w.Contains("#lesson .guesses", "Step 6: you guessed yes ✗, measured: no")
	w.Contains("#lesson", "Clients 4 and 5 wait behind client 3.")
	w.Contains("#lesson", "If readers could overtake it, new ones could keep the writer waiting forever.")
	assert.Equal(t, []string{"reads", "reads", "reads", "waits", "waits", "waits"}, states(), "readers read, and the last two wait")
	w.hidesNothing("lesson 6, the last two readers wait")
	for i := range 2 {
		w.pressNext()
		w.done(i + 3)
	}
	w.hidesNothing("lesson 6, before the choice")

	// The decisive moment is played: first nobody is notified, and then one client in step 5 and both readers in step 6.
	browser.Evaluate[any](w.Browser, `
		played = [[], []]; // how many notifications were on their way, picture by picture
		boards.forEach((b, i) => b.draw = function (...all) {
			const goesOn = Board.prototype.draw.apply(this, all);
			if (past.at !== null) played[i].push(b.stage.flying().filter((f) => f.kind === NOTIFICATION).length);
			return goesOn;
		});
		null`)
	w.press("#lesson [data-do=moment]")
	w.Until(`Boolean(past.focus?.decides) && !moving`)
	w.Contains("#when", "right: The server notifies 2 clients.")
	assert.Equal(t, [][]int{{0, 1}, {0, 2}}, browser.Evaluate[[][]int](w.Browser, `played.map((all) => [all[0], all.at(-1)])`))
	assert.Greater(t, browser.Evaluate[int](w.Browser, `played[1].length`), 3, "pictures")
	w.press("#now")

	// Readers share the lock, and that is nothing wrong: no band is hatched.
	assert.Equal(t, [][]string{{}, {}}, browser.Evaluate[[][]string](w.Browser, `boards.map((b) => b.strip.both)`))
	said := browser.Evaluate[[][]string](w.Browser, `boards.map((b) => b.strip.says)`)
	assert.Equal(t, []string{"0", "1", "2"}, said[0], "the holders, as the server says")
	assert.Contains(t, said[1], "0 1 2")
	assert.Equal(t, "4 5", said[1][len(said[1])-1])

	// The reader chooses what the next client wants. Whatever it is, he can go back, and choose the other.
	for _, choice := range []struct{ do, role, right, said string }{
		{"lock", "W", "no", "Client 0 waits until clients 4 and 5 have both unlocked"},
		{"read", "R", "yes", "Client 0 reads at once, beside clients 4 and 5."},
	} {
		w.Until(`toDo() && document.querySelectorAll("#lesson li.now [data-way].next").length === 2`)
		assert.Equal(t, 0, browser.Evaluate[int](w.Browser, `document.querySelectorAll("#lesson li.now .guesses").length`), "before the choice")
		w.press("#lesson li.now [data-way=read]") // and the reader can change his mind
		browser.Evaluate[any](w.Browser, `notes(0, "0"); notes(1, "1"); null`)
		w.press(fmt.Sprintf(`#lesson li.now [data-way=%s]`, choice.do))
		w.Until(fmt.Sprintf(`document.querySelector("#lesson li.now [data-do=%s]").disabled`, choice.do))
		w.Contains("#lesson li.now .guesses", "does client 0 get the lock at once?")
		browser.Evaluate[any](w.Browser, `notes(0, "0"); notes(1, "1"); null`) // no, yes
		w.press(fmt.Sprintf(`#lesson li.now button[data-do=%s].next`, choice.do))
		w.done(5)
		w.Contains("#lesson .guesses", "Step 5: you guessed no ✓, measured: no")
		w.Contains("#lesson .guesses", "measured: "+choice.right)
		w.Contains("#lesson", "Client 0 waits behind client 5, whether it reads or writes.")
		w.Contains("#lesson", choice.said)
		assert.Equal(t, choice.role, browser.Evaluate[string](w.Browser, `boards[1].story.roles[0]`))
		if choice.do == "lock" { // once more
			browser.Evaluate[any](w.Browser, `shows(0); null`)
			w.Until(`boards[1].stage.story.past && boards[1].stage.story.roles[0] === "R"`) // then it had come to read
			w.press("#now")
			browser.Evaluate[any](w.Browser, `aim = { n: 6, tasks: 4, isLaid: false }; ask({ do: "lesson", n: 6 }); null`)
			w.at(6, 5)
		}
	}
	w.hidesNothing("lesson 6, at its end")
	w.press("#lesson li.now button.next")
	w.Until(`$("finale").checkVisibility() && !$("stages").checkVisibility() && !$("strips").checkVisibility()`)
	w.Until(`document.activeElement.dataset.mark === "0"`) // the keyboard begins with the guess
	w.hidesNothing("the six steps, before the guess")
	assert.NotContains(t, w.Text("#finale"), "requests", "what was measured, before the guess")
	assert.True(t, browser.Evaluate[bool](w.Browser, `$("sums").disabled`), "before the guess")
	for column, step := range []int{2, 2, 4} { // right, wrong, right
		w.press(fmt.Sprintf(`#finale [data-mark="%d"][value="%d"]`, column, step-1))
	}
	measures := func() {
		w.press("#sums")
		w.Until(`service.finale.busy`)
		for i := range 6 {
			w.Until(fmt.Sprintf(`service.finale.rows.length > %d`, i))
		}
		w.Until(`hasFinale() && !service.finale.busy && document.querySelectorAll("#finale .unmeasured").length === 0`)
	}
	measures()
	rows := browser.Evaluate[[][]string](w.Browser, `[...document.querySelectorAll("#finale tbody tr")]
		.map((tr) => [...tr.cells].map((e) => e.textContent))`)
	assert.Len(t, rows, 6)
	for i, polls := range []string{"requests all writes", "requests all reads ✗ your guess"} {
		assert.Regexp(t, `^[1-9][\d,]* `+polls+`$`, rows[i][2])
		rows[i][2] = ""
	}
	const next, one = "the next one", "1 notified 2 requests"
	assert.Equal(t, [][]string{
		{"Step 1 a plain znode", "nobody", "", "none they poll", "nobody", "one waits"},
		{"Step 2 a queue, and polling", next + " ✓ your guess", "", "none they poll", "nobody", "one waits"},
		{"Step 3 watch the directory", next, "0 requests", "10 notified 11 requests", "nobody", "one waits"},
		{"Step 4 watch the one before", next, "0 requests", one + " ✓ your guess", "nobody", "one waits"},
		{"Step 5 survives lost replies", next, "0 requests", one, next, "one waits"},
		{"Step 6 a lock to share", next, "0 requests", one, next, "both"},
	}, rows)
	w.hidesNothing("the six steps")
	assert.Equal(t, "Copy", w.Text("#lesson button.next"), "what to press now")
	assert.Equal(t, "Measure again", w.Text("#sums"))
	measures() // to its end: nothing measures when the test ends
	w.press("[data-do=instead]")
	w.Until(`$("stages").checkVisibility() && !$("finale").checkVisibility()`)
}
