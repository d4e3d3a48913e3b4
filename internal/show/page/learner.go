package page

import (
	"time"

	"zklock/internal/property"
	"zklock/internal/server/wiretap"
	"zklock/internal/upkeep/words"
)

// Evidence makes a page of what a property's story has shown of two locks on one
// server: the learner's version of a step, and beside it the step's own.
func Evidence(origin words.Text, step Step, yours, own property.Result) *Recording {
	yours.Subject, own.Subject = "yours", "the step's own"
	locks := []Step{
		{
			Key:     step.Key + "-yours",
			Heading: words.Of("Step %v (yours): %v", step.Key, step.Name),
			Lesson:  words.Whole(yours.Evidence),
		},
		{
			Key:     step.Key + "-own",
			Heading: words.Of("Step %v (the step's own): %v", step.Key, step.Name),
			Lesson:  words.Whole(own.Evidence),
		},
	}
	p := yours.Property
	rec := oneStory(
		origin,
		words.Text(p.Name),
		words.Of("Why it matters: %v. Ask yourself: %v", words.Text(p.Why), words.Text(p.Question)),
		locks,
		[]Story{seen(yours), seen(own)},
	)
	rec.Answers = [][]property.Result{{yours}, {own}}
	return rec
}

// Kept makes a page of what was seen on the boards of make play: a story for each lock.
func Kept(origin words.Text, locks []Step, stories []Story) *Recording {
	return oneStory(
		origin,
		words.Of("What was played"),
		words.Of("What was done, in its order, and what came of it."),
		locks,
		stories,
	)
}

// oneStory makes a page of one story, as each of the locks has told it.
func oneStory(origin, title, watch words.Text, locks []Step, stories []Story) *Recording {
	rec := &Recording{Began: time.Now(), Origin: origin, Locks: locks, Stories: stories}
	about := story{ID: "story", Title: title, Watch: watch}
	for i, l := range locks {
		s := &stories[i]
		s.ID, s.Step = about.ID, l.Key
		s.trim()
		about.Steps = append(about.Steps, l.Key)
		rec.Largest = max(rec.Largest, len(s.Clients)-1)
	}
	about.Pair = about.Steps
	rec.Titles = []story{about}
	return rec
}

// seen makes a story of a property's evidence.
func seen(r property.Result) Story {
	start, end := time.Now(), time.Time{}
	for _, l := range r.Lines {
		for _, f := range l.Frames {
			isAsked := f.Kind == wiretap.Request && f.Op != wiretap.Connect && isDrawn(f)
			if isAsked && f.At.Before(start) {
				start = f.At
			}
			if f.At.After(end) {
				end = f.At
			}
		}
	}
	d := &deduction{dir: "/lock", start: start, lines: r.Lines}
	s := d.deduce(len(r.Lines), end)
	s.Phases = []Phase{{Over: s.End, Title: words.Of("%s %s", r.Verdict, words.Text(r.Property.Name)), Sum: words.Whole(r.Evidence)}}
	return s
}
