package tour

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/lab/browser"
	"zklock/internal/property"
)

// inEnglish is true once window.english has what the stories say in English.
const inEnglish = `(window.looking ??= (async () => {
	const found = new Set();
	for (const s of data.titles) {
		choose(s.id, s.pair[0], s.pair[1] ?? "");
		for (const moment of [0, player.clock.length / 2, player.clock.length]) {
			go(moment);
			await new Promise((done) => setTimeout(done));
			const text = document.querySelector("main").innerText.replace(/zk: [a-z ]+|"[^"]*"/g, "");
			for (const words of text.match(/.*[A-Za-z]+ [a-z]+ [a-z]+.*/g) ?? []) found.add(words);
		}
	}
	window.english = [...found].join("\\n");
})()) && window.english !== undefined`

func TestPageInABrowser(t *testing.T) {
	rec := recorded(t)
	var page bytes.Buffer
	require.NoError(t, rec.Write(&page))
	file := filepath.Join(t.TempDir(), "tour.html")
	require.NoError(t, os.WriteFile(file, page.Bytes(), 0o644))
	b := browser.Open(t, "file://"+file, 1280, 800)

	// It opens on the herd beside the chain, with all clients in line.
	b.Says("#left .step", "Step 3: watch the directory")
	b.Says("#right .step", "Step 4: watch the one before")
	b.Says("#left .caption", "Client 0 holds the lock, 10 wait.")
	for _, side := range []string{"#left", "#right"} { // nothing is counted before the release
		for _, count := range []string{"notifications", "requests", "bytes"} {
			b.Says(side+" [data-count="+count+"]", "0")
		}
	}
	b.Says("#story option", "Steps 1 and 2: The holder crashes")
	b.Says("#story option:last-child", "Steps 5 and 6: A writer among readers")
	assert.True(
		t,
		browser.Evaluate[bool](b, `document.querySelector(".controls .legend") !== null`),
		"the legend stands beside Play",
	)
	b.Do(chromedp.EmulateViewport(1920, 1080))
	b.Until(`stages[0].scale > 1`) // the signs grow with their place
	b.Do(chromedp.EmulateViewport(1280, 800))
	b.Until(`stages[0].scale === 1`)
	assert.NotContains(t, b.Text("#score"), "does it keep its promises?", "the matrix stands right below")

	// It plays to the end, and its counts are those that were recorded.
	b.Do(chromedp.SetValue(chromedp.CSS("#speed"), "4"), chromedp.Click(chromedp.CSS("#play")))
	b.Until(`!player.playing && player.now >= player.clock.length`)
	for side, key := range map[string]string{"#left": "3", "#right": "4"} {
		b.Says(side+" .caption", map[string]string{
			"#left":  "Client 0 released: 10 notifications, 10 lists. Only client 1 got the lock.",
			"#right": "Client 0 released: 1 notification, 1 list. Only client 1 got the lock.",
		}[side])
		b.Says(side+" [data-count=notifications]", map[string]string{"3": "10", "4": "1"}[key])
		b.Says(side+" [data-count=requests]", map[string]string{"3": "11", "4": "2"}[key])
		b.Says(
			side+" tbody tr:nth-child(2)",
			"client 1holds1"+map[string]string{"#left": "the directory", "#right": "nothing"}[side],
		)
	}
	out := filepath.Join("..", "..", "..", "out")
	require.NoError(t, os.MkdirAll(out, 0o755))
	b.Picture(filepath.Join(out, "page.png"))

	// The keyboard goes through the frames, one at a time.
	b.Do(chromedp.KeyEvent(kb.Home), chromedp.KeyEvent(kb.PageDown), chromedp.KeyEvent(kb.ArrowRight))
	b.Until(`player.focus !== null`)
	first := b.Text("#left .detail") + b.Text("#right .detail")
	assert.Equal(t, "Client 0 asks: delete znode 0.", first, "the first frame of the release")
	b.Do(chromedp.KeyEvent(kb.ArrowRight))
	assert.NotEmpty(t, b.Text("#left .detail")+b.Text("#right .detail"), "the second frame")
	b.Do(chromedp.KeyEvent(kb.ArrowLeft))
	assert.Equal(t, first, b.Text("#left .detail")+b.Text("#right .detail"), "one frame on and one back")
	b.Do(chromedp.KeyEvent(" "))
	b.Until(`player.playing`)
	b.Do(chromedp.KeyEvent(" "))
	b.Until(`!player.playing`)

	// A ✗ opens the frames that prove it.
	evidence := fmt.Sprintf("#evidence-%d-%d", slices.Index(property.Properties, property.WakesOne),
		slices.IndexFunc(rec.Locks, func(l Exhibit) bool { return l.Key == "3" }))
	b.Do(chromedp.Click(chromedp.CSS(fmt.Sprintf("[data-evidence=%q]", evidence[1:]))))
	b.Until(fmt.Sprintf(`document.querySelector("%s[open]") !== null`, evidence))
	b.Says(evidence+" h3", "step 3 lacks this property: a release wakes one")
	b.Contains(evidence+" .messages", "! the children of lock changed")

	// In Chinese it remembers so, and no story has three English words in a row.
	b.Do(chromedp.KeyEvent(kb.Escape), chromedp.Click(chromedp.CSS("#language")))
	b.Until(
		`localStorage.getItem("zklock-language") === "zh" && document.querySelector("#left .step").textContent === "第 3 步：监听目录"`,
	)
	b.Until(inEnglish)
	left, err := chromedp.Run(b.Ctx, chromedp.Evaluate[string](`window.english`))
	require.NoError(t, err)
	assert.Empty(t, left, "what is not Chinese")
}
