package explore

// Settings say what is explored.
type Settings struct {
	Servers []string
	Root    string // a znode: each order has a directory of its own below it

	Clients  int  // each of them takes the lock once
	Readers  int  // so many of them, the first ones, take it as readers
	Faults   int  // at most so many in an order
	Mild     bool // clients crash and give up, and nothing else fails: that is what each step from 2 on can bear
	Switches int  // at most so often another client goes on though the last one could; Unbound: as often as it likes
	Full     bool // two reads, one right after the other, are played in both orders

	Znode    bool // the lock is a znode, and not a directory
	WakesOne bool // the lock promises that a release wakes at most one
}

// Unbound is for Settings.Switches.
const Unbound = -1
