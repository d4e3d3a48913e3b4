package play

import (
	"slices"
	"time"

	"zklock/internal/actor"
	"zklock/internal/lab/locks"
	"zklock/internal/lab/stage"
	"zklock/internal/lang"
)

// A lesson is a situation to begin from, and what to do in it, one task after the other.
type lesson struct {
	N         int       `json:"n"`
	Title     lang.Text `json:"title"`
	Question  lang.Text `json:"question"`
	Situation lang.Text `json:"situation"`
	Tasks     []task    `json:"tasks"`
	Guess     guess     `json:"guess"`

	left, right string
	clients     int
	moves       []string // of client 0, client 1 and so on, in turn
	scene       []string // how the clients are when they have come of it: then the task appears
	pace        string   // from then on
}

// A guess is asked for before a task, and stands beside what was measured at the lesson's end.
type guess struct {
	Text lang.Text `json:"text"`
	Kind string    `json:"kind"` // a number, the client that is next, or whether a write is accepted
	At   int       `json:"at"`   // the task

	measured func(b *side) int
}

// The kinds of guesses.
const (
	guessNumber = "number"
	guessNext   = "next"  // a client, or nobody: -1
	guessWrite  = "write" // 1: it is accepted, 0: it is not
)

// holder is the client that holds the lock; nobody: -1.
func holder(b *side) int {
	return slices.IndexFunc(b.clients, func(c *client) bool { return c.Is == actor.Holds })
}

func notified(b *side) int { return b.Counters().Notifications }

// A task asks for one button, or for a wait. It is done when something is so on each stage.
type task struct {
	Text   lang.Text `json:"text"`
	Do     string    `json:"do"` // the button; "": one waits
	Client int       `json:"client"`
	Moment string    `json:"moment"` // which message decides: lost, or notified; "": none is shown

	done func(b *side) bool
	seen func(b *side) lang.Text // in a sentence, with its counts; nil: there is nothing to say
}

