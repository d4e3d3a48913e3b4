package lockcheck

import "slices"

// Asked are the properties that the exercise of a step asks of a learner's lock, and its
// goals: those of the step, in the order in which the lock is best written, and then what
// every lock of its kind is to have. In step 1 CrashFrees is asked of NewEphemeral.
func Asked(step int) []*Property {
	everyStep := append(slices.Clone(Promises), UnlockTooMany)
	queue := append(everyStep, NoWatchLeft, LongHold, LastNumber, NotBeside)
	watch := append(queue, ReleasedWhileCutOff)
	reliable := slices.Concat(everyStep, Contexts, Faults, []*Property{ReleasedWhileCutOff, LaggingServer})
	var all []*Property
	switch step {
	case 1:
		all = append([]*Property{OneHolder, GivingUp, Unrelated, NoWatchLeft, LongHold, CrashFrees}, everyStep...)
	case 2:
		all = append(upTo(WaiterCrash), queue...)
	case 3:
		all = append(upTo(SilentWait), watch...)
	case 4:
		all = append(upTo(NoWatchLeft), watch...)
	case 5:
		all = append(upTo(LastNumber), reliable...)
	case 6:
		all = slices.Concat(upTo(Shared), []*Property{ByKind, Upgrade, ReaderStays}, reliable)
	}
	var once []*Property
	for _, p := range all {
		if !slices.Contains(once, p) {
			once = append(once, p)
		}
	}
	return once
}

// upTo are the Properties as far as last.
func upTo(last *Property) []*Property {
	return slices.Clone(Properties[:slices.Index(Properties, last)+1])
}

// NotTested are what no property can find out about a lock of a step. The exercise's
// check prints them when all hold.
func NotTested(step int) []string {
	all := []string{
		"a data race: go test -race looks for those",
		"the orders of requests that no story tells: make explore tries them all",
		"what the server refuses, as by an ACL, and what the caller does wrong: the step's own tests look at that",
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
