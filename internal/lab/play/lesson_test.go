package play

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/lab/browser"
	"zklock/internal/zktest"
)

// inSight is true if the whole of an element is on the screen, and nothing lies over it.
func (w *window) inSight(selector string) bool {
	w.Helper()
	return browser.Evaluate[bool](w.Browser, fmt.Sprintf(`(() => {
		const e = document.querySelector(%q), box = e.getBoundingClientRect();
		const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
		return box.top >= 0 && box.left >= 0 && box.bottom <= innerHeight && box.right <= innerWidth && e.contains(top);
	})()`, selector))
}

// done waits until so many tasks of the lesson are done.
func (w *window) done(tasks int) {
	w.Helper()
	w.Until(fmt.Sprintf(
		`service.course.done === %d && document.querySelectorAll("#lesson li.done").length === %[1]d`,
		tasks,
	))
}

// pressNext presses the button that the lesson asks for, when the page shows the task. If the page asks
// for a choice first, it takes the first one; if it asks for a guess, it says that it does not know.
func (w *window) pressNext() {
	w.Helper()
	w.Until(`document.querySelectorAll("#lesson li.done").length === service.course.done &&
		document.querySelector("#lesson li.now button[data-do]") !== null`)
	browser.Evaluate[any](w.Browser, `
		if (isDragging()) drags(7); // the guess is about a write that comes late
		render();
		document.querySelector("#lesson [data-way].next")?.click();
		document.querySelector("#lesson button.unknown")?.click()`)
	w.press("#lesson li.now button.next")
}

// stepsPastThePolls looks back in lesson 1: steps lead past the polls to what mattered, and the counts go back with it.
// atTheEnd is how many requests had been sent when the session ended.
func (w *window) stepsPastThePolls(atTheEnd int) {
	w.Helper()
	now := w.requests()
	w.Says("#board0 .tally .task dt", "from the press to the result:")
	var told []string
	for range 40 {
		w.press("#earlier")
		w.Until(`past.at !== null && !dirty`) // the counts are those of this moment
		told = append(told, w.Text("#when"))
		if strings.Contains(told[len(told)-1], "and ends its session") {
			assert.InDelta(w, atTheEnd, w.requests(), float64(atTheEnd)/2, "when the session ends")
		}
		if told[len(told)-1] == "Client 0: crashed" {
			assert.Less(w, w.requests(), atTheEnd/2, "at the kill")
			w.Says("#board0 .tally .task dt", "since the last task:")
			break
		}
	}
	all := strings.Join(told, "; ")
	assert.Regexp(w, `Client \d: holds; .*The znode of client \d is deleted\.; .*Client \d: holds; .*The znode of client 0 is deleted\.; .*and ends its session.*; Client 0: crashed$`, all)
	w.press("#now")
	w.Until(fmt.Sprintf(`$("board0").querySelector("[data-count=requests]").textContent === "%d"`, now))
}

// requests is how many the first board shows.
func (w *window) requests() int {
	w.Helper()
	return browser.Evaluate[int](w.Browser, `Number($("board0").querySelector("[data-count=requests]").textContent.replace(",", ""))`)
}

