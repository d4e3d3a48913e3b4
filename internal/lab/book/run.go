package book

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"

	"zklock/internal/lab/stage"
	"zklock/internal/lang"
)

// runsFile contains the runs that the chapters play.
const runsFile = "docs/figures/runs.json"

// A recording is the content of runsFile. The stories are passed on to the script unchanged.
type recording struct {
	Steps   []stage.Column    `json:"steps"`
	Titles  []stage.Title     `json:"titles"`
	Stories []json.RawMessage `json:"stories"`
}

func readRuns(text string) (*recording, error) {
	r := &recording{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, fmt.Errorf("%s: %w", runsFile, err)
	}
	return r, nil
}

// mark matches a comment that asks for a run in a chapter. For example, <!-- run: release 3 4 -->
// plays the story with the ID release, with steps 3 and 4.
var mark = regexp.MustCompile(`^<!-- run: (\w+)((?: \d)+) -->`)

// A replay is a run that plays within the text.
type replay struct {
	Title, Watch string
	Say          map[string]string
	Legend       template.HTML
	Stages       []struct{ Step, Lesson string }
	Stories      []json.RawMessage
}

// run writes the run that a block asks for, if the block is a mark, and reports whether it is one.
func (w *writer) run(block ast.Node) (isMark bool) {
	if block.Kind() != ast.KindHTMLBlock {
		return false
	}
	asked := mark.FindStringSubmatch(string(block.Lines().Value(w.markdown)))
	if asked == nil {
		return false
	}
	w.plays = true
	r, err := w.edition.replay(asked[1], strings.Fields(asked[2]))
	if err == nil {
		err = templates.ExecuteTemplate(&w.out, "run", r)
	}
	if err != nil {
		w.fail("%s: %w", asked[0], err)
	}
	return true
}

// replay returns the run of a story with some steps.
func (e *edition) replay(id string, steps []string) (r replay, err error) {
	r.Say, r.Legend = e.labels(), e.legend()
	for _, t := range e.runs.Titles {
		if t.ID == id {
			r.Title, r.Watch = e.say(t.Title), e.say(t.Watch)
		}
	}
	for _, key := range steps {
		for _, text := range e.runs.Stories {
			var story struct{ ID, Step string }
			if err := json.Unmarshal(text, &story); err != nil {
				return r, err
			}
			if story.ID == id && story.Step == key {
				r.Stories = append(r.Stories, text)
			}
		}
		for _, l := range e.runs.Steps {
			if l.Key == key {
				r.Stages = append(r.Stages, struct{ Step, Lesson string }{e.say(l.Heading), e.say(l.Lesson)})
			}
		}
	}
	if len(r.Stories) != len(steps) || len(r.Stages) != len(steps) {
		return r, fmt.Errorf("%s has %d of these %d runs", runsFile, len(r.Stories), len(steps))
	}
	return r, nil
}

var inBoth = regexp.MustCompile(`<span data-zh="([^"]*)">([^<]*)</span>`)

// legend explains the signs of a drawing in the edition's language.
func (e *edition) legend() template.HTML {
	return template.HTML(inBoth.ReplaceAllStringFunc(string(stage.Legend), func(both string) string {
		m := inBoth.FindStringSubmatch(both)
		return e.say(lang.Text{EN: m[2], ZH: m[1]})
	}))
}

// JSON encodes the stories for a script in the page.
func (r replay) JSON() (template.JS, error) {
	text, err := json.Marshal(r.Stories)
	return template.JS(bytes.TrimSpace(text)), err
}
