package tour

import (
	"context"
	"encoding/json"
	"slices"

	"zklock/internal/lab/stage"
)

// RunsFile is the path, relative to the repository's root, of the file with the runs that the
// chapters of the book play.
const RunsFile = "docs/figures/runs.json"

// inChapters lists these runs, each as a story and a step.
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

// RecordRuns records the stories of the steps, and returns those that the chapters play.
func (t *Tour) RecordRuns(ctx context.Context) ([]byte, error) {
	t.Locks = slices.DeleteFunc(slices.Clone(t.Locks), func(l Exhibit) bool { return l.Beside })
	jobs := t.tellings(ctx)
	t.jobs.Store(int64(len(jobs)))
	if err := t.inParallel(ctx, jobs); err != nil {
		return nil, err
	}
	kept := stage.Page{}
	for _, l := range t.Locks {
		kept.Locks = append(kept.Locks, l.onPage())
	}
	for _, run := range inChapters {
		kept.Stories = append(kept.Stories, *t.recorded(run[0], run[1]))
		if !slices.ContainsFunc(kept.Titles, func(title stage.Title) bool { return title.ID == run[0] }) {
			i := slices.IndexFunc(t.Titles, func(title stage.Title) bool { return title.ID == run[0] })
			kept.Titles = append(kept.Titles, t.Titles[i])
		}
	}
	text, err := json.Marshal(kept.Data())
	return append(text, '\n'), err
}

// recorded returns one story of the recording, as one step has told it.
func (rec *Recording) recorded(id, step string) *stage.Replay {
	i := slices.IndexFunc(rec.Stories, func(s stage.Replay) bool { return s.ID == id && s.Step == step })
	return &rec.Stories[i]
}
