package property

import (
	"slices"
	"strings"
	"testing"

	"zklock/internal/check/tables"
)

// A Row of the table of properties is one property, and which lock has it.
type Row struct {
	Marks    string // a verdict for each of tables.Locks, or a dot: no test asks
	Property *Property
	Remarks  map[string]string // what the chapters say of a mark, by the lock's key
}

// The table of properties stands in these parts, a row a property. All else is made from
// it: what the steps' tests expect, what the exercises ask for, the matrix, and the lists
// of ✓ and ✗ in the chapters and in each lock_test.go. Above the marks stand the locks'
// keys: c is step 5's Cohort, and z the client's own lock.

// Matrix is the part that is shown, in the order of the steps that bring them.
var Matrix = []Row{
	//1 w 2 3 4 5 c 6 z
	{"✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓", OneHolder, nil},
	{"✗ ✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓", CrashFrees, map[string]string{"1": "`NewEphemeral` has it"}},
	{"✗ ✗ ✓ ✓ ✓ ✓ ✓ ✓ ✓", FirstCome, nil},
	{"✗ ✗ ✓ ✓ ✓ ✓ ✓ ✓ ✓", NoStranger, nil},
	{"✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ ✗", GivingUp, nil},
	{"✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ ✗", Unrelated, nil},
	{"– – ✓ ✓ ✓ ✓ ✓ ✓ ✓", WaiterCrash, map[string]string{"1": "here a waiter has no znode"}},
	{"✗ ✓ ✗ ✓ ✓ ✓ ✓ ✓ ✓", SilentWait, nil},
	{"– ✗ – ✗ ✓ ✓ ✓ ✓ ✓", WakesOne, map[string]string{"1": "here nobody sleeps", "2": "here nobody sleeps"}},
	{"– ✓ – ✗ ✓ ✓ ✓ ✓ ✓", ArrivalWakesNobody, map[string]string{"1": "here nobody sleeps", "2": "here nobody sleeps"}},
	{"✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓", NoWatchLeft, nil},
	{"✗ ✗ ✗ ✗ ✗ ✓ ✓ ✓ ✗", LostCreateReply, nil},
	{"✗ ✗ ✗ ✗ ✗ ✓ ✓ ✓ ✗", LostDeleteReply, nil},
	{"✗ ✗ ✗ ✗ ✗ ✓ ✓ ✓ ✗", LocksAgain, nil},
	{"✗ ✗ ✗ ✗ ✗ ✓ ✓ ✓ ✗", ToldOfLoss, nil},
	{"✗ ✗ ✗ ✗ ✗ ✓ ✓ ✓ ✗", Fenced, nil},
	{"✓ ✓ ✓ ✓ ✓ ✓ . ✓ ✓", LongHold, nil},
	{"– – . . . ✓ ✓ ✓ ✗", LastNumber, map[string]string{"1": "here the znode has no number"}},
	{"✗ ✗ ✗ ✗ ✗ ✗ . ✓ ✗", Shared, nil},
}

// What every step keeps from the first one on.
var promised = []Row{
	//1 w 2 3 4 5 c 6 z
	{"✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ .", ParentsMade, nil},
	{"✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ .", ManyShare, nil},
	{"✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ .", WhateverIsInIt, nil},
	{"✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ .", LostWhileWaiting, nil},
	{"✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓", ReleaseSeen, nil},
	{"✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ ✗", FailsClean, nil},
	{"✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓", UnlockRepeated, nil},
	{"✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓", LostTold, nil},
	{"✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓", QuietAfter, nil},
	{"✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓", OwnPlace, nil},
	{"✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓", OldZnode, nil},
	{"✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ .", UnlockTooMany, nil},
}

// What is asked of a lock that has readers.
var ofReaders = []Row{
	//1 w 2 3 4 5 c 6 z
	{". . . . . . . ✓ .", ByKind, nil},
	{". . . . . . . ✓ .", Upgrade, nil},
	{". . . . . . . ✓ .", ReaderStays, nil},
}

