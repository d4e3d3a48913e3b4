package tables

import "fmt"

// A Mistake is one that somebody has published in a lock. A small Go lock has it, in
// wrong_test.go of a step, and is right in all else.
type Mistake struct {
	Number   int
	Name     string // as docs/mistakes.md has it in its headings,
	Chinese  string // and docs/mistakes.zh-CN.md
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

	Found Order // what the explorer finds, as TestThePublishedMistakesAreExplored sees it
}

// An Order is the first one that is wrong because of a mistake, of all in which the explorer
// lets the requests of two clients reach the server, with at most one fault.
type Order struct {
	Requests int      // in it
	Fault    string   // what fails before
	Wrong    []string // what is wrong then
}

// NoFault is the Fault of an order in which nothing fails.
const NoFault = "nothing"

// What Found is where there is no such order.
var (
	NotFound         = Order{Wrong: []string{"nothing, with two clients and one fault"}}
	CannotBeExplored = Order{Wrong: []string{"cannot be explored: who waits asks from time to time"}}
)

// What is wrong in an order, as the explorer says it.
const (
	fails      = "a call fails that should not"
	leftBehind = "a znode is left behind"
	nobody     = "nobody is inside, and a client waits for ever"
	twoClients = "two clients are inside"
)

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
	curatorSource = "the article on 51CTO"
	payAttention  = "Java 基于 ZooKeeper 实现分布式锁需要注意什么"
	howTo         = "ZooKeeper 如何实现分布式锁"
)

