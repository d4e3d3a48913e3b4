package play

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"

	"zklock/internal/lab/browser"
	"zklock/internal/zktest"
)

// astray lists the buttons of the drawings that are not over their clients.
const astray = `live().flatMap((b) => [...b.root.querySelectorAll(".hits button")].filter((e, i) => {
	const at = b.stage.clientAt(i), box = e.getBoundingClientRect(), canvas = b.stage.canvas.getBoundingClientRect();
	return Math.hypot(box.x + box.width / 2 - canvas.x - at.x, box.y + box.height / 2 - canvas.y - at.y) > 1;
}).map((e) => Number(e.dataset.choose)))`

// A guess stands beside what was measured; what the task does not ask for can be done, too; a
// word can be pressed; and a larger crowd is measured with real sessions.
func TestAGuessInABrowser(t *testing.T) {
	t.Parallel()
	p := begins(t, zktest.New(t), nil, "")
	p.patience(4 * time.Minute)
	w := &window{browser.Open(t, p.address.String()+"#lesson-3/1", 1366, 768), p}
	w.Until(`service.course?.lesson === 3 && isSet() && document.querySelector("[data-guess]") !== null`)
	assert.NotContains(t, w.Text("#log"), "notification", "the answer, before the question")
	w.press("#lesson .word")
	w.Contains("#gloss:popover-open", "To poll: to ask repeatedly")
	browser.Evaluate[any](w.Browser, `
		document.querySelectorAll("[data-guess]").forEach((field, i) => {
			field.value = ["7", "1"][i];
			field.dispatchEvent(new Event("input", { bubbles: true }));
		});
		null`)
	w.pressNext()
	w.done(1)
	w.Contains("#lesson .guesses", "Step 3: you guessed 7 ✗, measured: 10")
	w.Contains("#lesson .guesses", "Step 4: you guessed 1 ✓, measured: 1")

	// The decisive moment can be drawn again on both boards. Until then the picture is of now.
	assert.True(t, browser.Evaluate[bool](w.Browser, `past.at === null`))
	w.press("#lesson [data-do=moment]")
	w.Until(`Boolean(past.focus?.decides) && boards.every((b) => b.stage.story.past)`)
	told := `boards.map((b) => b.stage.flying().some((f) => f.kind === NOTIFICATION))`
	assert.Equal(t, []bool{true, true}, browser.Evaluate[[]bool](w.Browser, told), "notifications on their way")
	w.Until(`$("moment").list.options.length === 1`) // a tick where the reader let client 0 unlock

	// A thousand: first the reader draws his line; then the record shows the release, and a crowd can be
	// measured now.
	w.press("[data-do=instead]")
	w.Until(`figure !== null && $("herd").checkVisibility() && !$("stages").checkVisibility()`)
	w.Until(`document.activeElement.dataset.column === "1"`) // the keyboard begins with the guess
	isBarred := `document.querySelector(".herd-reveal").disabled`
	assert.True(t, browser.Evaluate[bool](w.Browser, isBarred), "before the guess")
	assert.NotContains(t, w.Text("#herd"), "19,", "the answer, before the guess")
	browser.Evaluate[any](w.Browser, `document.querySelector('#herd-figure [data-column="4"]').focus(); null`)
	w.Do(chromedp.KeyEvent(kb.ArrowUp), chromedp.KeyEvent(kb.ArrowUp))
	w.Until(`!document.querySelector(".herd-reveal").disabled && figure.drawn[4] === 4 * figure.drawn[0]`)
	w.press(".herd-reveal")
	w.Until(`figure.isSeen() && figure.fields[0].shown.told === 1000`)
	w.Contains("#herd", "there are 500,500 notifications in step 3, and 1,000 in step 4.")
	assert.Regexp(t, `^You said 13,\d+ bytes, about [\d,]+ times too few\. `, w.Text(".herd-answer"))
	assert.Equal(t, 1, browser.Evaluate[int](w.Browser, `figure.fields[1].shown.told`))
	browser.Evaluate[any](w.Browser, `$("waiters").value = 20; null`)
	w.press("#swept")
	w.Until(`service.swept.last?.waiters === 20 && figure.fields[0].shown.told === 20`)
	w.Contains("#herd", "there are 210 notifications in step 3, and 20 in step 4.") // all of it is drawn
	assert.Equal(t, 1, browser.Evaluate[int](w.Browser, `figure.fields[1].shown.told`))
	w.press("[data-do=instead]")
	w.Until(`$("stages").checkVisibility()`)

	// What nobody asked for, at the client, in the drawing: the reader can go back to before it.
	w.press(`[data-do=lesson][data-n="3"]`)
	w.Until(`service.course.done === 0 && isSet()`)
	w.Until(`document.activeElement.dataset.guess === "0"`) // the keyboard does not pass the guess by
	w.Until(`boards.every((b) => b.root.querySelectorAll(".hits [data-choose]").length === 11)`)
	assert.Equal(t, "Client 0: holds", browser.Evaluate[string](w.Browser, `document.querySelector("#board0 .hits button").ariaLabel`))
	assert.Empty(t, browser.Evaluate[[]int](w.Browser, astray), "the buttons that are not over their clients")
	browser.Evaluate[any](w.Browser, `document.querySelector("#board0 .hits [tabindex='0']").focus(); null`)
	w.Do(chromedp.KeyEvent(kb.ArrowDown))
	w.Until(`document.activeElement.ariaLabel === "Client 1: waits"`)
	w.Do(chromedp.KeyEvent(kb.ArrowUp), chromedp.KeyEvent(kb.Enter))
	w.Contains("#menu:popover-open", "Client 0")
	w.press("#menu:popover-open [data-do=kill]")
	w.becomes(0, "crashed", "crashed")
	w.Contains("#lesson .ways", "That is not what the task asks for. The task cannot be done now.")
	w.press("#lesson .ways [data-task]")
	w.becomes(0, "holds", "holds")
	w.Until(`isSet() && toDo().do === "unlock"`)
}

