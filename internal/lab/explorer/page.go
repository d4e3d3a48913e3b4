// Package explorer makes a page on which a reader plays the network: he chooses which request of a
// few clients arrives next, and what fails. All that can happen was recorded on a real server.
package explorer

import (
	_ "embed"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"

	"zklock/internal/explore"
	"zklock/internal/lab/locks"
	"zklock/internal/lab/stage"
	"zklock/internal/lang"
)

//go:embed network.html.tmpl
var markup string

//go:embed network.css
var style string

//go:embed play.js
var play string

//go:embed network.js
var script string

var network = template.Must(template.New("network").Funcs(stage.Functions).Parse(markup))

// A Page has levels for a reader to play. It needs no other file.
type Page struct {
	Language string // in which it begins: zh, en, or "" for that of the browser
	Book     *Book  // nil: it is no page of the book
	Levels   []Level
	Games    map[string]*Game
}

// Book has the addresses of other pages of the book, and of this page in the other language.
type Book struct{ Home, Next, Other string }

// A Level is a lock to break.
type Level struct {
	Key    string      `json:"key"` // of its game, and in the page's address
	Title  lang.Text   `json:"title"`
	Asks   lang.Text   `json:"asks"`
	Hints  []lang.Text `json:"hints"`         // said before the answer: one for each goal that can be reached
	Note   lang.Text   `json:"note,omitzero"` // said beside the goals
	Met    lang.Text   `json:"met"`           // what the first goal shows, and what repairs it: said at the end of the last level
	Coins  int         `json:"coins"`         // so many faults may happen
	Goals  []Goal      `json:"goals"`         // the first is what the level asks for
	Beside string      `json:"beside"`        // the game of a lock on which the same choices are played; "": none
	Other  lang.Text   `json:"other"`         // what the page calls this lock

	Repairs []Repair `json:"repairs"` // what the first goals show, one for each; then what a fault shows
}

// A Repair is said when its goal is reached.
type Repair struct {
	Fault string    `json:"fault,omitempty"` // which shows it; "": the goal does
	Says  lang.Text `json:"says,omitzero"`   // {X} is the client with the fault
	Code  string    `json:"code"`            // the repair in two lines or three
	Step  int       `json:"step"`            // which has the whole repair
	Page  string    `json:"page"`            // of this step, in the book
}

// A Goal is an invariant to break.
type Goal struct {
	Kind   string   `json:"kind"`
	Faults []string `json:"faults,omitempty"` // what may have happened: "" is nothing; nil: whatever has happened
	Mends  bool     `json:"mends,omitempty"`  // the lock beside has to break it, by the same choices, and this one not
}

// Write writes the page.
func (p Page) Write(w io.Writer) error {
	kinds := map[string]lang.Text{}
	for _, kind := range explore.Gravest {
		kinds[kind] = named(kind)
	}
	return network.Execute(w, map[string]any{
		"Language": p.Language, "Book": p.Book,
		"CSS":    template.CSS(stage.Colours + style),
		"Script": template.JS(stage.Common + play + script),
		"Data":   map[string]any{"levels": p.Levels, "games": p.Games, "kinds": kinds},
	})
}

// Explored returns a page with one level: what was explored of a lock.
func Explored(l locks.Choice, r explore.Result, s explore.Settings) (Page, error) {
	p := Page{Language: stage.Language(), Games: map[string]*Game{}}
	game, err := Grow(r, s)
	if err != nil {
		return p, err
	}
	p.Games[l.Key] = game
	known := map[explore.Kind]bool{}
	base := baseOf(l)
	isAsCommitted := s.Clients == 2 && s.Readers == 0 && s.Faults <= 1 && s.Switches == explore.Unbound
	if !isAsCommitted {
		base = ""
	}
	if base != "" {
		if p.Games[base], err = Recorded(base); err != nil {
			return p, err
		}
		known = p.Games[base].kinds()
	}
	p.Levels = []Level{level(l, r.Kinds, s.Faults, base, known)}
	return p, nil
}