// What is asked of a lock whose hold is a context.
var ofContexts = []Row{
	//1 w 2 3 4 5 c 6 z
	{". . . . . ✓ ✓ ✓ .", OwnHold, nil},
	{". . . . . ✓ ✓ ✓ .", LossLetsNobodyIn, nil},
	{". . . . . ✓ ✓ ✓ .", EndsFirst, nil},
	{". . . . . ✓ ✓ ✓ .", EndsWithCaller, nil},
	{". . . . . ✓ ✓ ✓ .", ShortBreak, nil},
	{". . . . . ✓ ✓ ✓ .", UnlockEnds, nil},
	{". . . . . ✓ ✓ ✓ .", AliveAtEntry, nil},
	{". . . . . ✓ ✓ ✓ .", OutageAtEntry, nil},
	{". . . . . ✓ ✓ ✓ .", Tries, nil},
}

// What a lock does when a line breaks, or when its znode has gone.
var ofFaults = []Row{
	//1 w 2 3 4 5 c 6 z
	{"– – ✓ ✓ ✓ ✓ ✓ ✓ ✗", NotBeside, nil},
	{"✗ ✗ ✗ ✗ ✗ ✓ ✓ ✓ ✗", LineBreaks, nil},
	{"✗ ✗ ✗ ✗ ✗ ✓ ✓ ✓ ✗", GivesUpAtOnce, nil},
	{". ✓ . ✓ ✓ ✓ ✓ ✓ .", ReleasedWhileCutOff, nil},
	{". . . . . ✓ . ✓ ✗", LaggingServer, nil},
}

// What is asked of the tutorial's own locks, and not of a learner's: what their errors say,
// and what becomes of a process that is killed.
var ofErrors = []Row{
	//1 w 2 3 4 5 c 6 z
	{". . ✓ ✓ ✓ . . . .", UnlockTells, nil},
	{". . ✓ ✓ ✓ . . . .", GivingUpTells, nil},
	{". . ✓ ✓ ✓ . . . .", ErrorEndsWait, nil},
	{". . ✓ ✓ ✓ . . . .", PlaceLost, nil},
	{". . ✓ . . . . . .", KilledHolder, nil},
}

// A way to take a lock is held against what cannot work. Each call has to come back in time,
// with an error that names the path and says what to do, and to leave nothing behind.
var ofBadInput = []Row{
	//1 w 2 3 4 5 c 6 z
	{"✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ .", RefusedUnasked, nil},
	{"✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ .", ClosedBefore, nil},
	{"✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ .", ClosedDuring, nil},
	{"✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ .", NoPermission, nil},
	{"✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ .", ChildlessParent, nil},
	{"✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ .", RepliesThatAreNone, nil},
	{"✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ .", CrowdedDirectory, nil},
	{"✓ ✓ ✓ ✓ ✓ . . . .", NoServer, nil},
}

// Table is all of it.
var Table = slices.Concat(Matrix, ofReaders, promised, ofContexts, ofFaults, ofErrors, ofBadInput)

// Parts of the table, for tests that ask for one of them in several ways.
var (
	Properties = in(Matrix)
	Promises   = in(promised)
	Contexts   = in(ofContexts)
	BadInput   = append(in(ofBadInput), UnlockTooMany)
)

// in lists the properties of some rows.
func in(rows []Row) (all []*Property) {
	for _, row := range rows {
		all = append(all, row.Property)
	}
	return all
}

// Of is the row's verdict on a lock, or a dot if no test asks.
func (r Row) Of(key string) Verdict {
	return Verdict(strings.Fields(r.Marks)[tables.Column(key)])
}

// with lists the properties that have this verdict on a lock.
func with(rows []Row, key string, verdict Verdict) (all []*Property) {
	for _, row := range rows {
		if row.Of(key) == verdict {
			all = append(all, row.Property)
		}
	}
	return all
}

// Has tells whether the table says that a lock has a property.
func Has(key string, p *Property) bool { return slices.Contains(with(Table, key, Yes), p) }

// AsTheTableSays tests that a subject has what the table says that the lock of this key has,
// and that it is seen to lack what it is said to lack.
func AsTheTableSays(t *testing.T, key string, subject Subject) {
	Holds(t, subject, with(Table, key, Yes)...)
	DoesNotArise(t, subject, with(Table, key, Void)...)
	Lacks(t, subject, with(Table, key, No)...)
}
