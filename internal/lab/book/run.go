package book

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"

	"zklock/internal/lab/herd"
	"zklock/internal/lab/stage"
	"zklock/internal/lang"
)

// runsFile contains the runs that the chapters play.
const runsFile = "docs/figures/runs.json"

// PausesFile contains runs of a holder that pauses, each with another pause. Lesson 5 of make play also plays them.
const PausesFile = "docs/figures/pauses.json"

// A recording is the content of these files. The stories are passed on to the script unchanged.
type recording struct {
	Steps   []stage.Column    `json:"steps"`
	Titles  []stage.Title     `json:"titles"`
	Stories []json.RawMessage `json:"stories"`
}

func readRuns(sources map[string]string) (*recording, error) {
	all := &recording{}
	for _, file := range []string{runsFile, PausesFile} {
		var r recording
		if err := json.Unmarshal([]byte(sources[file]), &r); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all.Steps = append(all.Steps, r.Steps...)
		all.Titles = append(all.Titles, r.Titles...)
		all.Stories = append(all.Stories, r.Stories...)
	}
	return all, nil
}

// mark matches a comment that asks for a run in a chapter. For example, <!-- run: release 3 4 -->
// plays the story with the ID release, with steps 3 and 4.
var mark = regexp.MustCompile(`^<!-- run: (\w+)((?: \d)+) -->`)

// crowds is the comment that asks for the crowds of package herd in a chapter.
const crowds = "<!-- herd -->"

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
	comment := string(block.Lines().Value(w.markdown))
	if strings.TrimSpace(comment) == crowds {
		w.plays = true
		fmt.Fprintf(&w.out,
			`<figure class="herd with-script"><div></div><script type="application/json">%s</script></figure>`+"\n",
			strings.TrimSpace(w.edition.sources[herd.File]))
		return true
	}
	asked := mark.FindStringSubmatch(comment)
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
