package page

import (
	"regexp"
	"strconv"
	"strings"
)

// Benched is what make bench has measured of a lock with so many contenders.
type Benched struct {
	Contenders                    int
	Lock                          string
	PerSecond, Ratio, Least, Most float64 // turns, and the ratio to zk.Lock
	ToAnother, Longest            float64
	Requests, Writes, ReplyBytes  float64
}

var benched = regexp.MustCompile(`^  (\S.*?) {2,}([\d.]+) +([\d.]+) +([\d.]+) to ([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)$`)

// ReadBenchmark reads the part peers of what make bench has printed, out of a page that
// quotes it.
func ReadBenchmark(text string) (rows []Benched) {
	contenders := 0
	for line := range strings.SplitSeq(text, "\n") {
		if rest, ok := strings.CutPrefix(line, "Contenders: "); ok {
			first, _, _ := strings.Cut(rest, ".")
			contenders, _ = strconv.Atoi(first)
		}
		found := benched.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		r := Benched{Contenders: contenders, Lock: found[1]}
		for i, to := range []*float64{&r.PerSecond, &r.Ratio, &r.Least, &r.Most, &r.ToAnother, &r.Longest, &r.Requests, &r.Writes, &r.ReplyBytes} {
			*to, _ = strconv.ParseFloat(found[2+i], 64)
		}
		rows = append(rows, r)
	}
	return rows
}

// BenchmarkFigures draws the rows' turns, and those of them that went to another
// contender than the one before.
func BenchmarkFigures(rows []Benched) []Drawing {
	draw := func(name, title string, measure func(Benched) float64) Drawing {
		var curves []Curve
		for i, lock := range []string{"step 1", "step 2", "step 3", "zk.Lock", "step 5, Cohorts in 4 processes",
			"Redis, SET NX, 100 ms, fsync always", "Redis, SET NX, 1 ms, fsync always", "etcd"} {
			c := Curve{Step: strconv.Itoa(i + 1), Name: lock}
			for _, r := range rows {
				if y := measure(r); r.Lock == lock && y > 0 {
					c.X, c.Y = append(c.X, float64(r.Contenders)), append(c.Y, y)
				}
			}
			curves = append(curves, c)
		}
		return Drawing{Name: name, SVG: string(logLog(title, "contenders", curves)), Facts: "Drawn from the table in docs/benchmark.md."}
	}
	return []Drawing{
		draw("benchmark-turns", "Turns a second", func(r Benched) float64 { return r.PerSecond }),
		draw("benchmark-handed-on", "Turns a second that went to another contender", func(r Benched) float64 { return r.PerSecond * r.ToAnother }),
	}
}
