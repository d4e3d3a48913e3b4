package page

import (
	"time"

	"zklock/internal/lockcheck"
	"zklock/internal/wiretap"
)

// Evidence makes a page of what a property's story has shown of two locks on one
// server: the learner's version of a step, and beside it the step's own. dir is the
// lock's path in their frames.
func Evidence(origin string, step Step, dir string, yours, own lockcheck.Result) *Recording {
	const id = "property"
	mine, theirs := step.Key+" (yours)", step.Key+" (the step's own)"
	yours.Subject, own.Subject = "yours", "the step's own"
	rec := &Recording{
		Began:   time.Now(),
		Origin:  origin,
		Locks:   []Step{{Key: mine, Name: step.Name, Lesson: yours.Evidence}, {Key: theirs, Name: step.Name, Lesson: own.Evidence}},
		Titles:  []story{{ID: id, Title: yours.Property.Name, Watch: "Why it matters: " + yours.Property.Why + ". Ask yourself: " + yours.Property.Hint, Steps: []string{mine, theirs}, Pair: []string{mine, theirs}}},
		Answers: [][]lockcheck.Result{{yours}, {own}},
	}
	for i, r := range []lockcheck.Result{yours, own} {
		s := seen(dir, r)
		s.ID, s.Step = id, rec.Locks[i].Key
		rec.Stories, rec.Largest = append(rec.Stories, s), max(rec.Largest, len(s.Clients)-1)
	}
	return rec
}

// Kept makes a page of what was seen on the boards of make play: a story for each lock.
func Kept(origin string, locks []Step, stories []Story) *Recording {
	const id = "play"
	rec := &Recording{Began: time.Now(), Origin: origin, Locks: locks, Stories: stories}
	var keys []string
	for i, l := range locks {
		keys = append(keys, l.Key)
		s := &stories[i]
		s.ID, s.Step = id, l.Key
		s.trim()
		rec.Largest = max(rec.Largest, len(s.Clients)-1)
	}
	rec.Titles = []story{{ID: id, Title: "What was played", Watch: "What was done, in its order, and what came of it.", Steps: keys, Pair: keys}}
	return rec
}

// seen makes a story of a property's evidence.
func seen(dir string, r lockcheck.Result) Story {
	d := &deduction{dir: dir, start: time.Now(), lines: r.Lines}
	for _, l := range r.Lines {
		for _, f := range l.Frames {
			if f.Kind == wiretap.Request && f.Op != wiretap.Connect && !aside(f) {
				d.start = earlier(d.start, f.At)
			}
			d.end = later(d.end, f.At)
		}
	}
	s := d.deduce(len(r.Lines))
	s.Phases = []Phase{{Over: s.End, Title: string(r.Verdict) + " " + r.Property.Name, Sum: r.Evidence}}
	return s
}
