package page

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

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
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatal(err)
	}
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
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// text is what an element says.
func (b *browser) text(selector string) string {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.TextContent(chromedp.CSS(selector)))
	if err != nil {
		b.t.Fatalf("%s: %v", selector, err)
	}
	return strings.TrimSpace(text)
}

// says fails the test unless an element says so.
func (b *browser) says(selector, want string) {
	b.t.Helper()
	if got := b.text(selector); got != want {
		b.t.Errorf("%s says %q, want %q", selector, got, want)
	}
}

// until waits for an expression to be true.
func (b *browser) until(expression string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(40*time.Second))); err != nil {
		b.t.Fatalf("waited in vain for %s: %v", expression, err)
	}
}

func TestPageInABrowser(t *testing.T) {
	path := chromium(t)
	herd, chain := recorded(t, "3", titled("release")), recorded(t, "4", titled("release"))
	rec := Recording{
		Steps:  Steps,
		Origin: "a test", Began: time.Now(), Crowd: 10,
		Titles: []story{titled("release")}, Stories: []Story{herd, chain},
		Answers: [][]lockcheck.Result{
			{lockcheck.Check(server(t), Steps[2].Subject, lockcheck.WakesOne)},
			{lockcheck.Check(server(t), Steps[3].Subject, lockcheck.WakesOne)},
		},
	}
	file := filepath.Join(t.TempDir(), "tour.html")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.Write(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	b := openBrowser(t, path, file)

	// It opens on the herd beside the chain, with all clients in line.
	b.says("#left .step", "Step 3: watch the directory")
	b.says("#right .step", "Step 4: watch the one before")
	b.says("#left .caption", herd.Phases[0].Sum)

	// It plays to the end, and its counts are those that were recorded.
	b.do(chromedp.SetValue(chromedp.CSS("#speed"), "4"), chromedp.Click(chromedp.CSS("#play")))
	b.until(`!player.playing && player.now >= player.clock.length`)
	for side, s := range map[string]Story{"#left": herd, "#right": chain} {
		r := s.release()
		b.says(side+" .caption", fmt.Sprintf("Client 0 released: %s, %s, 1 of them useful.",
			plural(r.Notifications, "notification"), plural(r.Lists, "list")))
		b.says(side+" [data-count=notifications]", number(r.Notifications))
		b.says(side+" [data-count=requests]", number(r.Requests))
		b.says(side+" [data-count=bytes]", number(r.Bytes))
		b.says(side+" tbody tr:nth-child(2)", "client 1holds1"+map[string]string{"#left": "the directory", "#right": "nothing"}[side])
	}
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join("..", "..", "out")
	if err := os.MkdirAll(out, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(out, "page.png"), picture, 0o644); err != nil {
		t.Fatal(err)
	}

	// The keyboard goes through the frames, one at a time.
	b.do(chromedp.KeyEvent(kb.Home), chromedp.KeyEvent(kb.PageDown), chromedp.KeyEvent(kb.ArrowRight))
	b.until(`player.focus !== null`)
	first := b.text("#left .detail") + b.text("#right .detail")
	if first != "Client 0 asks: delete znode 0." {
		t.Errorf("the first frame of the release says %q", first)
	}
	b.do(chromedp.KeyEvent(kb.ArrowRight))
	if second := b.text("#left .detail") + b.text("#right .detail"); second == "" || b.text("#left .caption") == "" {
		t.Errorf("the second frame says %q", second)
	}
	b.do(chromedp.KeyEvent(kb.ArrowLeft))
	if again := b.text("#left .detail") + b.text("#right .detail"); again != first {
		t.Errorf("one frame on and one back says %q, and before that %q", again, first)
	}
	b.do(chromedp.KeyEvent(" "))
	b.until(`player.playing`)
	b.do(chromedp.KeyEvent(" "))
	b.until(`!player.playing`)

	// A ✗ opens the frames that prove it.
	b.do(chromedp.Click(chromedp.CSS("[data-evidence]")))
	b.until(`document.querySelector("dialog[open] svg text") !== null`)
	b.says("dialog[open] h3", "✗ step 3: a release wakes one")

	b.mu.Lock()
	defer b.mu.Unlock()
	for _, trouble := range b.troubles {
		t.Error(trouble)
	}
}
