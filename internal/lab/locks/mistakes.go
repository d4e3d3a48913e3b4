package locks

import "fmt"

// A Mistake is one that somebody has published in a lock. A small Go lock has it, in
// wrong_test.go of a step, and is right otherwise.
type Mistake struct {
	Number  int
	Name    string // as docs/mistakes.md has it in its headings,
	Chinese string // and docs/mistakes.zh-CN.md
	Step    string // whose lock it is a change of
	Test    string // which has the lock

	Found Order // what the explorer finds, as TestThePublishedMistakesAreExplored sees it
}

// An Order is the first interleaving that is wrong because of a mistake, of all in which the
// explorer lets the requests of two clients reach the server, with at most one fault.
type Order struct {
	Requests int      // in it
	Fault    string   // what fails before
	Wrong    []string // what is wrong then
}

// NoFault is the Fault of an interleaving in which nothing fails.
const NoFault = "nothing"

// What Found is where there is no such interleaving.
var (
	NotFound         = Order{Wrong: []string{"nothing, with two clients and one fault"}}
	CannotBeExplored = Order{Wrong: []string{"cannot be explored: its waiters poll"}}
)

// What is wrong in an interleaving, as the explorer says it.
const (
	fails      = "a call that should succeed fails"
	leftBehind = "a znode is left behind"
	nobody     = "nobody holds the lock, and a client waits forever"
	twoClients = "two clients hold the lock at once"
)

// Mistakes are all of them, W1 and so on in their order.
var Mistakes = []Mistake{
	{Number: 1, Name: "a persistent znode", Chinese: "持久节点", Step: "2",
		Test:  "TestW1PersistentZnode",
		Found: CannotBeExplored},
	{Number: 2, Name: "compares itself with itself", Chinese: "拿自己和自己比", Step: "2",
		Test:  "TestW2ComparesItselfWithItself",
		Found: Order{4, NoFault, []string{twoClients}}},
	{Number: 3, Name: "overlooks number zero", Chinese: "漏掉零号", Step: "2",
		Test:  "TestW3OverlooksNumberZero",
		Found: Order{4, NoFault, []string{twoClients}}},
	{Number: 4, Name: "returns after an error", Chinese: "出错照样返回", Step: "2",
		Test:  "TestW4ReturnsAfterAnError",
		Found: CannotBeExplored},
	{Number: 5, Name: "one queue for all locks", Chinese: "所有锁共用一个队列", Step: "2",
		Test:  "TestW5OneQueueForAllLocks",
		Found: CannotBeExplored},
	{Number: 6, Name: "the znode is made in the constructor", Chinese: "在构造方法里创建节点", Step: "2",
		Test:  "TestW6ZnodeMadeInTheConstructor",
		Found: CannotBeExplored},
	{Number: 7, Name: "waits by recursion", Chinese: "靠递归等待", Step: "2",
		Test:  "TestW7WaitsByRecursion",
		Found: CannotBeExplored},
	{Number: 8, Name: "trusts the wake-up", Chinese: "被唤醒就当拿到了锁", Step: "4",
		Test:  "TestW8TrustsTheWakeUp",
		Found: NotFound},
	{Number: 9, Name: "asks if it exists", Chinese: "用 exists 去问", Step: "4",
		Test:  "TestW9AsksIfItExists",
		Found: NotFound},
	{Number: 10, Name: "one count for all locks", Chinese: "所有锁共用一个计数", Step: "5",
		Test:  "TestW10OneCountForAllLocks",
		Found: Order{8, NoFault, []string{twoClients}}},
	{Number: 11, Name: "counts only clients that waited", Chinese: "只有等过的才计数", Step: "5",
		Test:  "TestW11CountsOnlyWhoWaited",
		Found: Order{7, NoFault, []string{fails, nobody, leftBehind}}},
	{Number: 12, Name: "forgets its znode", Chinese: "放弃时留下节点", Step: "4",
		Test:  "TestW12ForgetsItsZnode",
		Found: Order{5, "the reply to getChildren is lost", []string{nobody, leftBehind}}},
	{Number: 13, Name: "makes its latch too late", Chinese: "闭锁创建得太晚", Step: "3",
		Test:  "TestW13MakesItsLatchTooLate",
		Found: Order{5, NoFault, []string{nobody}}},
	{Number: 14, Name: "deletes whichever is first", Chinese: "删掉排在最前的节点", Step: "5",
		Test:  "TestW14DeletesTheFirst",
		Found: Order{6, "the reply to getChildren is lost", []string{nobody, leftBehind}}},
	{Number: 15, Name: "wakes under the waiter's lock", Chinese: "唤醒时要拿等待者的锁", Step: "4",
		Test:  "TestW15WakesUnderTheWaitersLock",
		Found: Order{6, NoFault, []string{nobody}}},
	{Number: 16, Name: "sorts by a piece of the guid", Chinese: "按 guid 的一段排序", Step: "2",
		Test:  "TestW16SortsByAPieceOfTheGuid",
		Found: CannotBeExplored},
	{Number: 17, Name: "sorts by the host's name", Chinese: "按主机名排序", Step: "2",
		Test:  "TestW17SortsByTheHostname",
		Found: CannotBeExplored},
	{Number: 18, Name: "tries, and stays", Chinese: "没拿到锁也留下节点", Step: "4",
		Test:  "TestW18TriesAndStays",
		Found: CannotBeExplored},
	{Number: 19, Name: "waits for nobody", Chinese: "等一个不存在的节点", Step: "4",
		Test:  "TestW19WaitsForNobody",
		Found: Order{5, "the reply to getChildren is lost", []string{twoClients}}},
	{Number: 20, Name: "compares a path with a name", Chinese: "拿路径和名字比", Step: "4",
		Test:  "TestW20ComparesAPathWithAName",
		Found: Order{6, NoFault, []string{fails}}},
	{Number: 21, Name: "looks twice", Chinese: "看两遍", Step: "4",
		Test:  "TestW21LooksTwice",
		Found: Order{7, NoFault, []string{fails}}},
	{Number: 22, Name: "looks before the try", Chinese: "在 try 之前先看", Step: "4",
		Test:  "TestW22LooksBeforeTheTry",
		Found: Order{5, "the reply to getChildren is lost", []string{leftBehind}}},
	{Number: 23, Name: "takes an interrupt for the lock", Chinese: "把中断当成拿到了锁", Step: "5",
		Test:  "TestW23TakesAnInterruptForTheLock",
		Found: Order{6, "a client gives up", []string{twoClients}}},
	{Number: 24, Name: "waits, whatever is there", Chinese: "不管节点在不在都等", Step: "4",
		Test:  "TestW24WaitsWhateverIsThere",
		Found: Order{6, NoFault, []string{nobody}}},
	{Number: 27, Name: "looks at no type", Chinese: "不看事件类型", Step: "4",
		Test:  "TestW27LooksAtNoType",
		Found: NotFound},
}

// Key is what commands and pages call it: W1, and so on.
func (m Mistake) Key() string { return fmt.Sprintf("W%d", m.Number) }

// Run is the pattern that names its test to go test.
func (m Mistake) Run() string { return "^" + m.Test + "$" }
