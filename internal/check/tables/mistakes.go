package tables

import "fmt"

// A Mistake is one that somebody has published in a lock. A small Go lock has it, in
// wrong_test.go of a step, and is right in all else.
type Mistake struct {
	Number   int
	Name     string // as docs/mistakes.md has it in its headings
	Step     string // whose lock it is a change of
	Document string // where it was published, or first
	Test     string // which has the lock
	Harm     string // what goes wrong

	// What it breaks that the properties' answers do not show, by the name of a property,
	// or Nothing. It is empty if they do: the mistake's test asks for them.
	Suffers        string
	ShowsTwoInside bool // the test shows two inside, beside the property that it asks for

	// Of a mistake of step 4, for its chapter: what its code does, and what comes of it.
	Does, Comes string
}

// What goes wrong, in the order of the index in docs/mistakes.md.
const (
	TwoInside    = "two are inside the lock"
	WaitsForEver = "somebody waits for ever"
	PassedOver   = "the lock is free, and whose turn it is does not get it"
	FillsUp      = "something fills up"
)

// Harms are all of these.
var Harms = []string{TwoInside, WaitsForEver, PassedOver, FillsUp}

// Nothing is what suffers where all of the lock's answers are right.
const Nothing = "none of these"

// The documents.
const (
	blockingLock  = "基于zookeeper实现分布式锁(下)"
	curatorSource = `51CTO, "ZooKeeper locks and Curator's source"`
	payAttention  = "Java 基于 ZooKeeper 实现分布式锁需要注意什么"
	howTo         = "ZooKeeper 如何实现分布式锁"
)

