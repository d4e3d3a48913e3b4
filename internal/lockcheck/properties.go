package lockcheck

// Properties is the list, in the order of the steps that bring them.
var Properties = []*Property{
	OneHolder, CrashFrees, FirstCome, NoStranger, GivingUp, Unrelated, WaiterCrash,
	SilentWait, WakesOne, ArrivalWakesNobody, NoWatchLeft,
	LostCreateReply, LostDeleteReply, LocksAgain, ToldOfLoss, Fenced, LongHold, Shared,
}

// The properties.
var (
	OneHolder = &Property{
		Name: "one holder at a time",
		Why:  "two holders at one time write over one another",
		Hint: "when does Lock return, and has it seen that every other client is behind it?",
		tell: tellOneHolder,
	}
	CrashFrees = &Property{
		Name: "a crashed holder's lock comes free",
		Why:  "a process that dies inside the lock would lock everybody out for ever",
		Hint: "who deletes the holder's znode when the holder cannot?",
		tell: tellCrashFrees,
	}
	FirstCome = &Property{
		Name: "first come, first served",
		Why:  "a client with a slow line could wait for ever while others come and go",
		Hint: "where is it written down who came first?",
		tell: tellFirstCome,
	}
	NoStranger = &Property{
		Name: "a stranger cannot release it",
		Why:  "an Unlock too many, or too late, would let a second client in beside the holder",
		Hint: "how does Unlock know that what it deletes is its own?",
		tell: tellNoStranger,
	}
	GivingUp = &Property{
		Name: "giving up leaves nothing behind",
		Why:  "everyone behind would wait for a client that is no longer there",
		Hint: "the context has ended: what have you put into ZooKeeper by now, and who takes it out?",
		tell: tellGivingUp,
	}
	Unrelated = &Property{
		Name: "unrelated znodes are no obstacle",
		Why:  "another lock, or a stray znode in the directory, would block or break this one",
		Hint: "which of the names in the list are really of this queue?",
		tell: tellUnrelated,
	}
	WaiterCrash = &Property{
		Name: "a waiter's crash lets nobody in",
		Why:  "whoever waited behind it would take its death for a release",
		Hint: "you were woken: does that mean that it is your turn?",
		tell: tellWaiterCrash,
	}
	SilentWait = &Property{
		Name: "waiting sends no request",
		Why:  "the server works for clients that have nothing to do",
		Hint: "who could tell the waiter, so that it need not ask?",
		tell: tellSilentWait,
	}
	WakesOne = &Property{
		Name: "a release wakes one",
		Why:  "all waiters wake, look, and go back to sleep, but for one: the herd",
		Hint: "which single change must happen before it can be your turn?",
		tell: tellWakesOne,
	}
	ArrivalWakesNobody = &Property{
		Name: "an arrival wakes nobody",
		Why:  "a newcomer at the end of the line disturbs all who stand in it",
		Hint: "does it matter to you who stands behind you?",
		tell: tellArrivalWakesNobody,
	}
	NoWatchLeft = &Property{
		Name: "no watch is left behind",
		Why:  "watches that can never fire fill the server's memory",
		Hint: "what does the read that sets the watch do when its znode is gone?",
		tell: tellNoWatchLeft,
	}
	LostCreateReply = &Property{
		Name: "a lost reply to create does no harm",
		Why:  "the znode that nobody knows of stands in the line, and its own maker waits behind it",
		Hint: "the create has failed, or has it? How could you recognise your own znode?",
		tell: tellLostCreateReply,
	}
	LostDeleteReply = &Property{
		Name: "a lost reply to delete does no harm",
		Why:  "the holder does not know whether it has released the lock, or the lock is never released",
		Hint: "the delete has failed, or has it? Who goes on until it is sure?",
		tell: tellLostDeleteReply,
	}
	LocksAgain = &Property{
		Name: "the holder may lock again",
		Why:  "a function that locks, called from one that has locked, waits for itself",
		Hint: "how can Lock tell that the caller is the holder?",
		tell: tellLocksAgain,
	}
	ToldOfLoss = &Property{
		Name: "the holder is told when the lock is lost",
		Why:  "a holder whose session is gone goes on writing beside the next one",
		Hint: "what does the client know, and when, while it cannot reach the server?",
		tell: tellToldOfLoss,
	}
	Fenced = &Property{
		Name: "each tenure's token is greater than the last",
		Why:  "a store cannot tell the late write of an earlier holder from a good one",
		Hint: "which number at the server only ever grows?",
		tell: tellFenced,
	}
	LongHold = &Property{
		Name: "a long hold and a long wait come to a good end",
		Why:  "under long work the hold is lost, or the next in line is never served",
		Hint: "two session time-outs have gone by: what has made the lease longer, for the holder and for the one who waits?",
		tell: tellLongHold,
	}
	Shared = &Property{
		Name: "readers share, writers do not, nobody starves",
		Why:  "readers, who do each other no harm, wait for one another",
		Hint: "whom must a reader wait for, and whom a writer?",
		tell: tellShared,
	}

	// These are of interest only where readers share, and so are not in the list.
	ByKind = &Property{
		Name: "each release ends its own kind of hold",
		Why:  "an Unlock too many in a reader's code would end somebody else's read, and let a writer in",
		Hint: "how many entries has the hold by RLock, and how many by Lock?",
		tell: tellByKind,
	}
	Upgrade = &Property{
		Name: "write inside a read hold is refused",
		Why:  "two readers who ask to write would wait for each other",
		Hint: "two readers are inside, and both ask to write: whom does each wait for?",
		tell: tellUpgrade,
	}
)
