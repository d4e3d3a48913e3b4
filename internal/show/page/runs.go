package page

import (
	"encoding/json"
	"slices"
)

// inChapters are the runs that the chapters of the book play: a story, and the step in it.
var inChapters = [][2]string{
	{"crash", "1"},
	{"crash", "2"},
	{"release", "3"},
	{"release", "4"},
	{"lost", "4"},
	{"lost", "5"},
	{"shared", "5"},
	{"shared", "6"},
}

// Runs are the stories that the book plays, as it reads them: what "make figures" keeps
// beside the pictures.
func (rec *Recording) Runs() ([]byte, error) {
	var told []Story
	for _, run := range inChapters {
		told = append(told, rec.story(run[0], run[1]))
	}
	titles := slices.DeleteFunc(slices.Clone(rec.Titles), func(s story) bool {
		return !slices.ContainsFunc(told, func(t Story) bool { return t.ID == s.ID })
	})
	text, err := json.Marshal(map[string]any{"steps": Steps, "stories": told, "titles": titles})
	return append(text, '\n'), err
}
