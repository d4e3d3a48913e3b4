package page

import (
	"slices"
	"time"

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// A Release is what one release costs with so many waiting.
type Release struct {
	Step                                  string
	Waiters                               int
	Notifications, Requests, Lists, Bytes int
}

// release counts what the last phase of a story was made of.
func (s Story) release() Release {
	r := Release{Step: s.Step, Waiters: len(s.Clients) - 1}
	if len(s.Phases) == 0 { // it was broken off
		return r
	}
	last := s.Phases[len(s.Phases)-1]
	for _, f := range s.Frames {
		switch {
		case f.At < last.At || f.At > last.Over:
			continue
		case f.Kind == wiretap.Request:
			r.Requests++
			if f.Op == int(wiretap.GetChildren) {
				r.Lists++
			}
			continue
		case f.Kind == wiretap.Notification:
			r.Notifications++
		}
		r.Bytes += f.Bytes
	}
	return r
}

// A Wait is what clients that wait ask for, a second.
type Wait struct {
	Step      string
	Waiters   int
	PerSecond float64
}

// waitAmong counts the requests of n clients that wait.
func waitAmong(n int, result *Wait) func(*recorder) {
	const window = 250 * time.Millisecond
	return func(r *recorder) {
		cast := r.cast(n + 1)
		cast[0].takes()
		r.crowds(cast[1:]...)
		r.phase("they wait")
		time.Sleep(window) // not a wait for a state: the window is the measure
		result.Waiters, result.PerSecond = n, float64(r.counts().All())/window.Seconds()
	}
}

// HandOvers is how long it took from a call to Unlock until the next client
// held the lock, again and again with ten waiting.
type HandOvers struct {
	Step string
	Took []time.Duration
}

// Median is the time that half of the hand-overs stay below.
func (h HandOvers) Median() time.Duration {
	sorted := slices.Sorted(slices.Values(h.Took))
	return sorted[len(sorted)/2]
}

const handOvers = 20

// handOver measures hand-overs: each time the old holder goes to the end of the
// line.
func handOver(result *HandOvers) func(*recorder) {
	return func(r *recorder) {
		cast := r.cast(11)
		holder, waiting := cast[0], slices.Clone(cast[1:])
		holder.takes()
		r.lines(waiting...)
		for range handOvers {
			begin := time.Now()
			holder.releases()
			next := r.served(waiting)
			result.Took = append(result.Took, next.since(begin))
			waiting[slices.Index(waiting, next)] = holder
			switch holder.asks().attempt.Waits() {
			case zktest.Returned:
				r.fail("%s was let in beside %s", holder.Name, next.Name)
			case zktest.Silently:
				r.settles()
			}
			holder = next
		}
	}
}
