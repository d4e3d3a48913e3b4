package play

import (
	"slices"
	"time"

	"zklock/internal/actor"
	"zklock/internal/lab/locks"
	"zklock/internal/lab/stage"
	"zklock/internal/lang"
)

// A lesson is a situation, and the tasks that the reader does in it, one after the other.
type lesson struct {
	N         int       `json:"n"`
	Title     lang.Text `json:"title"`
	Question  lang.Text `json:"question"`
	Situation lang.Text `json:"situation"`
	Tasks     []task    `json:"tasks"`
	Guesses   []guess   `json:"guesses"` // in the order in which they are answered
	Calm      bool      `json:"calm"`    // nothing goes wrong in it
	Sound     bool      `json:"sound"`   // nothing goes wrong on the right
	Timed     bool      `json:"timed"`   // it is about what happens when: below the boards its time is drawn
	Drags     bool      `json:"drags"`   // the reader drags the end of a pause, and recorded runs answer his guess

	// Untold is the name of the lock on the right until the lesson is over. Its own name would answer a guess.
	Untold lang.Text `json:"untold"`

	Readers []int `json:"readers"` // the clients that only read, where the lock has readers; null: no lesson about that

	askLater []int // the clients that do not ask for the lock with the others: a later task lets them ask

	left, right string
	clients     int
	moves       []string // the first commands: for client 0, client 1 and so on, in turn
	scene       []string // the states of the clients after these moves: then the first task appears
	pace        string   // of the wire, from then on
}

// A guess is a question before a task. Beside the result of a task the page shows the reader's answer
// and what was measured.
type guess struct {
	Text lang.Text `json:"text"`
	Of   lang.Text `json:"of"`   // the name of what is guessed, shown before its value
	Kind string    `json:"kind"` // one of those below
	At   int       `json:"at"`   // the index of the task before which it is asked

	// Known is the index of the task whose result answers it.
	Known int `json:"known"`

	measured func(b *side) int
}

// The kinds of guesses.
const (
	guessNumber = "number"
	guessNext   = "next"  // a client; -1: nobody
	guessWrite  = "write" // 1: the write is accepted, 0: it is not
	guessYes    = "yes"   // 1: yes, 0: no
)

// holder returns the client that holds the lock, or -1 if there is none.
func holder(b *side) int {
	return slices.IndexFunc(b.clients, func(c *client) bool { return c.Is == actor.Holds })
}

func notified(b *side) int { return b.Counters().Notifications }

// A task asks the reader to press one button, or to wait. It is done when its condition is true on
// each side.
type task struct {
	Text   lang.Text `json:"text"`
	Do     string    `json:"do"`     // the button; "": the reader waits
	Or     string    `json:"or"`     // another button, and the reader chooses; "": there is none
	Client int       `json:"client"` // everyone: the command is for all clients that can do it, or for no client
	Moment string    `json:"moment"` // the decisive message, shown again: lost (and found), notified or wrote; "": none

	done func(b *side) bool
	seen func(b *side) lang.Text // the result, with its counts; nil: there is nothing to say
}

// everyone is the Client of a task for all clients that can do it, or for no client.
const everyone = -1

