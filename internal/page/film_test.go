package page

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"zklock/internal/wiretap"
)

var filmFile = filepath.Join("..", "..", "docs", "figures", "herd-and-chain.svg")

// The film shows the frames of a run, every one, and counts them.
func TestFilmIsOfARun(t *testing.T) {
	herd, chain := recorded(t, "3", titled("release")), recorded(t, "4", titled("release"))
	svg, _ := HerdAndChain(herd, chain)
	sides := strings.Split(svg, "</g>\n")
	for i, s := range []Story{herd, chain} {
		dots := func(k wiretap.Kind) int { return strings.Count(sides[i], fmt.Sprintf(`class="dot dot%d`, k)) }
		r := s.release()
		got := [...]int{dots(wiretap.Notification), dots(wiretap.Request), dots(wiretap.Reply)}
		if want := [...]int{r.Notifications, r.Requests, r.Requests}; got != want {
			t.Errorf("step %s: notifications, requests and replies in the film: %v, recorded: %v", s.Step, got, want)
		}
	}
}

func TestFilmIsSmall(t *testing.T) {
	film, err := os.Stat(filmFile)
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("%d bytes", film.Size()); film.Size() > 60_000 {
		t.Errorf("the film has %d bytes, want at most 60,000", film.Size())
	}
}

// The film moves; in print, and for those who want no motion, it stands still. At
// its end and when it stands still it says what a release costs.
func TestFilmInABrowser(t *testing.T) {
	path := chromium(t)
	file, err := filepath.Abs(filmFile)
	if err != nil {
		t.Fatal(err)
	}
	b := openBrowser(t, path, file)
	for _, c := range []struct {
		media, motion string
		moves         bool
	}{{"screen", "no-preference", true}, {"screen", "reduce", false}, {"print", "no-preference", false}} {
		b.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
			_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Media: c.media, Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: c.motion}},
			})
			return err
		}))
		b.until(fmt.Sprintf(`document.getAnimations().length > 0 === %v`, c.moves))
		b.until(`(document.getAnimations().forEach((a) => { a.pause(); a.currentTime = 9000 }),
			[...document.querySelectorAll(".count")].filter((text) => getComputedStyle(text).opacity == 1).map((text) => text.textContent).join() === "10,1")`)
	}
}
