package leased

import "zklock/internal/check/zktest"

// attacked is the kind of lock that attack_test.go is about. The steps 5 and 6 have
// the same attack_test.go: what differs is here.
var attacked = locks

// attackers are a client, in each way in which it can take such a lock: by a Lock, and by
// a Cohort.
func attackers(z *zktest.Zoo, m *zktest.Member) []*zktest.Member {
	return []*zktest.Member{m, cohorts.At(z, m, m.Path)}
}
