package sharedlock

import "zklock/internal/check/zktest"

// attacked is the kind of lock that attack_test.go is about. The steps 5 and 6 have
// the same attack_test.go: what differs is here.
var attacked = subject

// attackers are a client, in each way in which it can take such a lock: to write, and to
// read.
func attackers(_ *zktest.Zoo, m *zktest.Member) []*zktest.Member {
	return []*zktest.Member{m, m.Reader}
}
