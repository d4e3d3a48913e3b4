package main

import (
	"fmt"
	"time"
)

// An opening is a situation to begin from: a chapter's lesson, a click away.
type opening struct {
	N     int    `json:"n"`
	Title string `json:"title"`
	Todo  string `json:"todo"`

	left, right string
	clients     int
	moves       []move
}

// A move is a command for a client of each board.
type move struct {
	do     string
	client int
}

// openings are one for each chapter.
var openings = []opening{
	{1, "Step 1: the holder is killed", "Client 0 holds, three wait. Kill client 0: its znode stays, and nobody gets in.",
		"1", "", 4, []move{{"lock", 0}, {"lock", 1}, {"lock", 2}, {"lock", 3}}},
	{2, "Step 2: the holder is killed", "Client 0 holds, three wait. Kill client 0: when its session ends, the next gets in. What does waiting cost?",
		"2", "", 4, []move{{"lock", 0}, {"lock", 1}, {"lock", 2}, {"lock", 3}}},
	{3, "Step 3: ten wait, and the holder releases", "Ten wait in step 3, and beside it in step 4. Unlock client 0, and count the notifications.",
		"3", "4", 11, []move{{"lock", 0}, {"lock", 1}, {"lock", 2}, {"lock", 3}, {"lock", 4}, {"lock", 5}, {"lock", 6}, {"lock", 7}, {"lock", 8}, {"lock", 9}, {"lock", 10}}},
	{4, "Step 4: the reply to a create is lost", "The reply to client 1's next create will be lost. Lock client 1, lock client 2, and unlock client 0. Who is the first in the queue?",
		"4", "5", 3, []move{{"lock", 0}, {"losecreate", 1}}},
	{5, "Step 5: the paused holder writes late", "Client 0 holds and is stopped, client 1 waits. When client 1 holds, let it write to the store; let client 0 write, and go on.",
		"4", "5", 2, []move{{"lock", 0}, {"lock", 1}, {"stop", 0}}},
	{6, "Step 6: readers and a writer", "Clients 0 to 2 read, client 3 waits to write, client 4 waits to read. Unlock the readers one by one, and then the writer.",
		"6", "", 5, []move{{"read", 0}, {"read", 1}, {"read", 2}, {"lock", 3}, {"read", 4}}},
}

// open lays an opening.
func (s *service) open(n int) {
	o := openings[n-1]
	s.setPace(real)
	s.mu.Lock()
	s.opening = n
	s.mu.Unlock()
	left, _ := find(o.left)
	right, _ := find(o.right) // none: an empty board
	s.lay(1, right, o.clients, nil)
	s.lay(0, left, o.clients, nil)
	boards := s.here()
	for _, b := range boards {
		b.await(func(c *client) bool { return c.process != starting })
	}
	for _, m := range o.moves {
		for _, b := range boards {
			s.mu.Lock()
			if !b.ended && b.clients[m.client].process == running {
				_ = b.clients[m.client].does(m.do)
			}
			s.mu.Unlock()
		}
		for _, b := range boards {
			if m.do == "lock" || m.do == "read" {
				b.clients[m.client].queues()
			}
		}
	}
	for _, b := range boards {
		b.settles()
		s.mu.Lock()
		b.acts(s.us(time.Now()), fmt.Sprintf("opening %d", n))
		s.mu.Unlock()
	}
}

// settles returns when nothing has passed for a while. Those who keep asking never settle.
func (b *board) settles() {
	seen, quiet := -1, 0
	for late := time.Now().Add(2 * time.Second); time.Now().Before(late) && quiet < 30; time.Sleep(10 * time.Millisecond) {
		b.mu.Lock()
		if quiet++; seen != b.frames.next {
			seen, quiet = b.frames.next, 0
		}
		b.mu.Unlock()
	}
}

// await returns when all clients are as asked, or the board has ended.
func (b *board) await(are func(*client) bool) {
	for late := time.Now().Add(time.Minute); time.Now().Before(late); time.Sleep(5 * time.Millisecond) {
		b.mu.Lock()
		all := true
		for _, c := range b.clients {
			all = all && are(c)
		}
		all = all || b.ended
		b.mu.Unlock()
		if all {
			return
		}
	}
}
