package tour

import (
	"zklock/internal/check/steps"
	"zklock/internal/check/tables"
	"zklock/internal/lang"
	"zklock/internal/property"
	"zklock/internal/stage"
)

// A Lock is one that the tour shows.
type Lock struct {
	tables.Lock
	Subject property.Subject
}

// among tells whether its key is one of these.
func (l Lock) among(keys ...string) bool {
	for _, key := range keys {
		if l.Key == key {
			return true
		}
	}
	return false
}

// onPage is the lock as the stage's page shows it.
func (l Lock) onPage() stage.Lock {
	return stage.Lock{Key: l.Key, Heading: Heading(l.Lock), Lesson: l.Lesson}
}

// Heading is a lock's name on a page, with the step before it.
func Heading(l tables.Lock) lang.Text {
	if l.Key[0] < '0' || l.Key[0] > '9' {
		return l.Name
	}
	return lang.Of("Step %v: %v", "第 %v 步：%v", l.Key, l.Name)
}

// Locks are all that the tour shows, in the order of the table.
var Locks = func() (all []Lock) {
	for _, l := range tables.Locks {
		if l.Title != "" {
			all = append(all, Lock{l, steps.Of(l.Key)})
		}
	}
	return all
}()
