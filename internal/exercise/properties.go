package exercise

import (
	"fmt"
	"slices"

	"zklock/internal/lang"
	"zklock/internal/property"
)

// All lists the exercises, in their order.
var All = []Exercise{Step1, Step2, Step3, Step4, Step5, Step6, Semaphore, MultiLock, Election}

// Step1 is checked with the locks that New and NewEphemeral return. Only the second is free again after a crash.
var Step1 = Exercise{"1", "step01_plain_node", []*property.Property{
	property.OneHolder,
	property.GivingUp,
	property.CrashFrees,
	property.Unrelated,
	property.ParentsMade,
	property.ManyShare,
	property.WhateverIsInIt,
	property.LostWhileWaiting,
	property.ReleaseSeen,
	property.FailsClean,
	property.UnlockTooMany,
	property.UnlockRepeated,
	property.LostTold,
	property.QuietAfter,
	property.LongHold,
}}

// Step2 is about the order in which clients are served.
var Step2 = Exercise{"2", "step02_sequential_spin", []*property.Property{
	property.OneHolder,
	property.FirstCome,
	property.CrashFrees,
	property.OnlyHolder,
	property.GivingUp,
	property.WaiterCrash,
	property.Unrelated,
	property.ParentsMade,
	property.MadeOnce,
	property.ManyShare,
	property.WhateverIsInIt,
	property.LostWhileWaiting,
	property.NotBeside,
	property.ReleaseSeen,
	property.FailsClean,
	property.UnlockTooMany,
	property.UnlockRepeated,
	property.LostTold,
	property.QuietAfter,
	property.LongHold,
}}

// Step3 is about waiters that do not poll.
var Step3 = Exercise{"3", "step03_children_watch", []*property.Property{
	property.OneHolder,
	property.SilentWait,
	property.FirstCome,
	property.ReleaseSeen,
	property.WaiterCrash,
	property.GivingUp,
	property.NoWatchLeft,
	property.OnlyHolder,
	property.CrashFrees,
	property.Unrelated,
	property.ParentsMade,
	property.MadeOnce,
	property.ManyShare,
	property.WhateverIsInIt,
	property.LostWhileWaiting,
	property.NotBeside,
	property.ReleasedWhileCutOff,
	property.FailsClean,
	property.UnlockTooMany,
	property.UnlockRepeated,
	property.LostTold,
	property.QuietAfter,
	property.LongHold,
}}

// Step4 is about waiters that are woken one by one. The check asks for that before it asks for
// SilentWait, because the starter already waits silently.
var Step4 = Exercise{"4", "step04_predecessor_watch", []*property.Property{
	property.OneHolder,
	property.WakesOne,
	property.ArrivalWakesNobody,
	property.SilentWait,
	property.FirstCome,
	property.ReleaseSeen,
	property.WaiterCrash,
	property.WakesOneLater,
	property.NoWatchLeft,
	property.GivingUp,
	property.OnlyHolder,
	property.CrashFrees,
	property.Unrelated,
	property.ParentsMade,
	property.MadeOnce,
	property.ManyShare,
	property.WhateverIsInIt,
	property.LostWhileWaiting,
	property.NotBeside,
	property.ReleasedWhileCutOff,
	property.FailsClean,
	property.UnlockTooMany,
	property.UnlockRepeated,
	property.LostTold,
	property.QuietAfter,
	property.LongHold,
}}

// Step5 is about what fails around the queue. The properties of the chapter's stairs come in the order
// of the stairs: first those of part A, then what step 4 has, and last those of part B.
var Step5 = Exercise{"5", "step05_reentrant", []*property.Property{
	property.OneHolder,
	property.FirstCome,
	// part A
	property.LostCreateReply,
	property.OwnPlace,
	property.OldZnode,
	property.LaggingServer,
	property.LostDeleteReply,
	property.GivesUpCutOff,
	property.OnlyHolder,
	property.LineBreaks,
	property.GivesUpAtOnce,
	property.LostWhileWaiting,
	property.KeptWatch,
	property.KeptList,
	property.KeptCreate,
	property.LostTold,
	// as in step 4
	property.SilentWait,
	property.WakesOne,
	property.ArrivalWakesNobody,
	property.ReleaseSeen,
	property.WaiterCrash,
	property.WakesOneLater,
	property.NoWatchLeft,
	property.GivingUp,
	property.CrashFrees,
	property.Unrelated,
	property.ParentsMade,
	property.MadeOnce,
	property.ManyShare,
	property.WhateverIsInIt,
	property.NotBeside,
	property.FailsClean,
	property.UnlockRepeated,
	property.QuietAfter,
	property.LongHold,
	// part B
	property.LostApart,
	property.ToldOfLoss,
	property.Fenced,
	property.LocksAgain,
	property.Tries,
	property.TryLost,
}}

