package property

import (
	"slices"
	"strconv"
)

// Asked are the properties that the exercise of a step asks of a learner's lock, and its
// goals: those that the table says the step has. In step 1 CrashFrees is asked, too, of
// NewEphemeral.
func Asked(step int) []*Property {
	rows := slices.Concat(Matrix, ofReaders, promised, ofContexts, ofFaults)
	asked := with(rows, strconv.Itoa(step), Yes)
	if step == 1 {
		asked = append(asked, CrashFrees)
	}
	return asked
}

// NotTested are what no property can find out about a lock of a step. The exercise's
// check prints them when all hold.
func NotTested(step int) []string {
	all := []string{
		"a data race: go test -race looks for those",
		"what the server refuses, as by an ACL, and what the caller does wrong: the step's own tests look at that",
	}
	if step <= 2 {
		all = append(
			all,
			"the orders of requests that no story tells: where waiters ask from time to time, they cannot be played",
		)
	} else {
		all = append(
			all,
			"the orders of more clients, and with more faults, than were played: make explore STEP=mine plays more",
			"a waiter that asks less often than every six seconds",
		)
	}
	if step >= 2 {
		all = append(all, "a directory with very many names, whose list is longer than one answer may be")
	}
	if step >= 5 {
		all = append(all,
			"a process that stops for a while, and whose lock is gone when it goes on: the fencing token is for that",
			"servers that elect another leader, or that are cut off from one another: make storm does that",
			"how many requests a hold costs",
		)
	}
	return all
}
