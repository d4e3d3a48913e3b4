package page

import (
	"strings"

	"zklock/internal/check/steps"
	"zklock/internal/check/tables"
	"zklock/internal/property"
	"zklock/internal/upkeep/words"
)

// A Step is a lock that the tour shows.
type Step struct {
	Key     string           `json:"key"`  // "1", "2", …
	Title   string           `json:"-"`    // in one short word
	Name    words.Text       `json:"name"` // in a few words
	Lesson  words.Text       `json:"lesson"`
	Heading words.Text       `json:"heading"` // with the step before the name
	Subject property.Subject `json:"-"`
}

// among tells whether it is one of the steps whose keys are the letters of keys.
func (s Step) among(keys string) bool { return len(s.Key) == 1 && strings.Contains(keys, s.Key) }

// Locks are all that the tour shows, in the order of the table: the steps, and beside them
// step 1's lock whose waiters do not ask, and the Go client's own lock, which has no stories.
var Locks = shown(tables.Locks)

// Steps are those that have a chapter.
var Steps = shown(tables.Steps())

// ClientLock is the Go client's own lock, and Watched is step 1's that stands beside it.
var (
	ClientLock = of(tables.Find("zk"))
	Watched    = of(tables.Find("1w"))
)

func of(l tables.Lock) Step {
	s := Step{
		Key:     l.Key,
		Title:   l.Title,
		Name:    words.Whole(l.Name),
		Lesson:  words.Whole(l.Lesson),
		Subject: steps.Of(l.Key),
	}
	s.Heading = s.Name
	if l.Key[0] >= '0' && l.Key[0] <= '9' {
		s.Heading = words.Of("Step %v: %v", l.Key, l.Name)
	}
	return s
}

func shown(locks []tables.Lock) (all []Step) {
	for _, l := range locks {
		if l.Title != "" {
			all = append(all, of(l))
		}
	}
	return all
}
