package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// The same znode may be the first of a queue for so many looks, a second apart:
// nobody holds a lock for so long, since a session that is cut off has ended
// before, or a process that was stopped. When there are no faults it is less.
const (
	stuckFor       = 9
	stuckInTheCalm = 4
)

// removeOrphans does what an operator would: it deletes a znode that has blocked
// a lock for long, so that the storm goes on, and notes the breach.
func (s *storm) removeOrphans(ctx context.Context) {
	first, looks := make([]string, len(kinds)), make([]int, len(kinds))
	for rest(ctx, time.Second) {
		for k, kind := range kinds {
			names, _, err := s.observer.Children(kind.dir)
			if err != nil { // no directory yet, or no server now
				continue
			}
			head := ""
			for _, name := range names {
				if head == "" || sequence(name) < sequence(head) {
					head = name
				}
			}
			if head != first[k] {
				first[k], looks[k] = head, 0
				continue
			}
			looks[k]++
			if head != "" && (looks[k] == stuckFor || s.calm.Load() && looks[k] == stuckInTheCalm) {
				s.orphan(k, kind.dir+"/"+head, time.Now().Add(-time.Duration(looks[k])*time.Second), "it blocked everybody")
			}
		}
	}
}

// sequence is the number that ends a name.
func sequence(name string) string { return name[max(0, len(name)-10):] }

// orphan notes a znode that its client has forgotten since a certain time, and
// deletes it.
func (s *storm) orphan(kind int, path string, since time.Time, harm string) {
	there, stat, err := s.observer.Exists(path)
	if err != nil || !there {
		return
	}
	if err := s.observer.Delete(path, -1); err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	client, known := s.sessions[stat.EphemeralOwner]
	if !known {
		client = -1
	}
	s.breaches = append(s.breaches, breach{noOrphan, kind, []int{client}, since, fmt.Sprintf("%s of client %d: %s", path, client, harm)})
}

// lookForLeftovers looks for znodes and watches once all clients are idle, with
// their sessions open. What is on its way gets the time of two sessions.
func (s *storm) lookForLeftovers(ctx context.Context) {
	deadline := time.Now().Add(2 * sessionTimeout)
	for k, kind := range kinds {
		for {
			names, _, err := s.observer.Children(kind.dir)
			if errors.Is(err, zk.ErrNoNode) || err == nil && len(names) == 0 {
				break
			}
			if time.Now().After(deadline) {
				for _, name := range names {
					s.orphan(k, kind.dir+"/"+name, deadline.Add(-2*sessionTimeout), "it was left when all were idle")
				}
				break
			}
			rest(ctx, 50*time.Millisecond)
		}
	}
	for _, member := range s.ensemble.Members {
		for {
			answer, err := member.Word("wchp")
			watched := slices.Collect(func(yield func(int) bool) { // kinds, one for each path
				for line := range strings.Lines(answer) {
					for k, kind := range kinds {
						if strings.HasPrefix(line, kind.dir+"/") && !yield(k) {
							return
						}
					}
				}
			})
			if err == nil && len(watched) == 0 {
				break
			}
			if time.Now().After(deadline) {
				s.mu.Lock()
				for _, k := range watched {
					s.breach(noWatch, k, -1, fmt.Sprintf("a watch at %s", member.Addr))
				}
				if err != nil {
					s.breach(noWatch, 1, -1, err.Error())
				}
				s.mu.Unlock()
				break
			}
			rest(ctx, 50*time.Millisecond)
		}
	}
}
