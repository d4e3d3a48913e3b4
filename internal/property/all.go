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
	LocksAgain,
	ToldOfLoss,
	Fenced,
	LongHold,
	Shared,
}
