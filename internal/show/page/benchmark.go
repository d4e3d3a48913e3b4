package page

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"

	"zklock/internal/upkeep/words"
)

// Benched is what make bench has measured of a lock with so many contenders.
type Benched struct {
	Contenders                    int
	Lock                          string
	PerSecond, Ratio, Least, Most float64 // turns, and the ratio to zk.Lock
	ToAnother, Longest            float64
	Requests, Writes, ReplyBytes  float64
}

// BenchedFile is where the rows lie that docs/benchmark.md quotes, below the repository's root.
const BenchedFile = "docs/figures/bench.json"

// BenchedHead stands above the rows.
func BenchedHead() words.Text {
	return words.Of("  %-36s %9s %7s %14s %10s %9s %9s %7s %11s",
		"", "a second", "ratio", "", "to another", "longest", "requests", "writes", "reply bytes")
}

// Text is the row as make bench prints it.
func (b Benched) Text() words.Text {
	ratios := words.Of("%.2f to %.2f", b.Least, b.Most)
	return words.Of("  %-36s %9.0f %7.2f %14s %10.2f %9.1f %9.2f %7.2f %11.0f",
		b.Lock, b.PerSecond, b.Ratio, ratios, b.ToAnother, b.Longest, b.Requests, b.Writes, b.ReplyBytes)
}

// KeepBenched writes rows to a file, one a line.
func KeepBenched(file string, rows []Benched) error {
	text := []byte("[\n")
	for i, row := range rows {
		line, err := json.Marshal(row)
		if err != nil {
			return err
		}
		text = append(text, line...)
		if i < len(rows)-1 {
			text = append(text, ',')
		}
		text = append(text, '\n')
	}
	text = append(text, "]\n"...)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// ReadBenched reads the rows of a file.
func ReadBenched(file string) (rows []Benched, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return rows, json.Unmarshal(text, &rows)
}

// BenchmarkFigures draws the rows' turns, and those of them that went to another
// contender than the one before.
func BenchmarkFigures(rows []Benched) []Drawing {
	draw := func(name string, title words.Text, measure func(Benched) float64) Drawing {
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
		return Drawing{
			Name:  name,
			SVG:   logLog(title, "contenders", curves).Text,
			Facts: words.Of("Drawn from the table in docs/benchmark.md."),
		}
	}
	return []Drawing{
		draw("benchmark-turns", words.Of("Turns a second"), func(r Benched) float64 { return r.PerSecond }),
		draw(
			"benchmark-handed-on",
			words.Of("Turns a second that went to another contender"),
			func(r Benched) float64 { return r.PerSecond * r.ToAnother },
		),
	}
}