// Mistakes are all of them, W1 and so on in their order.
var Mistakes = []Mistake{
	{Number: 1, Name: "a persistent znode", Chinese: "持久节点", Step: "2",
		Document: blockingLock, Test: "TestW1PersistentZnode", Harm: WaitsForEver,
		Found: CannotBeExplored},
	{Number: 2, Name: "compares itself with itself", Chinese: "拿自己和自己比", Step: "2",
		Document: blockingLock, Test: "TestW2ComparesItselfWithItself", Harm: TwoInside,
		Found: Order{4, NoFault, []string{twoClients}}},
	{Number: 3, Name: "overlooks number zero", Chinese: "漏掉零号", Step: "2",
		Document: blockingLock, Test: "TestW3OverlooksNumberZero", Harm: TwoInside,
		Found: Order{4, NoFault, []string{twoClients}}},
	{Number: 4, Name: "returns after an error", Chinese: "出错照样返回", Step: "2",
		Document: blockingLock, Test: "TestW4ReturnsAfterAnError", Harm: TwoInside,
		Found: CannotBeExplored},
	{Number: 5, Name: "one queue for all locks", Chinese: "所有锁共用一个队列", Step: "2",
		Document: blockingLock, Test: "TestW5OneQueueForAllLocks", Harm: WaitsForEver,
		Found: CannotBeExplored},
	{Number: 6, Name: "the znode is made in the constructor", Chinese: "在构造方法里创建节点", Step: "2",
		Document: blockingLock, Test: "TestW6ZnodeMadeInTheConstructor", Harm: TwoInside,
		Found: CannotBeExplored},
	{Number: 7, Name: "waits by recursion", Chinese: "靠递归等待", Step: "2",
		Document: blockingLock, Test: "TestW7WaitsByRecursion", Harm: FillsUp,
		Suffers: Nothing,
		Found:   CannotBeExplored},
	{Number: 8, Name: "trusts the wake-up", Chinese: "被唤醒就当拿到了锁", Step: "4",
		Document: blockingLock, Test: "TestW8TrustsTheWakeUp", Harm: TwoInside,
		Suffers: "one holder at a time", ShowsTwoInside: true,
		Does:  "it takes the lock when its watch fires, and does not look again",
		Comes: "two hold the lock, if it was a waiter that died",
		Found: NotFound},
	{Number: 9, Name: "asks if it exists", Chinese: "用 exists 去问", Step: "4",
		Document: blockingLock, Test: "TestW9AsksIfItExists", Harm: FillsUp,
		Does:  "it sets its watch with `exists`",
		Comes: "a watch that never fires stays at the server",
		Found: NotFound},
	{Number: 10, Name: "one count for all locks", Chinese: "所有锁共用一个计数", Step: "5",
		Document: blockingLock, Test: "TestW10OneCountForAllLocks", Harm: TwoInside,
		Suffers: "one holder at a time",
		Found:   Order{8, NoFault, []string{twoClients}}},
	{Number: 11, Name: "counts only who waited", Chinese: "只有等过的才计数", Step: "5",
		Document: blockingLock, Test: "TestW11CountsOnlyWhoWaited", Harm: WaitsForEver,
		Found: Order{7, NoFault, []string{fails, nobody, leftBehind}}},
	{Number: 12, Name: "forgets its znode", Chinese: "放弃时留下节点", Step: "4",
		Document: curatorSource, Test: "TestW12ForgetsItsZnode", Harm: WaitsForEver,
		Does:  "it leaves its znode in the queue when its time is up",
		Comes: "all behind it wait until its session ends",
		Found: Order{5, "the reply to getChildren is lost", []string{nobody, leftBehind}}},
	{Number: 13, Name: "makes its latch too late", Chinese: "闭锁创建得太晚", Step: "3",
		Document: curatorSource, Test: "TestW13MakesItsLatchTooLate", Harm: WaitsForEver,
		Suffers: "first come, first served",
		Found:   Order{5, NoFault, []string{nobody}}},
	{Number: 14, Name: "deletes whichever is first", Chinese: "删掉排在最前的节点", Step: "5",
		Document: payAttention, Test: "TestW14DeletesTheFirst", Harm: TwoInside,
		Found: Order{6, "the reply to getChildren is lost", []string{nobody, leftBehind}}},
	{Number: 15, Name: "wakes under the waiter's lock", Chinese: "唤醒时要拿等待者的锁", Step: "4",
		Document: payAttention, Test: "TestW15WakesUnderTheWaitersLock", Harm: WaitsForEver,
		Suffers: "a release wakes one",
		Does:    "its watcher needs the local lock that the waiter holds",
		Comes:   "the two wait for each other, and it is never woken",
		Found:   Order{6, NoFault, []string{nobody}}},
	{Number: 16, Name: "sorts by a piece of the guid", Chinese: "按 guid 的一段排序", Step: "2",
		Document: payAttention, Test: "TestW16SortsByAPieceOfTheGuid", Harm: TwoInside,
		Found: CannotBeExplored},
	{Number: 17, Name: "sorts by the host's name", Chinese: "按主机名排序", Step: "2",
		Document: howTo, Test: "TestW17SortsByTheHostname", Harm: TwoInside,
		Found: CannotBeExplored},
	{Number: 18, Name: "tries, and stays", Chinese: "没拿到锁也留下节点", Step: "4",
		Document: curatorSource, Test: "TestW18TriesAndStays", Harm: WaitsForEver,
		Suffers: "giving up leaves nothing behind",
		Does:    "it leaves its znode in the queue when `tryLock` returns false",
		Comes:   "when it tries again, it waits for its own znode",
		Found:   CannotBeExplored},
	{Number: 19, Name: "waits for nobody", Chinese: "等一个不存在的节点", Step: "4",
		Document: curatorSource, Test: "TestW19WaitsForNobody", Harm: TwoInside,
		Does:  "it takes an error for \"nobody is before me\"",
		Comes: "two hold the lock after a connection has failed",
		Found: Order{5, "the reply to getChildren is lost", []string{twoClients}}},
	{Number: 20, Name: "compares a path with a name", Chinese: "拿路径和名字比", Step: "4",
		Document: payAttention, Test: "TestW20ComparesAPathWithAName", Harm: PassedOver,
		Suffers: "first come, first served",
		Does:    "it compares the path of its znode with the names in the list",
		Comes:   "nobody ever gets the lock",
		Found:   Order{6, NoFault, []string{fails}}},
	{Number: 21, Name: "looks twice", Chinese: "看两遍", Step: "4",
		Document: payAttention, Test: "TestW21LooksTwice", Harm: PassedOver,
		Suffers: "first come, first served",
		Does:    "it uses one list to see whether it is first, and another one to find its predecessor",
		Comes:   "`Lock` fails if the lock comes free between the two",
		Found:   Order{7, NoFault, []string{fails}}},
	{Number: 22, Name: "looks before the try", Chinese: "在 try 之前先看", Step: "4",
		Document: payAttention, Test: "TestW22LooksBeforeTheTry", Harm: WaitsForEver,
		Suffers: "giving up leaves nothing behind",
		Does:    "its first list stands before the code that deletes the znode after an error",
		Comes:   "if that list fails, the znode stays, and all behind it wait",
		Found:   Order{5, "the reply to getChildren is lost", []string{leftBehind}}},
	{Number: 23, Name: "takes an interrupt for the lock", Chinese: "把中断当成拿到了锁", Step: "5",
		Document: payAttention, Test: "TestW23TakesAnInterruptForTheLock", Harm: TwoInside,
		Suffers: "one holder at a time", ShowsTwoInside: true,
		Found: Order{6, "a client gives up", []string{twoClients}}},
	{Number: 24, Name: "waits, whatever is there", Chinese: "不管节点在不在都等", Step: "4",
		Document: payAttention, Test: "TestW24WaitsWhateverIsThere", Harm: WaitsForEver,
		Suffers: "first come, first served",
		Does:    "it waits for its watch, even if the znode was gone when the watch was set",
		Comes:   "it waits for ever, though it is first",
		Found:   Order{6, NoFault, []string{nobody}}},
}

// Key is what commands and pages call it: W1, and so on.
func (m Mistake) Key() string { return fmt.Sprintf("W%d", m.Number) }

// File is where its code stands, from the root of the repository.
func (m Mistake) File() string { return Find(m.Step).Folder + "/wrong_test.go" }

// Run is the pattern that names its test to go test.
func (m Mistake) Run() string { return "^" + m.Test + "$" }