// Mistakes are all of them, W1 and so on in their order.
var Mistakes = []Mistake{
	{Number: 1, Name: "a persistent znode", Step: "2",
		Document: blockingLock, Test: "TestW1PersistentZnode", Harm: WaitsForEver},
	{Number: 2, Name: "compares itself with itself", Step: "2",
		Document: blockingLock, Test: "TestW2ComparesItselfWithItself", Harm: TwoInside},
	{Number: 3, Name: "overlooks number zero", Step: "2",
		Document: blockingLock, Test: "TestW3OverlooksNumberZero", Harm: TwoInside},
	{Number: 4, Name: "returns after an error", Step: "2",
		Document: blockingLock, Test: "TestW4ReturnsAfterAnError", Harm: TwoInside},
	{Number: 5, Name: "one queue for all locks", Step: "2",
		Document: blockingLock, Test: "TestW5OneQueueForAllLocks", Harm: WaitsForEver},
	{Number: 6, Name: "the znode is made in the constructor", Step: "2",
		Document: blockingLock, Test: "TestW6ZnodeMadeInTheConstructor", Harm: TwoInside},
	{Number: 7, Name: "waits by recursion", Step: "2",
		Document: blockingLock, Test: "TestW7WaitsByRecursion", Harm: FillsUp,
		Suffers: Nothing},
	{Number: 8, Name: "trusts the wake-up", Step: "4",
		Document: blockingLock, Test: "TestW8TrustsTheWakeUp", Harm: TwoInside,
		Suffers: "one holder at a time", ShowsTwoInside: true,
		Does:  "it takes the lock when its watch fires, and does not look again",
		Comes: "two hold the lock, if it was a waiter that died"},
	{Number: 9, Name: "asks if it exists", Step: "4",
		Document: blockingLock, Test: "TestW9AsksIfItExists", Harm: FillsUp,
		Does:  "it sets its watch with `exists`",
		Comes: "a watch that never fires stays at the server"},
	{Number: 10, Name: "one count for all locks", Step: "5",
		Document: blockingLock, Test: "TestW10OneCountForAllLocks", Harm: TwoInside,
		Suffers: "one holder at a time"},
	{Number: 11, Name: "counts only who waited", Step: "5",
		Document: blockingLock, Test: "TestW11CountsOnlyWhoWaited", Harm: WaitsForEver},
	{Number: 12, Name: "forgets its znode", Step: "4",
		Document: curatorSource, Test: "TestW12ForgetsItsZnode", Harm: WaitsForEver,
		Does:  "it leaves its znode in the queue when its time is up",
		Comes: "all behind it wait until its session ends"},
	{Number: 13, Name: "makes its latch too late", Step: "3",
		Document: curatorSource, Test: "TestW13MakesItsLatchTooLate", Harm: WaitsForEver,
		Suffers: "first come, first served"},
	{Number: 14, Name: "deletes whichever is first", Step: "5",
		Document: payAttention, Test: "TestW14DeletesTheFirst", Harm: TwoInside},
	{Number: 15, Name: "wakes under the waiter's lock", Step: "4",
		Document: payAttention, Test: "TestW15WakesUnderTheWaitersLock", Harm: WaitsForEver,
		Suffers: "a release wakes one",
		Does:    "its watcher needs the local lock that the waiter holds",
		Comes:   "the two wait for each other, and it is never woken"},
	{Number: 16, Name: "sorts by a piece of the guid", Step: "2",
		Document: payAttention, Test: "TestW16SortsByAPieceOfTheGuid", Harm: TwoInside},
	{Number: 17, Name: "sorts by the host's name", Step: "2",
		Document: howTo, Test: "TestW17SortsByTheHostname", Harm: TwoInside},
	{Number: 18, Name: "tries, and stays", Step: "4",
		Document: curatorSource, Test: "TestW18TriesAndStays", Harm: WaitsForEver,
		Suffers: "giving up leaves nothing behind",
		Does:    "it leaves its znode in the queue when `tryLock` returns false",
		Comes:   "when it tries again, it waits for its own znode"},
	{Number: 19, Name: "waits for nobody", Step: "4",
		Document: curatorSource, Test: "TestW19WaitsForNobody", Harm: TwoInside,
		Does:  "it takes an error for \"nobody is before me\"",
		Comes: "two hold the lock after a connection has failed"},
	{Number: 20, Name: "compares a path with a name", Step: "4",
		Document: payAttention, Test: "TestW20ComparesAPathWithAName", Harm: PassedOver,
		Suffers: "first come, first served",
		Does:    "it compares the path of its znode with the names in the list",
		Comes:   "nobody ever gets the lock"},
	{Number: 21, Name: "looks twice", Step: "4",
		Document: payAttention, Test: "TestW21LooksTwice", Harm: PassedOver,
		Suffers: "first come, first served",
		Does:    "it uses one list to see whether it is first, and another one to find its predecessor",
		Comes:   "`Lock` fails if the lock comes free between the two"},
	{Number: 22, Name: "looks before the try", Step: "4",
		Document: payAttention, Test: "TestW22LooksBeforeTheTry", Harm: WaitsForEver,
		Suffers: "giving up leaves nothing behind",
		Does:    "its first list stands before the code that deletes the znode after an error",
		Comes:   "if that list fails, the znode stays, and all behind it wait"},
	{Number: 23, Name: "takes an interrupt for the lock", Step: "5",
		Document: payAttention, Test: "TestW23TakesAnInterruptForTheLock", Harm: TwoInside,
		Suffers: "one holder at a time", ShowsTwoInside: true},
	{Number: 24, Name: "waits, whatever is there", Step: "4",
		Document: payAttention, Test: "TestW24WaitsWhateverIsThere", Harm: WaitsForEver,
		Suffers: "first come, first served",
		Does:    "it waits for its watch, even if the znode was gone when the watch was set",
		Comes:   "it waits for ever, though it is first"},
}

// Key is what commands and pages call it: W1, and so on.
func (m Mistake) Key() string { return fmt.Sprintf("W%d", m.Number) }

// File is where its code stands, from the root of the repository.
func (m Mistake) File() string { return Find(m.Step).Folder + "/wrong_test.go" }

// Run is the pattern that names its test to go test.
func (m Mistake) Run() string { return "^" + m.Test + "$" }
