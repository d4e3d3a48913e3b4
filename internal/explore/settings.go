package explore

// Settings say what is explored.
type Settings struct {
	Servers []string
	Root    string // a znode: each interleaving has a directory of its own below it

	Clients  int  // each of them takes the lock once
	Readers  int  // how many of them take it as readers: the first ones
	Faults   int  // the most faults in an interleaving
	Mild     bool // the only faults are crash and give-up, which each step from 2 on survives
	Switches int  // how often another client may continue although the last one could; Unbound: no limit
	Full     bool // also play what has the same result: both orders of two reads, a lost request of a read

	Znode    bool // the lock is a znode, and not a directory
	WakesOne bool // the lock promises that a release wakes at most one waiter
}

// Unbound is the value of Settings.Switches for no limit.
const Unbound = -1
