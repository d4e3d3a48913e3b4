package locks

import (
	"slices"

	"zklock/internal/lang"
)

// An Entry is a lock that the commands show.
type Entry struct {
	Key     string // the value of STEP, LEFT and RIGHT
	Subject string // its name in the tests
	Folder  string // the folder of its code; "": the code is not in this repository
	Beside  bool   // it is shown beside the steps, and is not one
	Znode   bool   // its path is that of its one znode, and not of a directory
	Polls   bool   // its waiters poll
	Herd    bool   // a release wakes every waiter

	// What the pages say about it.
	Title  string    // one short word; "": the tour does not show it
	Name   lang.Text // a few words
	Lesson lang.Text // one line
}

// Locks lists all locks, in the order in which the commands show them.
var Locks = []Entry{
	{Key: "1", Subject: "step 1", Folder: "step01_plain_node", Znode: true, Polls: true,
		Title: "plain", Name: text("a plain znode",
			"一个普通的 znode"),
		Lesson: text("One znode is the lock. Each try of a waiter is a write. After a crash nobody gets the lock.",
			"一个 znode 就是锁。等待者每试一次，都是一次写操作。持有者崩溃以后，谁也拿不到锁。")},
	{Key: "2", Subject: "step 2", Folder: "step02_sequential_spin", Polls: true,
		Title: "spin", Name: text("a queue, and polling",
			"排队，轮询"),
		Lesson: text("Numbered znodes form a queue, and are deleted with their sessions. All waiters poll.",
			"带序号的 znode 排成队列，会话结束时一起删除。所有等待者都在轮询。")},
	{Key: "3", Subject: "step 3", Folder: "step03_children_watch", Herd: true,
		Title: "herd", Name: text("watch the directory",
			"监听目录"),
		Lesson: text("Waiters do not poll: a change wakes all of them, and all look again.",
			"等待者不轮询：一次变化就唤醒所有等待者，它们全都重新检查。")},
	{Key: "3w", Subject: "step 3w", Folder: "step03_children_watch", Beside: true, Znode: true, Herd: true,
		Title: "watched", Name: text("a plain znode, watched",
			"一个普通的 znode，有监听器"),
		Lesson: text("Step 3's NewWatched has no queue: a release wakes every waiter, and each of them writes.",
			"第 3 步的 NewWatched 没有队列：一次释放唤醒所有等待者，每个等待者都发出一次写操作。")},
	{Key: "4", Subject: "step 4", Folder: "step04_predecessor_watch",
		Title: "chain", Name: text("watch the one before",
			"监听前一个节点"),
		Lesson: text("Each waiter watches the znode before its own: a release wakes one, however many wait.",
			"每个等待者监听自己前面的节点：无论多少客户端在等，一次释放只唤醒一个。")},
	{Key: "5", Subject: "step 5", Folder: "step05_reentrant",
		Title: "hold", Name: text("survives lost replies",
			"排队，不怕响应丢失"),
		Lesson: text("Lost replies do no harm. The holder may lock again, is notified of a loss, and has a token.",
			"响应丢失没有害处。持有者可以再次加锁，丢锁时会得到通知，并且有令牌。")},
	{Key: "6", Subject: "step 6", Folder: "step06_shared_lock",
		Title: "shared", Name: text("a lock to share",
			"可以共享的锁"),
		Lesson: text("Readers share the lock, a writer holds it alone. Each waiter still waits for one znode only.",
			"读者共享锁，写者独占锁。每个等待者仍然只等一个节点。")},
	{Key: "mutex", Subject: "leased.Mutex", Folder: "leased", Beside: true,
		Name: text("leased.Mutex", "leased.Mutex"), Lesson: work},
	{Key: "rwmutex", Subject: "leased.RWMutex", Folder: "leased", Beside: true,
		Name: text("leased.RWMutex", "leased.RWMutex"), Lesson: work},
	{Key: "cohort", Subject: "leased.Cohort", Folder: "leased", Beside: true,
		Name: text("leased.Cohort", "leased.Cohort"), Lesson: work},
	{Key: "zk", Subject: "zk.Lock", Beside: true,
		Title: "client", Name: text("zk.Lock, the Go client's own",
			"zk.Lock，Go 客户端自带的锁"),
		Lesson: text("The Go client's own lock, for comparison: it waits as step 4 does.",
			"Go 客户端自带的锁，用作对比：它的等待方式与第 4 步相同。")},
}

var work = text("The production lock: what the steps teach, and a lease.", "生产环境用的锁：包含各步所讲的内容，再加上租约。")

// Heading returns a lock's name on a page, for a step with its number.
func (l Entry) Heading() lang.Text {
	if l.Key[0] < '0' || l.Key[0] > '9' {
		return l.Name
	}
	return lang.Of("Step %v: %v", "第 %v 步：%v", l.Key, l.Name)
}

var text = lang.Both

// Steps returns the locks that have a chapter of their own.
func Steps() []Entry {
	return slices.DeleteFunc(slices.Clone(Locks), func(l Entry) bool { return l.Beside })
}

// Find returns the lock with a key. It panics if there is none: then a key is misspelt in the code.
func Find(key string) Entry {
	at := slices.IndexFunc(Locks, func(l Entry) bool { return l.Key == key })
	if at < 0 {
		panic("there is no lock " + key)
	}
	return Locks[at]
}
