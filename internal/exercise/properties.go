package exercise

import "zklock/internal/property"

// All lists the exercises, in their order.
var All = []Exercise{Step1, Step2, Step3, Step4, Step5, Step6, Semaphore, MultiLock, Election}

// Step1 is checked with the lock that New returns. Only CrashFrees is checked with the lock that
// NewEphemeral returns, because only that one is free again after a crash.
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

// Step5 is about what fails around the queue. The properties of the chapter's stairs come first, in
// the order of the stairs.
var Step5 = Exercise{"5", "step05_reentrant", []*property.Property{
	property.OneHolder,
	property.FirstCome,
	property.Tries,
	property.LostCreateReply,
	property.OwnPlace,
	property.OldZnode,
	property.KeptCreate,
	property.LaggingServer,
	property.LostDeleteReply,
	property.TryLost,
	property.GivesUpCutOff,
	property.LocksAgain,
	property.LostApart,
	property.LineBreaks,
	property.LostWhileWaiting,
	property.ToldOfLoss,
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
	property.LostWhileWaiting,
	property.OldZnode,
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
