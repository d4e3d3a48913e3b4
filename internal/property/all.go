package property

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

// EveryStep lists the properties that the lock of each step has, from the first step on. No step
// loses one.
var EveryStep = []*Property{
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
}
