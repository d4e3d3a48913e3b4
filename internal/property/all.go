package property

import "slices"

// Properties lists the properties of the matrix, in the order of the steps that introduce them.
var Properties = []*Property{
	OneHolder,
	CrashFrees,
	FirstCome,
	OnlyHolder,
	GivingUp,
	Unrelated,
	WaiterCrash,
	SilentWait,
	WakesOne,
	ArrivalWakesNobody,
	NoWatchLeft,
	LostCreateReply,
	LostDeleteReply,
	GivesUpCutOff,
	LocksAgain,
	ToldOfLoss,
	Fenced,
	LongHold,
	Shared,
}

// added has the properties that the lock of each step adds. No step loses one.
var added = map[int][]*Property{
	1: {
		OneHolder,
		GivingUp,
		Unrelated,
		NoWatchLeft,
		LongHold,
		ParentsMade,
		MadeOnce,
		ManyShare,
		WhateverIsInIt,
		LostWhileWaiting,
		ReleaseSeen,
		FailsClean,
		UnlockRepeated,
		LostTold,
		QuietAfter,
		OwnPlace,
		OldZnode,
	},
	2: {
		CrashFrees,
		FirstCome,
		OnlyHolder,
		WaiterCrash,
		NotBeside,
	},
	3: {
		SilentWait,
	},
	4: {
		WakesOne,
		WakesOneLater,
		ArrivalWakesNobody,
	},
	5: {
		LostCreateReply,
		LostDeleteReply,
		GivesUpCutOff,
		LocksAgain,
		LostApart,
		KeptCreate,
		KeptList,
		KeptWatch,
		ToldOfLoss,
		Fenced,
		LineBreaks,
		GivesUpAtOnce,
		LaggingServer,
		Tries,
		TryLost,
	},
	6: {
		Shared,
		Upgrade,
		ReaderStays,
	},
}

// Has lists the properties of a step's lock: those that it adds, and those of the steps before it.
func Has(step int) (all []*Property) {
	for n := 1; n <= step; n++ {
		all = append(all, added[n]...)
	}
	return all
}

// Lacking lists the properties of the matrix that a step's lock lacks, because a later step adds them.
// It leaves out those in but.
func Lacking(step int, but ...*Property) []*Property {
	return slices.DeleteFunc(slices.Clone(Properties), func(p *Property) bool {
		return slices.Contains(Has(step), p) || slices.Contains(but, p)
	})
}
