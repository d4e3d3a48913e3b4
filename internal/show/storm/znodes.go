package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/check/zktest"
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
			names, err := children(s.observer, kind.dir)
			if err != nil || len(names) == 0 { // no server now, or nobody
				continue
			}
			path := kind.dir + "/" + slices.MinFunc(names, zktest.BySequence)
			looks[path]++
			limit := stuck
			if s.calm.Load() {
				limit = stuckInTheCalm
			}
			if n := looks[path]; n >= limit {
				s.orphan(k, path, time.Now().Add(-time.Duration(n-1)*time.Second), "it blocked everybody")
			}
		}
	}
}

// orphan notes a znode that its client has forgotten since a certain time, and
// deletes it.
func (s *storm) orphan(kind int, path string, since time.Time, harm string) {
	there, stat, err := s.observer.Exists(path)
	if err != nil || !there {
		return
	}
	if s.observer.Delete(path, -1) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	client, known := s.Sessions[stat.EphemeralOwner]
	if !known {
		client = -1
	}
	s.breaches.broken(noOrphan, kind, []int{client}, since, "%s of client %d: %s", path, client, harm)
}

// lookForLeftovers looks for znodes and watches once all clients are idle, with
// their sessions open. What is on its way gets the time of two sessions.
func (s *storm) lookForLeftovers(ctx context.Context) {
	began := time.Now()
	// last is what a look finds in the end.
	last := func(look func() (left []string, err error)) (left []string, err error) {
		for {
			left, err = look()
			isClean := len(left) == 0 && err == nil
			if isClean || time.Since(began) >= 2*sessionTimeout {
				return left, err
			}
			rest(ctx, 50*time.Millisecond)
		}
	}
	for k, kind := range kinds {
		names, _ := last(func() ([]string, error) { return children(s.observer, kind.dir) })
		for _, name := range names {
			s.orphan(k, kind.dir+"/"+name, began, "it was left when all were idle")
		}
	}
	for _, member := range s.ensemble.Members {
		for k, kind := range kinds {
			watched, err := last(func() (paths []string, err error) {
				watches, err := member.Watches()
				for path := range watches {
					if strings.HasPrefix(path, kind.dir+"/") {
						paths = append(paths, path)
					}
				}
				return paths, err
			})
			if len(watched) > 0 || err != nil {
				s.mu.Lock()
				s.breaches.broken(
					noWatch,
					k,
					nil,
					time.Now(),
					"%d watches at %s, error %v",
					len(watched),
					member.Addr,
					err,
				)
				s.mu.Unlock()
			}
		}
	}
}

// children returns the names in a directory. One that is not there has none.
func children(conn *zk.Conn, dir string) ([]string, error) {
	names, _, err := conn.Children(dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// serversAgree asks each server for its own lists, after a sync. A difference
// that outlasts ten looks is an error: what a lock is worth cannot be judged on
// servers that break their own promise. Servers that cannot be asked now are
// asked after the next fault.
func (s *storm) serversAgree(ctx context.Context) error {
	var conns []*zk.Conn
	for _, m := range s.ensemble.Members {
		conn, err := zktest.Dial([]string{m.Addr}, 30*time.Second, net.DialTimeout)
		if err != nil {
			return err
		}
		defer conn.Close()
		conns = append(conns, conn)
	}
	lasting, err := s.differences(conns)
	for look := 1; look < 10; look++ {
		serversDiffer := err == nil && len(lasting) > 0
		if !serversDiffer || !rest(ctx, 200*time.Millisecond) {
			break
		}
		var now []string
		now, err = s.differences(conns)
		lasting = slices.DeleteFunc(lasting, func(difference string) bool { return !slices.Contains(now, difference) })
	}
	isUnknown := err != nil || ctx.Err() != nil
	if isUnknown || len(lasting) == 0 {
		return nil
	}
	return fmt.Errorf(
		"the servers disagree: %s, in spite of a sync. That is ZooKeeper's own mistake: see docs/storm.md, and run it again",
		lasting[0],
	)
}

// differences compares the queues, as the servers behind conns have them.
func (s *storm) differences(conns []*zk.Conn) (found []string, err error) {
	for _, kind := range kinds {
		lists := make([][]string, len(conns))
		for i, conn := range conns {
			if _, err := conn.Sync(kind.dir); err != nil && !errors.Is(err, zk.ErrNoNode) {
				return nil, err
			}
			if lists[i], err = children(conn, kind.dir); err != nil {
				return nil, err
			}
		}
		for i, names := range lists {
			for j, others := range lists {
				for _, name := range names {
					if !slices.Contains(others, name) {
						found = append(
							found,
							fmt.Sprintf(
								"%s/%s is at member %d, and not at member %d",
								kind.dir,
								name,
								s.ensemble.Members[i].ID,
								s.ensemble.Members[j].ID,
							),
						)
					}
				}
			}
		}
	}
	return found, nil
}