// lessons are one for each chapter.
var lessons = []lesson{
	{
		N: 1,
		Title: text("The holder is killed",
			"持有者被杀"),
		Question: text("One znode is the lock. Who gets it when the client that holds it is killed?",
			"锁就是一个 znode。持有者被杀掉以后，谁能拿到锁？"),
		Situation: text("Client 0 holds the lock of step 1, three wait.",
			"客户端 0 持有第 1 步的锁，三个客户端在等。"),
		left:    "1",
		clients: 4,
		moves:   slices.Repeat([]string{"lock"}, 4),
		scene:   []string{"holds", "waits", "waits", "waits"},
		pace:    real,
		Guess: guess{
			Text: text("Before you press: who holds the lock when the session of client 0 has ended?",
				"先猜：客户端 0 的会话结束以后，谁持有锁？"),
			Kind: guessNext, At: 0, measured: holder,
		},
		Tasks: []task{
			{Text: text("Kill client 0, which holds the lock.",
				"杀掉持有锁的客户端 0。"), Do: "kill", done: killed},
			{Text: text("Wait until the server ends the session of client 0: 5 seconds after the last sign of life. The ring round the client shows how much of it is left.",
				"等服务器结束客户端 0 的会话，也就是最后一次收到它的消息之后 5 秒。客户端周围的圆环显示还剩多少时间。"),
				done: func(b *side) bool { return b.over(0) },
				seen: func(b *side) lang.Text {
					return lang.Of(
						"The session of client 0 has ended, and the znode that it created is still there: nobody gets the lock. The clients that wait have sent %d requests since the kill, %d of them writes.",
						"客户端 0 的会话已经结束，它创建的 znode 还在：谁也拿不到锁。从杀掉它到现在，等待的客户端发了 %d 个请求，其中 %d 个是写操作。",
						b.Counters().Requests,
						b.Counters().Writes,
					)
				}},
		},
	},
	{
		N: 2,
		Title: text("The holder is killed, again",
			"持有者又被杀"),
		Question: text("The znodes stand in a queue, and die with their session. What does it cost to wait?",
			"znode 排成队列，会话一结束就被删除。等待要付出什么代价？"),
		Situation: text("Client 0 holds the lock, three wait: in step 1, and beside it in step 2, whose znodes are ephemeral: the server deletes them when their session ends.",
			"客户端 0 持有锁，三个客户端在等：左边是第 1 步，右边是第 2 步。第 2 步的 znode 是临时的：会话结束时由服务器删除。"),
		left:    "1",
		right:   "2",
		clients: 4,
		moves:   slices.Repeat([]string{"lock"}, 4),
		scene:   []string{"holds", "waits", "waits", "waits"},
		pace:    real,
		Guess: guess{
			Text: text("Before you press: who holds the lock when the session of client 0 has ended?",
				"先猜：客户端 0 的会话结束以后，谁持有锁？"),
			Kind: guessNext, At: 0, measured: holder,
		},
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
					if b.Znode {
						return lang.Of("The session has ended, and the znode stays: nobody gets the lock. %d requests since the kill.",
							"会话已经结束，znode 还在：谁也拿不到锁。从杀掉它到现在，一共 %d 个请求。", b.Counters().Requests)
					}
					return lang.Of("The server has deleted the znode of client 0 with its session, and client 1 holds the lock. %d requests since the kill: the clients that wait poll all the time.",
						"服务器结束会话，并删除了客户端 0 的 znode，客户端 1 持有锁。从杀掉它到现在，一共 %d 个请求：等待的客户端一直在轮询。", b.Counters().Requests)
				}},
		},
	},
	{
		N: 3,
		Title: text("A release wakes the herd",
			"一次释放惊动所有等待者"),
		Question: text("The server tells the clients that wait. How many of them does one release wake?",
			"服务器会通知等待的客户端。一次释放会唤醒几个？"),
		Situation: text("Client 0 holds the lock, ten wait: in step 3, and beside it in step 4. The wire is slow, so that each message can be seen.",
			"客户端 0 持有锁，十个客户端在等：左边是第 3 步，右边是第 4 步。网络放慢了，每条消息都看得见。"),
		left:    "3",
		right:   "4",
		clients: 11,
		moves:   slices.Repeat([]string{"lock"}, 11),
		scene:   append([]string{"holds"}, slices.Repeat([]string{"waits"}, 10)...),
		pace:    slow,
		Guess: guess{
			Text: text("Your guess: how many clients are notified?",
				"你猜：有多少个客户端会收到通知？"),
			Kind: guessNumber, At: 0, measured: notified,
		},
		Tasks: []task{
			{Text: text("Unlock client 0.",
				"让客户端 0 解锁。"), Do: "unlock", Moment: "notified",
				done: func(b *side) bool { return b.are("idle", "holds") && b.Quiet() },
				seen: func(b *side) lang.Text {
					return lang.Of("%s, %s. Only client 1 could go on: it holds the lock now.",
						"%s，%s。只有客户端 1 可以继续：它现在持有锁。",
						notifications(b.Counters().Notifications), lists(b.Counters().Lists))
				}},
		},
	},
	{
		N: 4,
		Title: text("A reply is lost",
			"一个响应丢失"),
		Question: text("The server makes a znode, and the client does not hear of it. Who deletes that znode?",
			"服务器创建了 znode，客户端却没有得到响应。这个 znode 由谁删除？"),
		Situation: text("Client 0 holds the lock: in step 4, and beside it in step 5. The reply to the next create of client 1 will be lost. The wire is slow, so that it can be seen.",
			"客户端 0 持有锁：左边是第 4 步，右边是第 5 步。客户端 1 下一次 create 的响应会丢失。网络放慢了，看得见它是怎样丢失的。"),
		left:    "4",
		right:   "5",
		clients: 3,
		moves:   []string{"lock", "losecreate"},
		scene:   []string{"holds", "idle", "idle"},
		pace:    slow,
		Guess: guess{
			Text: text("Your guess: who holds the lock then?",
				"你猜：那时谁持有锁？"),
			Kind: guessNext, At: 2, measured: holder,
		},
		Tasks: []task{
			{Text: text("Lock client 1. The reply to its create is lost.",
				"让客户端 1 加锁。它的 create 的响应会丢失。"), Do: "lock", Client: 1, Moment: "lost",
				done: func(b *side) bool {
					if !b.Quiet() {
						return false
					}
					state := b.clients[1].State
					hasHeard := state == actor.Failed || state == actor.Waits
					return hasHeard && len(b.Queue()) == 2
				},
				seen: func(b *side) lang.Text {
					if b.clients[1].State == actor.Failed {
						return lang.Of("Client 1 got an error, and does not know that it has a znode.",
							"客户端 1 收到错误，不知道自己有一个 znode。")
					}
					return lang.Of("Client 1 has found its znode by the mark in its name, and waits.",
						"客户端 1 凭名字里的标记找到了自己的 znode，正在等待。")
				}},
			{Text: text("Lock client 2.",
				"让客户端 2 加锁。"), Do: "lock", Client: 2,
				done: func(b *side) bool { return b.clients[2].State == actor.Waits && b.Quiet() }},
			{Text: text("Unlock client 0. Who is the next?",
				"让客户端 0 解锁。下一个是谁？"), Do: "unlock",
				done: func(b *side) bool {
					isBlocked := b.are("idle", "got an error") && b.blockedBy(1)
					return isBlocked || b.are("idle", "holds")
				},
				seen: func(b *side) lang.Text {
					if b.are("idle", "holds") {
						return lang.Of("Client 1 holds the lock.",
							"客户端 1 持有锁。")
					}
					return lang.Of(
						"The first znode is that of client 1, which does not know it: client 2 waits, "+
							"and nobody gets the lock while the session of client 1 lives.",
						"排在第一的是客户端 1 的 znode，它自己却不知道：客户端 2 一直在等；"+
							"只要客户端 1 的会话还在，谁也拿不到锁。",
					)
				}},
		},
	},
	{
		N: 5,
		Title: text("The paused holder writes late",
			"停顿的持有者写晚了"),
		Question: text("A client that holds the lock is stopped, and goes on too late. Who protects the data?",
			"持有锁的客户端停住了，恢复运行时已经太晚。由谁保护数据？"),
		Situation: text("Client 0 holds the lock and is stopped, client 1 waits: in step 4, and beside it in step 5.",
			"客户端 0 持有锁并被停住，客户端 1 在等：左边是第 4 步，右边是第 5 步。"),
		left:    "4",
		right:   "5",
		clients: 2,
		moves:   []string{"lock", "lock", "stop"},
		scene:   []string{"stopped, believes it holds", "waits"},
		pace:    real,
		Guess: guess{
			Text: text("Your guess: does the store accept the late write?",
				"你猜：存储会接受这次迟到的写入吗？"),
			Kind: guessWrite, At: 3, measured: func(b *side) int {
				if b.Store.Log[0].OK {
					return 1
				}
				return 0
			},
		},
		Tasks: []task{
			{Text: text("Wait until the server ends the session of client 0, of which it hears nothing any more.",
				"服务器再也收不到客户端 0 的消息。等它结束客户端 0 的会话。"), done: holds(1),
				seen: func(*side) lang.Text {
					return lang.Of("Client 1 holds the lock, and client 0 does not know it.",
						"客户端 1 持有锁，客户端 0 却不知道。")
				}},
			{Text: text("Let client 1 write to the store.",
				"让客户端 1 写入存储。"), Do: "put", Client: 1,
				done: func(b *side) bool { return len(b.Store.Log) > 0 }},
			{Text: text("Let client 0 write to the store. It is stopped: it will do so when it goes on.",
				"让客户端 0 写入存储。它停住了，恢复运行以后才会写。"), Do: "put",
				done: func(b *side) bool { return b.clients[0].puts }},
			{Text: text("Let client 0 go on.",
				"让客户端 0 继续运行。"), Do: "continue", done: func(b *side) bool { return len(b.Store.Log) > 1 },
				seen: func(b *side) lang.Text {
					if b.Store.Log[0].OK {
						return lang.Of("The store has accepted the late write of client 0, and the value of client 1 is lost: nothing in a write tells that it is late.",
							"存储接受了客户端 0 迟到的写入，客户端 1 写入的值丢失了：从写操作本身看不出它迟到了。")
					}
					return lang.Of(
						"The store has refused the late write of client 0, and keeps the value of client 1: its token %s is less than %s.",
						"存储拒绝了客户端 0 迟到的写入，保住了客户端 1 写入的值：迟到的令牌 %s 小于 %s。",
						stage.ShortToken(b.Store.Log[0].Token),
						stage.ShortToken(b.Store.Token),
					)
				}},
		},
	},
	{N: 6, Title: text("Readers and a writer",
		"读者和写者"), Question: text("Readers can share a lock. When is it the writer's turn?",
		"读者可以共用一把锁。什么时候轮到写者？"),
		Situation: text("Clients 0, 1 and 2 read, client 3 waits to write, client 4 waits to read.",
			"客户端 0、1、2 在读，客户端 3 等着写，客户端 4 等着读。"),
		left: "6", clients: 5, moves: []string{"read", "read", "read", "lock", "read"},
		scene: []string{"reads", "reads", "reads", "waits", "waits"}, pace: slow,
		Guess: guess{
			Text: text("Your guess: how many clients are notified when the writer releases?",
				"你猜：写者释放时，有多少个客户端会收到通知？"),
			Kind: guessNumber, At: 3, measured: notified,
		},
		Tasks: []task{
			{Text: text("Unlock client 0, which reads.",
				"让正在读的客户端 0 解锁。"), Do: "unlock",
				done: func(b *side) bool { return b.are("idle") && b.Quiet() },
				seen: func(*side) lang.Text {
					return lang.Of("Two still read: the writer waits.",
						"还有两个读者在读，写者继续等。")
				}},
			{Text: text("Unlock client 1, which reads.",
				"让正在读的客户端 1 解锁。"), Do: "unlock", Client: 1,
				done: func(b *side) bool { return b.are("idle", "idle") && b.Quiet() }},
			{Text: text("Unlock client 2, the last that reads.",
				"让最后一个读者客户端 2 解锁。"), Do: "unlock", Client: 2, Moment: "notified",
				done: func(b *side) bool { return b.are("idle", "idle", "idle", "holds") && b.Quiet() },
				seen: func(b *side) lang.Text {
					return lang.Of(
						"Client 3 writes, alone. The last reader's release has sent %s.",
						"客户端 3 独自在写。最后一个读者释放时发出了 %s。",
						notifications(b.Counters().Notifications),
					)
				}},
			{Text: text("Unlock client 3, which writes.",
				"让正在写的客户端 3 解锁。"), Do: "unlock", Client: 3, Moment: "notified",
				done: func(b *side) bool { return b.are("idle", "idle", "idle", "idle", "reads") && b.Quiet() },
				seen: func(b *side) lang.Text {
					return lang.Of(
						"Client 4 reads. The writer's release has sent %s.",
						"客户端 4 在读。写者释放时发出了 %s。",
						notifications(b.Counters().Notifications),
					)
				}},
		}},
}