// lessons lists the lessons, one for each chapter.
var lessons = []lesson{
	{
		N:     1,
		Title: text("The holder is killed", "持有者被杀"),
		Question: text("The lock is one znode. Who gets it when the client that holds it is killed?",
			"锁就是一个 znode。持有锁的客户端被杀掉以后，哪个客户端能拿到锁？"),
		Situation: text(
			"In step 1 the client that creates the znode holds the lock. "+
				"Client 0 has created it. The others poll: they try to create it, until one succeeds.",
			"在第 1 步里，谁创建了 znode，谁就持有锁。客户端 0 已经创建了它。"+
				"其余的客户端在轮询：它们反复尝试创建这个 znode，直到有一个成功。"),
		left:    "1",
		clients: 4,
		moves:   slices.Repeat([]string{"lock"}, 4),
		scene:   []string{"holds", "waits", "waits", "waits"},
		pace:    real,
		Timed:   true,
		Guesses: []guess{{
			Text: text("Your guess: who holds the lock when the session of client 0 has ended?",
				"先猜：客户端 0 的会话结束以后，谁持有锁？"),
			Of:   text("who holds the lock", "谁持有锁"),
			Kind: guessNext, At: 0, Known: 1, measured: holder,
		}, {
			Text: text("Your guess: how many clients will then believe that they hold the lock?",
				"先猜：那时有几个客户端以为自己持有锁？"),
			Of:   text("clients that believe that they hold the lock", "以为自己持有锁的客户端"),
			Kind: guessNumber, At: 3, Known: 3, measured: func(b *side) int { return len(b.inside()) },
		}},
		Tasks: []task{
			{Text: text("Kill client 0, which holds the lock.",
				"杀掉持有锁的客户端 0。"), Do: "kill", done: killed},
			{Text: text(
				"Wait: the server ends the session when it has heard nothing from client 0 for 5 seconds, "+
					"counted from its last message. The ring around the client shows how much of this time is left.",
				"等一等：从客户端 0 的最后一条消息算起，服务器 5 秒没有再收到消息，就会结束它的会话。"+
					"客户端四周的圆环显示还剩多少时间。"),
				done: func(b *side) bool { return b.over(0) },
				seen: func(b *side) lang.Text {
					return lang.Of(
						"The session of client 0 has ended, and its znode still exists. It is persistent: "+
							"it stays until a client deletes it, and none does. So nobody gets the lock. "+
							"Until the session ended, the waiting clients sent %s requests, all of them writes: "+
							"a create is a write even if it fails.",
						"客户端 0 的会话已经结束，它的 znode 还在：这个 znode 是持久的，一直留到有客户端删除它，"+
							"而没有客户端会删除它。所以谁也拿不到锁。到会话结束为止，等待的客户端发了 %s 个请求，"+
							"全是写操作：create 失败了也算写操作。",
						stage.Number(b.Counters().Requests),
					)
				}},
			{Text: text("Delete the znode by hand, as an operator does: from a session that has nothing to do with the lock.",
				"像运维人员那样手工删除 znode：用一个与这把锁无关的会话。"), Do: "delete", Client: everyone,
				done: func(b *side) bool { return len(b.inside()) == 1 && b.owns(b.inside()[0]) },
				seen: func(b *side) lang.Text {
					return lang.Of("Client %d was the first to create the znode again, and holds the lock. "+
						"ZooKeeper has not checked who deleted it: here any client may delete any znode.",
						"客户端 %d 最先重新创建了 znode，持有锁。ZooKeeper 没有检查是谁删除的：在这里，任何客户端都可以删除任何 znode。",
						b.inside()[0])
				}},
			{Text: text("Delete the znode by hand once more. Its holder is alive this time.",
				"再手工删除一次 znode。这一次，持有者还活着。"), Do: "delete", Client: everyone,
				done: func(b *side) bool { return len(b.inside()) == 2 },
				seen: func(b *side) lang.Text {
					now := b.Queue()[0].Owner
					before := b.inside()[0]
					if before == now {
						before = b.inside()[1]
					}
					return lang.Of("Client %d has created the znode, and holds the lock. Nobody has notified client %d, "+
						"so it still believes that it holds the lock. Two clients would now change the data at once.",
						"客户端 %d 创建了 znode，持有锁。没有谁通知客户端 %d，所以它仍然以为自己持有锁。现在两个客户端会同时修改数据。",
						now, before)
				}},
		},
	},
	{
		N:     2,
		Title: text("The holder is killed, again", "持有者又被杀"),
		Question: text("Each client has a znode of its own, in a queue. What changes when the holder is killed?",
			"每个客户端都有自己的 znode，排成队列。持有者被杀时，有什么不同？"),
		Situation: text(
			"On the left step 1, as before. On the right step 2: each client creates a znode of its own, with a number, "+
				"and the client with the smallest number holds the lock. The others poll with getChildren. "+
				"These znodes are ephemeral.",
			"左边是第 1 步，与上一课相同。右边是第 2 步：每个客户端创建自己的 znode，znode 带有序号，"+
				"序号最小的客户端持有锁，其余的用 getChildren 轮询。"+
				"这些 znode 是临时的。"),
		left:    "1",
		right:   "2",
		clients: 4,
		moves:   slices.Repeat([]string{"lock"}, 4),
		scene:   []string{"holds", "waits", "waits", "waits"},
		pace:    real,
		Timed:   true,
		Guesses: []guess{{
			Text: text("Your guess: client 0 is killed, and some seconds later its session ends. Who then holds the lock, on each side?",
				"先猜：客户端 0 被杀，几秒以后它的会话结束。那时两边各是谁持有锁？"),
			Of:   text("who holds the lock", "谁持有锁"),
			Kind: guessNext, At: 0, Known: 1, measured: holder,
		}},
		Tasks: []task{
			{Text: text("Kill client 0, which holds the lock.",
				"杀掉持有锁的客户端 0。"), Do: "kill", done: killed},
			{Text: text("Wait until the server ends the session of client 0. What is different on the right?",
				"等服务器结束客户端 0 的会话。右边有什么不同？"),
				done: func(b *side) bool {
					isFree := b.clients[1].Is == actor.Holds
					return b.over(0) && (b.Znode || isFree)
				},
				seen: func(b *side) lang.Text {
					sent := stage.Number(b.Counters().Requests)
					if b.Znode {
						return lang.Of("The znode stays: nobody gets the lock. All %s requests were writes: "+
							"the servers have to agree on each one, and store it on their disks.",
							"znode 还在：谁也拿不到锁。%s 个请求全是写操作：每个写操作都要由服务器达成一致，并且写到磁盘上。", sent)
					}
					return lang.Of(
						"The znode of client 0 was ephemeral: the server has deleted it with the session, "+
							"and client 1 holds the lock. "+
							"But the clients still poll. They have sent %s requests, all of them reads: "+
							"one server answers a read from its memory.",
						"客户端 0 的 znode 是临时的：服务器结束会话，同时删除了它，客户端 1 持有锁。"+
							"但是等待的客户端仍然在轮询，发了 %s 个请求，全是读操作：读操作由一台服务器用内存里的数据响应。", sent)
				}},
		},
	},
	{
		N:     3,
		Title: text("A release wakes the herd", "一次释放惊动所有等待者"),
		Question: text("The server notifies the waiting clients. How many of them does one release wake?",
			"服务器会通知等待的客户端。一次释放会唤醒几个？"),
		Situation: text(
			"Client 0 holds the lock, ten wait, and nobody polls. In step 3, on the left, "+
				"each of them watches the whole directory; in step 4 each watches only the znode before its own. "+
				"The wire is slow, so that each message can be seen.",
			"客户端 0 持有锁，十个客户端在等，谁也不轮询。左边是第 3 步：每个等待者都监听整个目录。"+
				"右边是第 4 步：每个等待者只监听自己前面的 znode。网络放慢了，每条消息都看得见。"),
		left:    "3",
		right:   "4",
		clients: 11,
		moves:   slices.Repeat([]string{"lock"}, 11),
		scene:   append([]string{"holds"}, slices.Repeat([]string{"waits"}, 10)...),
		pace:    slow,
		Calm:    true,
		Guesses: []guess{{
			Text: text("Your guess: how many clients are notified?",
				"你猜：有多少个客户端会收到通知？"),
			Of:   text("notified clients", "收到通知的客户端"),
			Kind: guessNumber, At: 0, measured: notified,
		}},
		Tasks: []task{
			{Text: text("Let client 0 unlock.",
				"让客户端 0 解锁。"), Do: "unlock", Moment: "notified",
				done: func(b *side) bool { return b.are("idle", "holds") && b.Quiet() },
				seen: func(b *side) lang.Text {
					told, listed := notifications(b.Counters().Notifications), lists(b.Counters().Lists)
					if b.Counters().Notifications == 1 {
						return lang.Of("%s, and %s: client 1 alone, and it holds the lock.",
							"%s，%s：收到通知和列目录的都是客户端 1，它现在持有锁。", told, listed)
					}
					return lang.Of("%s, and %s. Only client 1 got the lock: the other lists were useless.",
						"%s，%s。只有客户端 1 拿到了锁，其余的客户端都白白检查了一次。", told, listed)
				}},
		},
	},
	{
		N:     4,
		Title: text("A reply is lost", "一个响应丢失"),
		Question: text("The server creates a znode, and the client does not learn of it. Who deletes that znode?",
			"服务器创建了 znode，客户端却不知道。这个 znode 由谁删除？"),
		Situation: text(
			"Client 0 holds the lock, in step 4 on the left and in step 5 on the right. "+
				"When client 1 asks, the server will create its znode, and then the connection breaks: "+
				"the reply to create is lost.",
			"客户端 0 持有锁，左边是第 4 步，右边是第 5 步。接下来，客户端 1 请求加锁："+
				"服务器会创建它的 znode，随后连接断开，create 的响应也就丢失了。"),
		left:    "4",
		right:   "5",
		clients: 3,
		moves:   []string{"lock", "losecreate"},
		scene:   []string{"holds", "idle", "idle"},
		pace:    slow,
		Sound:   true,
		Timed:   true,
		Untold:  text("Step 5: what is different?", "第 5 步：有什么不同？"),
		Guesses: []guess{{
			Text: text("Your guess: will client 1 learn that it has a znode in the queue?",
				"你猜：客户端 1 会知道队列里有自己的 znode 吗？"),
			Of:   text("client 1 knows that it has a znode", "客户端 1 会不会知道自己有 znode"),
			Kind: guessYes, At: 0, Known: 0, measured: func(b *side) int {
				if b.clients[1].State == actor.Failed {
					return 0
				}
				return 1
			},
		}, {
			Text: text("Your guess: who holds the lock then?",
				"你猜：那时谁持有锁？"),
			Of:   text("who holds the lock", "谁持有锁"),
			Kind: guessNext, At: 2, Known: 2, measured: holder,
		}, {
			Text: text("Your guess: who holds the lock when the session of client 1 has ended?",
				"你猜：客户端 1 的会话结束以后，谁持有锁？"),
			Of:   text("who holds the lock", "谁持有锁"),
			Kind: guessNext, At: 3, Known: 3, measured: holder,
		}},
		Tasks: []task{
			{Text: text("Let client 1 ask for the lock.",
				"让客户端 1 请求加锁。"), Do: "lock", Client: 1, Moment: "lost",
				done: func(b *side) bool {
					hasFailed := b.clients[1].State == actor.Failed
					hasFound := b.Watches(1) // not only waits: Lock may not have noticed the loss yet
					hasHeard := hasFailed || hasFound
					return hasHeard && b.Quiet() && len(b.Queue()) == 2
				},
				seen: func(b *side) lang.Text {
					if b.clients[1].State == actor.Failed {
						return lang.Of("Lock has returned an error to client 1, which does not know that it has a znode in the queue.",
							"客户端 1 的 Lock 返回了错误。客户端 1 不知道队列里有一个自己的 znode。")
					}
					return lang.Of(
						"Each client puts a random number, a guid, into its znode's name. "+
							"By its guid client 1 has found its znode. Now it waits.",
						"每个客户端都把一个随机数（guid）放进 znode 的名字里。"+
							"客户端 1 凭自己的 guid 找到了自己的 znode，正在等待。")
				}},
			{Text: text("Let client 2 ask for the lock.",
				"让客户端 2 请求加锁。"), Do: "lock", Client: 2,
				done: func(b *side) bool { return b.Watches(2) && b.Quiet() }},
			{Text: text("Let client 0 unlock.",
				"让客户端 0 解锁。"), Do: "unlock",
				done: func(b *side) bool {
					isBlocked := b.are("idle", "got an error") && b.blockedBy(1)
					return isBlocked || b.are("idle", "holds")
				},
				seen: func(b *side) lang.Text {
					if b.are("idle", "holds") {
						return text("Client 1 holds the lock, and will delete its znode when it unlocks.",
							"客户端 1 持有锁，解锁时会删除自己的 znode。")
					}
					return text(
						"The first znode belongs to client 1, which does not know of it and does not delete it: "+
							"client 2 waits.",
						"排在第一的 znode 属于客户端 1，客户端 1 却不知道，也就不会删除它："+
							"客户端 2 一直在等。",
					)
				}},
			{Text: text("Kill client 1.",
				"杀掉客户端 1。"), Do: "kill", Client: 1,
				done: func(b *side) bool { return b.over(1) && b.clients[2].Is == actor.Holds },
				seen: func(b *side) lang.Text {
					if b.clients[1].State == actor.Failed {
						return text("The server has deleted the znode with the session of client 1, and client 2 holds the lock. "+
							"If client 1 had not crashed, its znode would still block everybody.",
							"服务器结束客户端 1 的会话，同时删除了那个 znode，客户端 2 持有锁。"+
								"如果客户端 1 没有崩溃，它的 znode 现在还会堵住所有客户端。")
					}
					return text("The znode of client 1 is deleted in the same way, and client 2 holds the lock.",
						"客户端 1 的 znode 也是这样删除的，客户端 2 持有锁。")
				}},
		},
	},
	{
		N:     5,
		Title: text("The paused holder writes late", "停顿的持有者，迟到的写入"),
		Question: text("A client that holds the lock is stopped, and continues too late. Who protects the data?",
			"持有锁的客户端停住了，等它恢复运行，已经太晚了。由谁保护数据？"),
		Situation: text(
			"The lock protects a store. Client 0 holds the lock, client 1 waits: in step 4 on the left, "+
				"and in step 5 on the right. In step 5 each holder gets a token, greater than all before it, "+
				"and sends it with its writes.",
			"锁保护着一个存储。客户端 0 持有锁，客户端 1 在等：左边是第 4 步，右边是第 5 步。"+
				"在第 5 步，每个持有者得到一个令牌，这个令牌比以前的都大，持有者每次写入都带上它。"),
		left:    "4",
		right:   "5",
		clients: 2,
		moves:   []string{"lock", "lock"},
		scene:   []string{"holds", "waits"},
		pace:    real,
		Timed:   true,
		Drags:   true,
		Guesses: []guess{{
			Text: text("Your guess: client 0 continues, and sends its write. Does the store accept it?",
				"你猜：客户端 0 恢复运行，发出它的写入。存储会接受吗？"),
			Of:   text("the write of client 0", "客户端 0 的写入"),
			Kind: guessWrite, At: 0, Known: 0, measured: func(b *side) int {
				if b.Store.Log[newestWrite(b, stopped)].OK {
					return 1
				}
				return 0
			},
		}},
		Tasks: []task{
			{Text: text(
				"Client 0 is stopped right before its write, as by a long garbage collection. "+
					"Drag the end of the pause: the drawings follow.",
				"客户端 0 正要写入，就停住了，就像遇到一次很长的垃圾回收停顿。"+
					"请拖动停顿的终点，图会跟着变。"),
				Do: "pause", Moment: "wrote",
				done: func(b *side) bool { return newestWrite(b, stopped) >= 0 },
				seen: lateWrite},
		},
	},
	{
		N:     6,
		Title: text("Readers and a writer", "读者和写者"),
		Question: text("Readers do each other no harm. Can they hold the lock at the same time?",
			"读者之间互不妨碍。它们能同时持有锁吗？"),
		Situation: text(
			"Clients 0, 1 and 2 want to read, client 3 to write, clients 4 and 5 to read. "+
				"Step 5, on the left, does not learn what a client wants. Step 6 does.",
			"客户端 0、1、2 要读，客户端 3 要写，客户端 4、5 要读。"+
				"左边是第 5 步：客户端要读还是要写，锁并不知道。右边是第 6 步：锁知道。"),
		left:     "5",
		right:    "6",
		clients:  6,
		Readers:  []int{0, 1, 2, 4, 5},
		askLater: []int{4, 5},
		scene:    slices.Repeat([]string{"idle"}, 6),
		pace:     slow,
		Calm:     true,
		Timed:    true,
		Guesses: []guess{{
			Text: text("Your guess: how many of them hold the lock at the same time?",
				"你猜：其中有几个同时持有锁？"),
			Of:   text("clients that hold the lock", "持有锁的客户端"),
			Kind: guessNumber, At: 0, Known: 0, measured: func(b *side) int { return len(b.inside()) },
		}, {
			Text: text("Your guess: do clients 4 and 5 get the lock at once?",
				"你猜：客户端 4、5 会不会马上拿到锁？"),
			Of:   text("clients 4 and 5 get the lock at once", "客户端 4、5 会不会马上拿到锁"),
			Kind: guessYes, At: 1, Known: 1, measured: isInside(4, 5),
		}, {
			Text: text("Your guess: who holds the lock then?",
				"你猜：那时谁持有锁？"),
			Of:   text("who holds the lock", "谁持有锁"),
			Kind: guessNext, At: 2, Known: 2, measured: holder,
		}, {
			Text: text("Your guess: how many clients are notified?",
				"你猜：有多少个客户端会收到通知？"),
			Of:   text("notified clients", "收到通知的客户端"),
			Kind: guessNumber, At: 3, Known: 3, measured: notified,
		}, {
			Text: text("Your guess: does client 0 get the lock at once?",
				"你猜：客户端 0 会不会马上拿到锁？"),
			Of:   text("client 0 gets the lock at once", "客户端 0 会不会马上拿到锁"),
			Kind: guessYes, At: 4, Known: 4, measured: isInside(0),
		}},
		Tasks: []task{
			{Text: text("Let clients 0 to 3 ask for the lock, in the order of their numbers.",
				"让客户端 0 到 3 按编号的顺序请求加锁。"), Do: "lock", Client: everyone,
				done: func(b *side) bool {
					isShared := b.are("reads", "reads", "reads", "waits", "idle", "idle")
					isAlone := b.are("holds", "waits", "waits", "waits", "idle", "idle")
					return (isShared || isAlone) && b.waitsSilently() && b.Quiet()
				},
				seen: func(b *side) lang.Text {
					if b.isShared() {
						return text("Clients 0, 1 and 2 read at the same time.", "客户端 0、1、2 一起读。")
					}
					return lang.Of("Client 0 holds the lock alone: here readers wait for readers.",
						"客户端 0 独占锁：在这里，读者也要等读者。")
				}},
			{Text: text("The writer waits. Now let clients 4 and 5 ask, to read.",
				"写者在等。现在让客户端 4、5 请求加锁，它们要读。"), Do: "lock", Client: everyone,
				done: func(b *side) bool { return b.Watches(4) && b.Watches(5) && b.Quiet() },
				seen: func(b *side) lang.Text {
					if b.isShared() {
						return text("Clients 4 and 5 only want to read, and wait, although others read: "+
							"client 3, the writer, is before them in the queue. "+
							"If readers could overtake it, new ones could keep the writer waiting forever.",
							"客户端 4、5 只想读，别的客户端也正在读，它们却要等：队列里，写者（客户端 3）排在它们前面。"+
								"如果读者可以插队，新来的读者就可能让写者永远等下去。")
					}
					return text("Clients 4 and 5 wait behind client 3.", "客户端 4、5 排在客户端 3 后面等。")
				}},
			{Text: text("Let the holders unlock.",
				"让所有持有锁的客户端解锁。"), Do: "unlock", Client: everyone,
				done: func(b *side) bool {
					if b.isShared() {
						return holds(3)(b) && b.Quiet()
					}
					return b.are("idle", "holds") && b.Quiet()
				},
				seen: func(b *side) lang.Text {
					if b.isShared() {
						return text("Client 3, the writer, holds the lock alone.", "写者（客户端 3）独占锁。")
					}
					return lang.Of("Client 0 has read. Now client 1 holds the lock, alone.",
						"客户端 0 读过了。现在客户端 1 独自持有锁。")
				}},
			{Text: text("Once more: let the holders unlock.",
				"再来一次：让所有持有锁的客户端解锁。"), Do: "unlock", Client: everyone, Moment: "notified",
				done: func(b *side) bool {
					if b.isShared() {
						return b.are("idle", "idle", "idle", "idle", "reads", "reads") && b.Quiet()
					}
					return b.are("idle", "idle", "holds") && b.Quiet()
				},
				seen: func(b *side) lang.Text {
					if b.isShared() {
						return text("Both readers that waited for the writer now read, and nobody waits.",
							"等待写者的两个读者现在一起读，没有客户端在等。")
					}
					return text("It is the turn of client 2, and three clients still wait, two of them only to read.",
						"刚轮到客户端 2，还有三个客户端在等，其中两个只想读。")
				}},
			{Text: text("Client 0 will ask again. Choose whether to read or to write.",
				"客户端 0 要再次请求加锁。请选择：要读还是要写？"), Do: "lock", Or: "read",
				done: func(b *side) bool {
					waits := b.are("waits") && b.Watches(0)
					return (waits || b.are("reads")) && b.Quiet()
				},
				seen: func(b *side) lang.Text {
					switch {
					case b.are("reads"):
						return text("Client 0 reads at once, beside clients 4 and 5.", "客户端 0 马上就能读，和客户端 4、5 一起。")
					case b.isShared():
						return text("Client 0 waits until clients 4 and 5 have both unlocked: a writer holds the lock alone.",
							"客户端 0 要等客户端 4、5 都解锁：写者要独占锁。")
					}
					return text("Client 0 waits behind client 5, whether it reads or writes.",
						"不管要读还是要写，客户端 0 都排在客户端 5 后面等。")
				}},
		},
	},
}

