package page

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zklock/internal/wiretap"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

func server(t *testing.T) *zkserver.Server {
	t.Helper()
	s, err := zktest.Shared()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// recorded tells a story with a step.
func recorded(t *testing.T, key string, s story) Story {
	t.Helper()
	told, err := record(server(t), Steps[slices.IndexFunc(Steps, func(s Step) bool { return s.Key == key })], s)
	if err != nil {
		t.Fatal(err)
	}
	return told
}

// titled finds one of the page's stories.
func titled(id string) story {
	all := stories(1000)
	return all[slices.IndexFunc(all, func(s story) bool { return s.ID == id })]
}

func TestReleaseCosts(t *testing.T) {
	for key, want := range map[string]Release{
		"3": {Step: "3", Waiters: 10, Notifications: 10, Requests: 11, Lists: 10},
		"4": {Step: "4", Waiters: 10, Notifications: 1, Requests: 2, Lists: 1},
	} {
		s := recorded(t, key, titled("release"))
		got := s.release()
		got.Bytes = 0
		if got != want {
			t.Errorf("step %s: the recorded release is %+v, want %+v", key, got, want)
		}
		sum := fmt.Sprintf("Client 0 released: %s, %s, 1 of them useful.", plural(want.Notifications, "notification"), plural(want.Lists, "list"))
		if s.Phases[1].Sum != sum {
			t.Errorf("step %s: the caption is %q, want %q", key, s.Phases[1].Sum, sum)
		}
	}
}

// At the end of a story the replay must have the znodes and the watches that
// the server and the taps have, and at no time may it go back in time.
func TestReplayIsTrue(t *testing.T) {
	for _, s := range stories(50) {
		for _, key := range s.Steps {
			t.Run(s.ID+"/step"+key, func(t *testing.T) {
				t.Parallel()
				var names, watched []string
				tell := s.tell
				s := s
				s.tell = func(r *recorder) {
					tell(r)
					names = r.Names(r.dir)
					for _, a := range r.actors {
						watched = append(watched, a.Tap.Watched()...)
					}
				}
				told := recorded(t, key, s)
				var left []string
				for _, n := range told.Nodes {
					if n.To < 0 && n.Slot >= 0 {
						left = append(left, n.Name)
					}
					if n.To >= 0 && n.To < n.From {
						t.Errorf("znode %s is deleted before it is made", n.Name)
					}
				}
				if slices.Sort(names); !slices.Equal(slices.Sorted(slices.Values(left)), names) {
					t.Errorf("at the end the replay has the znodes %v, the server %v", left, names)
				}
				armed := 0
				for _, w := range told.Watches {
					if w.To < 0 {
						armed++
					}
				}
				if armed != len(watched) {
					t.Errorf("at the end the replay has %d watches, the taps %v", armed, watched)
				}
				for _, f := range told.Frames {
					if f.To < f.From {
						t.Errorf("%+v arrives before it leaves", f)
					}
					if f.Kind == wiretap.Notification && f.Node == -2 {
						t.Errorf("%+v is about nothing that is shown", f)
					}
				}
				for i, p := range told.Phases {
					if p.Sum == "" || p.Over < p.At || i > 0 && p.At < told.Phases[i-1].Over {
						t.Errorf("phase %d is %+v", i+1, p)
					}
				}
			})
		}
	}
}

func TestPageIsSmall(t *testing.T) {
	rec := Recording{Titles: []story{titled("crowd")}}
	for _, key := range []string{"3", "4"} {
		rec.Stories = append(rec.Stories, recorded(t, key, titled("crowd")))
	}
	var page bytes.Buffer
	if err := rec.Write(&page); err != nil {
		t.Fatal(err)
	}
	const most = 3 << 20
	if t.Logf("%d bytes with 1,000 waiting", page.Len()); page.Len() > most {
		t.Errorf("the page has %d bytes with 1,000 waiting, want at most %d", page.Len(), most)
	}
}

// What a chapter's picture shows must be what is measured now.
func TestFiguresAreUpToDate(t *testing.T) {
	drawings, err := Figures(server(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range drawings {
		file := filepath.Join("..", "..", "docs", "figures", d.Name+".svg")
		drawn, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("%v (make figures draws it)", err)
			continue
		}
		_, rest, _ := strings.Cut(string(drawn), "<desc>")
		facts, _, _ := strings.Cut(rest, "</desc>")
		if html.UnescapeString(facts) != d.Facts {
			t.Errorf("%s is out of date (make figures draws it again).\nit shows:  %s\nmeasured: %s", file, html.UnescapeString(facts), d.Facts)
		}
	}
}

func TestSlope(t *testing.T) {
	for _, c := range []struct {
		y    []float64
		want string
	}{{[]float64{1, 1, 1}, "0.0"}, {[]float64{10, 100, 1000}, "1.0"}, {[]float64{1, 100, 10000}, "2.0"}} {
		got := fmt.Sprintf("%.1f", Curve{X: []float64{10, 100, 1000}, Y: c.y}.slope())
		if got != c.want {
			t.Errorf("the slope through %v is %s, want %s", c.y, got, c.want)
		}
	}
}
