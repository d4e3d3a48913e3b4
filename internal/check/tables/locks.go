// Package tables has the one table of the locks and the one of the published mistakes.
// The third table is that of the properties: property.Table. What the commands offer is
// read from these at run time, and what the pages list is written from them:
//
//	go generate ./...
//
// The tables are data, and import nothing of this repository: the tests inside the steps'
// packages read them. What makes the locks is in package steps.
package tables

import "slices"

//go:generate go run ./generate

// A Lock is one that the commands show, and that a column of the table of properties
// is about.
type Lock struct {
	Key     string // what STEP, LEFT and RIGHT name
	Subject string // what the tests call it
	Folder  string // where its code is; "": it is not ours
	Beside  bool   // it stands beside the steps
	Znode   bool   // its path is that of its one znode, and not of a directory

	// What the pages say of it.
	Title  string // in one short word; "": the tour does not show it
	Name   string // in a few words
	Lesson string // in one line
	Idea   string // of a step: what the lock is,
	Wrong  string // and what is still wrong with it
}

// Locks are all of them, in the order in which they are shown.
var Locks = []Lock{
	{Key: "1", Subject: "step 1", Folder: "step01_plain_node", Znode: true,
		Title: "plain", Name: "a plain znode",
		Lesson: "One znode is the lock. Every try of a waiter is a write; a crash locks all out.",
		Idea:   "a plain znode: whoever creates it holds the lock",
		Wrong:  "when the holder crashes, nobody gets the lock again"},
	{Key: "1w", Subject: "step 1w", Folder: "step01_plain_node", Beside: true, Znode: true,
		Title: "watched", Name: "a plain znode, watched",
		Lesson: "Step 1's NewWatched: silent, and then all who wait are told, and each of them writes."},
	{Key: "2", Subject: "step 2", Folder: "step02_sequential_spin",
		Title: "spin", Name: "a queue, and asking",
		Lesson: "Numbered znodes stand in line, and die with their session; all keep asking.",
		Idea:   "a queue: numbered znodes that go with their clients. It is fair and survives a crash",
		Wrong:  "all who wait keep asking"},
	{Key: "3", Subject: "step 3", Folder: "step03_children_watch",
		Title: "herd", Name: "watch the directory",
		Lesson: "Nobody asks, the server tells: but it tells everyone, and they all look.",
		Idea:   "all who wait sleep, and watch the queue",
		Wrong:  "one release wakes them all, though one can go on: that is the **herd**"},
	{Key: "4", Subject: "step 4", Folder: "step04_predecessor_watch",
		Title: "chain", Name: "watch the one before",
		Lesson: "Each watches the one before it: a release wakes one, however many wait.",
		Idea:   "each watches the znode before its own: one release wakes one",
		Wrong:  "a reply that is lost can make a client wait for itself"},
	{Key: "5", Subject: "step 5", Folder: "step05_reentrant",
		Title: "reentrant", Name: "a queue, and lost replies",
		Lesson: "Lost replies do no harm. The holder may lock again, is told of a loss, and has a fencing token.",
		Idea: "a hold: a lost reply does no harm, the holder may lock again, " +
			"is told when the lock is lost, and has a fencing token",
		Wrong: "a connection that breaks for a moment costs the hold, and readers wait for readers"},
	{Key: "cohort", Subject: "leased.Cohort", Folder: "leased", Beside: true},
	{Key: "6", Subject: "step 6", Folder: "step06_shared_lock",
		Title: "shared", Name: "a lock to share",
		Lesson: "Readers share it, a writer is alone; each still waits for one other only.",
		Idea:   "a lock to share: many readers or one writer, and nobody starves"},
	{Key: "zk", Subject: "zk.Lock", Beside: true,
		Title: "client", Name: "zk.Lock, the Go client's own",
		Lesson: "The Go client's own lock, for comparison: it waits as step 4 does."},
}

// Steps are the locks that have a chapter each.
func Steps() []Lock {
	return slices.DeleteFunc(slices.Clone(Locks), func(l Lock) bool { return l.Beside })
}

// Step returns the step of a key that somebody has typed.
func Step(key string) (step Lock, found bool) {
	for _, l := range Steps() {
		if l.Key == key {
			return l, true
		}
	}
	return Lock{}, false
}

// Column is the place of a lock in the table: Locks[Column(key)] is the lock. It panics if
// there is none, as for a key that is misspelt in code.
func Column(key string) int {
	at := slices.IndexFunc(Locks, func(l Lock) bool { return l.Key == key })
	if at < 0 {
		panic("there is no lock " + key)
	}
	return at
}

// Find returns the lock of a key, and panics if there is none.
func Find(key string) Lock { return Locks[Column(key)] }