func notifications(n int) lang.Text {
	return plural(n, "%d notification", "%d notifications", "%d 个通知")
}

func lists(n int) lang.Text { return plural(n, "%d list", "%d lists", "%d 次列目录") }

func killed(b *side) bool { return b.clients[0].Process == stage.Dead }

func holds(n int) func(b *side) bool {
	return func(b *side) bool { return b.clients[n].Is == actor.Holds }
}

// are tells how the first clients are.
func (b *side) are(states ...string) bool {
	for i, is := range states {
		if b.clients[i].Is != is {
			return false
		}
	}
	return true
}

// blockedBy tells whether the page says that a client's znode blocks everybody.
func (b *side) blockedBy(client int) bool {
	return len(b.Banners) > 0 && b.Queue()[0].Owner == client
}

// over tells whether the server has ended a client's session.
func (b *side) over(client int) bool { return b.clients[client].Over > 0 }

// A course is how far the reader is in a lesson: in none, if that is 0.
type course struct {
	Lesson int           `json:"lesson"`
	Begun  bool          `json:"begun"` // it lies
	Done   int           `json:"done"`  // tasks
	Seen   [][]lang.Text `json:"seen"`  // of each task that is done: on each board

	Measured []int `json:"measured"` // at its end, on each board: what was to be guessed
}