// stopped is the client that lesson 5 stops.
const stopped = 0

// newestWrite returns the place in the store's log of a client's newest write, or -1. On a slow machine the other client
// may write after it.
func newestWrite(b *side, client int) int {
	for i, w := range b.Store.Log {
		if w.Client == client {
			return i
		}
	}
	return -1
}

// lateWrite says what the store has done with the write of a client that was stopped.
func lateWrite(b *side) lang.Text {
	w := b.Store.Log[newestWrite(b, stopped)]
	switch {
	case !w.OK:
		return lang.Of(
			"The store has refused the late write of client 0, and keeps the value of client 1: "+
				"the token %s is less than %s, the greatest that the store has seen.",
			"存储拒绝了客户端 0 迟到的写入，保住了客户端 1 写入的值：令牌 %s 小于存储见过的最大令牌 %s。",
			stage.ShortToken(w.Token), stage.ShortToken(b.Store.Token))
	case w.Late:
		return text(
			"The store has accepted the late write of client 0, and the value of client 1 is lost: "+
				"a write does not show that it is late.",
			"存储接受了客户端 0 迟到的写入，客户端 1 写入的值丢失了：从一次写入本身，看不出它迟到了。")
	}
	return text("The store has accepted the write of client 0. It is in time: the session of client 0 has not ended.",
		"存储接受了客户端 0 的写入。它没有迟到：客户端 0 的会话还没有结束。")
}

