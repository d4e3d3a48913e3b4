package page

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/lockcheck"
)

// A browser with the page open, as its reader has it.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	troubles []string // what a page must not do
}

// chromium is the path of a browser. Without one the test is left out, or, where
// ZKLOCK_REQUIRE_BROWSER is set, fails.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const why = "no Chromium on this machine, so the page was not tried in a browser; repair it with: apt-get install -y --no-install-recommends chromium fonts-dejavu-core"
	if os.Getenv("ZKLOCK_REQUIRE_BROWSER") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
	return ""
}

// openBrowser opens a file in the browser at a path.
func openBrowser(t *testing.T, path, file string) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path))
	if os.Geteuid() == 0 { // Chromium's sandbox does not run as root
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)

	b := &browser{t: t, ctx: ctx}
	require.NoError(t, chromedp.Listen(ctx, b.hear))
	b.do(chromedp.EmulateViewport(1280, 800), chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
		return err
	}), chromedp.Navigate("file://"+file))
	return b
}

// hear notes an error on the console, and a request to any address.
func (b *browser) hear(event any) {
	trouble := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		trouble = fmt.Sprintf("an exception: %s %v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
	case *runtime.EventConsoleAPICalled:
		trouble = fmt.Sprintf("the console: %s", e.Type)
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; !strings.HasPrefix(url, "file:") && !strings.HasPrefix(url, "data:") {
			trouble = "a request to " + url
		}
	}
	if trouble != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.troubles = append(b.troubles, trouble)
	}
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, steps...))
}

// text is what an element says.
func (b *browser) text(selector string) string {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.TextContent(chromedp.CSS(selector)))
	require.NoError(b.t, err, selector)
	return strings.TrimSpace(text)
}

// says fails the test unless an element says so.
func (b *browser) says(selector, want string) {
	b.t.Helper()
	assert.Equal(b.t, want, b.text(selector), selector)
}

// until waits for an expression to be true.
func (b *browser) until(expression string) {
	b.t.Helper()
	_, err := chromedp.Run(b.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(40*time.Second)))
	require.NoError(b.t, err, "waited in vain for %s", expression)
}

func TestPageInABrowser(t *testing.T) {
	path := chromium(t)
	rec := recorded(t)
	var page bytes.Buffer
	require.NoError(t, rec.Write(&page))
	file := filepath.Join(t.TempDir(), "tour.html")
	require.NoError(t, os.WriteFile(file, page.Bytes(), 0o644))
	b := openBrowser(t, path, file)

	// It opens on the herd beside the chain, with all clients in line.
	b.says("#left .step", "Step 3: watch the directory")
	b.says("#right .step", "Step 4: watch the one before")
	b.says("#left .caption", "Client 0 holds the lock, 10 wait.")

	// It plays to the end, and its counts are those that were recorded.
	b.do(chromedp.SetValue(chromedp.CSS("#speed"), "4"), chromedp.Click(chromedp.CSS("#play")))
	b.until(`!player.playing && player.now >= player.clock.length`)
	for side, key := range map[string]string{"#left": "3", "#right": "4"} {
		c := rec.story("release", key).counts(1)
		b.says(side+" .caption", map[string]string{
			"#left":  "Client 0 released: 10 notifications, 10 lists, 1 of them useful.",
			"#right": "Client 0 released: 1 notification, 1 list, 1 of them useful.",
		}[side])
		b.says(side+" [data-count=notifications]", number(c.Notifications))
		b.says(side+" [data-count=requests]", number(c.All()))
		b.says(side+" [data-count=bytes]", number(c.Received))
		b.says(side+" tbody tr:nth-child(2)", "client 1holds1"+map[string]string{"#left": "the directory", "#right": "nothing"}[side])
	}
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	require.NoError(t, err)
	out := filepath.Join("..", "..", "out")
	require.NoError(t, os.MkdirAll(out, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(out, "page.png"), picture, 0o644))

	// The keyboard goes through the frames, one at a time.
	b.do(chromedp.KeyEvent(kb.Home), chromedp.KeyEvent(kb.PageDown), chromedp.KeyEvent(kb.ArrowRight))
	b.until(`player.focus !== null`)
	first := b.text("#left .detail") + b.text("#right .detail")
	assert.Equal(t, "Client 0 asks: delete znode 0.", first, "the first frame of the release")
	b.do(chromedp.KeyEvent(kb.ArrowRight))
	assert.NotEmpty(t, b.text("#left .detail")+b.text("#right .detail"), "the second frame")
	b.do(chromedp.KeyEvent(kb.ArrowLeft))
	assert.Equal(t, first, b.text("#left .detail")+b.text("#right .detail"), "one frame on and one back")
	b.do(chromedp.KeyEvent(" "))
	b.until(`player.playing`)
	b.do(chromedp.KeyEvent(" "))
	b.until(`!player.playing`)

	// A ✗ opens the frames that prove it.
	evidence := fmt.Sprintf("#evidence-%d-2", slices.Index(lockcheck.Properties, lockcheck.WakesOne))
	b.do(chromedp.Click(chromedp.CSS(fmt.Sprintf("[data-evidence=%q]", evidence[1:]))))
	b.until(fmt.Sprintf(`document.querySelector("%s[open] svg text") !== null`, evidence))
	b.says(evidence+" h3", "✗ step 3: a release wakes one")

	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Empty(t, b.troubles, "the page makes no errors and asks for nothing")
}
