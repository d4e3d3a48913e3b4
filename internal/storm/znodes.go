package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/zktest"
)

// The same znode may be the first of a queue at so many looks, a second apart:
// nobody holds a lock for so long, since a session that is cut off has ended
// before, or a process that was stopped. When there are no faults it is less.
const (
	stuck          = 10
	stuckInTheCalm = 5
)

// removeOrphans does what an operator would: it deletes a znode that has blocked
// a lock for long, so that the storm goes on, and notes the breach.
func (s *storm) removeOrphans(ctx context.Context) {
	looks := map[string]int{} // at which a path was the first
	for rest(ctx, time.Second) {
		for k, kind := range kinds {
			names, _, err := s.observer.Children(kind.dir)
			if err != nil || len(names) == 0 { // no directory yet, or no server now
				continue
			}
			path := kind.dir + "/" + slices.MinFunc(names, func(a, b string) int { return cmp.Compare(sequence(a), sequence(b)) })
			looks[path]++
			if n := looks[path]; n >= stuck || s.calm.Load() && n >= stuckInTheCalm {
				s.orphan(k, path, time.Now().Add(-time.Duration(n-1)*time.Second), "it blocked everybody")
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
	if err != nil || !there || s.observer.Delete(path, -1) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	client := -1
	for _, session := range s.Sessions {
		if session.ID == stat.EphemeralOwner {
			client = session.Client
		}
	}
	s.breaches = append(s.breaches, breach{noOrphan, kind, []int{client}, since, fmt.Sprintf("%s of client %d: %s", path, client, harm)})
}

// lookForLeftovers looks for znodes and watches once all clients are idle, with
// their sessions open. What is on its way gets the time of two sessions.
func (s *storm) lookForLeftovers(ctx context.Context) {
	began := time.Now()
	// last is what a look finds in the end.
	last := func(look func() (left int, err error)) (left int, err error) {
		for left, err = look(); (left > 0 || err != nil) && time.Since(began) < 2*sessionTimeout; left, err = look() {
			rest(ctx, 50*time.Millisecond)
		}
		return left, err
	}
	for k, kind := range kinds {
		var names []string
		_, _ = last(func() (left int, err error) {
			if names, _, err = s.observer.Children(kind.dir); errors.Is(err, zk.ErrNoNode) {
				return 0, nil
			}
			return len(names), err
		})
		for _, name := range names {
			s.orphan(k, kind.dir+"/"+name, began, "it was left when all were idle")
		}
	}
	for _, member := range s.ensemble.Members {
		for k, kind := range kinds {
			left, err := last(func() (left int, err error) {
				answer, err := member.Word("wchp")
				return strings.Count("\n"+answer, "\n"+kind.dir+"/"), err
			})
			if left > 0 || err != nil {
				s.mu.Lock()
				s.breach(noWatch, k, -1, "%d watches at %s, error %v", left, member.Addr, err)
				s.mu.Unlock()
			}
		}
	}
}

// serversAgree asks each server for its own lists, after a sync. A difference
// that outlasts ten looks is an error: what a lock is worth cannot be judged on
// servers that break their own promise. Servers that cannot be asked now are
// asked after the next fault.
func (s *storm) serversAgree(ctx context.Context) error {
	conns := make([]*zk.Conn, len(s.ensemble.Members))
	for i, m := range s.ensemble.Members {
		conn, err := zktest.Dial([]string{m.Addr}, 30*time.Second, net.DialTimeout)
		if err != nil {
			return err
		}
		defer conn.Close()
		conns[i] = conn
	}
	var lasting map[string]bool
	for look := range 10 {
		if look > 0 && !rest(ctx, 200*time.Millisecond) {
			return nil
		}
		now, err := s.differences(conns)
		if err != nil {
			return nil
		}
		if look == 0 {
			lasting = now
		}
		maps.DeleteFunc(lasting, func(difference string, _ bool) bool { return !now[difference] })
		if len(lasting) == 0 {
			return nil
		}
	}
	for difference := range lasting {
		return fmt.Errorf("the servers disagree: %s, in spite of a sync. That is ZooKeeper's own mistake: see docs/storm.md, and run it again", difference)
	}
	return nil
}

// differences compares the queues, as the servers behind conns have them.
func (s *storm) differences(conns []*zk.Conn) (map[string]bool, error) {
	found := map[string]bool{}
	for _, kind := range kinds {
		lists := make([][]string, len(conns))
		for i, conn := range conns {
			_, err := conn.Sync(kind.dir)
			if err == nil {
				lists[i], _, err = conn.Children(kind.dir)
			}
			if err != nil && !errors.Is(err, zk.ErrNoNode) {
				return nil, err
			}
		}
		for i, names := range lists {
			for j, others := range lists {
				for _, name := range names {
					if !slices.Contains(others, name) {
						found[fmt.Sprintf("%s/%s is at member %d, and not at member %d", kind.dir, name, s.ensemble.Members[i].ID, s.ensemble.Members[j].ID)] = true
					}
				}
			}
		}
	}
	return found, nil
}
