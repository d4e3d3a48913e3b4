package exercise

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"zklock/internal/lang"
)

// Progress is how far a learner's lock has come. Check keeps it in a file beside the lock.
type Progress struct {
	Begun bool // the lock was checked at least once

	Held    int       // how many properties hold
	Most    int       // the greatest Held of all checks before the last one
	Missing string    // the next one, which does not hold; "" if all hold
	About   string    // the section of hints that fits what is missing; "": the section with its name
	Ask     lang.Text // the question that fits what was seen, if it is not that of what is missing
	Stuck   bool      // the check of Missing has no verdict: it waited for something that did not happen
	LeftOut bool      // the lock has no TryLock, which may be left out
	Done    bool      // all hold, and the test has passed

	Hints map[string]int // how many hints were given, by the name of their section
}

const progressFile = ".progress.json"

// Progress reads how far the learner has come with an exercise.
func (e Exercise) Progress() Progress { return progressIn(e.Dir()) }

// Keep stores how far the learner has come with an exercise.
func (e Exercise) Keep(p Progress) error { return p.keep(e.Dir()) }

// Count returns how many of the check's answers are ✓, and how many there are: that the lock can be
// used, the properties, and from step 3 on the interleavings.
func (e Exercise) Count(p Progress) (passed, all int) {
	all = 1 + len(e.Properties)
	if e.hasOrders() {
		all++
	}
	switch p.Missing {
	case canBeUsed:
		return 0, all
	case "":
		return all, all
	}
	return 1 + p.Held, all
}

// reached returns the greatest number of properties that held in one check so far. A later change may have broken some.
func (p Progress) reached() int { return max(p.Most, p.Held) }

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