// Stairs are the stairs of step 5's chapter, from 5.1 on: each by the property that its red line is about. A lock that
// has all properties before that one has come as far as the stair before.
var Stairs = []*property.Property{
	property.LostCreateReply,
	property.OldZnode,
	property.LostDeleteReply,
	property.LineBreaks,
	property.KeptWatch,
	property.LostApart,
	property.ToldOfLoss,
	property.Fenced,
	property.LocksAgain,
	property.Tries,
}

// stairsDone returns how many stairs a lock has done that has the first held properties, and lacks the next.
func (e Exercise) stairsDone(held int) (done int) {
	if e.Name != Step5.Name {
		return 0
	}
	for _, p := range e.Properties[:held+1] {
		if slices.Contains(Stairs, p) {
			done++
		}
	}
	return max(0, done-1)
}

// AllHold says that the check has found nothing wrong, and that the learner's own test is next.
func (e Exercise) AllHold(p Progress) lang.Text {
	_, all := e.Count(p)
	var stair, leftOut lang.Text
	done := len(Stairs)
	if p.LeftOut {
		leftOut = lang.Both(", TryLock left out", "，没有做 TryLock")
		done--
	}
	if e.Name == Step5.Name {
		stair = lang.Of("stair 5.%d done; ", "台阶 5.%d 完成；", done)
	}
	return lang.Of("%[1]vall %[2]d hold%[3]v; now your own test", "%[1]v%[2]d 条全部具备%[3]v；接下来是你自己的测试",
		stair, all, leftOut)
}

// Stair returns the stair of step 5's chapter that a learner's lock has not done yet, such as 5.3. It returns "" in the
// other exercises, and when all properties hold.
func (e Exercise) Stair() string {
	p := e.Progress()
	if e.Name != Step5.Name || p.Held >= len(e.Properties) {
		return ""
	}
	last := len(e.Properties) - 1
	return fmt.Sprintf("5.%d", e.stairsDone(min(p.reached(), last))+1)
}

// Step6 is about readers that share the lock.
var Step6 = Exercise{"6", "step06_shared_lock", []*property.Property{
	property.OneHolder,
	property.Shared,
	property.Upgrade,
	property.ReaderStays,
	property.FirstCome,
	property.LostCreateReply,
	property.LineBreaks,
	property.OwnPlace,
	property.LostDeleteReply,
	property.LocksAgain,
	property.LostApart,
	property.ToldOfLoss,
	property.GivesUpCutOff,
	property.GivesUpAtOnce,
	property.KeptWatch,
	property.LostWhileWaiting,
	property.OldZnode,
	property.LaggingServer,
	property.KeptCreate,
	property.KeptList,
	property.Fenced,
	property.SilentWait,
	property.WakesOne,
	property.ArrivalWakesNobody,
	property.ReleaseSeen,
	property.WaiterCrash,
	property.WakesOneLater,
	property.NoWatchLeft,
	property.GivingUp,
	property.Tries,
	property.TryLost,
	property.OnlyHolder,
	property.CrashFrees,
	property.Unrelated,
	property.ParentsMade,
	property.MadeOnce,
	property.ManyShare,
	property.WhateverIsInIt,
	property.NotBeside,
	property.FailsClean,
	property.UnlockRepeated,
	property.LostTold,
	property.QuietAfter,
	property.LongHold,
}}

// The exercises after the steps.
var (
	Semaphore = Exercise{"semaphore", "internal/exercise/after/semaphore", semaphoreProperties}
	MultiLock = Exercise{"multilock", "internal/exercise/after/multilock", multiLockProperties}
	Election  = Exercise{"election", "internal/exercise/after/election", electionProperties}
)
