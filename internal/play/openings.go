package main

import (
	"fmt"
	"slices"
	"time"

	"zklock/internal/board"
)

// An opening is a situation to begin from: a chapter's lesson, a click away.
type opening struct {
	N     int    `json:"n"`
	Title string `json:"title"`
	Todo  string `json:"todo"`

	left, right string
	clients     int
	moves       []string // of client 0, client 1 and so on, in turn
}

// openings are one for each chapter.
var openings = []opening{
	{1, "Step 1: the holder is killed", "Client 0 holds, three wait. Kill client 0: its znode stays, and nobody gets in.",
		"1", "", 4, []string{"lock", "lock", "lock", "lock"}},
	{2, "Step 2: the holder is killed", "Client 0 holds, three wait. Kill client 0: when its session ends, the next gets in. What does waiting cost?",
		"2", "", 4, []string{"lock", "lock", "lock", "lock"}},
	{3, "Step 3: ten wait, and the holder releases", "Ten wait in step 3, and beside it in step 4. Unlock client 0, and count the notifications.",
		"3", "4", 11, slices.Repeat([]string{"lock"}, 11)},
	{4, "Step 4: the reply to a create is lost", "The reply to client 1's next create will be lost. Lock client 1, lock client 2, and unlock client 0. Who is the first in the queue?",
		"4", "5", 3, []string{"lock", "losecreate"}},
	{5, "Step 5: the paused holder writes late", "Client 0 holds and is stopped, client 1 waits. When client 1 holds, let it write to the store; let client 0 write, and go on.",
		"4", "5", 2, []string{"lock", "lock", "stop"}},
	{6, "Step 6: readers and a writer", "Clients 0 to 2 read, client 3 waits to write, client 4 waits to read. Unlock the readers one by one, and then the writer.",
		"6", "", 5, []string{"read", "read", "read", "lock", "read"}},
}

// open lays an opening.
func (s *service) open(n int) {
	o := openings[n-1]
	s.setPace(real)
	s.mu.Lock()
	s.opening = n
	s.mu.Unlock()
	left, _ := find(o.left)
	right, _ := find(o.right) // none: an empty side
	s.lay(1, right, o.clients)
	s.lay(0, left, o.clients)
	s.await(time.Minute, func() bool {
		return !slices.ContainsFunc(s.laid(), func(b *side) bool {
			return slices.ContainsFunc(b.clients, func(c *client) bool { return c.Process == board.Starting })
		})
	})
	for i, do := range o.moves {
		for _, b := range s.laid() {
			b.clients[i%o.clients].follows(do, do == "lock" || do == "read")
		}
	}
	for _, b := range s.laid() {
		b.settles()
		s.mu.Lock()
		b.Acts(s.now(), fmt.Sprintf("opening %d", n))
		s.mu.Unlock()
	}
}

// settles returns when nothing has passed for a while. Those who keep asking never settle.
func (b *side) settles() {
	passed, quiet := -1, time.Now()
	b.await(2*time.Second, func() bool {
		if passed != b.Passed() {
			passed, quiet = b.Passed(), time.Now()
		}
		return time.Since(quiet) > 300*time.Millisecond
	})
}
