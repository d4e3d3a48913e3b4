package locks

import (
	"fmt"

	"zklock/internal/explore"
)

// A Mistake is a mistake in a lock that somebody has published. A small Go lock in wrong_test.go of a
// step has this mistake, and is correct otherwise.
type Mistake struct {
	Number  int
	Name    string // as in the headings of docs/mistakes.md
	Chinese string // as in the headings of docs/mistakes.zh-CN.md
	Step    string // the step whose lock it changes
	Test    string // the test with that lock

	Three bool  // it takes a third client to show it, as TestAThirdClientFindsW8 does
	Found Order // what the explorer finds, checked by TestThePublishedMistakesAreExplored
}

// An Order is the first interleaving that goes wrong because of a mistake. The explorer plays the
// interleavings of the requests of two clients, with at most one fault.
type Order struct {
	Requests int      // how many requests it has
	Fault    string   // the fault in it, or NoFault
	Wrong    []string // what is wrong in it
}

// NoFault is the Fault of an interleaving in which nothing fails.
const NoFault = "nothing"

// The values of Found if there is no such interleaving.
var (
	NotFound         = Order{Wrong: []string{"nothing, with two clients and one fault"}}
	CannotBeExplored = Order{Wrong: []string{"cannot be explored: its waiters poll"}}
)

// Mistakes lists all mistakes, from W1 on, in the order of their numbers.
var Mistakes = []Mistake{
	{Number: 1, Name: "a persistent znode", Chinese: "持久节点", Step: "2",
		Test:  "TestW1PersistentZnode",
		Found: CannotBeExplored},
	{Number: 2, Name: "compares itself with itself", Chinese: "拿自己和自己比", Step: "2",
		Test:  "TestW2ComparesItselfWithItself",
		Found: Order{4, NoFault, []string{explore.TwoInside}}},
	{Number: 3, Name: "overlooks number zero", Chinese: "漏掉零号", Step: "2",
		Test:  "TestW3OverlooksNumberZero",
		Found: Order{4, NoFault, []string{explore.TwoInside}}},
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
		Three: true,
		Found: NotFound},
	{Number: 9, Name: "asks if it exists", Chinese: "用 exists 去问", Step: "4",
		Test:  "TestW9AsksIfItExists",
		Found: NotFound},
	{Number: 10, Name: "one count for all locks", Chinese: "所有锁共用一个计数", Step: "5",
		Test:  "TestW10OneCountForAllLocks",
		Found: Order{8, NoFault, []string{explore.TwoInside}}},
	{Number: 11, Name: "counts only clients that waited", Chinese: "只有等过的才计数", Step: "5",
		Test:  "TestW11CountsOnlyWhoWaited",
		Found: Order{7, NoFault, []string{explore.NotAllowed, explore.WaitsOn, explore.LeftBehind}}},
	{Number: 12, Name: "forgets its znode", Chinese: "放弃时留下节点", Step: "4",
		Test:  "TestW12ForgetsItsZnode",
		Found: Order{5, "the reply to getChildren is lost", []string{explore.WaitsOn, explore.LeftBehind}}},
	{Number: 13, Name: "makes its latch too late", Chinese: "闭锁创建得太晚", Step: "3",
		Test:  "TestW13MakesItsLatchTooLate",
		Found: Order{5, NoFault, []string{explore.WaitsOn}}},
	{Number: 14, Name: "deletes whichever is first", Chinese: "删掉排在最前的节点", Step: "5",
		Test:  "TestW14DeletesTheFirst",
		Found: Order{6, "the reply to getChildren is lost", []string{explore.WaitsOn, explore.LeftBehind}}},
	{Number: 15, Name: "wakes under the waiter's lock", Chinese: "唤醒时要拿等待者的锁", Step: "4",
		Test:  "TestW15WakesUnderTheWaitersLock",
		Found: Order{6, NoFault, []string{explore.WaitsOn}}},
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
		Found: Order{5, "the reply to getChildren is lost", []string{explore.TwoInside}}},
	{Number: 20, Name: "compares a path with a name", Chinese: "拿路径和名字比", Step: "4",
		Test:  "TestW20ComparesAPathWithAName",
		Found: Order{6, NoFault, []string{explore.NotAllowed}}},
	{Number: 21, Name: "looks twice", Chinese: "看两遍", Step: "4",
		Test:  "TestW21LooksTwice",
		Found: Order{7, NoFault, []string{explore.NotAllowed}}},
	{Number: 22, Name: "looks before the try", Chinese: "在 try 之前先看", Step: "4",
		Test:  "TestW22LooksBeforeTheTry",
		Found: Order{5, "the reply to getChildren is lost", []string{explore.LeftBehind}}},
	{Number: 23, Name: "takes an interrupt for the lock", Chinese: "把中断当成拿到了锁", Step: "5",
		Test:  "TestW23TakesAnInterruptForTheLock",
		Found: Order{6, "a client gives up", []string{explore.TwoInside}}},
	{Number: 24, Name: "waits, whatever is there", Chinese: "不管节点在不在都等", Step: "4",
		Test:  "TestW24WaitsWhateverIsThere",
		Found: Order{6, NoFault, []string{explore.WaitsOn}}},
	{Number: 27, Name: "looks at no type", Chinese: "不看事件类型", Step: "4",
		Test:  "TestW27LooksAtNoType",
		Found: NotFound},
}

// Key returns the name of the mistake in commands and on pages: W1, and so on.
func (m Mistake) Key() string { return fmt.Sprintf("W%d", m.Number) }

// Run returns the pattern by which go test finds the mistake's test.
func (m Mistake) Run() string { return "^" + m.Test + "$" }
