package stage

import (
	"maps"
	"slices"
)

// A shelf keeps values by a running number, and drops old ones that are over. It knows which values
// have changed since a given change.
type shelf[T any] struct {
	next    int
	kept    map[int]*T
	changed map[int]int // the number of the last change of each value
	changes int
}

func newShelf[T any]() shelf[T] { return shelf[T]{kept: map[int]*T{}, changed: map[int]int{}} }

func (s *shelf[T]) add(v T) (i int) {
	i = s.next
	s.kept[i] = &v
	s.change(i)
	s.next++
	return i
}

// change returns a value for the caller to change, and counts this as a change. It returns nil if
// the value was dropped.
func (s *shelf[T]) change(i int) *T {
	v := s.kept[i]
	if v != nil {
		s.changes++
		s.changed[i] = s.changes
	}
	return v
}

// forget drops each value that is over, unless it is one of the newest ones that are kept. The argument
// most is the number of these. forget does so only now and then, because it looks at all values.
func (s *shelf[T]) forget(most int, over func(*T) bool) {
	if len(s.kept) <= most+most/4 {
		return
	}
	kept := slices.Sorted(maps.Keys(s.kept)) // forgetOne leaves gaps: s.next-most would be too late
	first := kept[len(kept)-most]
	maps.DeleteFunc(s.kept, func(i int, v *T) bool { return i < first && over(v) })
	maps.DeleteFunc(s.changed, func(i, _ int) bool { return s.kept[i] == nil })
}

// forgetOne drops a value if it is over.
func (s *shelf[T]) forgetOne(i int, over func(*T) bool) {
	if v := s.kept[i]; v != nil && over(v) {
		delete(s.kept, i)
		delete(s.changed, i)
	}
}

// tell puts into news, under a name, the values that have changed since the page was last told.
func (s *shelf[T]) tell(news map[string]any, name string, told *Told) {
	changed := map[int]*T{}
	for i, at := range s.changed {
		if at > told.upTo[name] {
			changed[i] = s.kept[i]
		}
	}
	if len(changed) > 0 {
		news[name], told.upTo[name] = changed, s.changes
	}
}
