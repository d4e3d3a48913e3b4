package exercise

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

// Progress is how far a learner's lock has come. Check keeps it in a file beside the lock.
type Progress struct {
	Begun bool // the lock was checked at least once

	Held    int    // how many properties hold
	Missing string // the next one, which does not hold; "" if all hold
	Stuck   bool   // the check of Missing has no verdict: it waited for something that did not happen
	Done    bool   // all hold, and the test has passed

	Hints map[string]int // how many hints were given, by the name of their section
}

const progressFile = ".progress.json"

// Progress reads how far the learner has come with an exercise.
func (e Exercise) Progress() Progress { return progressIn(e.Dir()) }

// Keep stores how far the learner has come with an exercise.
func (e Exercise) Keep(p Progress) error { return p.keep(e.Dir()) }

// progressIn reads the file in a folder. Before the first check there is no file.
func progressIn(dir string) (p Progress) {
	text, err := os.ReadFile(filepath.Join(dir, progressFile))
	if err == nil {
		_ = json.Unmarshal(text, &p) // a file that cannot be read is no progress
	}
	return p
}

func (p Progress) keep(dir string) error {
	text, err := json.MarshalIndent(p, "", "\t")
	return errors.Join(err, os.WriteFile(filepath.Join(dir, progressFile), text, 0o644))
}
