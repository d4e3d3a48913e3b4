package book

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"html/template"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"

	shared "zklock/internal/show/page"
	"zklock/internal/upkeep/words"
)

//go:embed run.js
var runScript string

// player is the script that plays runs: what draws them, and when, is the tour's.
var player = words.Say + shared.Stage + shared.Clock + runScript

const runsFile = "docs/figures/runs.json"

// A played is a story, and the steps in it, one above the other.
type played struct {
	story string
	steps []string
}

// runsOf are the runs that are played below a figure.
var runsOf = map[string]played{
	"release-step3.svg":    {"release", []string{"3"}},
	"release-step4.svg":    {"release", []string{"3", "4"}},
	"lost-reply-step4.svg": {"lost", []string{"4"}},
	"lost-reply-step5.svg": {"lost", []string{"5"}},
}

// runsIn are the runs of chapters without such a figure: each is played below the first
// block of a section.
var runsIn = map[string]struct {
	section *regexp.Regexp
	played
}{
	"step01": {regexp.MustCompile(`^(?:What is still broken|还有哪些问题)$`), played{"crash", []string{"1"}}},
	"step02": {regexp.MustCompile(`^(?:Why|为什么)$`), played{"crash", []string{"1", "2"}}},
	"step06": {regexp.MustCompile(`^(?:What this lock has|这把锁有什么)$`), played{"shared", []string{"5", "6"}}},
}

// What was recorded, as the script reads it.
type recording struct {
	Steps   []recordedStep    `json:"steps"`
	Titles  []recordedTitle   `json:"titles"`
	Stories []json.RawMessage `json:"stories"`
}

type recordedStep struct {
	Key          string
	Name, Lesson words.Text
}

type recordedTitle struct {
	ID           string
	Title, Watch words.Text
}

type recordedStory struct {
	ID, Step string
	Clients  []struct {
		Moods []struct{ Is string }
	}
}

// A replay is what is played below a figure.
type replay struct {
	Title, Watch string
	Say          map[string]string
	Legend       template.HTML
	Stages       []stage
	Data         map[string]any // the stories, and what is drawn in the edition's language
}

type stage struct{ Step, Lesson string }

// run writes what is played below a paragraph with figures, if anything is.
func (w *writer) run(p *ast.Paragraph) {
	for n := p.FirstChild(); n != nil; n = n.NextSibling() {
		if image, ok := n.(*ast.Image); ok {
			if of, ok := runsOf[strings.Replace(path.Base(string(image.Destination)), ".zh-CN.svg", ".svg", 1)]; ok {
				w.play(of)
			}
		}
	}
}

// runBelow writes what is played below a block, if the block is the first of its section.
func (w *writer) runBelow(block ast.Node) {
	heading, first := block.PreviousSibling().(*ast.Heading)
	of, ok := runsIn[w.name]
	if !first || !ok {
		return
	}
	if of.section.MatchString(w.said(heading)) {
		w.play(of.played)
	}
}

// play writes what plays a story.
func (w *writer) play(of played) {
	r, err := w.edition.recorded(of.story, of.steps)
	if err == nil {
		w.plays = true
		err = templates.ExecuteTemplate(&w.out, "run", r)
	}
	if err != nil {
		w.fail("%s: %w", runsFile, err)
	}
}

// recorded is the run of a story with some steps.
func (e *edition) recorded(id string, steps []string) (replay, error) {
	var rec recording
	if err := json.Unmarshal([]byte(e.sources[runsFile]), &rec); err != nil {
		return replay{}, err
	}
	title := rec.Titles[slices.IndexFunc(rec.Titles, func(t recordedTitle) bool { return t.ID == id })]
	r := replay{Title: e.tell(title.Title), Watch: e.tell(title.Watch), Say: e.labels(), Legend: e.legend()}
	drawn := map[string]string{} // the Chinese of what is drawn, besides the texts of the stories
	var stories []json.RawMessage
	for _, key := range steps {
		for _, text := range rec.Stories {
			var story recordedStory
			if err := json.Unmarshal(text, &story); err != nil {
				return replay{}, err
			}
			if story.ID != id || story.Step != key {
				continue
			}
			step := rec.Steps[slices.IndexFunc(rec.Steps, func(s recordedStep) bool { return s.Key == key })]
			r.Stages = append(r.Stages, stage{e.tell(words.Of("Step %v: %v", key, step.Name)), e.tell(step.Lesson)})
			stories = append(stories, text)
			if e.language != "en" {
				story.collect(drawn)
			}
		}
	}
	if len(stories) != len(steps) {
		return replay{}, words.Errorf("it has %d of the %d runs of %s", len(stories), len(steps), id)
	}
	r.Data = map[string]any{"stories": stories, "drawn": drawn}
	return r, nil
}

var sign = regexp.MustCompile(`</svg> ([^<]+)<`)

// legend says in the edition's language what the signs of a drawing mean.
func (e *edition) legend() template.HTML {
	return template.HTML(sign.ReplaceAllStringFunc(string(shared.Legend), func(item string) string {
		return "</svg> " + e.say(sign.FindStringSubmatch(item)[1]) + "<"
	}))
}

// collect gathers what the stage writes by itself: the moods, and what a frame is called.
func (s recordedStory) collect(drawn map[string]string) {
	texts := []string{"awake", "changed!", "done", "error", "holds?", "told: lost", "%d names", "%s.",
		"connection lost", "no such node", "node exists", "not empty"}
	for _, c := range s.Clients {
		for _, m := range c.Moods {
			texts = append(texts, m.Is)
		}
	}
	for _, text := range texts {
		drawn[text] = words.Whole(text).ZH
	}
}

// JSON is the data for a script in the page.
func (r replay) JSON() (template.JS, error) {
	text, err := json.Marshal(r.Data)
	return template.JS(bytes.TrimSpace(text)), err
}
