package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
)

// A difference is a znode that one server has and another has not.
type difference struct {
	path       string
	has, lacks int // places in Members
}

// serversAgree asks each server for its own lists, after a sync. A difference
// that outlasts ten looks is an error: what a lock is worth cannot be judged on
// servers that break their own promise. Servers that cannot be asked now are
// asked after the next fault.
func (s *storm) serversAgree(ctx context.Context) error {
	var conns []*zk.Conn
	for _, m := range s.ensemble.Members {
		conn, _, err := zk.Connect([]string{m.Addr}, 30*time.Second, zk.WithLogger(silence{}))
		if err != nil {
			return err
		}
		defer conn.Close()
		conns = append(conns, conn)
	}
	lasting, err := differences(conns)
	for look := 1; look < 10 && len(lasting) > 0; look++ {
		if err != nil || !rest(ctx, 200*time.Millisecond) {
			return nil
		}
		var now map[difference]bool
		now, err = differences(conns)
		maps.DeleteFunc(lasting, func(d difference, _ bool) bool { return !now[d] })
	}
	for d := range lasting {
		return fmt.Errorf("the servers disagree: %s is at member %d, and not at member %d, in spite of a sync. That is ZooKeeper's own mistake: see docs/storm.md, and run it again",
			d.path, s.ensemble.Members[d.has].ID, s.ensemble.Members[d.lacks].ID)
	}
	return nil
}

// differences compares the queues, as the servers behind conns have them.
func differences(conns []*zk.Conn) (map[difference]bool, error) {
	found := map[difference]bool{}
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
						found[difference{kind.dir + "/" + name, i, j}] = true
					}
				}
			}
		}
	}
	return found, nil
}