// isInside measures whether each of these clients believes that it holds the lock: 1, or else 0.
func isInside(clients ...int) func(b *side) int {
	return func(b *side) int {
		if slices.ContainsFunc(clients, func(i int) bool { return !b.clients[i].IsInside() }) {
			return 0
		}
		return 1
	}
}

// inside returns the clients that are alive, and believe that they hold the lock.
func (b *side) inside() (all []int) {
	for _, c := range b.clients {
		if c.Process != stage.Dead && c.IsInside() {
			all = append(all, c.Number)
		}
	}
	return all
}

// owns reports whether the first znode is the client's.
func (b *side) owns(client int) bool {
	queue := b.Queue()
	return len(queue) > 0 && queue[0].Owner == client
}

func notifications(n int) lang.Text {
	return plural(n, "%d notification", "%d notifications", "%d 条通知")
}

func lists(n int) lang.Text {
	return plural(n, "%d client lists the directory", "%d clients list the directory", "%d 个客户端列目录")
}

func killed(b *side) bool { return b.clients[0].Process == stage.Dead }

func holds(n int) func(b *side) bool {
	return func(b *side) bool { return b.clients[n].Is == actor.Holds }
}

// asks returns how the client carries out a command for all: in a lesson some only read, where the lock has
// readers.
func (c *client) asks(do string) string {
	c.mu.Lock()
	n := c.course.Lesson
	c.mu.Unlock()
	isReader := n > 0 && slices.Contains(lessons[n-1].Readers, c.Number)
	if do == "lock" && isReader && c.Reads {
		return "read"
	}
	return do
}

