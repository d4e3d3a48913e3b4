package page

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/server/wiretap"
	"zklock/internal/show/browser"
)

var filmFile = filepath.Join("..", "..", "..", "docs", "figures", "herd-and-chain.svg")

// The film shows the frames of a run, every one, and counts them.
func TestFilmIsOfARun(t *testing.T) {
	herd, chain := recorded(t).story("release", "3"), recorded(t).story("release", "4")
	svg, _ := herdAndChain(herd, chain)
	sides := strings.Split(svg.EN, "</g>\n")
	for i, s := range []Story{herd, chain} {
		dots := func(k wiretap.Kind) int { return strings.Count(sides[i], fmt.Sprintf(`class="dot dot%d`, k)) }
		c := s.counts(1)
		assert.Equal(
			t,
			c.Notifications,
			dots(wiretap.Notification),
			"step %s: notifications in the film, and recorded",
			s.Step,
		)
		assert.Equal(t, c.All(), dots(wiretap.Request), "step %s: requests in the film, and recorded", s.Step)
		assert.Equal(t, c.All(), dots(wiretap.Reply), "step %s: replies in the film, and requests recorded", s.Step)
	}
}

// The film moves; in print, and for those who want no motion, it stands still. At
// its end and when it stands still it says what a release costs.
func TestFilmInABrowser(t *testing.T) {
	file, err := filepath.Abs(filmFile)
	require.NoError(t, err)
	b := browser.Open(t, "file://"+file, 1280, 800)
	for _, c := range []struct {
		media, motion string
		moves         bool
	}{{"screen", "no-preference", true}, {"screen", "reduce", false}, {"print", "no-preference", false}} {
		b.Do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
			_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Media: c.media, Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: c.motion}},
			})
			return err
		}))
		b.Until(fmt.Sprintf(`document.getAnimations().length > 0 === %v`, c.moves))
		b.Until(`(document.getAnimations().forEach((a) => { a.pause(); a.currentTime = 9000 }),
			[...document.querySelectorAll(".count")]
				.filter((text) => getComputedStyle(text).opacity == 1)
				.map((text) => text.textContent)
				.join() === "10,1")`)
	}
}
