package stage

import "maps"

// A shelf keeps the newest of what comes, by a running number, and knows when each
// has changed last.
type shelf[T any] struct {
	next    int
	kept    map[int]*T
	changed map[int]int // at which of all changes
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

// change gives what there is under a number, to be changed; nil if it is forgotten.
func (s *shelf[T]) change(i int) *T {
	v := s.kept[i]
	if v != nil {
		s.changes++
		s.changed[i] = s.changes
	}
	return v
}

// forget drops what is over and has been followed by more than a number of others; now
// and then, for it looks at all.
func (s *shelf[T]) forget(most int, over func(*T) bool) {
	if len(s.kept) <= most+most/4 {
		return
	}
	maps.DeleteFunc(s.kept, func(i int, v *T) bool { return i < s.next-most && over(v) })
	maps.DeleteFunc(s.changed, func(i, _ int) bool { return s.kept[i] == nil })
}

// tell adds what has changed to the news, under a name.
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
