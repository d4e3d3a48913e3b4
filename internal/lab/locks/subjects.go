// Package locks lists the locks and the published mistakes that the commands offer.
package locks

import (
	"context"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/property"
	"zklock/internal/steps"
	"zklock/leased"
)

// The production locks.
var (
	Mutex   = property.OverHolds("leased.Mutex", openLeased, leased.NewMutex)
	RWMutex = property.OverHolds("leased.RWMutex", openLeased, leased.NewRWMutex)
	Cohort  = property.OverHolds("leased.Cohort", openLeased, leased.NewCohort)
)

// Every lists all locks that Locks names, those of the steps first.
var Every = slices.Concat(steps.All, []property.Subject{steps.Watched, Mutex, RWMutex, Cohort, steps.Client})

// Of returns the lock with a key of Locks.
func Of(key string) property.Subject {
	name := Find(key).Subject
	for _, s := range Every {
		if s.Name == name {
			return s
		}
	}
	panic("nothing makes the lock " + key)
}

func openLeased(servers []string, timeout time.Duration, dial zk.Dialer) (*leased.Session, error) {
	return leased.Open(context.Background(), servers, timeout, leased.WithDialer(dial))
}
