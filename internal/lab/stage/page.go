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

// What each page of the stage is made of.
var (
	//go:embed colours.css
	Colours string // of what is drawn, light and dark

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

	//go:embed clock.js
	clockJS string

	//go:embed replay.js
	replayJS string

	//go:embed page.html.tmpl
	markup string

	//go:embed legend.html.tmpl
	legend string
)

// Style is how a page looks that has a stage, and Script draws a stage and says what happens
// on it. Clock plays what was recorded, and Common is what all pages do alike.
var (
	Style  = Colours + pageCSS
	Common = commonJS + langJS
	Script = stageJS + tellJS
	Clock  = clockJS
)

// Functions are what a template says its texts with: in both languages, where a text may
// stand, and as an element's aria-label. A text is English and Chinese, or a lang.Text.
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

// Say is a paragraph in both languages.
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

// Legend says what the signs of a drawing mean.
var Legend = func() template.HTML {
	var text bytes.Buffer
	if err := template.Must(template.New("legend").Funcs(Functions).Parse(legend)).Execute(&text, nil); err != nil {
		panic(err) // it is ours
	}
	return template.HTML(text.String())
}()

// Language is what a page begins in, if its reader has not chosen: "zh", or "" for the
// browser's own.
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

// A Title is a story that some locks have a part in.
type Title struct {
	ID    string    `json:"id"`
	Title lang.Text `json:"title"`
	Watch lang.Text `json:"watch"` // what to look out for
	Steps []string  `json:"steps"`
	Pair  []string  `json:"pair"` // the two locks that are best seen side by side
}

// A Page plays what was recorded. It needs nothing beside itself.
type Page struct {
	Heading lang.Text
	Footer  lang.Text // where it was recorded
	Locks   []Column
	Titles  []Title
	Stories []Replay

	Choose lang.Text     // what the list of stories is called; "": Story
	Intro  template.HTML // stands above the replay
	Parts  []Part        // what stands below, if there is anything
	More   template.HTML // and its HTML,
	Style  string        // and how it looks,
	Script string        // and what it does
}

// A Part of a page has an anchor and a title.
type Part struct {
	ID    string
	Title lang.Text
}

var page = template.Must(template.New("page").Funcs(Functions).Parse(markup))

// Write writes the page.
func (p Page) Write(w io.Writer) error {
	if p.Choose.EN == "" {
		p.Choose = lang.Text{EN: "Story", ZH: "故事"}
	}
	return page.Execute(w, map[string]any{
		"Language": Language(),
		"CSS":      template.CSS(Style + p.Style),
		"Script":   template.JS(Common + Script + Clock + p.Script + replayJS),
		"Intro":    p.Intro,
		"Legend":   Legend,
		"Heading":  p.Heading,
		"Choose":   p.Choose,
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

// Data is what the page's script plays.
func (p Page) Data() map[string]any {
	return map[string]any{"steps": p.Locks, "titles": p.Titles, "stories": p.Stories}
}

// Kept is a page of one story, as each of the locks has told it.
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
