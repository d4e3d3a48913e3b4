package property

// Properties are those of the matrix, in the order of the steps that bring them.
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

// EveryStep are those that each step's lock has, from the first on, and none gives up.
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
