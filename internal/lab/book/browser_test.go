package book

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/lab/browser"
)

// opens writes the book, and opens a page of it as a file.
func opens(t *testing.T, name string, width, height int) (b *browser.Browser, address func(name string) string) {
	folder := t.TempDir()
	require.NoError(t, book(t).Write(folder))
	address = func(name string) string { return "file://" + filepath.Join(folder, name) }
	return browser.Open(t, address(name), width, height), address
}

// remembers opens a page until it shows an answer that was kept: a browser keeps it soon,
// and not at once.
func remembers(b *browser.Browser, page, said string) {
	b.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		b.Do(chromedp.Navigate(page))
		shown := b.Text(".yours")
		if strings.Contains(shown, said) {
			return
		}
		require.True(b, time.Now().Before(deadline), "%q is remembered, and the page says %q", said, shown)
	}
}

func TestTheBookInABrowser(t *testing.T) {
	b, address := opens(t, "step03.html", 1366, 768)

	// A prediction: its answer, and what answers it, are hidden until it is answered.
	seen := func(selector string) bool {
		return browser.Evaluate[bool](b, fmt.Sprintf(`document.querySelector(%q).checkVisibility()`, selector))
	}
	require.True(t, seen(".question input"))
	assert.False(t, seen(".answer > p:last-child"), "the answer")
	assert.False(t, seen("[data-after] > pre"), "the output that answers it")
	b.Do(chromedp.SendKeys(chromedp.CSS(".question input"), "300"), chromedp.KeyEvent(kb.Enter))
	b.Until(`document.querySelector(".answer").open`)
	b.Contains(".yours", "You said: 300 notifications That is not close.")
	assert.True(t, seen(".answer > p:last-child"), "the answer")
	assert.True(t, seen("[data-after] > pre"), "the output")

	// It is remembered, in the other language, too, and can be answered again.
	remembers(b, address("zh-CN/step03.html"), "300 条通知 相差较远。")
	remembers(b, address("step03.html"), "300 notifications")
	b.Do(chromedp.Click(chromedp.CSS(".yours button")))
	b.Until(`document.activeElement === document.querySelector(".question input")`)
	assert.False(t, seen(".answer > p:last-child"), "the answer, before the second try")
	b.Do(chromedp.SendKeys(chromedp.CSS(".question input"), "5050"), chromedp.KeyEvent(kb.Enter))
	b.Contains(".yours", "You said: 5050 notifications That is right.")

	// A choice.
	b.Do(
		chromedp.Navigate(address("step05.html")),
		chromedp.Click(chromedp.CSS(`.question:has(fieldset) label:nth-of-type(1) input`)),
		chromedp.Click(chromedp.CSS(`.question:has(fieldset) .guess button`)),
	)
	b.Contains(`.question:has(fieldset) .yours`, "You said: always That is not the answer.")

	// A run plays: the phase that is pressed, to its end.
	b.Do(chromedp.Navigate(address("step03.html")))
	b.Contains(".run .caption", "Client 0 holds the lock, 10 wait.")
	b.Until(
		`(canvas => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((v) => v > 0))(
			document.querySelector(".run canvas"))`,
	)
	b.Do(chromedp.Click(chromedp.CSS(".run .phases button:nth-child(2)")))
	b.Contains(".run .caption", "Client 0 released: 10 notifications, 10 lists. Only client 1 got the lock.")

	// Two runs are seen at once, and can be gone through message by message, there and back.
	b.Do(chromedp.Navigate(address("step04.html")))
	b.Until(`(([left, right]) => right !== undefined && left.top === right.top && left.right <= right.left)(
		[...document.querySelectorAll(".run canvas")].map((c) => c.getBoundingClientRect()))`)
	b.Do(
		chromedp.Click(chromedp.CSS(".run .phases button:nth-child(2)")),
		chromedp.Click(chromedp.CSS(".run .controls button:first-child")),
	)
	b.Do(chromedp.Click(chromedp.CSS(".run .controls button:last-child")))
	b.Until(`document.querySelector(".run .detail").textContent.includes("lient")`)
	first := b.Text(".run .detail")
	b.Do(chromedp.Click(chromedp.CSS(".run .controls button:last-child")))
	b.Until(fmt.Sprintf(`document.querySelector(".run .detail").textContent !== %q`, first))
	b.Do(chromedp.Click(chromedp.CSS(".run .controls button:nth-child(2)")))
	b.Says(".run .detail", first)

	// Below a run of a few clients its time is drawn: after a crash nobody holds the lock of step 1, and the
	// next client that of step 2.
	b.Do(chromedp.Navigate(address("step02.html")))
	b.Until(`all(".strip").length === 2 && all(".strip").every((s) => s.drawn)`)
	for i, says := range [][]int{{0}, {0, 1}} {
		drawn := browser.Evaluate[[]int](b, fmt.Sprintf(`all(".strip")[%d].drawn.belief`, i))
		assert.Equal(t, says, drawn, "who believes that it holds the lock")
	}

	// The late write moves in the page that is about it: with a token it is refused. A step stops at a write, too.
	b.Do(chromedp.Navigate(address("step05-holder.html")))
	browser.Evaluate[any](b, `void all(".veil button").forEach((show) => show.click())`)
	b.Until(`all(".strip").length === 2 && all(".strip").every((s) => s.drawn)`)
	for i, late := range []string{"0 late", "0 refused"} {
		drawn := browser.Evaluate[[]string](b, fmt.Sprintf(`all(".strip")[%d].drawn.writes`, i))
		assert.Equal(t, []string{"1 accepted", late}, drawn)
	}
	back := `.run .controls button:nth-child(2)`
	b.Do(chromedp.Click(chromedp.CSS(`.run .phases button:nth-child(3)`)))
	b.Contains(".run .caption", "The store has accepted the late write of client 0, and the value of client 1 is lost")
	b.Until(fmt.Sprintf(`(document.querySelector(%q).click(), document.querySelector(".run .detail").textContent.includes("too late"))`, back))
	b.Says(".run .detail", "left: Client 0 writes to the store: accepted, too late.")

	// Without storage all of it works as well.
	b.Do(chromedp.Navigate(address("step01.html")))
	browser.Evaluate[any](
		b,
		`void Object.defineProperty(window, "localStorage", { get() { throw new Error("no storage"); } })`,
	)
	b.Do(chromedp.SendKeys(chromedp.CSS(".question input"), "200"), chromedp.KeyEvent(kb.Enter))
	b.Contains(".yours", "You said: 200 transactions That is right.")
}

