package main

import (
	"encoding/json"
	"maps"
)

// A shelf keeps the newest of what comes, by a running number, and knows which of
// it the page has not been told yet.
type shelf[T any] struct {
	next int
	kept map[int]*T
	news map[int]bool
}

func newShelf[T any]() shelf[T] { return shelf[T]{0, map[int]*T{}, map[int]bool{}} }

func (s *shelf[T]) add(v T) (i int, kept *T) {
	i, kept = s.next, &v
	s.kept[i], s.news[i] = kept, true
	s.next++
	return i, kept
}

// change gives what there is under a number, to be changed; nil if it is forgotten.
func (s *shelf[T]) change(i int) *T {
	if v := s.kept[i]; v != nil {
		s.news[i] = true
		return v
	}
	return nil
}

// forget drops what is over and has been followed by more than a number of others; now
// and then, for it looks at all.
func (s *shelf[T]) forget(most int, over func(*T) bool) {
	if len(s.kept) > most+most/4 {
		maps.DeleteFunc(s.kept, func(i int, v *T) bool { return i < s.next-most && over(v) })
	}
}

// told returns what is new, and counts it as told.
func (s *shelf[T]) told() map[int]*T {
	news := map[int]*T{}
	for i := range s.news {
		if v := s.kept[i]; v != nil {
			news[i] = v
		}
	}
	clear(s.news)
	return news
}

// MarshalJSON tells all that is kept.
func (s shelf[T]) MarshalJSON() ([]byte, error) { return json.Marshal(s.kept) }
