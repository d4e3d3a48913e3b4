package docs

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/zktest"
	"zklock/internal/server/zkserver"
	"zklock/internal/show/page"
	"zklock/internal/upkeep/chapter"
)

// The page's sentences are those of its own table, which is a run that was recorded.
func TestTheBenchmarksPageSaysWhatItsTableSays(t *testing.T) {
	text, err := os.ReadFile("benchmark.md")
	require.NoError(t, err)
	rows, err := page.ReadBenched("../" + page.BenchedFile)
	require.NoError(t, err)
	row := func(lock string, contenders int) page.Benched {
		for _, r := range rows {
			if r.Lock == lock && r.Contenders == contenders {
				return r
			}
		}
		require.Failf(t, "no such row", "%s, %d contenders", lock, contenders)
		return page.Benched{}
	}
	says := func(format string, args ...any) { chapter.SaysIn(t, "benchmark.md", format, args...) }
	const (
		redis    = "Redis, SET NX, 100 ms, fsync always"
		everysec = "Redis, SET NX, 100 ms, everysec"
		quick    = "Redis, SET NX, 1 ms, fsync always"
		cohorts  = "step 5, Cohorts in 4 processes"
	)
	handedOn := func(lock string, n int) float64 { return row(lock, n).PerSecond * row(lock, n).ToAnother }
	for _, n := range []int{1, 8, 32, 100} {
		again := row("zk.Lock, once more", n)
		says("| %d | %.2f | %.2f to %.2f |", n, again.Ratio, again.Least, again.Most)
		says("| %d | %.1f | %.1f | %.1f | %.1f | %.1f |", n, row(redis, n).Ratio, row(everysec, n).Ratio,
			row("redsync, fsync always", n).Ratio, row("redsync, everysec", n).Ratio, row(cohorts, n).Ratio)
		if n > 1 {
			says(
				"| %d | %.0f | %.0f | %.0f | %.0f |",
				n,
				handedOn("zk.Lock", n),
				handedOn(redis, n),
				handedOn(quick, n),
				handedOn(cohorts, n),
			)
			says(
				"| %d | %.1f | %.1f | %.1f | %.1f |",
				n,
				row("zk.Lock", n).Longest,
				row(redis, n).Longest,
				row(quick, n).Longest,
				row(cohorts, n).Longest,
			)
		}
		steps := fmt.Sprintf("| %d |", n)
		for _, lock := range []string{"step 1", "step 1, waiters watch", "step 2", "step 3", "step 4"} {
			steps += fmt.Sprintf(" %.0f · %.0f |", row(lock, n).PerSecond, row(lock, n).ReplyBytes)
		}
		says("%s", steps)
		says("| %d | %.0f | %.1f |", n, row("etcd", n).PerSecond, row("etcd", n).PerSecond/float64(n))
	}
	for title, n := range map[string]int{"one session, alone": 1, "8 sessions at once": 8, "32 sessions at once": 32} {
		_, under, _ := strings.Cut(string(text), "\n"+title+"\n")
		measured := func(lock string) (ratio, requests float64) {
			row := `(?m)^  ` + regexp.QuoteMeta(lock) + ` +\d+ +([\d.]+) +\S+ to \S+ +([\d.]+) +\d+$`
			found := regexp.MustCompile(row).FindStringSubmatch(under)
			require.NotNil(t, found, "%s under %s", lock, title)
			ratio, _ = strconv.ParseFloat(found[1], 64)
			requests, _ = strconv.ParseFloat(found[2], 64)
			return ratio, requests
		}
		ratio, requests := measured("step 4, looks one release early")
		noise, _ := measured("zk.Lock, once more")
		_, usual := measured("zk.Lock")
		says("| %d | %.2f | %.2f | %.2f, %.2f |", n, ratio, noise, requests, usual)
	}
	for _, drawing := range page.BenchmarkFigures(rows) {
		file, err := os.ReadFile("figures/" + drawing.Name + ".svg")
		require.NoError(t, err)
		assert.Equal(t, strings.TrimSpace(drawing.File().EN), strings.TrimSpace(string(file)), "make figures draws it again from the table")
	}
}

// More servers, slower writes: each of them has each write on its disk.
func TestEveryServerWritesEachWrite(t *testing.T) {
	const writes = 100
	var fsyncs [3]int
	for i, n := range []int{1, 3, 5} {
		e, err := zkserver.StartEnsemble(t.Context(), n)
		require.NoError(t, err)
		t.Cleanup(func() { _ = e.Stop() })
		z := zktest.NewOn(t, e.Server)
		c := z.Client("a client")
		count := func() (sum int) {
			for _, m := range e.Members {
				said, err := m.Mntr()
				require.NoError(t, err)
				sum += int(said["zk_cnt_fsynctime"])
			}
			return sum
		}
		before := count()
		for range writes {
			_, err := c.Set(z.Root, nil, -1)
			require.NoError(t, err)
		}
		z.Await("every server to have had the writes on its disk", func() bool { return count()-before > (n-1)*writes })
		fsyncs[i] = count() - before
	}
	chapter.SaysIn(
		t,
		"benchmark.md",
		"%d writes: 1 server has the disk write %v times, 3 servers %v times, 5 servers %v times",
		writes,
		chapter.About(fsyncs[0], 1.2),
		chapter.About(fsyncs[1], 1.5),
		chapter.About(fsyncs[2], 1.5),
	)
}