// Light or dark is chosen once: on pages with runs, which draw, as on the others.
func TestWhatIsRememberedInABrowser(t *testing.T) {
	b, address := opens(t, "step03.html", 1366, 768)
	theme := func() string { return browser.Evaluate[string](b, `document.documentElement.dataset.theme`) }
	for _, want := range []string{"dark", "light", "dark"} {
		b.Do(chromedp.Click(chromedp.CSS("#theme")))
		require.Equal(t, want, theme())
		require.Equal(t, want, browser.Evaluate[string](b, `localStorage.getItem("zklock-theme")`))
	}
	// A browser that goes to another file at once may lose what was kept last: then it is kept again.
	kept := func(name, key, value string, is func() bool) {
		for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(100 * time.Millisecond) {
			b.Do(chromedp.Navigate(address(name)))
			if is() {
				return
			}
			require.True(t, time.Now().Before(deadline), "%s remembers %s", name, key)
			browser.Evaluate[any](b, fmt.Sprintf(`store.set(%q, %q); null`, key, value))
		}
	}
	for _, name := range []string{"step02.html", "zh-CN/step04.html"} {
		kept(name, "zklock-theme", "dark", func() bool { return theme() == "dark" })
	}
}

// On a projector a figure has the screen for itself: neither the next one nor the contents name the answer beside it.
func TestTheFiguresToProjectInABrowser(t *testing.T) {
	b, address := opens(t, "projector.html", 1366, 768)
	for _, name := range []string{"projector.html", "zh-CN/projector.html"} {
		b.Do(chromedp.Navigate(address(name)))
		tops := browser.Evaluate[[]float64](b, `all("main h2").map((e) => e.getBoundingClientRect().top)`)
		require.Len(t, tops, 13, "%s: the figures", name)
		for i, top := range tops[1:] {
			assert.GreaterOrEqual(t, top-tops[i], 768.0, "%s: below figure %d", name, i+1)
		}
		assert.True(t, browser.Evaluate[bool](b, `document.querySelector("#contents").getBoundingClientRect().top >=
			document.querySelector("main").getBoundingClientRect().bottom`), "%s: the contents are below the figures", name)
	}
}

// On a phone no page is wider than the screen, and what is pressed is large enough.
func TestThePagesOnAPhone(t *testing.T) {
	b, address := opens(t, "index.html", 390, 844)
	for _, name := range append(chapters(t), "index.html", "guide.html", "mistakes.html", "zh-CN/index.html") {
		b.Do(chromedp.Navigate(address(name)))
		assert.LessOrEqual(
			t,
			browser.Evaluate[int](b, `document.documentElement.scrollWidth`),
			390,
			"the width of %s",
			name,
		)
		assert.Empty(
			t,
			browser.Evaluate[[]string](
				b,
				`all("button, header a, #contents a")
					.filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 24)
					.map((e) => e.textContent)`,
			),
			"what is hard to hit in %s",
			name,
		)
	}
}

// A thousand clients wait in step 4's chapter: first the reader draws his line, then each notified client
// is a dot that lights up.
func TestTheThousandInABrowser(t *testing.T) {
	for _, name := range []string{"step04.html", "zh-CN/step04.html"} {
		b, _ := opens(t, name, 390, 844)
		lit := func(field int) int {
			return browser.Evaluate[int](b, fmt.Sprintf(
				`Number(document.querySelectorAll(".herd-field p")[%d].textContent.match(/[\d,]+/)[0].replace(",", ""))`,
				field,
			))
		}
		require.True(t, browser.Evaluate[bool](b, `document.querySelector(".herd-reveal").disabled`))
		assert.False(t, browser.Evaluate[bool](b, `document.querySelector(".herd-fields").checkVisibility()`))
		b.Do(chromedp.Click(chromedp.CSS(".herd-reveal + button")))
		b.Until(`document.querySelector(".herd-all").textContent.includes("500,500")`)
		assert.Equal(t, []int{1000, 1}, []int{lit(0), lit(1)}, "notified, in %s", name)
		green := browser.Evaluate[[]int](b, `all(".herd-field canvas").map((canvas) => {
			const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
			let green = 0;
			for (let i = 0; i < data.length; i += 4) if (data[i] === 0 && data[i + 1] === 112 && data[i + 2] === 78) green++;
			return green;
		})`)
		assert.True(t, green[0] == 0 && green[1] > 20, "the ring of the only one that is notified: %v pixels", green)
		b.Do(chromedp.Click(chromedp.CSS(".herd-sizes button:first-of-type")))
		b.Until(`document.querySelector(".herd-all").textContent.includes("55")`)
		assert.Equal(t, []int{10, 1}, []int{lit(0), lit(1)}, "notified, in %s", name)
		assert.LessOrEqual(t, browser.Evaluate[int](b, `document.documentElement.scrollWidth`), 390)
	}
}
