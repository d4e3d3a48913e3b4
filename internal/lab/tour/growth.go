package tour

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"regexp"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"zklock/internal/lab/stage"
)

// inks lists the colours of the chart's lines. On the page, each drawn colour is replaced by one that
// suits a light and a dark page.
var inks = []struct {
	drawn  color.RGBA
	onPage string
}{
	{color.RGBA{R: 1, A: 255}, "var(--notification)"},
	{color.RGBA{R: 2, A: 255}, "var(--request)"},
	{color.RGBA{R: 3, A: 255}, "var(--holder)"},
	{color.RGBA{R: 4, A: 255}, "var(--six)"},
	{color.RGBA{R: 5, A: 255}, "var(--soft)"},
}

// dashes distinguish the lines without colours.
var dashes = [][]vg.Length{
	nil,
	nil,
	{vg.Points(6), vg.Points(3)},
	{vg.Points(2), vg.Points(3)},
	{vg.Points(9), vg.Points(4)},
}

// The names of the chart's axes.
var (
	waiting = text("clients that wait", "等待的客户端数")
	sent    = text("bytes to clients, for one release", "一次释放发给客户端的字节数")
)

// growth draws, on two logarithmic axes, how many bytes one release sends as the crowd grows.
func (rec *Recording) growth() (template.HTML, error) {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = waiting.EN, sent.EN
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(powers), plot.TickerFunc(powers)
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.Padding, p.Legend.TextStyle.Font.Size = vg.Points(3), vg.Points(10)
	p.Add(plotter.NewGrid())
	for i, q := range rec.measured(grown...) {
		var points plotter.XYs
		for _, c := range q.Crowds {
			points = append(points, plotter.XY{X: float64(c.Waiters), Y: float64(c.median(received))})
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return "", err
		}
		line.Color, line.Width = inks[i%len(inks)].drawn, vg.Points(2)
		line.Dashes = dashes[i%len(dashes)]
		dots.Color, dots.Shape = inks[i%len(inks)].drawn, draw.CircleGlyph{}
		p.Add(line, dots)
		p.Legend.Add(q.Lock.Subject.Name, line, dots)
	}
	p.X.Max = max(p.X.Max, 1.2*float64(rec.Largest))
	canvas := vgsvg.New(vg.Points(560), vg.Points(340))
	p.Draw(draw.New(canvas))
	var text bytes.Buffer
	if _, err := canvas.WriteTo(&text); err != nil {
		return "", err
	}
	return onPage(text.String()), nil
}

// powers returns the marks of an axis: the powers of ten, written with commas.
func powers(from, to float64) (ticks []plot.Tick) {
	for at := 1.0; at <= to*10; at *= 10 {
		if at*10 > from {
			ticks = append(ticks, plot.Tick{Value: at, Label: stage.Number(int(at))})
		}
	}
	return ticks
}

var (
	colour   = regexp.MustCompile(`#[0-9A-Fa-f]{6}\b`)
	prologue = regexp.MustCompile(`(?s)^.*?(<svg)`)
	size     = regexp.MustCompile(`<svg width="[^"]*" height="[^"]*"`)
)

// onPage returns the chart as a part of a page, with the colours and both languages of the page.
func onPage(svg string) template.HTML {
	svg = prologue.ReplaceAllString(svg, "$1")
	svg = size.ReplaceAllString(svg, `<svg class="chart" role="img" aria-labelledby="growth-title"`)
	svg = colour.ReplaceAllStringFunc(svg, func(c string) string {
		for _, ink := range inks {
			if strings.EqualFold(c, fmt.Sprintf("#%02X%02X%02X", ink.drawn.R, ink.drawn.G, ink.drawn.B)) {
				return ink.onPage
			}
		}
		switch strings.ToUpper(c) {
		case "#FFFFFF":
			return "var(--paper)"
		case "#000000":
			return "var(--ink)"
		}
		return "var(--line)"
	})
	words := regexp.MustCompile(`>(step (\d)|` + waiting.EN + `|` + sent.EN + `)<`)
	svg = words.ReplaceAllStringFunc(svg, func(text string) string {
		en := strings.Trim(text, "<>")
		zh := inBoth(en).ZH
		switch en {
		case waiting.EN:
			zh = waiting.ZH
		case sent.EN:
			zh = sent.ZH
		}
		return fmt.Sprintf(` data-zh="%s">%s<`, zh, en)
	})
	return template.HTML(svg)
}
