// Package model checks whether the lease of package leased can allow two holders: it explores every
// interleaving of the events between a client and its servers. README.md has the argument that it checks, and
// the results.
//
// The model has a process A, which the code calls the client, a follower, and the leader. A rule says from which
// answers A concludes that its session lives, and for how long. The package looks for an order of events in
// which the leader has ended A's session, so that B can get the lock, while A still relies on the session.
//
// Read the files in this order: state.go (what the model consists of), rule.go and setting.go (what is
// tried), actions.go (what can happen, one sentence each), client.go and servers.go (how it happens),
// explore.go (all orders), tell.go (an order as a time line), cases.go (the tables in the page).
//
// Time passes in units of a quarter of a tick, or of another part. Any number of actions can happen at the
// same time, in any order. All bounds of the model are whole units, and include their ends ("at least", "at
// most"). For such bounds, whole-number time finds each bad order that exists in real time: Henzinger, Manna
// and Pnueli, "What good are digital clocks?", 1992.
package model
