// Package browser opens a page in Chromium for a test, as a reader opens it.
package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A Browser has a page open.
type Browser struct {
	*testing.T
	Ctx context.Context

	mu       sync.Mutex
	troubles []string // what a page must not do, but has done
}

// patience is how long a test waits for a page at most.
const patience = 90 * time.Second

// lifetime is how long a test may use a page at most.
const lifetime = 8 * time.Minute

// Open opens a page in a window of this size. The page may load only what is in it or in its
// folder. When the test ends, it fails if the page has asked for anything else, or has made an
// error. Without a browser the test is skipped. If ZKLOCK_REQUIRE_BROWSER is set, it fails instead.
func Open(t *testing.T, url string, width, height int) *Browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(t)),
		chromedp.Flag("disable-back-forward-cache", true)) // a page in that cache would be asked, and never answer
	if os.Geteuid() == 0 { // Chromium's sandbox does not run as root
		options = append(options, chromedp.NoSandbox)
	}
	// Chromium is killed, and does not delete its files. (t.TempDir has too long a name for its
	// socket.)
	temporary, err := os.MkdirTemp("", "page-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(temporary) }) // a process of Chromium may end a little later
	options = append(options, chromedp.Env("TMPDIR="+temporary))

	ctx, cancel := context.WithTimeout(context.Background(), lifetime)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)

	b := &Browser{T: t, Ctx: ctx}
	home, _, _ := strings.Cut(url, "#")
	home, _, _ = strings.Cut(home, "?")
	home = home[:strings.LastIndex(home, "/")+1] // files beside the page belong to it
	require.NoError(t, chromedp.Listen(ctx, func(event any) { b.hear(event, home) }))
	b.Do(
		chromedp.EmulateViewport(int64(width), int64(height)),
		chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
			_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
			return err
		}),
		chromedp.Navigate(url),
	)
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		assert.Empty(t, b.troubles, "the page makes no errors and asks for nothing from elsewhere")
	})
	return b
}

func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const why = "no Chromium on this machine, so the page was not tried in a browser; " +
		"to repair it: apt-get install -y --no-install-recommends chromium fonts-dejavu-core"
	if os.Getenv("ZKLOCK_REQUIRE_BROWSER") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
	return ""
}

// hear notes an exception, a message on the console, or a request to another address.
func (b *Browser) hear(event any, home string) {
	trouble := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		trouble = fmt.Sprintf("an exception: %s %v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
	case *runtime.EventConsoleAPICalled:
		trouble = fmt.Sprintf("the console: %s", e.Type)
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; !strings.HasPrefix(url, home) && !strings.HasPrefix(url, "data:") {
			trouble = "a request to " + url
		}
	}
	if trouble != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.troubles = append(b.troubles, trouble)
	}
}

// Do carries out steps in the page.
func (b *Browser) Do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	require.NoError(b, chromedp.Do(b.Ctx, steps...))
}

// Text returns the text of an element, once it is there. The page finds the element and reads it in one step,
// because it may put another in its place at any time.
func (b *Browser) Text(selector string) string {
	b.Helper()
	read := fmt.Sprintf(`((e) => e && [e.textContent])(document.querySelector(%q))`, selector) // an empty text is one too
	found, err := chromedp.Run(b.Ctx, chromedp.Poll[[]string](read, chromedp.WithPollingTimeout(patience)))
	require.NoError(b, err, selector)
	return strings.TrimSpace(found[0])
}

// Says fails the test unless the text of an element equals want.
func (b *Browser) Says(selector, want string) {
	b.Helper()
	assert.Equal(b, want, b.Text(selector), selector)
}

// Contains waits until there is an element whose text contains text.
func (b *Browser) Contains(selector, text string) {
	b.Helper()
	b.Until(fmt.Sprintf(`document.querySelector(%q)?.textContent.includes(%q)`, selector, text))
}

// Choose selects a value in a list, as a mouse does. It does so in one step, because a page that
// gets news in between would set its list again.
func (b *Browser) Choose(list, what string) {
	b.Helper()
	b.Until(fmt.Sprintf(`[...document.querySelector(%q).options].some((o) => o.value === %q)`, list, what))
	Evaluate[any](
		b,
		fmt.Sprintf(
			`((list) => { list.value = %q; list.dispatchEvent(new Event("change")); })(document.querySelector(%q))`,
			what,
			list,
		),
	)
}

// Evaluate returns the value of an expression in the page.
func Evaluate[V any](b *Browser, expression string) V {
	b.Helper()
	value, err := chromedp.Run(b.Ctx, chromedp.Evaluate[V](expression))
	require.NoError(b, err, expression)
	return value
}

// Until waits until an expression is true.
func (b *Browser) Until(expression string) {
	b.Helper()
	_, err := chromedp.Run(b.Ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(patience)))
	if err != nil {
		seen := Evaluate[string](b, `document.body.innerText`)
		require.NoError(b, err, "timed out waiting for %s; the page says:\n%s", expression, seen)
	}
}

// Picture writes a screenshot of the page to a file.
func (b *Browser) Picture(path string) {
	b.Helper()
	picture, err := chromedp.Run(b.Ctx, chromedp.CaptureScreenshot())
	require.NoError(b, err)
	require.NoError(b, os.WriteFile(path, picture, 0o644))
}