// isShared reports whether readers can hold the lock at the same time.
func (b *side) isShared() bool { return b.clients[0].Reads }

// are reports whether the first clients are in these states.
func (b *side) are(states ...string) bool {
	for i, is := range states {
		if b.clients[i].Is != is {
			return false
		}
	}
	return true
}

// blockedBy reports whether the page shows a banner, and the first znode of the queue is the client's.
func (b *side) blockedBy(client int) bool {
	return len(b.Banners) > 0 && b.Queue()[0].Owner == client
}

// over reports whether the server has ended a client's session.
func (b *side) over(client int) bool { return b.clients[client].Over > 0 }

// A course is how far the reader is in a lesson. Lesson 0 is none.
type course struct {
	Lesson int           `json:"lesson"`
	Begun  bool          `json:"begun"` // its situation is set up
	Done   int           `json:"done"`  // how many tasks are done
	Seen   [][]lang.Text `json:"seen"`  // the results of each done task, one for each board

	Since  int              `json:"since"`  // when the last task was done
	Counts []stage.Counters `json:"counts"` // then, for each board

	Measured [][]int `json:"measured"` // the answers to the guesses that are known, one for each board

	// Spoiled is the number of a client that has lost its session or the lock, although no task makes it lose them; nobody:
	// there is none. A computer that is too busy can be the cause. Then the tasks cannot be done any more.
	Spoiled int `json:"spoiled"`
}