// guide notes what is done of a lesson.
func (s *service) guide() {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.course
	if !c.Begun || c.Done == len(lessons[c.Lesson-1].Tasks) {
		return
	}
	t := lessons[c.Lesson-1].Tasks[c.Done]
	seen, measured := []lang.Text{}, []int{}
	isLast := c.Done == len(lessons[c.Lesson-1].Tasks)-1
	for _, b := range s.laid() {
		if len(b.clients) < lessons[c.Lesson-1].clients || !t.done(b) {
			return
		}
		if t.seen != nil {
			seen = append(seen, t.seen(b))
		}
		if isLast {
			measured = append(measured, lessons[c.Lesson-1].Guess.measured(b))
		}
	}
	if s.course.Begun && s.course.Lesson == c.Lesson { // no other lesson was chosen while the server was asked
		s.course.Done++
		s.course.Seen = append(s.course.Seen, seen)
		if isLast {
			s.course.Measured = measured
		}
	}
}

// learn lays a lesson as soon as the one that is being laid lies. Of several that are chosen
// meanwhile only the last one is laid.
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

// leaves ends a lesson, if there is one. The caller holds mu.
func (s *service) leaves() {
	s.course = course{Seen: [][]lang.Text{}}
}

// open lays a lesson.
func (s *service) open(n int) {
	l := lessons[n-1]
	s.setPace(real)
	s.mu.Lock()
	s.leaves()
	s.course.Lesson = n
	s.mu.Unlock()
	left, _ := locks.Choose(l.left)
	right, _ := locks.Choose(l.right) // none: an empty side
	s.lay(1, right, l.clients)
	s.lay(0, left, l.clients)
	s.await(time.Minute, func() bool {
		return !slices.ContainsFunc(s.laid(), func(b *side) bool {
			return slices.ContainsFunc(b.clients, func(c *client) bool { return c.Process == stage.Starting })
		})
	})
	for i, do := range l.moves {
		queues := do == "lock" || do == "read"
		for _, b := range s.laid() {
			if !queues {
				b.settles() // it befalls a client that has come as far as it can
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

// waitsSilently tells whether each client that waits has a watch, if the lock has any.
func (b *side) waitsSilently() bool {
	polls := b.Key == "1" || b.Key == "2"
	return polls || !slices.ContainsFunc(b.clients, func(c *client) bool {
		return c.State == actor.Waits && !b.Watches(c.Number)
	})
}

// settles returns when nothing has passed for a while. Those who keep asking never settle.
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

// plural says how many there are, of which one is said otherwise in English.
func plural(n int, one, several, chinese string) lang.Text {
	if n == 1 {
		several = one
	}
	return lang.Of(several, chinese, n)
}
