package explore

// Settings say what is explored.
type Settings struct {
	Servers []string
	Root    string // a znode: each interleaving has a directory of its own below it

	Clients  int  // each of them takes the lock once
	Readers  int  // how many of them take it as readers: the first ones
	Faults   int  // the most faults in an interleaving
	Again    bool // from the third on, a fault is the one before it once more
	Mild     bool // the only faults are crash, give-up and a lost reply to a read: each step from 2 on survives them
	Switches int  // how often another client may continue although the last one could; Unbound: no limit
	Points   bool // also note what is true before each choice, for a page on which one plays
	Full     bool // also play what has the same result: both orders of two reads, a lost request of a read

	Znode    bool // the lock is a znode, and not a directory
	WakesOne bool // the lock promises that a release wakes at most one waiter
}

// Unbound is the value of Settings.Switches for no limit.
const Unbound = -1
