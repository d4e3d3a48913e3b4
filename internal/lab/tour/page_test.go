package tour

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/chapter"
	"zklock/internal/lab/stage"
	"zklock/internal/lang"
	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) {
	zktest.Buffer = zktest.BufferFor(1000) // as in the tour
	zktest.Main(m)
}

var largest = 1000 // crowd

// An ending is what there was on the stage at the end of a story.
type ending struct {
	stage.Replay
	nodes, watches []string
}

var (
	endings []ending
	theTour = sync.OnceValues(func() (*Recording, error) {
		server, err := zktest.Shared()
		if err != nil {
			return nil, err
		}
		tour := &Tour{
			Recording: Recording{Locks: Locks, Largest: largest}, Server: server,
			Say: func(string, int, int) {}, Scored: func() {},
			ended: func(r *scene, s stage.Replay) {
				end := ending{Replay: s, nodes: r.Names(r.dir)}
				for _, m := range r.members {
					end.watches = append(end.watches, m.Tap.Watched()...)
				}
				endings = append(endings, end)
			},
		}
		return &tour.Recording, tour.Record(context.Background())
	})
)

// recorded is what the tour records, once for all tests.
func recorded(t *testing.T) *Recording {
	t.Helper()
	rec, err := theTour()
	require.NoError(t, err)
	return rec
}

// The page that compares the locks has what the tour measures, but for times, which are the
// machine's. Both tables fit the screen.
func TestTheTablesAreWhatTheTourMeasures(t *testing.T) {
	const comparison = "../../../docs/comparison.md"
	rec := recorded(t)
	row := "| %s |" + strings.Repeat(" %v |", len(rec.Locks))
	groups := rec.Score()
	for _, g := range groups[:len(groups)-1] { // the last is part of the matrix
		isLeftOut := func(words string) bool { return strings.Contains(g.Title.EN, words) }
		if isLeftOut("100 ") || isLeftOut("300 ") || isLeftOut("bystander") {
			continue
		}
		lines, cells := []string{"| **" + g.Title.EN + "** |" + strings.Repeat(" |", len(rec.Locks))}, []any{}
		for _, r := range g.Rows {
			isTime := strings.HasPrefix(r.Label.EN, "milliseconds")
			if isTime {
				continue
			}
			lines, cells = append(lines, row), append(append(cells, r.Label.EN), exact(r.Cells)...)
		}
		chapter.SaysIn(t, comparison, strings.Join(lines, "\n"), cells...)
	}
	for _, file := range []string{comparison, "../../../docs/comparison.zh-CN.md"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Empty(
			t,
			regexp.MustCompile(`(?m)^\|.*\d{4}.*`).FindAllString(string(text), -1),
			"numbers without commas in %s",
			file,
		)
	}
	for j, p := range property.Properties {
		cells := []any{p.Name.EN}
		for i, lock := range rec.Locks {
			r := rec.Answers[i][j]
			assert.NotEqual(t, property.Stuck, r.Verdict, "%s: the question gets an answer: %v", lock.Subject.Name, r)
			cells = append(cells, r.Verdict)
		}
		chapter.SaysIn(t, comparison, row, cells...)
	}
	var out bytes.Buffer
	rec.PrintScore(&out)
	rec.PrintMatrix(&out)
	for line := range strings.Lines(out.String()) {
		assert.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSpace(line)), screen, "the columns of %q", line)
	}
}

// exact are cells, those of whole numbers as the pages have them. Rough ones are compared as numbers.
func exact(cells []any) (all []any) {
	for _, c := range cells {
		if n, ok := c.(int); ok {
			c = withCommas(n)
		}
		all = append(all, c)
	}
	return all
}

// What one release costs is the same each time, and grows with the crowd as the steps say.
func TestEveryReleaseCostsTheSame(t *testing.T) {
	for _, q := range recorded(t).Queues {
		for _, c := range q.Crowds {
			woken, looks := 1, 1
			switch q.Lock.Key {
			case "1", "2":
				continue // they are never told
			case "3w": // one of them creates the znode, and the others try to, and watch it
				woken, looks = c.Waiters, 2*c.Waiters-1
			case "3":
				woken, looks = c.Waiters, c.Waiters
			}
			for _, r := range c.Releases {
				assert.Equal(
					t,
					woken,
					r.Notifications,
					"%s: notifications for one release, %d waiting",
					q.Lock.Subject.Name,
					c.Waiters,
				)
				assert.Equal(
					t,
					1+looks,
					r.All(),
					"%s: one delete, and the looks of each who is woken, %d waiting",
					q.Lock.Subject.Name,
					c.Waiters,
				)
			}
		}
	}
}