// kinds are the ways in which the interleavings of a lock are wrong.
type kinds = map[explore.Kind]explore.Finding

// level returns a level for what goes wrong in a lock. A published mistake begins with what does
// not go wrong in its base.
func level(l locks.Choice, kinds kinds, faults int, base string, known map[explore.Kind]bool) Level {
	made := Level{
		Key: l.Key, Title: l.Name, Coins: faults, Beside: base, Goals: goals(kinds, false),
		Asks: text("You choose what happens next. Can you make the lock break its promise?",
			"接下来发生什么，由你选择。你能让这把锁违背承诺吗？"),
	}
	if base != "" {
		made.Other = nameOf(base)
	}
	if l.IsMistake() && base != "" {
		own, others := split(kinds, known)
		made.Goals = append(goals(own, true), goals(others, false)...)
		if len(own) == 0 {
			made.Note = lang.Of(
				"Two clients and one fault cannot show this mistake: what goes wrong here also goes wrong in %v.",
				"两个客户端、一次故障，显示不出这个错误：这里会出的错，%v也会出。", nameOf(base))
		}
		if len(own) == 0 && l.NeedsThree {
			made.Note = lang.Of("%v Three can: make explore STEP=%v CLIENTS=3",
				"%v三个客户端可以：make explore STEP=%v CLIENTS=3", made.Note, l.Key)
		}
	}
	if len(made.Goals) == 0 {
		made.Goals = anyOf(explore.Gravest[:3]...) // nobody can reach them, but the page does not say so at once
	}
	return made
}

// baseOf returns the key of the lock of which a mistake is a change, or of the step that mends this
// one; "": there is none.
func baseOf(l locks.Choice) string {
	switch {
	case l.IsMistake() && l.Base() > "2": // the waiters of step 2 poll
		return l.Base()
	case slices.Contains([]string{"3", "4", locks.PartA}, l.Key):
		return "5"
	}
	return ""
}

// split returns the kinds that are a lock's own, and those that another lock has as well.
func split(all kinds, known map[explore.Kind]bool) (own, others kinds) {
	own, others = maps.Clone(all), maps.Clone(all)
	maps.DeleteFunc(own, func(k explore.Kind, _ explore.Finding) bool { return known[k] })
	maps.DeleteFunc(others, func(k explore.Kind, _ explore.Finding) bool { return !known[k] })
	return own, others
}

// goals returns a goal for each invariant: those that are broken without a fault first, and among
// them the most serious. If the kinds are the lock's own, no other faults count.
func goals(kinds kinds, own bool) (all []Goal) {
	for _, invariant := range explore.Gravest {
		var faults []string
		for k := range kinds {
			if k.Invariant == invariant {
				faults = append(faults, k.Faults)
			}
		}
		slices.Sort(faults)
		switch {
		case len(faults) == 0:
		case faults[0] == "":
			all = append(all, Goal{Kind: invariant, Faults: faults[:1]})
		case own:
			all = append(all, Goal{Kind: invariant, Faults: faults})
		default:
			all = append(all, Goal{Kind: invariant})
		}
	}
	needsFault := func(g Goal) int {
		if len(g.Faults) > 0 && g.Faults[0] == "" {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b Goal) int { return needsFault(a) - needsFault(b) })
	return all
}

// nameOf returns the name of a step or a mistake in a sentence.
func nameOf(key string) lang.Text {
	if key[0] >= '0' && key[0] <= '9' {
		return lang.Of("step %v", "第 %v 步", key)
	}
	return text(key, key)
}

// named returns what the page calls a broken invariant.
func named(invariant string) lang.Text {
	short := map[string]lang.Text{
		explore.TwoInside: text("Two hold it", "两个客户端同时持有锁"),
		explore.WaitsOn:   text("One waits forever", "有一个永远等下去"),
	}
	if t, known := short[invariant]; known {
		return t
	}
	return lang.Text{EN: strings.ToUpper(invariant[:1]) + invariant[1:], ZH: explore.Chinese[invariant]}
}

var text = lang.Both
