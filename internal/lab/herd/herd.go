// Package herd has what one release causes while a crowd waits: when the server notifies which waiter,
// and how many bytes it sends. make play measures it, and pages show a recorded one.
package herd

import (
	_ "embed"
	"slices"
	"time"

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// File is the path, relative to the repository's root, of the file with the recorded crowds.
const File = "docs/figures/herd.json"

// Script draws crowds. It needs the stage's script.
//
//go:embed herd.js
var Script string

// Style is the style of what the script draws.
//
//go:embed herd.css
var Style string

// A Crowd is what one release causes in step 3, and in step 4, while so many clients wait.
type Crowd struct {
	Waiters  int        `json:"waiters"`
	Releases [2]Release `json:"releases"`
}

// A Release is what one call of Unlock causes. All moments are in microseconds from that call.
type Release struct {
	Told  []int    `json:"told"`  // when each waiter was notified, in the order of the queue; -1: it was not
	Bytes int      `json:"bytes"` // that the server sent to the waiters
	Sent  [][2]int `json:"sent"`  // a moment, and how many bytes had been sent by then
}

// moments is how many moments of Sent are kept.
const moments = 40

// Watch is called right before a release. The function that it returns is called when all is quiet, and returns what
// the release has caused for these waiters, in the order of the queue.
func Watch(waiting []*zktest.Turn) (ended func() Release) {
	marks := make([]int, len(waiting))
	for i, turn := range waiting {
		marks[i] = turn.Tap.Mark()
	}
	begin := time.Now()
	return func() Release {
		frames := make([][]wiretap.Frame, len(waiting))
		for i, turn := range waiting {
			frames[i] = turn.Tap.Since(marks[i])
		}
		return Of(begin, frames)
	}
}

// Of returns what a release at begin has caused: waiters has the frames of each waiter since then, in the
// order of the queue.
func Of(begin time.Time, waiters [][]wiretap.Frame) (r Release) {
	var received []wiretap.Frame
	since := func(f wiretap.Frame) int { return int(f.At.Sub(begin).Microseconds()) }
	for i, frames := range waiters {
		r.Told = append(r.Told, -1)
		for _, f := range frames {
			isOfLock := f.Class() == wiretap.OfLock
			if isOfLock && f.Kind != wiretap.Request {
				received = append(received, f)
			}
			isFirst := r.Told[i] < 0
			if isOfLock && f.Kind == wiretap.Notification && isFirst {
				r.Told[i] = since(f)
			}
		}
	}
	slices.SortFunc(received, func(a, b wiretap.Frame) int { return a.At.Compare(b.At) })
	for i, f := range received {
		r.Bytes += f.Bytes
		isKept := i == len(received)-1 || i%(1+len(received)/moments) == 0
		if isKept {
			r.Sent = append(r.Sent, [2]int{since(f), r.Bytes})
		}
	}
	return r
}
