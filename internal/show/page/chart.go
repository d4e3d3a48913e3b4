package page

import (
	"cmp"
	"math"
	"slices"
	"time"

	"zklock/internal/upkeep/words"
)

// A Curve is one step's line in a chart. With a name it is somebody's beside the
// steps, whose slope is not asked for.
type Curve struct {
	Step, Name string
	X, Y       []float64
}

// slope is that of the line through the points on logarithmic axes, by least
// squares: 1 means that twice the crowd costs twice as much.
func (c Curve) slope() float64 {
	var n, sx, sy, sxx, sxy float64
	for i := range c.X {
		x, y := math.Log(c.X[i]), math.Log(c.Y[i])
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}

func last(values []float64) float64 { return values[len(values)-1] }

// Measures of a chart, in pixels.
const (
	chartWidth, chartHeight                   = 580, 330
	chartLeft, chartTop, chartEnd, chartFloor = 84, 40, 420, 280
)

// logLog draws curves on logarithmic axes, with each one's slope beside it.
func logLog(title words.Text, across string, curves []Curve) picture {
	top := 10.0
	for _, c := range curves {
		top = max(top, slices.Max(c.Y))
	}
	low, high := curves[0].X[0], last(curves[0].X)
	decades := math.Ceil(math.Log10(top))
	x := func(v float64) float64 {
		return chartLeft + 12 + math.Log(v/low)/math.Log(max(high/low, 2))*(chartEnd-chartLeft-24)
	}
	y := func(v float64) float64 {
		return chartFloor - 8 - math.Log10(max(v, 1))/decades*(chartFloor-chartTop-8)
	}

	width := chartWidth
	for _, c := range curves {
		width = max(width, chartEnd+44+6*len(c.Name))
	}
	d := headed(title, width, chartHeight)
	for i := 0.0; i <= decades; i++ {
		if v := math.Pow(10, i); decades <= 5 || math.Mod(i, 2) == 0 {
			d.path("l", "M%v %vH%v", chartLeft, y(v), chartEnd)
			d.text("s e", chartLeft-6, y(v)+4, "%s", number(int(v)))
		}
	}
	for _, v := range curves[0].X {
		d.path("l", "M%v %vv6", x(v), chartFloor)
		d.text("s m", x(v), chartFloor+18, "%s", number(int(v)))
	}
	d.text("s m", (chartLeft+chartEnd)/2, chartFloor+38, "%s", across)

	labels := slices.Clone(curves) // from the top down, so that none lies on another
	slices.SortStableFunc(labels, func(a, b Curve) int { return cmp.Compare(last(b.Y), last(a.Y)) })
	free := 0.0
	for _, c := range labels {
		free = max(free, y(last(c.Y))+4)
		d.mark(c.Step, chartEnd+16, free-4)
		switch {
		case c.Name != "":
			d.text("", chartEnd+28, free, "%s", c.Name)
		case len(c.X) > 1:
			d.text("", chartEnd+28, free, "step %s: slope %.1f", c.Step, max(0, c.slope()))
		default:
			d.text("", chartEnd+28, free, "step %s", c.Step)
		}
		free += 17
	}
	for _, c := range curves {
		for i := range c.X[1:] {
			d.path("c c"+c.Step, "M%v %vL%v %v", x(c.X[i]), y(c.Y[i]), x(c.X[i+1]), y(c.Y[i+1]))
		}
		for i := range c.X {
			d.mark(c.Step, x(c.X[i]), y(c.Y[i]))
		}
	}
	return d.end()
}

// mark draws a point of a curve: every step has a shape of its own.
func (d *drawing) mark(step string, x, y float64) {
	d.path(
		"d d"+step,
		"M%v %v"+map[string]string{"1": "m-5 -5l10 10m0-10l-10 10", "2": "m-6 0h12m-6-6v12", "3": "m0-6l6 10h-12z",
			"4": "m-4.500-4.500h9v9h-9z", "5": "m-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0", "6": "m0-6l6 6l-6 6l-6-6z",
			"7": "m0 6l6-10h-12z", "8": "m-3-6h6v12h-6z"}[step],
		x,
		y,
	)
}

// spread draws how long the first crowd's hand-overs took: a mark each, and their
// median.
func spread(title words.Text, queues []*Queue) picture {
	const row = 44
	height := 66 + row*float64(len(queues))
	low, high := math.Inf(1), 0.0
	for _, q := range queues {
		for _, r := range q.Crowds[0].Releases {
			low, high = min(low, millis(r.Took)), max(high, millis(r.Took))
		}
	}
	low, high = math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high)))
	x := func(v float64) float64 { return 124 + math.Log(v/low)/math.Log(high/low)*(chartWidth-124-20) }

	d := headed(title, chartWidth, int(height))
	for v := low; v <= high*1.01; v *= 10 {
		d.path("l", "M%v 32V%v", x(v), height-28)
		d.text("s m", x(v), height-10, "%g ms", v)
	}
	for i, q := range queues {
		y, median := 54+row*float64(i), millis(time.Duration(q.Crowds[0].median(took)))
		d.text("b", 8, y, "%s", q.Step.Subject.Name)
		d.text("s", 8, y+15, "median %.2g ms", median)
		for j, r := range q.Crowds[0].Releases {
			d.circle("d d"+q.Step.Key, x(millis(r.Took)), y+float64((j*7)%15-7), 3)
		}
		d.path("c", "M%v %vv26", x(median), y-13)
	}
	return d.end()
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