// A lesson has an address, to which Back returns; and a second window says that both show the same.
func TestALessonHasAnAddressInABrowser(t *testing.T) {
	t.Parallel()
	p := begins(t, zktest.New(t), nil, "")
	p.patience(4 * time.Minute)
	w := &window{browser.Open(t, p.address.String(), 1366, 768), p}
	w.press("#start li:nth-child(6) button")
	w.Until(`location.hash === "#lesson-6/1" && isSet()`)
	w.pressNext()
	w.done(1)
	w.Until(`location.hash === "#lesson-6/2"`)
	w.press("header [data-do=lessons]")
	w.Until(`location.hash === "#lessons" && !$("start").hidden`)
	w.press("#start li:nth-child(4) button")
	w.Until(`location.hash === "#lesson-4/1" && isSet()`)
	browser.Evaluate[any](w.Browser, `history.back(); null`)
	w.Until(`!$("start").hidden`)
	browser.Evaluate[any](w.Browser, `history.back(); null`)
	w.Until(`service.course.lesson === 6 && isSet()`)

	w.resizes(sizes[2])
	header := browser.Evaluate[int](w.Browser, `document.querySelector("header").offsetHeight`)
	second := browser.Open(t, p.address.String(), 1366, 768)
	second.Until(`service.pages === 2 && !$("shared").hidden`)
	assert.Contains(t, second.Text("#shared"), "open in 2 windows")
	w.Until(`!$("shared").hidden`)
	assert.Equal(t, header, browser.Evaluate[int](w.Browser, `document.querySelector("header").offsetHeight`), "on a phone")
	w.Do(chromedp.EmulateViewport(1366, 768))
	second.Do(chromedp.Navigate("about:blank"))
	w.Until(`$("shared").hidden`)
	assert.True(t, strings.HasPrefix(browser.Evaluate[string](w.Browser, `location.hash`), "#lesson-6/"))

	// The address of a task leads to it: the tasks before it are done once more, also those of the same lesson.
	for _, at := range []string{"#lesson-4/3", "#lesson-4/2"} {
		browser.Evaluate[any](w.Browser, fmt.Sprintf(`location.hash = %q; null`, at))
		w.Until(fmt.Sprintf(
			`service.course.lesson === 4 && isSet() && aim === null && location.hash === %q && toDo().do !== ""`, at))
	}
}

// On a phone, too, a lesson begins with its title and its question.
func TestALessonBeginsWithItsTitleOnAPhone(t *testing.T) {
	t.Parallel()
	p := begins(t, zktest.New(t), nil, "")
	p.patience(4 * time.Minute)
	w := &window{browser.Open(t, p.address.String()+"#lesson-2/1", 390, 844), p}
	for _, n := range []int{2, 5} {
		browser.Evaluate[any](w.Browser, fmt.Sprintf(`location.hash = "#lesson-%d/1"; null`, n))
		w.Until(fmt.Sprintf(`service.course?.lesson === %d && isSet() && led === "%[1]d/0"`, n))
		assert.True(t, w.inSight("#lesson-title"), "lesson %d", n)
		above := browser.Evaluate[bool](w.Browser, `$("lesson-title").getBoundingClientRect().bottom <= $("stages").getBoundingClientRect().top`)
		assert.True(t, above, "lesson %d: its title is above the drawings", n)
		assert.True(t, w.inSight("#lesson .question"), "lesson %d", n)
	}
	browser.Evaluate[any](w.Browser, `location.hash = "#lesson-2/1"; null`)
	w.Until(`service.course?.lesson === 2 && isSet() && $("time").checkVisibility()`)
	w.press("#language")
	w.Contains("#earlier", "上一个事件")
	inLines := `[$("earlier"), $("later")].map((b) => {
		const all = document.createRange();
		all.selectNodeContents(b);
		return new Set([...all.getClientRects()].map((box) => Math.round(box.top))).size;
	})`
	assert.Equal(t, []int{1, 1}, browser.Evaluate[[]int](w.Browser, inLines), "no word is broken")
}
