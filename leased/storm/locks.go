package storm

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/property"
	"zklock/internal/steps"
	"zklock/leased"
)

// A lock of the storm.
type lock struct {
	property.Subject
	users   int  // goroutines of a client that use it
	forWork bool // a production lock, which must make no mistake; the others are lessons
}

var locks = []lock{
	{steps.Step(4), 1, false},
	{steps.Client, 1, false},
	{steps.Step(5), 1, false},
	{mutex, 1, true},
	{rwmutex, 1, true},
	{cohort, 2, true},
}

var (
	mutex   = property.OverHolds("leased.Mutex", open, leased.NewMutex)
	rwmutex = property.OverHolds("leased.RWMutex", open, leased.NewRWMutex)
	cohort  = property.OverHolds("leased.Cohort", open, leased.NewCohort)
)

func open(servers []string, timeout time.Duration, dial zk.Dialer) (*leased.Session, error) {
	return leased.Open(context.Background(), servers, timeout, leased.WithDialer(dial))
}