// seenAfter is how many microseconds after a task the page still shows what happens, as in play.js.
const seenAfter = 2_000_000

// nobody is no client.
const nobody = -1

// guide checks whether the next task of the lesson is done, and notes it.
func (s *service) guide() {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.course
	if !c.Begun || c.Done == len(lessons[c.Lesson-1].Tasks) {
		return
	}
	l := &lessons[c.Lesson-1]
	t := l.Tasks[c.Done]
	for _, b := range s.laid() {
		if s.course.Spoiled == nobody && len(b.clients) == l.clients {
			s.course.Spoiled = l.spoiled(b, c.Done)
		}
	}
	if s.course.Spoiled != nobody {
		return
	}
	seen, counts := []lang.Text{}, []stage.Counters{}
	for _, b := range s.laid() {
		if len(b.clients) < l.clients || !t.done(b) {
			return
		}
		if t.seen != nil {
			seen = append(seen, t.seen(b))
		}
		counts = append(counts, b.Counters())
	}
	for _, g := range l.Guesses {
		if g.Known != c.Done {
			continue
		}
		var answers []int
		for _, b := range s.laid() {
			answers = append(answers, g.measured(b))
		}
		s.course.Measured = append(s.course.Measured, answers)
	}
	s.course.Done++
	s.course.Since = s.now()
	waitsForReader := c.Done+1 == len(l.Tasks) || l.Tasks[c.Done+1].Do != ""
	for _, b := range s.laid() {
		if waitsForReader {
			b.Rests(s.now() + seenAfter)
		}
	}
	s.course.Counts = counts
	s.course.Seen = append(s.course.Seen, seen)
}

