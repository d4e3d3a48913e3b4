package exercise

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

// Progress is how far a learner's lock has come. Check keeps it in a file beside the lock.
type Progress struct {
	Begun bool // it was checked

	Held    int    // so many properties hold
	Missing string // the one after them, which does not; "" if all hold
	Stuck   bool   // Missing came to no end: somebody waited for what never came
	Done    bool   // all hold, and the test has passed

	Hints map[string]int // how many were given, by the name of their section
}

const progressFile = ".progress.json"

// Progress reads how far the learner has come with an exercise.
func (e Exercise) Progress() Progress { return progressIn(e.Dir()) }

// Keep writes it down.
func (e Exercise) Keep(p Progress) error { return p.keep(e.Dir()) }

// progressIn reads the file in a folder. Before the first check there is none.
func progressIn(dir string) (p Progress) {
	text, err := os.ReadFile(filepath.Join(dir, progressFile))
	if err == nil {
		_ = json.Unmarshal(text, &p) // what cannot be read is no progress
	}
	return p
}

func (p Progress) keep(dir string) error {
	text, err := json.MarshalIndent(p, "", "\t")
	return errors.Join(err, os.WriteFile(filepath.Join(dir, progressFile), text, 0o644))
}