// deletesByHand does the last tasks of lesson 1: somebody who does not hold the lock deletes its znode.
func (w *window) deletesByHand() {
	w.Helper()
	w.Until(`performance.now() > onPage(service.course.since) + AFTER + 1000`) // the strip leaves time out
	browser.Evaluate[any](w.Browser, `
		said = new Set(); // what the drawing says
		boards[0].stage.text = function (words, ...all) { said.add(words); Stage.prototype.text.call(this, words, ...all); };
		null`)
	w.pressNext()
	w.Until(`said.has("deleted by hand")`)
	w.done(3)
	browser.Evaluate[any](w.Browser, `delete boards[0].stage.text`)
	w.Contains("#lesson", "was the first to create the znode again, and holds the lock.")
	w.Says("#board0 .tally .task dt", "from the press to the result:") // the clients poll on
	believe := func() []int {
		return browser.Evaluate[[]int](w.Browser, `[0, 1, 2, 3].filter((i) => boards[0].state(i) === "holds")`)
	}
	first := believe()
	require.Len(w, first, 1)
	w.Until(fmt.Sprintf(`boards[0].strip.says.join() === "0,%d" && boards[0].strip.breaks.length === 1`, first[0]))

	// The second time the holder is alive. Nothing tells the answer before the guess.
	w.Contains("#lesson .guesses", "how many clients will then believe that they hold the lock?")
	const button = `document.querySelector("#lesson li.now > button[data-do=delete]")`
	assert.True(w, browser.Evaluate[bool](w.Browser, button+`.disabled`), "before the guess")
	assert.NotRegexp(w, "[Tt]wo clients", w.Text("#lesson"))
	const both = `document.querySelector("#legend [data-sign=both]").checkVisibility({ visibilityProperty: true })`
	assert.False(w, browser.Evaluate[bool](w.Browser, both))
	w.Until(`document.activeElement.dataset.guess === "0"`)
	w.Do(chromedp.KeyEvent("1"), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	w.done(4)
	w.Contains("#lesson .guesses", "You guessed 1 ✗, measured: 2")
	w.Contains("#lesson", fmt.Sprintf("Nobody has notified client %d, so it still believes that it holds the lock.", first[0]))
	assert.Len(w, believe(), 2)
	assert.Contains(w, believe(), first[0])
	w.Contains("#board0 .banners", "believe at the same time that they hold the lock")
	w.Contains("#board0 .banners", fmt.Sprintf("Client %d has lost the lock, and does not know it: its znode has been deleted", first[0]))
	w.Until(`boards[0].strip.both.length === 1 && boards[0].strip.says.length === 3 && ` + both)
}

// readsAreHollow checks in lesson 2 that a read is drawn unlike a write: as an arrow that is hollow, and on the strip as
// a tick that is low.
func (w *window) readsAreHollow() {
	w.Helper()
	// A request is soon at the server: the page draws one of each board in the step that finds both.
	w.Until(`(() => {
		const flying = boards.map((b) => b.story.frames.find((f) => f.kind === REQUEST));
		if (!flying.every(Boolean) || !boards.every((b) => b.strip?.requests[1] > 0)) return false;
		fills = boards.map(({ stage }, i) => {
			const { ink } = stage, fill = ink.fill, filled = [];
			ink.fill = () => filled.push(ink.fillStyle);
			stage.frame(flying[i], null);
			ink.fill = fill;
			ink.fillStyle = stage.color.paper;
			return filled[0] === ink.fillStyle;
		});
		return true;
	})()`)
	assert.Equal(w, []bool{false, true}, browser.Evaluate[[]bool](w.Browser, `fills`), "hollow")
	heights := browser.Evaluate[[]float64](w.Browser, `(() => {
		const own = CanvasRenderingContext2D.prototype.fillRect, ticks = new Map();
		CanvasRenderingContext2D.prototype.fillRect = function (x, y, width, height) {
			const request = getComputedStyle(document.documentElement).getPropertyValue("--request").trim();
			const is = this.fillStyle;
			this.fillStyle = request;
			if (width === 1 && is === this.fillStyle) ticks.set(this.canvas, height);
			this.fillStyle = is;
			own.apply(this, arguments);
		};
		drawStrips();
		CanvasRenderingContext2D.prototype.fillRect = own;
		return [...$("strips").children].map((canvas) => ticks.get(canvas));
	})()`)
	assert.InDelta(w, heights[0]/2, heights[1], 0.01, "ticks")
}

// showsTheEndBeforeItsProof looks back in lesson 2: the session ends, then a list shows that, and then the next client
// holds the lock.
func (w *window) showsTheEndBeforeItsProof() {
	w.Helper()
	w.press("#earlier")
	w.Until(`past.at !== null`)
	order := browser.Evaluate[[]int](w.Browser, `(() => {
		const ofStep2 = past.moments.filter((m) => m.story === past.stories[1]);
		return ["and ends its session", "a list of 3 names", "Client 1: holds"].map((words) => ofStep2.findIndex((m) =>
			(m.event ? m.event.says() : sentence(m.story, m.frame)).includes(words)));
	})()`)
	lists := browser.Evaluate[[]int](w.Browser, `past.moments.filter((m) => m.story === past.stories[1] && m.frame?.op === 12 && m.frame.kind === REPLY).map((m) => m.frame.client)`)
	assert.Equal(w, []int{1}, lists, "what other clients poll is passed over")
	assert.True(w, order[0] >= 0 && order[0] < order[1] && order[1] < order[2], "the end, a list without it, the next holder: %v", order)
	w.press("#now")
	w.Until(`past.at === null`)
}

// notesSigns notes from now on which signs the drawings and the strips have.
func (w *window) notesSigns() {
	w.Helper()
	browser.Evaluate[any](w.Browser, `
		signs = new Set();
		((is) => {
			const also = (of, name, notes) => {
				const own = of[name];
				of[name] = function (...all) { notes.apply(this, all); return own.apply(this, all); };
			};
			also(is, "frame", ({ kind, op }) => {
				if (kind === NOTIFICATION) signs.add("notification");
				else if (kind === REPLY) signs.add("reply");
				else signs.add(WRITES.includes(op) ? "write" : "read");
			});
			also(is, "watch", () => signs.add("watches"));
			also(is, "ring", function (c) { if (!isCalm() && this.left(c) !== null) signs.add("rings"); });
			also(is, "node", function (n) {
				signs.add("znode");
				if (this.isTagged && tag(n)) signs.add("ids");
				if (stateAt(this.story.clients[n.owner], this.t) === "got an error") signs.add("orphan");
			});
			also(is, "client", function (c, i, awake) {
				const state = stateAt(c, this.t);
				if (state === "waits") signs.add(awake ? "awake" : "waits");
				if (this.story.roles) signs.add("kinds");
				if (this.story.notified?.get(i) <= this.t) signs.add("notified");
			});
		})(LiveStage.prototype);
		drawStrip = ((draws) => (canvas, story, ...all) => {
			const drawn = draws(canvas, story, ...all);
			const has = { believes: drawn.belief, silence: drawn.wedges, lost: drawn.lost, cut: drawn.breaks };
			for (const [sign, found] of Object.entries(has)) if (found.length) signs.add(sign);
			if (story.clients.some((c) => c.states.some(({ is }) => is === "waits"))) signs.add("bar");
			return drawn;
		})(drawStrip);
		null`)
}

// explainsSigns checks at the end of a lesson that the legend explains each sign that was noted, unless words beside it
// do, and no other.
func (w *window) explainsSigns(lesson int) {
	w.Helper()
	noted := browser.Evaluate[[]string](w.Browser, `[...signs]`)
	legend := browser.Evaluate[[]string](w.Browser, `[...document.querySelectorAll("#legend li")].filter((e) => e.checkVisibility())
		.map((e) => e.dataset.sign.replace(/^(write|read)s$/, "$1"))`)
	worded := map[int][]string{4: {"reply", "notification", "waits"}, 6: {"waits", "znode"}}
	mayComeLate := []string{"cut"} // only if the tasks are done slowly
	for _, sign := range noted {
		assert.Contains(w, append(legend, worded[lesson]...), sign, "lesson %d draws it", lesson)
	}
	for _, sign := range legend {
		assert.Contains(w, append(noted, mayComeLate...), sign, "lesson %d explains it", lesson)
	}
}

// Somebody who has never seen it: six cards, and then one button after the other.
func TestTheLessonsInABrowser(t *testing.T) {
	t.Parallel()
	p := begins(t, zktest.New(t), nil, "")
	p.patience(3 * time.Minute)
	w := &window{browser.Open(t, p.address.String(), 1366, 768), p}
	w.Until(`document.querySelectorAll("#start .cards button").length === 6`)
	w.Contains("#start p", "A distributed lock lets only one of them do it at a time")
	require.True(t, w.inSight("#start li:last-child button"))

	w.press("#start li:nth-child(1) button")
	legend := func(sign string) bool {
		const isShown = `[...document.querySelectorAll("#legend li")]
			.some((e) => e.checkVisibility({ visibilityProperty: true }) && e.textContent.includes(%q))`
		return browser.Evaluate[bool](w.Browser, fmt.Sprintf(isShown, sign))
	}
	w.Until(`learns() && isSet()`)
	browser.Evaluate[any](w.Browser, `
		shown = []; // the numbers of requests, as the board shows them
		((count) => {
			const keeps = () => shown.push(Number(count.textContent.replaceAll(",", "")));
			new MutationObserver(keeps).observe(count, { childList: true });
		})(document.querySelector("#board0 [data-count=requests]"));
		null`)
	assert.True(t, legend("write request") && legend("ring") && legend("the session runs out"), "what lesson 1 shows")
	for _, sign := range []string{"read request", "notification", "watches", "awake", "two believe it at once"} {
		assert.False(t, legend(sign), "lesson 1 shows no sign of it: %s", sign)
	}
	w.Until(`performance.now() > onPage(boards[0].is.counters.since) + 2000`) // the last message of client 0 is on the strip
	w.pressNext()
	w.done(2)
	w.Contains("#lesson", "its znode still exists. It is persistent")
	w.Until(`boards[0].is.counters.requests > service.course.counts[0].requests + 50`) // the clients still poll
	fell := browser.Evaluate[int](w.Browser, `shown.filter((n, i) => n < shown[i - 1]).length`)
	assert.Equal(t, 1, fell, "the count begins again at the kill, and then only grows")
	w.Until(`boards[0].strip?.sessions.join() === "0" && boards[0].strip.over.join() === "0"`)
	runsOut := browser.Evaluate[float64](w.Browser, `(([from, to]) => (to - from) / wide($("strips").children[0]) * past.clock.length / 1000)(boards[0].strip.wedges[0])`)
	assert.InDelta(t, 5, runsOut, 0.1, "seconds, from the last message of client 0 on")
	ticks := browser.Evaluate[[]int](w.Browser, `[1, 2, 3].map((i) => boards[0].strip.requests[i] ?? 0)`)
	assert.Greater(t, slices.Min(ticks), 20, "what each waiter has asked is on the strip")
	w.Contains("#lesson", fmt.Sprintf("sent %s requests", w.Text("#board0 [data-count=requests]")))
	atTheEnd := w.requests()
	w.Until(`boards[0].strip.stays.join() === "0" && boards[0].strip.says.join() === "0"`) // the server still has its znode
	shows := `(() => { const said = []; boards[0].stage.text = (words) => said.push(words); boards[0].draw(performance.now());
		delete boards[0].stage.text; return said; })()`
	assert.Contains(t, browser.Evaluate[[]string](w.Browser, shows), "lock·0", "in the drawing, the znode and its creator")
	w.deletesByHand()
	w.Until(`document.querySelectorAll("button.next").length === 1`) // nothing else is to be pressed
	w.stepsPastThePolls(atTheEnd)
	w.press("#lesson .ways button.next") // the next lesson
	w.Until(`service.course.lesson === 2 && !service.course.begun &&
		!$("strips").checkVisibility({ visibilityProperty: true })`) // nothing of the lesson before
	w.Until(`document.querySelector("#lesson [data-guess]") !== null`)
	assert.True(t, legend("write request") && legend("read request"), "what lesson 2 shows")
	w.Contains("#lesson .guesses", "Who then holds the lock, on each side?") // the question of the lesson
	w.readsAreHollow()
	browser.Evaluate[any](w.Browser, `notes(0, "-1"); notes(1, "-1"); null`) // nobody, on either side
	w.pressNext()
	w.done(2)
	w.Contains("#lesson", "client 1 holds the lock")
	w.Contains("#lesson", "requests, all of them reads")
	assert.Zero(t, browser.Evaluate[int](w.Browser, `service.course.counts[1].writes`))
	w.Contains("#lesson .guesses", "Step 1: you guessed nobody ✓, measured: nobody")
	w.Contains("#lesson .guesses", "Step 2: you guessed nobody ✗, measured: client 1")
	w.showsTheEndBeforeItsProof()
	w.press("#lesson .ways button.next")
	w.Until(`service.course.lesson === 3 && service.course.begun && service.pace === "slow"`)
	w.Until(`document.querySelector("#lesson li.now > button[data-do]") !== null`)
	for _, control := range []string{"#all", "#commands", "#lock0", "#clients .quick:not(.next)"} {
		hidden := fmt.Sprintf(`[...document.querySelectorAll(%q)].every((e) => !e.checkVisibility())`, control)
		assert.True(t, browser.Evaluate[bool](w.Browser, hidden), "%s is no part of a lesson", control)
	}
	assert.True(t, legend("notification") && legend("watches") && legend("awake"), "what lesson 3 shows")
	assert.False(t, legend("the session runs out"), "lesson 3 has no strip")
	assert.False(t, legend("ring"), "in lesson 3 no session ends")
	for _, size := range [][2]int64{{1366, 768}, {390, 844}, {1920, 1080}} {
		w.resizes(size)
		browser.Evaluate[any](w.Browser, `scrollTo(0, document.documentElement.scrollHeight); null`) // a phone's page scrolls
		assert.True(t, w.inSight("#lesson li.now > button[data-do]"), "%v", size)
		assert.True(t, w.inSight("#board0 canvas"), "the lesson covers nothing of the drawing: %v", size)
	}
	w.notesSigns()
	w.pressNext()
	w.done(1)
	w.explainsSigns(3)
	w.Contains("#lesson", "Step 3: 10 notifications, and 10 clients list the directory. Only client 1 got the lock")
	w.Contains("#lesson", "Step 4: 1 notification, and 1 client lists the directory: client 1 alone")
	w.Do(chromedp.EmulateViewport(1366, 768))
	w.press("header [data-do=lessons]")
	w.Until(`!document.querySelector("#start").hidden && document.querySelector("main").offsetHeight === 0`)

	// Each of the others leads to its end, too.
	for _, l := range lessons[3:] {
		n, tasks := l.N, len(l.Tasks)
		w.press(fmt.Sprintf("#start li:nth-child(%d) button", n))
		w.Until(fmt.Sprintf(`service.course.lesson === %d && isSet()`, n))
		browser.Evaluate[any](w.Browser, `signs.clear()`)
		for i := range tasks {
			w.Until(fmt.Sprintf(`service.course.done >= %d`, i))
			if browser.Evaluate[bool](w.Browser, fmt.Sprintf(`service.lessons[%d].tasks[%d].do !== ""`, n-1, i)) {
				w.pressNext()
			}
		}
		w.done(tasks)
		if n != 5 {
			w.explainsSigns(n)
		}
		w.press("header [data-do=lessons]")
		w.Until(`!document.querySelector("#start").hidden`)
	}
}

// After a task the picture is of now, as the text. The moment that decides can be shown again, and a band says so. From
// there one message is one message, and the way back to now is short.
func (w *window) looksBack() {
	w.Helper()
	w.Until(`past.at === null && boards.every((b) => !b.stage.story.past)`)
	w.press("#lesson [data-do=moment]")
	w.Until(`past.focus?.decides && !dirty && [...document.querySelectorAll(".again")].every((e) => e.checkVisibility())`)
	w.Contains("#board0 .again span", "the decisive moment")
	text := w.Text("#board0 .again span")
	assert.Regexp(w, `^At \d+\.\d s: the decisive moment\.$`, text)
	w.Says("#board1 .again span", text) // it is the same on both boards
	hairlines := browser.Evaluate[[]float64](w.Browser, `boards.map((b) => b.strip.at)`)
	shown := browser.Evaluate[float64](w.Browser, `STRIP.left($("strips").children[0]) + wide($("strips").children[0]) * past.at / past.clock.length`)
	assert.InDeltaSlice(w, []float64{shown, shown}, hairlines, 0.01)
	index := `past.moments.findIndex((m) => m.frame === past.focus.frame)`
	at := browser.Evaluate[int](w.Browser, index)
	w.Contains("#earlier", "previous event")
	w.press("#earlier")
	w.Until(fmt.Sprintf(`!past.focus.decides && %s === %d`, index, at-1))
	w.Contains("#board0 .again span", "s: an earlier moment.")
	w.press("#language")
	w.Contains("#board0 .again span", "秒：之前的某个时刻。")
	w.press("#language")
	w.press("#later")
	w.Until(fmt.Sprintf(`%s === %d`, index, at))
	w.press("#board0 .again button")
	w.Until(`past.at === null && [...document.querySelectorAll(".again")].every((e) => !e.checkVisibility())`)
}

// at waits until the page is at a task, which its address names.
func (w *window) at(lesson, task int) {
	w.Helper()
	w.Until(fmt.Sprintf(`location.hash === "#lesson-%d/%d" && aim === null && isSet() &&
		service.course.lesson === %[1]d && service.course.done === %[2]d - 1`, lesson, task))
}

// Each task has an address, and Back leads to the task before: the page does again what leads there.
func TestBackLeadsToTheTaskBeforeInABrowser(t *testing.T) {
	t.Parallel()
	p := begins(t, zktest.New(t), nil, "")
	p.patience(3 * time.Minute)
	w := &window{browser.Open(t, p.address.String(), 1366, 768), p}
	w.Until(`document.querySelectorAll("#start .cards button").length === 6`)
	w.press("#start li:nth-child(4) button")
	w.at(4, 1)
	w.Contains("#board1 h2", "Step 5: what is different?")
	seen := browser.Evaluate[string](w.Browser, `document.querySelector("main").innerText`)
	assert.NotContains(t, seen, "guid", "the answer, before the guess")
	w.Contains("#lesson .guesses", "will client 1 learn that it has a znode in the queue?")
	browser.Evaluate[any](w.Browser, `notes(0, "1"); notes(1, "1"); null`) // yes, in both
	w.pressNext()
	w.done(1)
	w.Contains("#lesson .guesses", "Step 4: you guessed yes ✗, measured: no")
	w.Contains("#lesson .guesses", "Step 5: you guessed yes ✓, measured: yes")
	w.looksBack()
	w.at(4, 2)
	w.pressNext()
	w.at(4, 3)
	browser.Evaluate[any](w.Browser, `history.back()`)
	w.Contains("#lesson .ways", "On the way to task 2: the page repeats the earlier tasks.")
	w.at(4, 2)
	browser.Evaluate[any](w.Browser, `history.back()`)
	w.at(4, 1)
	browser.Evaluate[any](w.Browser, `history.forward()`)
	w.at(4, 2)
	browser.Evaluate[any](w.Browser, `history.forward()`)
	w.at(4, 3)
	w.pressNext()
	w.done(3)
	w.at(4, 4)
	assert.NotContains(t, w.Text("#lesson .seen"), "session", "the answer, before the guess")
	w.Contains("#lesson li.now .guesses", "who holds the lock when the session of client 1 has ended?")
	browser.Evaluate[any](w.Browser, `notes(0, "-1"); notes(1, "2"); null`)
	w.pressNext() // the client is killed in earnest
	w.done(4)
	w.Contains("#lesson .guesses", "Step 4: you guessed nobody ✗, measured: client 2")
	w.Contains("#lesson .guesses", "Step 5: you guessed client 2 ✓, measured: client 2")
	w.Contains("#lesson .seen", "The server has deleted the znode with the session of client 1")
	w.becomes(1, "crashed", "crashed")
	w.becomes(2, "holds", "holds")
	w.Until(`boards.every((b) => b.strip?.over.join() === "1")`)
	w.Contains("#board1 h2", "Step 5: survives lost replies")
	over := browser.Evaluate[int](w.Browser, `service.course.since`)
	w.Do(chromedp.Reload()) // of a lesson that is over nothing is done again
	w.Until(`document.querySelectorAll("#lesson li.done").length === 4`)
	assert.Equal(t, over, browser.Evaluate[int](w.Browser, `service.course.since`))
}

// Of lessons that are chosen quickly, one after the other, the last one is laid.
func TestTheLastLessonChosenIsLaid(t *testing.T) {
	t.Parallel()
	p := begins(t, zktest.New(t), nil, "")
	for i := range 14 {
		p.do(`{"do":"lesson","n":%d}`, 1+i%6)
	}
	p.until(0, "lesson 2 to be laid", func(b *side) bool {
		return p.course.Lesson == 2 && p.course.Begun && p.wanted == 0 && b.Key == "1" && p.sides[1].Key == "2"
	})
}

// A lock that cannot be built, or gets no place at the server, is said, and play goes on.
func TestALessonWhoseLockHasNoPlace(t *testing.T) {
	t.Parallel()
	p := begins(t, zktest.New(t), nil, "")
	p.mu.Lock()
	p.root = "/nowhere"
	p.mu.Unlock()
	p.do(`{"do":"lesson","n":1}`)
	p.until(0, "the side to say why", func(b *side) bool { return b.complaint != "" })
	p.until(0, "the lesson to be over", func(b *side) bool { return p.wanted == 0 && !b.building })
	p.do(`{"do":"lesson","n":2}`)
	p.until(1, "the next lesson's side to say why", func(b *side) bool { return b.Key == "2" && b.complaint != "" })
}

// A state changes when its frame arrives: nobody is seen to hold the lock while the reply
// that says so is seen on its way.
func TestNothingIsSeenBeforeItsCauseInABrowser(t *testing.T) {
	t.Parallel()
	w := shows(t, "3", 6)
	w.Do(chromedp.KeyEvent("L"))
	w.becomes(0, "holds")
	w.Until(`boards[0].state(5) === "waits" && boards[0].story.frames.length === 0`)
	browser.Evaluate[any](w.Browser, `
		flew = 0; early = [];
		(function look() {
			const now = performance.now(), b = boards[0];
			const flying = b.story.frames.filter((f) => f.client === 1 && f.to > now);
			flew += flying.length;
			if (flying.length && b.state(1) === "holds") early.push("it holds");
			if (flying.some((f) => f.kind === NOTIFICATION) && b.state(1) === "holds")
				early.push("it holds, and has not been notified");
			const writes = b.story.frames.some((f) => f.writes && f.to > now);
			if (writes && ![...b.nodes.values()].some((n) => n.owner === 0 && there(n, now)))
				early.push("its znode is gone before the delete");
			requestAnimationFrame(look);
		})();
		null`)
	w.click(0, "unlock")
	w.becomes(1, "holds")
	assert.Positive(t, browser.Evaluate[int](w.Browser, `flew`), "frames on their way were seen")
	assert.Empty(t, browser.Evaluate[[]string](w.Browser, `early`))
}

// Safari refuses to write the address often, with an error. The page goes on.
func TestAnAddressThatCannotBeWrittenInABrowser(t *testing.T) {
	t.Parallel()
	w := shows(t, "2", 3)
	browser.Evaluate[any](
		w.Browser,
		`written = 0;
		history.replaceState = () => { written++; throw new DOMException("too often", "SecurityError"); };
		null`,
	)
	w.Do(chromedp.KeyEvent("L"))
	w.becomes(0, "holds")
	browser.Evaluate[any](w.Browser, `before = boards[0].is.counters.requests; null`)
	w.Until(`boards[0].is.counters.requests > before + 50`)
	require.Zero(t, browser.Evaluate[int](w.Browser, `written`), "the locks are the same")
	w.Choose("#lock0", "3")
	w.Until(`boards[0].is?.lock === "3"`)
	w.ready(3)
	w.Do(chromedp.KeyEvent("L"))
	w.becomes(0, "holds")
	w.Until(`written > 0`) // another lock
	assert.Equal(t, 1, browser.Evaluate[int](w.Browser, `written`))
}

// An address that is none is left alone.
func TestAnAddressThatNamesNothingInABrowser(t *testing.T) {
	t.Parallel()
	p := plays(t, "3", 2)
	w := &window{browser.Open(t, p.address.String()+"#%E0%A4%A", 1024, 768), p}
	w.ready(2)
	w.Until(`document.querySelectorAll("#lock0 option").length > 10`)
}

// packets waits until the server has got so many more: what the clients' sessions need.
func (w *window) packets(more int64) {
	w.Helper()
	got := func() int64 {
		counters, err := w.player.zoo.Mntr()
		require.NoError(w, err)
		return counters["zk_packets_received"]
	}
	before := got()
	w.player.zoo.Await("packets at the server", func() bool { return got() > before+more })
}

// A page on which nothing happens is told nothing, draws nothing, and writes nothing: not
// with the locks whose sessions are proved all the time, and not, when nobody has done
// anything for a while, with those whose clients ask all the time. That goes on at the pace
// that was chosen.
func TestNothingIsDrawnInQuietInABrowser(t *testing.T) {
	t.Parallel()
	w := shows(t, "6", 4)
	counted := func() { // what is drawn and written from now on
		w.Until(`!moving && !dirty && boards[0].story.frames.every((f) => f.to === Infinity)`)
		browser.Evaluate[any](w.Browser, `
			drawn = [];
			for (const [of, name] of [[boards[0], "draw"], [boards[0], "words"]]) {
				const is = Board.prototype[name];
				of[name] = function (...all) { drawn.push(name); return is.apply(this, all); };
			}
			events.addEventListener("message", (e) => drawn.push("told " + e.data));
			null`)
	}
	w.Do(chromedp.KeyEvent("L"))
	w.becomes(0, "holds")
	w.becomes(3, "waits")
	w.Until(`boards[0].story.watches.filter((x) => there(x, performance.now())).length === 3`) // all wait silently
	counted()
	w.packets(20) // of sessions that are kept alive
	assert.Empty(t, browser.Evaluate[[]string](w.Browser, `drawn`), "step 6")

	w.lay("1", 4)
	w.Do(chromedp.KeyEvent("L"))
	w.becomes(0, "holds")
	w.becomes(3, "waits")
	w.press("[data-pace=slow]")
	w.Until(`service.pace === "slow"`)
	w.player.mu.Lock()
	w.player.rest, w.player.acted = rest, w.player.acted.Add(-rest)
	w.player.mu.Unlock()
	w.Until(`!document.querySelector("#rests").hidden && service.pace === "pause"`)
	counted()
	w.packets(100)
	assert.Empty(t, browser.Evaluate[[]string](w.Browser, `drawn`), "step 1")
	asked := browser.Evaluate[int](w.Browser, `boards[0].is.counters.requests`)
	w.press("#rests button")
	w.Until(fmt.Sprintf(
		`$("rests").hidden && service.pace === "slow" && boards[0].is.counters.requests > %d + 10`,
		asked,
	))
	w.Do(chromedp.KeyEvent(" "))
	w.Until(`service.pace === "pause"`)
	w.Do(chromedp.KeyEvent(" "))
	w.Until(`service.pace === "slow"`)
}

// An error stays for a while, however much is told meanwhile; what cannot be done cannot
// be pressed; and the second of two quick clicks is not another command.
func TestWhatCannotBeDoneInABrowser(t *testing.T) {
	t.Parallel()
	w := shows(t, "1", 3)
	w.Do(chromedp.KeyEvent("L"))
	w.becomes(0, "holds")
	w.becomes(2, "waits")
	browser.Evaluate[any](
		w.Browser,
		`told = 0;
		events.addEventListener("message", () => { if (!$("trouble").hidden) told++; });
		ask({ do: "lock", client: 9 });
		null`,
	)
	w.Contains("#trouble", "there is no client 9")
	w.Until(`$("trouble").hidden`)
	assert.Greater(t, browser.Evaluate[int](w.Browser, `told`), 10, "news while the error was there")

	w.press(`[data-choose="0"]`)
	w.Until(
		`document.querySelector("#commands [data-do=lock]").disabled &&
		!document.querySelector("#commands [data-do=unlock]").disabled`,
	)
	w.Until(`document.querySelector("#clients tbody tr button.quick").ariaLabel === "Client 0: Unlock"`)
	browser.Evaluate[any](w.Browser, `
		for (const detail of [1, 2])
			document.querySelector("#clients tbody tr button.quick")
				.dispatchEvent(new MouseEvent("click", { bubbles: true, detail }));
		null`)
	w.becomes(0, "idle")
	w.click(0, "kill")
	w.becomes(0, "crashed")
	w.Until(`[...document.querySelectorAll("#commands button")].every((b) => b.disabled)`)
	assert.NotContains(t, w.Text("#log"), "client 0: Lock.")
	assert.Contains(t, w.Text("#log"), "You: client 0: Unlock.")
}

// The same of what is for all clients, and of what would be done behind the cards.
func TestWhatCannotBeDoneByAllInABrowser(t *testing.T) {
	t.Parallel()
	p := begins(t, zktest.New(t), nil, "")
	w := &window{browser.Open(t, p.address.String(), 1366, 768), p}
	w.Until(`document.querySelectorAll("#start .cards button").length === 6`)
	can := func(what string) bool {
		return browser.Evaluate[bool](
			w.Browser,
			fmt.Sprintf(`[...document.querySelectorAll("#all [data-do=%s]")].every((b) => !b.disabled)`, what),
		)
	}
	w.press("[data-do=freely]")
	w.Until(`live().length === 1`)
	w.Until(`!document.querySelector("#all [data-do=add]").disabled`)
	assert.False(t, can("lock"), "nobody is there")
	assert.False(t, can("unlock"))
	assert.False(t, browser.Evaluate[bool](w.Browser, `$("save").hasAttribute("href")`), "nothing has happened")
	w.Do(chromedp.KeyEvent("S"))
	w.press(`[data-do=add][data-n="1"]`)
	w.ready(1)
	w.Until(`$("save").hasAttribute("href")`)
	assert.True(t, can("lock"))
	assert.False(t, can("unlock"), "nobody holds the lock")

	w.press("header [data-do=lessons]")
	w.Until(`!document.querySelector("#start").hidden`)
	w.Do(chromedp.KeyEvent("L"), chromedp.KeyEvent("X"), chromedp.KeyEvent("+"), chromedp.KeyEvent("?"))
	assert.False(t, browser.Evaluate[bool](w.Browser, `$("keys").open`), "there is no button for it")
	w.press("header [data-do=lessons]")
	w.Until(`document.querySelector("#start").hidden`)
	w.ready(1)

	w.Do(chromedp.KeyEvent("L"))
	w.becomes(0, "holds")
	w.Until(
		`document.querySelector("#all [data-do=lock]").disabled &&
		!document.querySelector("#all [data-do=unlock]").disabled`,
	)
	browser.Evaluate[any](w.Browser, `service.max = 1; soon(); null`)
	w.Until(`[...document.querySelectorAll("#all [data-do=add]")].every((b) => b.disabled)`)
}

// In Chinese no sentence of the page is English: not what a lesson says, and not the log.
func TestTheLessonsInChineseInABrowser(t *testing.T) {
	t.Parallel()
	p := begins(t, zktest.New(t), nil, "")
	w := &window{browser.Open(t, p.address.String(), 1366, 768), p}
	english := func(when string) {
		w.Helper()
		assert.Empty(t, browser.Evaluate[[]string](w.Browser, `(() => {
			const found = [], nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
			for (let n; n = nodes.nextNode();) {
				const isLeftOut = n.parentElement.closest("script, style, noscript, [translate=no], dialog");
				const said = n.data.replace(/zklock: .*/, ""); // an error is English
				if (/[A-Za-z]{2,} [a-z]{2,}/.test(said) && !isLeftOut) found.push(n.data);
			}
			return found;
		})()`), when)
	}
	w.Until(`document.querySelectorAll("#start .cards button").length === 6`)
	w.press("#language")
	w.Contains("#start h2", "什么是分布式锁")
	english("the cards")
	w.press("#start li:nth-child(1) button")
	w.pressNext()
	w.done(2)
	w.Contains("#lesson", "的会话已经结束")
	w.Contains("#clients tbody", "已崩溃")
	w.press("#board0 summary")
	w.Until(`document.querySelectorAll("#board0 details tbody tr").length === 4`)
	english("lesson 1")
	for _, at := range []int{3, 4} {
		w.pressNext()
		w.done(at)
		english(fmt.Sprintf("lesson 1, after task %d", at))
	}
	w.Contains("#lesson .guesses", "以为自己持有锁的客户端：2")
	w.Until(`document.querySelector("#board0 .chapter").getAttribute("href") === "/book/zh-CN/step01.html"`)
}

// From the last row it can be read: no letter of what happens is small. In each window the buttons are over their
// clients.
func TestTheLettersAreLargeInABrowser(t *testing.T) {
	t.Parallel()
	w := shows(t, "3", 3)
	w.Do(chromedp.KeyEvent("L"))
	w.becomes(0, "holds")
	for width, smallest := range map[int]float64{1920: 17, 1366: 12.5} {
		w.resizes([2]int64{int64(width), int64(width) * 9 / 16})
		assert.Empty(t, browser.Evaluate[[]int](w.Browser, astray), "the buttons that are not over their clients, at %d", width)
		assert.Empty(t, browser.Evaluate[[]string](w.Browser, fmt.Sprintf(`(() => {
			const found = [], nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
			for (let n; n = nodes.nextNode();) {
				const e = n.parentElement;
				const isRead = n.data.trim() && e.checkVisibility() && !e.closest("kbd, noscript, script, style");
				if (isRead && parseFloat(getComputedStyle(e).fontSize) < %f) found.push(n.data);
			}
			return found;
		})()`, smallest)), "smaller than %v px at %d", smallest, width)
	}
}

// The chapter that a board leads to is the book's: its prediction is folded, and its run plays.
func TestTheBookIsServedInABrowser(t *testing.T) {
	t.Parallel()
	w := shows(t, "3", 1)
	w.Until(`document.querySelector("#board0 .chapter").getAttribute("href") === "/book/step03.html"`)
	at := browser.Evaluate[string](w.Browser, `document.querySelector("#board0 .chapter").href`)
	b := browser.Open(t, at, 1366, 768)
	seen := func(selector string) bool {
		return browser.Evaluate[bool](b, fmt.Sprintf(`document.querySelector(%q).checkVisibility()`, selector))
	}
	require.True(t, seen(".question input"))
	assert.False(t, seen(".answer > p:last-child"), "the answer")
	assert.False(t, seen("[data-after] > pre"), "the output that answers it")
	b.Do(chromedp.SendKeys(chromedp.CSS(".question input"), "5050"), chromedp.KeyEvent(kb.Enter))
	b.Contains(".yours", "You said: 5050 notifications That is right.")
	b.Do(chromedp.Click(chromedp.CSS(".run .phases button:nth-child(2)")))
	b.Contains(".run .caption", "Client 0 released: 10 notifications, 10 lists. Only client 1 got the lock.")
}

// What is said of a message comes after the message was drawn: the result of a task, a banner, a line of
// the log.
func TestTheTextComesAfterThePictureInABrowser(t *testing.T) {
	t.Parallel()
	p := begins(t, zktest.New(t), nil, "")
	p.patience(3 * time.Minute)
	w := &window{browser.Open(t, p.address.String()+"#lesson-5/1", 1366, 768), p}
	w.Until(`service.course?.lesson === 5 && isSet() && document.querySelector("#lesson li.now") !== null`)
	browser.Evaluate[any](w.Browser, `
		early = [];
		new MutationObserver(() => {
			const now = performance.now(), says = (where, what) => $(where).textContent.includes(what);
			live().forEach((b, i) => {
				const hasLanded = b.story.writes.some((write) => write.late && write.to <= now);
				const isTold = says("lesson", ["has accepted the late write", "has refused the late write"][i]);
				if (isTold && !hasLanded) early.push("the result");
				if (says("log", ["accepted, too late", "refused: a later"][i]) && !hasLanded) early.push("the log");
				if (b.root.querySelector(".banners p:not(.note)") && b.state(1) !== "holds") early.push("the banner");
			});
		}).observe(document.body, { subtree: true, childList: true, characterData: true });
		for (const { stage } of boards) stage.flyingWrite = function (w) {
			if (w.client === 1 && stateAt(this.story.clients[1], this.t) !== "holds") early.push("the write of the next holder");
			Stage.prototype.flyingWrite.call(this, w);
		};
		left = new Set();
		setInterval(() => { if (toDo() && isDoing()) left.add(boards[0].strip.left.join()); }, 50);
		null`)
	w.pressNext()
	w.done(1)
	left := browser.Evaluate[int](w.Browser, `left.size`)
	assert.Greater(t, left, 1, "the strip moves during the pause: shares of the session that were left")
	w.Contains("#lesson", "has accepted the late write")
	w.Contains("#log", "refused: a later holder has written")
	assert.Empty(t, browser.Evaluate[[]string](w.Browser, `early`))
	w.Until(`boards.every((b) => b.stage.kept().last?.late)`) // in the next picture

	// Its time is drawn below it: both believe, the server says who holds the lock, and what the store did.
	w.Until(`boards.every((b) => b.strip?.writes.length === 2)`)
	now := browser.Evaluate[[]float64](w.Browser, `boards.map((b) => b.strip.now)`)
	assert.InDelta(t, now[0], now[1], 1, "now, on the left and on the right")
	for i, late := range []string{"0 late", "0 refused"} {
		strip := func(of string) string { return fmt.Sprintf(`boards[%d].strip.%s`, i, of) }
		assert.Equal(t, []string{"1 accepted", late}, browser.Evaluate[[]string](w.Browser, strip("writes")))
		assert.Equal(t, []string{"0", "1"}, browser.Evaluate[[]string](w.Browser, strip("says")), "the holders, as the server says")
		assert.Equal(t, []int{0}, browser.Evaluate[[]int](w.Browser, strip("pauses")))
		assert.Contains(t, browser.Evaluate[[]string](w.Browser, strip("both")), "0,1", "both believe at once")
		seconds := browser.Evaluate[[]int](w.Browser, strip("seconds")+`.map((s) => s.second)`)
		assert.True(t, seconds[0] == 0 && slices.IsSorted(seconds) && seconds[len(seconds)-1] >= 5, "the axis: %v", seconds)
	}
	scale := `boards.map((b) => b.strip.seconds.map((s) => Math.round(s.left - b.strip.seconds[0].left)))`
	seconds := browser.Evaluate[[][]int](w.Browser, scale)
	assert.Equal(t, seconds[0], seconds[1], "where the seconds are, on the left and on the right")
	for i := range len(seconds[0]) - 1 {
		assert.InDelta(t, seconds[0][1], seconds[0][i+1]-seconds[0][i], 1.01, "each second is as wide as the first")
	}
	w.stripsAreRead("on a laptop")
	browser.Evaluate[any](w.Browser, `(() => {
		const canvas = $("strips").children[0], box = canvas.getBoundingClientRect();
		const at = { bubbles: true, buttons: 1, clientX: box.x + STRIP.left(canvas) + 9, clientY: box.y + 9 };
		canvas.dispatchEvent(new PointerEvent("pointerdown", at));
	})()`)
	w.Until(`past.at !== null && boards.every((b) => b.stage.story.past)`)
	assert.Equal(t, "holds", browser.Evaluate[string](w.Browser, `stateAt(past.stories[0].clients[0], boards[0].stage.t)`))

	browser.Evaluate[any](w.Browser, `before = past.at; $("strips").children[0].focus(); null`)
	w.Do(chromedp.KeyEvent(kb.ArrowRight))
	w.Until(`past.at > before && document.activeElement.ariaValueNow > 0`) // the keyboard moves the hairline, too
	w.press("#now")
	browser.Evaluate[any](w.Browser, `$("strips").children[0].focus(); null`)
	w.Do(chromedp.KeyEvent(kb.ArrowLeft))
	w.Until(`past.at !== null && past.at < past.last`) // from now, at once into the past
	browser.Evaluate[any](w.Browser, `(() => {
		const canvas = $("strips").children[0], box = canvas.getBoundingClientRect();
		const at = { bubbles: true, buttons: 1, clientX: box.right - STRIP.right - 1, clientY: box.y + 9 };
		canvas.dispatchEvent(new PointerEvent("pointerdown", at));
	})()`)
	w.Until(`past.at === null`) // right of what was recorded is now
	w.resizes(sizes[2])
	w.Until(`past.at === null`)
	w.Until(`boards.map((b) => $("strips").children[b.i].clientWidth).every((width) => width > 300 && width < 390)`)
	w.stripsAreRead("on a phone")
	w.resizes(sizes[0])

	// One message back is also one write back.
	for range 200 {
		w.press("#earlier")
		w.Until(`past.focus !== null`)
		if browser.Evaluate[bool](w.Browser, `past.focus.write !== undefined`) {
			break
		}
	}
	assert.Contains(t, w.Text("#when"), "lient 0")
	assert.True(t, browser.Evaluate[bool](w.Browser, `past.focus.write?.late === true`), "the last write is the late one")
}

// The drawing is behind the record: a client that polls has many frames on their way. The strip waits for the drawing.
func TestTheStripIsNotBeforeTheDrawingInABrowser(t *testing.T) {
	t.Parallel()
	p := begins(t, zktest.New(t), nil, "")
	p.patience(3 * time.Minute)
	w := &window{browser.Open(t, p.address.String()+"#lesson-1/1", 1366, 768), p}
	w.at(1, 1)
	browser.Evaluate[any](w.Browser, `
		early = [];
		drawStrip = ((own) => function (canvas, story, ...rest) {
			const b = boards[0], now = performance.now();
			story.clients.forEach((c, i) => {
				if (inside(c.states.at(-1).is) && b.state(i) === "waits") early.push("client " + i + " holds");
			});
			for (const n of story.nodes.filter((n) => n.to >= 0)) {
				const isDrawn = [...b.nodes.values()].some((m) => m.owner === n.owner && there(m, now));
				const isInTheStrip = story.nodes.some((m) => m.owner === n.owner && m.to < 0);
				if (isDrawn && !isInTheStrip) early.push("the znode of client " + n.owner + " is deleted");
			}
			return own(canvas, story, ...rest);
		})(drawStrip);
		null`)
	for done := range 4 {
		if lessons[0].Tasks[done].Do != "" {
			w.pressNext()
		}
		w.done(done + 1)
	}
	w.Until(`boards[0].strip.both.length === 1`)
	assert.Empty(t, browser.Evaluate[[]string](w.Browser, `early`))
}

// The moment that decides is drawn on both boards, although it was not the same one; and a guess can be
// passed over only by saying so.
func TestTheDecisiveMomentIsOnBothBoardsInABrowser(t *testing.T) {
	t.Parallel()
	p := begins(t, zktest.New(t), nil, "")
	p.patience(3 * time.Minute)
	w := &window{browser.Open(t, p.address.String()+"#lesson-4/1", 1366, 768), p}
	w.Until(`service.course?.lesson === 4`)
	w.at(4, 1)
	assert.False(t, browser.Evaluate[bool](w.Browser, `document.querySelector("#legend [data-sign=ids]")
		.checkVisibility({ visibilityProperty: true })`), "the guid answers the guess")
	browser.Evaluate[any](w.Browser, `
		vanished = 0; // how often the tasks have gone while the first was under way
		new MutationObserver(() => { if (!document.querySelector("#lesson li")) vanished++; })
			.observe($("lesson"), { subtree: true, childList: true });
		null`)
	w.pressNext()
	w.done(1)
	assert.Zero(t, browser.Evaluate[int](w.Browser, `vanished`))
	// In step 4 no line leads from client 1 to its znode. In step 5 the client has found it, and the queue has its guid.
	drawn := `boards.map(({ stage }) => {
		const dashes = [], says = [], { ink, text } = stage, { setLineDash } = ink, { nodes } = stage.story;
		ink.setLineDash = (all) => dashes.push(all.join());
		stage.text = (words) => says.push(words);
		stage.node(nodes.find((n) => n.owner === 1), nodes.findIndex((n) => n.owner === 1));
		delete ink.setLineDash;
		stage.draw(stage.t, null);
		delete stage.text;
		return [dashes.includes("4,3") ? "dashed" : "", ...says.filter((words) => ["mine", "no"].includes(words)).sort()].join(" ").trim();
	})`
	assert.Equal(t, []string{"dashed", "mine no"}, browser.Evaluate[[]string](w.Browser, drawn))
	assert.Regexp(t, `^_c_[0-9a-f]{2}…-lock-`, w.Text("#board1 .ls li"))
	w.press("#lesson [data-moment=found]") // the list that answers the guess: its reply has nearly arrived
	w.Until(`Boolean(past.focus?.decides)`)
	assert.Equal(t, []string{"", "mine no"}, browser.Evaluate[[]string](w.Browser, `boards.map(({ stage }) => {
		const says = [], { text } = stage;
		stage.text = (words) => says.push(words);
		stage.draw(stage.t, null);
		delete stage.text;
		return says.filter((words) => ["mine", "no"].includes(words)).sort().join(" ");
	})`))
	w.Contains("#when", "a list of 2 names")
	w.press("#lesson [data-moment=lost]")
	w.Until(`Boolean(past.focus?.decides && past.focus.frame.lost)`)
	flying := `boards.map((b) => b.stage.flying().filter((f) => f.lost).length)`
	w.Until(`boards.every((b) => b.stage.story.past)`)
	assert.Equal(t, []int{1, 1}, browser.Evaluate[[]int](w.Browser, flying), "lost replies")

	// The reply is on its way until half way. Then it has a sign of its own, which the legend explains.
	isGone := `[0.2, 0.9].map((share) => boards.map(({ stage }) => {
		const f = stage.story.frames.find((f) => f.lost);
		stage.draw(f.from + share * (f.to - f.from), null);
		return f.isGone;
	}))`
	assert.Equal(t, [][]bool{{false, false}, {true, true}}, browser.Evaluate[[][]bool](w.Browser, isGone))
	covered := `boards.map(({ stage }) => { // by its sign, of the znode
		const { x, y } = stage.story.frames.find((f) => f.lost).is, { w, h } = stage.chip();
		const p = stage.nodeAt(stage.story.nodes.findIndex((n) => n.owner === 1));
		return Math.abs(x - p.x) < w / 2 + 6 && Math.abs(y - p.y) < h / 2 + 6;
	})`
	assert.Equal(t, []bool{false, false}, browser.Evaluate[[]bool](w.Browser, covered))
	named := `boards.map(({ stage }) => stage.labelled.filter(({ words }) => words === "created: lost").length)`
	assert.Equal(t, []int{1, 1}, browser.Evaluate[[]int](w.Browser, named), "what is lost is written beside it")
	w.Until(`["lost", "awake", "ids"].every((sign) => document.querySelector("#legend [data-sign=" + sign + "]")
		.checkVisibility({ visibilityProperty: true }))`)

	// In step 5 the client finds its znode by the guid in the name. In step 4 there is none.
	w.Until(`boards.every((b) => b.strip?.lost.join() === "1")`)
	assert.Equal(t, []bool{false, true}, browser.Evaluate[[]bool](w.Browser, `boards.map((b) => b.stage.tagOf(1) !== "")`))
	w.resizes(sizes[2]) // on a phone the znodes have their tags, and what happened is said whole
	w.Until(`boards.every((b) => b.stage.tiny)`)
	chips := browser.Evaluate[[]string](w.Browser, `(() => {
		const { stage } = boards[1], { ink } = stage, own = stage.text, { w } = stage.chip(), chips = [];
		stage.text = function (words, x, y, fill, size, weight) {
			own.apply(this, arguments);
			const isRead = ink.measureText(words).width <= w && size >= 11;
			if (words.includes("·")) chips.push(isRead ? words.slice(0, 2) : words + ": cut or small");
		};
		boards[1].draw(performance.now());
		delete stage.text;
		return chips;
	})()`)
	assert.Equal(t, []string{"0·", "1·"}, chips)
	when := `$("when").scrollHeight <= $("when").clientHeight &&
		$("when").getBoundingClientRect().bottom <= $("time").getBoundingClientRect().bottom + 1`
	assert.True(t, browser.Evaluate[bool](w.Browser, when), w.Text("#when"))
	w.resizes(sizes[0])
	browser.Evaluate[any](w.Browser, `
		found = [];
		boards[1].stage.text = function (words, ...all) {
			if (["mine", "no"].includes(words)) found.push(words);
			Stage.prototype.text.call(this, words, ...all);
		};
		null`)
	for range 50 {
		w.press("#later")
		w.Until(`past.at === null || !past.focus?.decides`)
		if browser.Evaluate[bool](w.Browser, `found.includes("mine") || past.at === null`) {
			break
		}
	}
	assert.Contains(t, browser.Evaluate[[]string](w.Browser, `found`), "mine")
	assert.Contains(t, browser.Evaluate[[]string](w.Browser, `found`), "no", "the znode of client 0")

	browser.Evaluate[any](w.Browser, `location.hash = "#lesson-6/1"; null`)
	w.at(6, 1)
	w.Until(`document.activeElement.dataset.guess === "0"`)
	states := browser.Evaluate[[]string](w.Browser, `boards.flatMap((b) => b.clients.map((_, i) => b.state(i)))`)
	assert.Equal(t, slices.Repeat([]string{"idle"}, 12), states, "nothing answers the guess of lesson 6 before it is made")
	for _, told := range []string{"together", "alone", "wait"} {
		assert.NotContains(t, w.Text("#lesson .situation"), told, "the answer, before the question")
	}
	const button = `document.querySelector("#lesson li.now > button[data-do]")`
	assert.True(t, browser.Evaluate[bool](w.Browser, button+`.disabled`), "before the guess")
	w.press("#lesson .unknown")
	w.Until(`!` + button + `.disabled && document.activeElement === ` + button)
	w.Do(chromedp.KeyEvent(kb.Enter))
	w.done(1)
	w.Contains("#lesson .guesses", "Step 5: clients that hold the lock: 1")
	w.Contains("#lesson .guesses", "Step 6: clients that hold the lock: 3")
	w.Until(`service.pace === "slow"`) // from here on each message can be seen
	w.pressNext()
	w.done(2)
	w.Contains("#lesson li.now", "who holds the lock then?")
	browser.Evaluate[any](w.Browser, `notes(0, "1"); notes(1, "4"); null`)
	w.pressNext()
	w.done(3)
	w.Contains("#lesson .guesses", "Step 5: you guessed client 1 ✓, measured: client 1")
	w.Contains("#lesson .guesses", "Step 6: you guessed client 4 ✗, measured: client 3")
	w.Contains("#lesson", "Client 3, the writer, holds the lock alone.")
}

// A computer that is too busy lets a client lose its session. Then the lesson says so, and does not wait forever; from
// before the loss it goes on.
func TestALessonNoticesALostSessionInABrowser(t *testing.T) {
	t.Parallel()
	p := begins(t, zktest.New(t), nil, "")
	p.patience(3 * time.Minute)
	w := &window{browser.Open(t, p.address.String()+"#lesson-4/1", 1366, 768), p}
	w.at(4, 1)
	holder := p.sides[0].clients[0]
	require.NoError(t, holder.child.Stop()) // nobody has asked for it
	w.Contains("#lesson .ways", "Client 0 has lost its session or the lock, although you have done nothing for that")
	require.NoError(t, holder.child.Continue())
	assert.False(t, browser.Evaluate[bool](w.Browser, `document.querySelector("#lesson li > button[data-do]") !== null`))
	w.press("#lesson .ways button.next")
	w.Until(`service.course.spoiled < 0`)
	w.at(4, 1)
	w.becomes(0, "holds", "holds")
	w.pressNext()
	w.done(1)

	// Between two tasks the time in which nothing happens is left out, and the axis says so.
	w.Until(`performance.now() > onPage(service.course.since) + 3 * RECALLS`)
	assert.Equal(t, []int{0, 0}, browser.Evaluate[[]int](w.Browser, `boards.map((b) => b.strip.breaks.length)`))
	w.pressNext()
	w.done(2)
	w.Until(`boards.every((b) => b.strip.breaks.length === 1)`)
	w.Until(`document.querySelector("#legend [data-sign=cut]").checkVisibility()`)
	texts := `boards.map((b) => {
		const ink = CanvasRenderingContext2D.prototype, { fillText } = ink, found = [];
		ink.fillText = function (words, x, y) {
			const half = this.measureText(words).width / 2;
			if (this.textAlign === "center" && this.canvas === $("strips").children[b.i]) found.push([words, x - half, x + half]);
			fillText.apply(this, arguments);
		};
		drawStrips();
		ink.fillText = fillText;
		return found.filter(([, left, right]) => b.strip.breaks.some((at) => left < at + 3 && right > at - 3)).map(([words]) => words);
	})`
	assert.Equal(t, [][]string{{}, {}}, browser.Evaluate[[][]string](w.Browser, texts), "cut by a gap")

	// In step 4 the znode that nobody deletes is red on the strip, as in the drawing.
	w.pressNext()
	w.done(3)
	w.Until(`boards.map((b) => b.strip.blocks.join()).join("/") === "1/"`)
	assert.Equal(t, [][]string{{}, {}}, browser.Evaluate[[][]string](w.Browser, texts), "cut by a gap")
}

// On a phone the pages of lessons 3 and 5 scroll as a whole, and the drawings stay in sight.
func TestALessonScrollsOnAPhoneInABrowser(t *testing.T) {
	t.Parallel()
	p := begins(t, zktest.New(t), nil, "")
	p.patience(3 * time.Minute)
	w := &window{browser.Open(t, p.address.String(), 375, 700), p}
	const inner = `[...document.querySelectorAll("main *")].filter((e) => e.checkVisibility() && e.scrollHeight > e.clientHeight + 1 &&
		/auto|scroll/.test(getComputedStyle(e).overflowY)).map((e) => e.id || e.className)`
	for _, n := range []int{3, 5} {
		w.opensLesson(n)
		w.Until(`document.querySelector("#lesson li.now > button[data-do]") !== null`)
		assert.Empty(t, browser.Evaluate[[]string](w.Browser, inner), "what scrolls by itself in lesson %d", n)
		browser.Evaluate[any](w.Browser, `scrollTo(0, document.documentElement.scrollHeight); null`)
		w.Until(`scrollY > 50`)
		assert.True(t, w.inSight("#board0 canvas"), "lesson %d", n)
		assert.True(t, w.inSight("#lesson li.now > button[data-do]"), "lesson %d", n)
	}

	// Where the question comes up, it is seen.
	browser.Evaluate[any](w.Browser, `scrollTo(0, 0); $("until").value = 7;
		for (const of of ["input", "change"]) $("until").dispatchEvent(new Event(of)); null`)
	w.Until(`document.querySelector("#lesson [data-guess]") !== null`)
	assert.True(t, w.inSight("#lesson .guesses .asked"), "the question")
	assert.True(t, w.inSight("#lesson .guesses .unknown"), "its last button")
	browser.Evaluate[any](w.Browser, `document.querySelector("#lesson button.unknown").click(); null`)
	w.Until(`scrollY === 0`) // after the guess about the pause, it is dragged on
}

// stripsAreRead checks that no text of the strips is small, cut, or over another, and that a token is in a lane of
// its own.
func (w *window) stripsAreRead(where string) {
	w.Helper()
	assert.Empty(w, browser.Evaluate[[]string](w.Browser, `(() => {
		const found = [], own = CanvasRenderingContext2D.prototype.fillText;
		const texts = new Map();
		CanvasRenderingContext2D.prototype.fillText = function (words, x, y) {
			const wide = this.measureText(words).width, left = x - (this.textAlign === "center" ? wide / 2 : 0);
			const size = parseFloat(this.font.match(/([\d.]+)px/)[1]);
			texts.set(this.canvas, [...(texts.get(this.canvas) ?? []), { words, left, right: left + wide, y, size }]);
			own.apply(this, arguments);
		};
		drawStrips();
		CanvasRenderingContext2D.prototype.fillText = own;
		if (texts.size !== 2) found.push("strips: " + texts.size);
		for (const [canvas, all] of texts) {
			const box = canvas.getBoundingClientRect();
			if (box.left < 0 || box.right > innerWidth || box.bottom > innerHeight) found.push("a strip is not on the screen");
			for (const one of all) {
				if (one.size < 11) found.push(one.words + ": small");
				if (one.left < 0 || one.right > box.width || one.y < 6 || one.y > box.height - 6) found.push(one.words + ": cut");
				const isOver = (other) => other !== one && Math.abs(other.y - one.y) < 11 &&
					other.left < one.right && one.left < other.right;
				if (all.some(isOver)) found.push(one.words + ": over another");
			}
		}
		for (const { strip } of boards) {
			const [first, second] = strip.tokens;
			if (strip.tokens.length !== 2 || second.left < first.left + first.size) found.push("the tokens");
		}
		return found;
	})()`), where)
	tokens := browser.Evaluate[[][]string](w.Browser, `boards.map((b) => b.strip.tokens.map((token) => token.words))`)
	assert.Equal(w, []string{"none", "none"}, tokens[0], where)
	assert.NotEqual(w, tokens[1][0], tokens[1][1], where)
}

// In lesson 5 the reader drags the end of the pause, and the drawings follow. He guesses what the store does with the
// write that waits; recorded runs answer, and the answer changes where the session ends. Then the chosen pause is done
// for real.
func TestThePauseIsDraggedInABrowser(t *testing.T) {
	t.Parallel()
	p := begins(t, zktest.New(t), nil, "")
	p.patience(3 * time.Minute)
	w := &window{browser.Open(t, p.address.String()+"#lesson-5/1", 1366, 768), p}
	w.Until(`service.course?.lesson === 5 && isSet() && $("pause").checkVisibility() && !$("time").checkVisibility()`)
	strips := func(of string) [][]string {
		return browser.Evaluate[[][]string](w.Browser, `boards.map((b) => b.strip.`+of+`)`)
	}
	states := func() [][]string {
		return browser.Evaluate[[][]string](w.Browser,
			`boards.map(({ stage }) => stage.story.clients.map((c) => stateAt(c, stage.t)))`)
	}
	places := func() string {
		return browser.Evaluate[string](w.Browser, `JSON.stringify(
			[...boards.map((b) => b.stage.canvas), $("strips")].map((e) => e.getBoundingClientRect()))`)
	}
	const stoppedHolder = "stopped, believes it holds"
	w.Until(`paused === 2 && boards.every((b) => b.strip?.pauses.length === 1)`)
	assert.Equal(t, [][]string{{stoppedHolder, "waits"}, {stoppedHolder, "waits"}}, states(), "at first")
	w.Contains("#lesson .guesses", "Drag on, until client 1 holds the lock too.")
	browser.Evaluate[any](w.Browser, `drags(7); null`)
	for _, board := range []string{"#board0", "#board1"} {
		w.Contains(board+" .banners", "The session of client 0 has ended. Client 1 got the lock, and has written.")
	}
	before := places()
	assert.Equal(t, [][]string{{stoppedHolder, "holds"}, {stoppedHolder, "holds"}}, states(), "before the guess")
	assert.Equal(t, [][]string{{"1 accepted"}, {"1 accepted"}}, strips("writes"), "before the guess")
	waits := `boards.map((b) => b.stage.story.clients[0].pending)`
	assert.Equal(t, []bool{true, true}, browser.Evaluate[[]bool](w.Browser, waits), "the write waits at client 0")
	button := `document.querySelector("#lesson li.now > button[data-do=pause]")`
	assert.True(t, browser.Evaluate[bool](w.Browser, button+`.disabled`))
	browser.Evaluate[any](w.Browser, `drags(2); null`)
	w.Contains("#board0 .banners", "Its session has not ended, and no other client has the lock.")
	assert.Equal(t, [][]string{{stoppedHolder, "waits"}, {stoppedHolder, "waits"}}, states(), "the boards follow the drag")
	browser.Evaluate[any](w.Browser, `drags(7); null`)

	// With the keyboard alone: one second more, and a guess for each board. What follows the pause is played.
	browser.Evaluate[any](w.Browser, `$("until").focus(); null`)
	w.Do(chromedp.KeyEvent(kb.ArrowRight))
	w.Contains("#seconds", "8 s")
	for board, first := range []string{"a", "a"} { // accepted, in both
		w.Until(fmt.Sprintf(`((e) => e !== null && (e.focus(), true))(document.querySelector('[data-guess="%d"]'))`, board))
		w.Do(chromedp.KeyEvent(first))
		w.Until(fmt.Sprintf(`document.activeElement.dataset.guess === "%d" && document.activeElement.value !== ""`, board))
	}
	assert.False(t, browser.Evaluate[bool](w.Browser, `hasGuessed()`), "a guess can be changed until it is given")
	assert.NotContains(t, w.Text("#lesson .guesses"), "token", "half of the answer")
	browser.Evaluate[any](w.Browser, `
		flew = []; // from each picture of a write on its way: the pause, and the board
		boards.forEach(({ i, stage }) => stage.flyingWrite = function (w) {
			if (w.client === 0) flew.push(pause() + "/" + i);
			Stage.prototype.flyingWrite.call(this, w);
		});
		pictures = (of) => flew.filter((one) => one === of).length;
		null`)
	w.press("#lesson .final")
	w.Until(`[...document.querySelectorAll("[data-guess]")].map((field) => field.disabled).join() === "true,true"`)
	w.Contains("#board0 .banners", "The store has accepted the late write of client 0")
	w.Contains("#board1 .banners", "The store has refused the late write of client 0")
	w.Contains("#lesson .guesses label:nth-of-type(1)", "✓")
	w.Contains("#lesson .guesses label:nth-of-type(2)", "✗ recorded for 8 s: refused")
	w.Contains("#lesson .change", "Drag on: in which step does the answer change?")
	assert.Equal(t, [][]string{{"1 accepted", "0 late"}, {"1 accepted", "0 refused"}}, strips("writes"))
	assert.Equal(t, [][]string{{"none", "none"}, {"9", "6"}}, strips("tokens.map((token) => token.words)"))
	bounces := browser.Evaluate[[][]int](w.Browser, `boards.map((b) => b.strip.bounces)`)
	assert.Equal(t, [][]int{{}, {0}}, bounces, "the refused write bounces off the store")
	assert.False(t, browser.Evaluate[bool](w.Browser, `boards.some((b) => b.stage.isTagged)`), "a guid would look like a token")
	harmed := `boards.map(({ stage }) => Boolean(stage.kept().value.late))`
	assert.Equal(t, []bool{true, false}, browser.Evaluate[[]bool](w.Browser, harmed), "the store, in the drawing")
	assert.Equal(t, "until", browser.Evaluate[string](w.Browser, `document.activeElement.id`), "where to go on")
	w.Contains("#board0 .banners strong", "Client 1's value is lost.")
	assert.False(t, browser.Evaluate[bool](w.Browser, `document.querySelector("#board1 .banners strong") !== null`))
	assert.Equal(t, before, places(), "nothing moves, whatever is said")

	// Shortly before the session ends, step 5 has given up the lock, and the server still has its znode.
	browser.Evaluate[any](w.Browser, `drags(4); null`)
	w.Contains("#board1 .banners", "By its own clock, client 0 no longer relies on the lock.")
	w.Until(`seenPauses.has(4)`) // and the writes have arrived
	for _, of := range []string{"8/0", "8/1", "4/0", "4/1"} {
		assert.Greater(t, browser.Evaluate[int](w.Browser, fmt.Sprintf(`pictures(%q)`, of)), 2, "the write flies: %s", of)
	}
	assert.NotContains(t, w.Text("#board0 .banners"), "clock")
	said := `boards.map(({ stage }) => {
		const found = [], { text } = stage;
		stage.text = (words, x, y, fill) => words.includes("relies on it") && found.push(words, fill !== stage.color.bad);
		stage.draw(stage.t, null);
		stage.text = text;
		return found.join();
	})`
	assert.Equal(t, []string{"", "no longer relies on it,true"}, browser.Evaluate[[]string](w.Browser, said))

	// The end of the pause is dragged in the picture, too: after two seconds the write is in time.
	browser.Evaluate[any](w.Browser, `(() => {
		const canvas = $("strips").children[1], box = canvas.getBoundingClientRect(), width = wide(canvas);
		const clientX = box.x + STRIP.left(canvas) + width * (BEFORE + 2) * SECOND / SPAN;
		const at = { bubbles: true, buttons: 1, clientX, clientY: box.y + 9 };
		canvas.dispatchEvent(new PointerEvent("pointerdown", at));
	})()`)
	w.Contains("#seconds", "2 s")
	w.Contains("#lesson .guesses label:nth-of-type(2)", "recorded for 2 s: accepted")
	w.Contains("#lesson .change", "Drag on:") // 4 s and 5 s are not both seen yet
	browser.Evaluate[any](w.Browser, `drags(5); null`)
	w.Contains("#lesson .guesses label:nth-of-type(2)", "recorded for 5 s: refused")
	browser.Evaluate[any](w.Browser, `drags(2); null`)
	w.Until(`hasAnswer()`)
	w.Contains("#lesson .change", "✓ In step 5, between 4 and 5 s: there the session ends. Step 4 accepts every write.")
	w.Contains("#lesson .guesses label:nth-of-type(1)", "✓ for 8 s; recorded for 2 s: accepted")
	w.Contains("#lesson .guesses label:nth-of-type(2)", "✗ for 8 s; recorded for 2 s: accepted")
	assert.Equal(t, [][]string{{"0 accepted"}, {"0 accepted"}}, strips("writes"))
	w.press("#language")
	w.Contains("#board1 .banners", "它没有迟到")
	w.Contains("#lesson .change", "会话在那时结束")
	w.press("#language")

	w.press("#lesson button.next") // for real
	w.Until(`boards.every((b) => b.stage.story === b.story)`)
	w.Until(`service.course.done === 1`)
	w.done(1)
	w.Contains("#lesson", "It is in time: the session of client 0 has not ended.")
	w.Contains("#log", "You: stop client 0 for 2 s.")
	w.Contains("#lesson .guesses", "Step 4: you guessed accepted for 8 s ✓, measured for 2 s: accepted")
	w.Contains("#lesson .guesses", "Step 5: you guessed accepted for 8 s ✗, measured for 2 s: accepted")
	w.Until(`$("time").checkVisibility() && !$("pause").checkVisibility()`)

	// The moment that decides is that of the write: it is on its way on both boards.
	w.press("#lesson [data-moment=wrote]")
	w.Until(`Boolean(past.focus?.decides)`)
	assert.Contains(t, w.Text("#when"), "lient 0")
	assert.Equal(t, []int{1, 1}, browser.Evaluate[[]int](w.Browser, `boards.map(({ stage }) => stage.story.writes.filter((w) => there(w, stage.t)).length)`))
}