// At the end of a story the replay must have the znodes and the watches that
// the server and the taps have, and at no time may it go back in time.
func TestReplayIsTrue(t *testing.T) {
	rec, told := recorded(t), 0
	for _, s := range rec.Titles {
		told += len(s.Steps)
	}
	assert.Len(t, endings, told, "all stories are told")
	for _, s := range endings {
		t.Run(s.ID+"/step"+s.Step, func(t *testing.T) {
			var left []string
			for _, n := range s.Nodes {
				if n.To < 0 && n.Slot >= 0 {
					left = append(left, n.Name)
				}
				assert.True(t, n.To < 0 || n.To >= n.From, "znode %s is made before it is deleted", n.Name)
			}
			assert.ElementsMatch(t, s.nodes, left, "at the end the replay has the server's znodes")
			armed := 0
			for _, w := range s.Watches {
				if w.To < 0 {
					armed++
				}
			}
			assert.Equal(
				t,
				len(s.watches),
				armed,
				"at the end the replay has as many watches as the taps: %v",
				s.watches,
			)
			for _, f := range s.Frames {
				assert.LessOrEqual(t, f.From, f.To, "a frame leaves before it arrives: %+v", f)
				assert.False(
					t,
					f.Kind == wiretap.Notification && f.Node == -2,
					"a notification is about something that is shown: %+v",
					f,
				)
			}
			for i, p := range s.Phases {
				assert.NotEmpty(t, p.Sum, "part %d is summed up", i+1)
				assert.LessOrEqual(t, p.At, p.Over, "part %d begins before it is over", i+1)
				assert.True(t, i == 0 || s.Phases[i-1].Over <= p.At, "part %d comes after the one before", i+1)
			}
		})
	}
}

func TestThePageIsSmall(t *testing.T) {
	var page bytes.Buffer
	require.NoError(t, recorded(t).Write(&page))
	assert.LessOrEqual(t, page.Len(), 3<<20, "bytes of the page")
}

// What the chapters of the book play is what is recorded now: each phase has the same name
// and comes to the same, with its counts.
func TestTheRunsOfTheBook(t *testing.T) {
	kept, err := os.ReadFile(filepath.Join("..", "..", "..", RunsFile))
	require.NoError(t, err, "out/bin/tour runs records it")
	var runs struct {
		Stories []struct{ Phases []stage.Phase }
	}
	require.NoError(t, json.Unmarshal(kept, &runs))
	require.Len(t, runs.Stories, len(inChapters))
	rec := recorded(t)
	for i, run := range inChapters {
		var told, tells []lang.Text
		for _, p := range runs.Stories[i].Phases {
			told = append(told, p.Title, p.Sum)
		}
		for _, p := range rec.recorded(run[0], run[1]).Phases {
			tells = append(tells, p.Title, p.Sum)
		}
		assert.Equal(t, tells, told, "%v (out/bin/tour runs records it again)", run)
	}
}

func TestCells(t *testing.T) {
	for want, c := range map[string][2]any{
		"19,000": {"kilobytes sent to them", chapter.About(19_123, 10)},
		"1,000":  {"notifications", 1000},
		"0.85":   {"kilobytes sent to them", chapter.About(0.85, 10)},
		"≤ 1":    {"its median wait, relative to quiet", chapter.About(0.85, 10)},
		"2.3":    {"its median wait, relative to quiet", chapter.About(2.3, 10)},
		"–":      {"notifications", none},
		"":       {"requests", ""},
	} {
		assert.Equal(t, want, cell(text(c[0].(string), ""), c[1]))
	}
}

func TestCrowdsOfTheScoreboard(t *testing.T) {
	for largest, want := range map[int][]int{10: {10}, 50: {10, 50}, 100: {10, 100}, 1000: {10, 100, 1000}} {
		assert.Equal(t, want, scored(largest), "WAITERS=%d", largest)
	}
	assert.Equal(t, "1,234,567", stage.Number(1234567))
}

// The evidence of a property shows what the lock does. A lease's proofs are no part of that, nor
// is what keeps a session alive, or what a story asks to know that all has come.
func TestTheEvidenceShowsWhatALockDoes(t *testing.T) {
	create := wiretap.Frame{Op: wiretap.Create, Path: "/lock/lock-"}
	frames := []wiretap.Frame{
		{Op: wiretap.Connect},
		{Kind: wiretap.Reply, Op: wiretap.Connect},
		{Op: wiretap.Delete, Path: "/zklock-nobody-0123456789abcdef/nothing"},
		{Kind: wiretap.Reply, Op: wiretap.Ping},
		create,
		{Op: wiretap.Exists, Path: "/"},
		{Op: wiretap.Close},
	}
	shown := messages([]property.Line{{Client: "A", Frames: frames}})
	require.Len(t, shown, 1)
	assert.Equal(t, framed(0, create).Text, shown[0].Text)
}

// Of a long story the evidence shows how it began, the death that it is about, and its end.
func TestTheEvidenceBeginsWithTheBeginning(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	a := property.Line{Client: "A", Frames: []wiretap.Frame{{Op: wiretap.Create, Path: "/lock", At: at(0)}}, Died: at(50)}
	b := property.Line{Client: "B"}
	for second := range 100 {
		b.Frames = append(b.Frames, wiretap.Frame{Op: wiretap.Create, Path: "/lock", At: at(second)})
	}
	shown := messages([]property.Line{a, b})
	require.Len(t, shown, shownFirst+3+shownLast)
	assert.Equal(t, 0, shown[0].Client, "what A did first")
	assert.Equal(t, "is killed", shown[shownFirst+1].Text.EN)
	assert.Equal(t, "99000.0", shown[len(shown)-1].After)
	assert.Equal(t, "250", twoDigits(249.6))
	assert.Equal(t, "0.84", twoDigits(0.8437))
}
