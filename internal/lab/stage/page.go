package stage

import (
	"bytes"
	_ "embed"
	"fmt"
	"html"
	"html/template"
	"io"

	"zklock/internal/lang"
)

// The files that each page of the stage is made of.
var (
	//go:embed colours.css
	Colours string // the colours of the drawings, light and dark

	//go:embed page.css
	pageCSS string

	//go:embed lang.js
	langJS string

	//go:embed common.js
	commonJS string

	//go:embed stage.js
	stageJS string

	//go:embed tell.js
	tellJS string

	//go:embed strip.js
	stripJS string
	//go:embed clock.js
	clockJS string

	//go:embed replay.js
	replayJS string

	//go:embed page.html.tmpl
	markup string

	//go:embed legend.html.tmpl
	legend string
)

// Style is the style sheet of a page that has a stage. Script draws a stage and puts into words
// what happens on it. Clock plays what was recorded, and Strip draws it as lanes. Common is the script
// that all pages have in common.
var (
	Style  = Colours + pageCSS
	Common = commonJS + langJS
	Script = stageJS + tellJS
	Clock  = clockJS
	Strip  = stripJS
)

// Functions has the functions with which a template writes a text in both languages: say writes it
// as an element, and label as the aria-label of an element. Their arguments are the English and the
// Chinese text, or a lang.Text.
var Functions = template.FuncMap{
	"say": func(texts ...any) template.HTML {
		t := both(texts)
		en, zh := html.EscapeString(t.EN), html.EscapeString(t.ZH)
		return template.HTML(fmt.Sprintf(`<span data-zh="%s">%s</span>`, zh, en))
	},
	"label": func(texts ...any) template.HTMLAttr {
		t := both(texts)
		en, zh := html.EscapeString(t.EN), html.EscapeString(t.ZH)
		return template.HTMLAttr(fmt.Sprintf(`aria-label="%s" data-zh-label="%s"`, en, zh))
	},
}

// Say returns a paragraph in both languages.
func Say(words lang.Text) template.HTML {
	en, zh := html.EscapeString(words.EN), html.EscapeString(words.ZH)
	return template.HTML(fmt.Sprintf(`<p class="intro" data-zh="%s">%s</p>`, zh, en))
}

func both(texts []any) lang.Text {
	if t, ok := texts[0].(lang.Text); ok {
		return t
	}
	return lang.Text{EN: texts[0].(string), ZH: texts[1].(string)}
}

// Legend explains the signs of a drawing.
var Legend = func() template.HTML {
	var text bytes.Buffer
	if err := template.Must(template.New("legend").Funcs(Functions).Parse(legend)).Execute(&text, nil); err != nil {
		panic(err) // the template is our own
	}
	return template.HTML(text.String())
}()

// Language returns the language in which a page begins if its reader has not chosen one: "zh", or
// "" for that of the browser.
func Language() string {
	if lang.Chinese() {
		return "zh"
	}
	return ""
}

// A Column is a lock that a page shows at work.
type Column struct {
	Key     string    `json:"key"`
	Heading lang.Text `json:"heading"`
	Lesson  lang.Text `json:"lesson"` // in one line
}

// A Title describes a story. Steps are the locks that play it.
type Title struct {
	ID    string    `json:"id"`
	Title lang.Text `json:"title"`
	Watch lang.Text `json:"watch"` // what to look out for
	Steps []string  `json:"steps"`
	Pair  []string  `json:"pair"` // the locks to show first, side by side if there are two
}

// A Page plays what was recorded. It needs no other file.
type Page struct {
	Heading lang.Text
	Footer  lang.Text // where it was recorded
	Locks   []Column
	Titles  []Title
	Stories []Replay

	Intro  template.HTML // above the replay
	Parts  []Part        // the parts below the replay, if there are any
	More   template.HTML // the HTML of these parts
	Style  string        // their style sheet
	Script string        // their script
}

// A Part of a page has an anchor and a title.
type Part struct {
	ID    string
	Title lang.Text
}

var page = template.Must(template.New("page").Funcs(Functions).Parse(markup))

// Write writes the page.
func (p Page) Write(w io.Writer) error {
	return page.Execute(w, map[string]any{
		"Language": Language(),
		"CSS":      template.CSS(Style + p.Style),
		"Script":   template.JS(Common + Script + Clock + p.Script + replayJS),
		"Intro":    p.Intro,
		"Legend":   Legend,
		"Heading":  p.Heading,
		"Footer":   p.Footer,
		"Parts":    p.Parts,
		"More":     p.More,
		"Sides": []Part{
			{"left", lang.Text{EN: "the stage on the left", ZH: "左边的图"}},
			{"right", lang.Text{EN: "the stage on the right", ZH: "右边的图"}},
		},
		"Data": p.Data(),
	})
}

// Data returns what the page's script plays.
func (p Page) Data() map[string]any {
	return map[string]any{"steps": p.Locks, "titles": p.Titles, "stories": p.Stories}
}

// Kept returns a page of one story, as each of the locks has played it.
func Kept(origin string, title, watch lang.Text, locks []Column, stories []Replay) Page {
	about := Title{ID: "story", Title: title, Watch: watch}
	for i, l := range locks {
		stories[i].ID, stories[i].Step = about.ID, l.Key
		about.Steps = append(about.Steps, l.Key)
	}
	about.Pair = about.Steps
	footer := lang.Text{EN: fmt.Sprintf("Recorded on %s.", origin), ZH: fmt.Sprintf("录制环境：%s。", origin)}
	return Page{Heading: title, Footer: footer, Locks: locks, Titles: []Title{about}, Stories: stories}
}

// Number writes 1000 as 1,000, as the pages do.
func Number(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", Number(n/1000), n%1000)
}
