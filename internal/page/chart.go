package page

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
	"time"
)

// A Curve is one step's line in a chart.
type Curve struct {
	Step string
	X, Y []float64
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

// Measures of a chart, in pixels.
const (
	chartWidth, chartHeight                   = 580, 330
	chartLeft, chartTop, chartEnd, chartFloor = 84, 40, 420, 280
)

// LogLog draws curves on logarithmic axes, with each one's slope beside it.
func LogLog(title, across string, curves []Curve) string {
	top := 10.0
	for _, c := range curves {
		top = max(top, slices.Max(c.Y))
	}
	low, high := curves[0].X[0], curves[0].X[len(curves[0].X)-1]
	decades := math.Ceil(math.Log10(top))
	x := func(v float64) float64 {
		return chartLeft + 12 + math.Log(v/low)/math.Log(max(high/low, 2))*(chartEnd-chartLeft-24)
	}
	y := func(v float64) float64 {
		return chartFloor - 8 - math.Log10(max(v, 1))/decades*(chartFloor-chartTop-8)
	}

	var b strings.Builder
	open(&b, title, chartWidth, chartHeight)
	fmt.Fprintf(&b, `<text class="b" x="8" y="20">%s</text>`, html.EscapeString(title))
	for d := range int(decades) + 1 {
		v := math.Pow(10, float64(d))
		if decades > 5 && d%2 == 1 {
			continue
		}
		fmt.Fprintf(&b, `<path class="l" d="M%d %.0fH%d"/><text class="s e" x="%d" y="%.0f">%s</text>`, chartLeft, y(v), chartEnd, chartLeft-6, y(v)+4, number(int(v)))
	}
	for _, v := range curves[0].X {
		fmt.Fprintf(&b, `<path class="l" d="M%.0f %dv6"/><text class="s m" x="%.0f" y="%d">%s</text>`, x(v), chartFloor, x(v), chartFloor+18, number(int(v)))
	}
	fmt.Fprintf(&b, `<text class="s m" x="%d" y="%d">%s</text>`, (chartLeft+chartEnd)/2, chartFloor+38, html.EscapeString(across))

	labels := slices.Clone(curves) // from the top down, so that none lies on another
	slices.SortStableFunc(labels, func(a, b Curve) int { return int(math.Copysign(1, b.Y[len(b.Y)-1]-a.Y[len(a.Y)-1])) })
	free := 0.0
	for _, c := range labels {
		slope := ""
		if len(c.X) > 1 {
			slope = fmt.Sprintf(": slope %.1f", max(0, c.slope()))
		}
		free = max(free, y(c.Y[len(c.Y)-1])+4)
		b.WriteString(mark(c.Step, chartEnd+16, free-4))
		fmt.Fprintf(&b, `<text x="%d" y="%.0f">step %s%s</text>`, chartEnd+28, free, c.Step, slope)
		free += 17
	}
	for _, c := range curves {
		var points []string
		for i := range c.X {
			points = append(points, fmt.Sprintf("%.1f %.1f", x(c.X[i]), y(c.Y[i])))
		}
		fmt.Fprintf(&b, `<path class="c c%s" d="M%s"/>`, c.Step, strings.Join(points, "L"))
		for i := range c.X {
			b.WriteString(mark(c.Step, x(c.X[i]), y(c.Y[i])))
		}
	}
	b.WriteString("</svg>")
	return b.String()
}

// mark is a point of a step's curve: every step has a shape of its own.
func mark(step string, x, y float64) string {
	shape := map[string]string{"1": "m-5 -5l10 10m0-10l-10 10", "2": "m-6 0h12m-6-6v12", "3": "m0-6l6 10h-12z",
		"4": "m-4.500-4.500h9v9h-9z", "5": "m-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0", "6": "m0-6l6 6l-6 6l-6-6z"}[step]
	return fmt.Sprintf(`<path class="d d%s" d="M%.1f %.1f%s"/>`, step, x, y, shape)
}

// Spread draws how long hand-overs took: a mark each, and their median.
func Spread(title string, all []HandOvers) string {
	const row = 44
	height := 66 + row*len(all)
	low, high := math.Inf(1), 0.0
	for _, h := range all {
		low, high = min(low, millis(slices.Min(h.Took))), max(high, millis(slices.Max(h.Took)))
	}
	low, high = math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high)))
	x := func(v float64) float64 { return 124 + math.Log(v/low)/math.Log(high/low)*(chartWidth-124-20) }

	var b strings.Builder
	open(&b, title, chartWidth, height)
	fmt.Fprintf(&b, `<text class="b" x="8" y="20">%s</text>`, html.EscapeString(title))
	for v := low; v <= high*1.01; v *= 10 {
		fmt.Fprintf(&b, `<path class="l" d="M%.0f 32V%d"/><text class="s m" x="%.0f" y="%d">%g ms</text>`, x(v), height-28, x(v), height-10, v)
	}
	for i, h := range all {
		y := 54 + row*i
		fmt.Fprintf(&b, `<text class="b" x="8" y="%d">step %s</text><text class="s" x="8" y="%d">median %.2g ms</text>`, y, h.Step, y+15, millis(h.Median()))
		for j, took := range h.Took {
			fmt.Fprintf(&b, `<circle class="d d%s" cx="%.1f" cy="%d" r="3"/>`, h.Step, x(millis(took)), y+(j*7)%15-7)
		}
		fmt.Fprintf(&b, `<path class="c" d="M%.1f %dv26"/>`, x(millis(h.Median())), y-13)
	}
	b.WriteString("</svg>")
	return b.String()
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