// spoiled returns a client that has lost its session or the lock, although no task up to the present one makes it lose
// them, or nobody.
func (l *lesson) spoiled(b *side, present int) int {
	hasBegun := b.Counters().Action != nil && b.Counters().Action.Do != "lesson"
	for _, c := range b.clients {
		if c.first == 0 {
			c.first = c.Session
		}
	}
	return slices.IndexFunc(b.clients, func(c *client) bool {
		isMeant := hasBegun && slices.ContainsFunc(l.Tasks[:present+1], func(t task) bool {
			return (t.Do == "kill" || t.Do == "pause") && t.Client == c.Number
		})
		hasLost := c.Session != c.first || c.Over > 0 || c.State == actor.Told
		return c.Process == stage.Running && hasLost && !isMeant
	})
}

// learn queues a job that sets up a lesson. If other lessons are chosen before the job begins, it
// sets up only the last of them.
func (s *service) learn(n int) error {
	s.mu.Lock()
	waits := s.wanted > 0
	s.wanted = n
	s.mu.Unlock()
	if waits {
		return nil
	}
	err := s.goes(func() {
		s.mu.Lock()
		n := s.wanted
		s.wanted = 0
		s.mu.Unlock()
		s.open(n)
	})
	if err != nil {
		s.mu.Lock()
		s.wanted = 0
		s.mu.Unlock()
	}
	return err
}

