package explorer

import (
	"slices"

	"zklock/internal/explore"
	"zklock/internal/lang"
)

// A tree has all interleavings that were played, for a page on which a reader walks through them.
// Each text is in it once, with a number.
type tree struct {
	Texts []lang.Text `json:"texts"`
	Root  *point      `json:"root"`

	known map[lang.Text]int
}

// A point is one at which something is to be chosen, or the end of an interleaving.
type point struct {
	Choices []*option `json:"choices,omitempty"`
	Ends    []int     `json:"ends,omitempty"`    // how it has ended
	Wrong   []int     `json:"wrong,omitempty"`   // what is wrong then
	Covered bool      `json:"covered,omitempty"` // what could come now also comes in another one
}

// An option is what can be chosen at a point, and what comes of it.
type option struct {
	Text   int    `json:"text"`
	Client string `json:"client"`
	Came   []int  `json:"came,omitempty"`
	Then   *point `json:"then"`

	label string
}

// grow makes the tree of the interleavings that were played.
func grow(runs []explore.Run) *tree {
	t := &tree{Root: &point{}, known: map[lang.Text]int{}}
	for _, run := range runs {
		t.add(run)
	}
	return t
}

// add adds an interleaving: its beginning may be known.
func (t *tree) add(run explore.Run) {
	at, line := t.Root, 0
	for line < len(run.Told) && run.Told[line].Choice == 0 {
		line++ // before the first choice
	}
	for _, m := range run.Moments {
		told := run.Told[line]
		o := &option{label: m.Choices[m.Taken], Text: t.text(told.Text), Client: told.Client, Then: &point{}}
		for line++; line < len(run.Told) && run.Told[line].Choice == 0; line++ {
			o.Came = append(o.Came, t.text(run.Told[line].Text))
		}
		known := slices.IndexFunc(at.Choices, func(other *option) bool { return other.label == o.label })
		if known < 0 {
			at.Choices = append(at.Choices, o)
			known = len(at.Choices) - 1
		}
		at = at.Choices[known].Then
	}
	at.Covered = run.Covered
	for _, end := range run.Ends {
		at.Ends = append(at.Ends, t.text(end))
	}
	for _, wrong := range run.Wrong {
		at.Wrong = append(at.Wrong, t.text(named(wrong)))
	}
}

// text is the number of a text.
func (t *tree) text(text lang.Text) int {
	i, known := t.known[text]
	if !known {
		i = len(t.Texts)
		t.known[text] = i
		t.Texts = append(t.Texts, text)
	}
	return i
}
