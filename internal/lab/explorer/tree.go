package explorer

import (
	"slices"

	"zklock/internal/explore"
	"zklock/internal/lang"
)

// A tree has all interleavings that were played, for a page on which a reader walks through them.
// Each text is in it once, and is referred to by its number.
type tree struct {
	Texts []lang.Text `json:"texts"`
	Root  *point      `json:"root"`

	known map[lang.Text]int
}

// A point is a place in an interleaving at which something can be chosen, or its end.
type point struct {
	Choices []*option `json:"choices,omitempty"`
	Ends    []int     `json:"ends,omitempty"`    // how the interleaving has ended
	Wrong   []int     `json:"wrong,omitempty"`   // what is wrong with it
	Covered bool      `json:"covered,omitempty"` // another interleaving continues in the same way
}

// An option is something that can be chosen at a point, with what follows from it.
type option struct {
	Text   int    `json:"text"`
	Client string `json:"client"`
	Came   []int  `json:"came,omitempty"`
	Then   *point `json:"then"`

	label string
}

// grow returns the tree of the interleavings that were played.
func grow(runs []explore.Run) *tree {
	t := &tree{Root: &point{}, known: map[lang.Text]int{}}
	for _, run := range runs {
		t.add(run)
	}
	return t
}

// add adds an interleaving. The tree may already have its first choices.
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

// text returns the number of a text. A new text gets the next number.
func (t *tree) text(text lang.Text) int {
	i, known := t.known[text]
	if !known {
		i = len(t.Texts)
		t.known[text] = i
		t.Texts = append(t.Texts, text)
	}
	return i
}