// leaves ends the lesson, if there is one. The caller holds mu.
func (s *service) leaves() {
	s.course = course{Seen: [][]lang.Text{}, Measured: [][]int{}, Spoiled: nobody}
}

// open sets up a lesson.
func (s *service) open(n int) {
	l := lessons[n-1]
	s.setPace(real)
	s.mu.Lock()
	s.leaves()
	s.course.Lesson = n
	s.swept.Last = nil
	s.mu.Unlock()
	left, _ := locks.Choose(l.left)
	right, _ := locks.Choose(l.right) // "": the zero Choice, which empties the side
	s.lay(1, right, l.clients)
	s.lay(0, left, l.clients)
	s.mu.Lock()
	hasNoClients := slices.ContainsFunc(s.laid(), func(b *side) bool { return b.complaint != "" })
	s.mu.Unlock()
	if hasNoClients {
		return // the page shows the complaint
	}
	s.await(time.Minute, func() bool {
		return !slices.ContainsFunc(s.laid(), func(b *side) bool {
			return slices.ContainsFunc(b.clients, func(c *client) bool { return c.Process == stage.Starting })
		})
	})
	for i, do := range l.moves {
		queues := do == "lock"
		for _, b := range s.laid() {
			if !queues {
				b.settles() // a fault is set only once the clients have gone as far as they can
			}
			b.clients[i%l.clients].follows(do, queues)
		}
	}
	for _, b := range s.laid() {
		s.await(time.Minute, func() bool { return b.are(l.scene...) && b.waitsSilently() })
		b.settles()
		s.mu.Lock()
		b.Acts(s.now(), stage.Action{Do: "lesson", N: n})
		s.mu.Unlock()
	}
	s.setPace(l.pace)
	s.mu.Lock()
	s.course.Begun = true
	s.mu.Unlock()
}

// waitsSilently reports whether each waiter has a watch, or the lock's waiters poll and set none.
func (b *side) waitsSilently() bool {
	polls := b.Key == "1" || b.Key == "2"
	return polls || !slices.ContainsFunc(b.clients, func(c *client) bool {
		return c.State == actor.Waits && !b.Watches(c.Number)
	})
}

// settles returns when no frame has passed for 300 ms, or after two seconds, because clients that
// poll never settle.
func (b *side) settles() {
	passed, quiet := -1, time.Now()
	b.await(2*time.Second, func() bool {
		if passed != b.Passed() {
			passed, quiet = b.Passed(), time.Now()
		}
		return time.Since(quiet) > 300*time.Millisecond
	})
}

var text = lang.Both

// plural returns a text with the number n. In English it uses the form for one, or for several.
func plural(n int, one, several, chinese string) lang.Text {
	if n == 1 {
		several = one
	}
	return lang.Of(several, chinese, n)
}
