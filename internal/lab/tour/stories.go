package tour

import (
	"zklock/internal/actor"
	"zklock/internal/lab/stage"
	"zklock/internal/lang"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// An episode is a story about a lock. It is recorded once with each of several locks.
type episode struct {
	stage.Title
	tell func(*scene)
}

// stories lists all stories, in the order of the chapters and of the page.
var stories = []episode{
	{
		tell: tellCrash,
		Title: stage.Title{
			ID:    "crash",
			Title: text("The holder crashes", "持有者崩溃"),
			Watch: text("Who deletes the znode of a client that no longer exists?", "一个客户端已经不在了，由谁删除它的 znode？"),
			Steps: []string{"1", "2", "4"},
			Pair:  []string{"1", "2"},
		},
	},
	{
		tell: tellUnlockByAnother,
		Title: stage.Title{
			ID:    "unlock",
			Title: text("Another client releases", "别的客户端来释放"),
			Watch: text(
				"Client 2 does not hold the lock and calls Unlock. What happens to client 0, which holds it?",
				"客户端 2 没有持有锁，却调用 Unlock。持有锁的客户端 0 会怎样？",
			),
			Steps: []string{"1", "2"},
			Pair:  []string{"1", "2"},
		},
	},
	{
		tell: tellWait,
		Title: stage.Title{
			ID:    "wait",
			Title: text("Ten wait", "十个客户端在等"),
			Watch: text("What does it cost to wait while nothing happens?", "什么也没发生时，等待要付出多少代价？"),
			Steps: []string{"1", "2", "3", "3w", "4"},
			Pair:  []string{"2", "3"},
		},
	},
	{
		tell: tellRelease,
		Title: stage.Title{
			ID:    "release",
			Title: text("A release, ten waiting", "一次释放，十个客户端在等"),
			Watch: text(
				"How many clients does one release wake, and how many of them have something to do?",
				"一次释放唤醒多少个客户端？其中有多少个有事可做？",
			),
			Steps: []string{"1", "2", "3", "3w", "4", "5", "6", "leased"},
			Pair:  []string{"3", "4"},
		},
	},
	{
		tell: tellFew,
		Title: stage.Title{
			ID:    "few",
			Title: text("A release, three waiting", "一次释放，三个客户端在等"),
			Watch: text(
				"The same with fewer clients, so that each message can show its name: who sends what to whom?",
				"情形相同，只是客户端少一些，所以每条消息都能写上名字：谁发给谁，是什么消息？",
			),
			Steps: []string{"3", "4"},
			Pair:  []string{"3", "4"},
		},
	},
	{
		tell: tellArrival,
		Title: stage.Title{
			ID:    "arrival",
			Title: text("One more arrives", "又来一个客户端"),
			Watch: text("A client joins the end of the queue: which other clients does that concern?", "一个客户端排到了队尾：这与哪些客户端有关？"),
			Steps: []string{"3", "4"},
			Pair:  []string{"3", "4"},
		},
	},
	{
		tell: tellDeaths,
		Title: stage.Title{
			ID:    "deaths",
			Title: text("Several crash at once", "几个客户端同时崩溃"),
			Watch: text(
				"The sessions of three of ten waiters expire at the same moment. Which clients are notified, and how often?",
				"10 个等待者中，有 3 个的会话同时过期。哪些客户端会收到通知？各收到几次？",
			),
			Steps: []string{"3", "4"},
			Pair:  []string{"3", "4"},
		},
	},
	{
		tell: tellCrowd,
		Title: stage.Title{
			ID:    "crowd",
			Title: text("A release, a hundred waiting", "一次释放，一百个客户端在等"),
			Watch: text(
				"The same as with ten, but a larger crowd. What has grown, and what has not?",
				"与十个客户端在等时一样，只是等待者更多。什么增长了，什么没有增长？",
			),
			Steps: []string{"3", "4"},
			Pair:  []string{"3", "4"},
		},
	},
	{
		tell: tellDeath,
		Title: stage.Title{
			ID:    "death",
			Title: text("A waiter crashes", "一个等待者崩溃"),
			Watch: text(
				"Client 2 is notified that the znode before its own was deleted. Is it client 2's turn?",
				"客户端 2 收到通知：它前面的节点已被删除。轮到客户端 2 了吗？",
			),
			Steps: []string{"3", "4"},
			Pair:  []string{"4"},
		},
	},
	{
		tell: tellLostReply,
		Title: stage.Title{
			ID:    "lost",
			Title: text("A reply is lost", "一个响应丢失"),
			Watch: text(
				"The server creates the znode, and client 0 does not learn of it. Whom does client 0 wait for then?",
				"服务器创建了 znode，客户端 0 却不知道。这时客户端 0 在等谁？",
			),
			Steps: []string{"4", "5"},
			Pair:  []string{"4", "5"},
		},
	},
	{
		tell: tellCutOff,
		Title: stage.Title{
			ID:    "cut",
			Title: text("The holder loses its connection", "持有者失去连接"),
			Watch: text(
				"When client 1 gets the lock, does client 0 know that it no longer holds it?",
				"客户端 1 拿到锁时，客户端 0 知道自己不再持有锁吗？",
			),
			Steps: []string{"4", "5", "leased"},
			Pair:  []string{"4", "5"},
		},
	},
	{
		tell: tellShared,
		Title: stage.Title{
			ID:    "shared",
			Title: text("A writer among readers", "读者中的写者"),
			Watch: text("Four want to read and one wants to write. Who has to wait for whom?", "四个客户端要读，一个要写。谁必须等谁？"),
			Steps: []string{"5", "6"},
			Pair:  []string{"5", "6"},
		},
	},
}

var text = lang.Both

// waiters is how many clients wait in most stories of a queue. crowded is how many wait in the
// story of a crowd.
const (
	waiters = 10
	crowded = 100
)

// tellWait tells the story of a queue that waits.
func tellWait(s *scene) {
	q := &Queue{scene: s}
	q.come(waiters)
	q.wait()
}

// tellRelease tells the story of a release.
func tellRelease(s *scene) {
	q := &Queue{scene: s}
	q.come(waiters)
	q.release()
}

// tellArrival tells the story of one more client that arrives.
func tellArrival(s *scene) {
	q := &Queue{scene: s}
	q.come(waiters)
	q.arrival()
}

// tellCrowd tells the story of a release while many clients wait. Their arrival is not part of the
// story.
func tellCrowd(s *scene) {
	q := &Queue{scene: s}
	q.come(waiters)
	q.fill(crowded)
	s.camera.Forget()
	q.release()
}

// tellFew tells the story of a release while three clients wait.
func tellFew(s *scene) {
	q := &Queue{scene: s}
	q.come(3)
	q.release()
}

// plural returns a text with the number n. In English it uses the form for one, or for several.
func plural(n int, one, several, chinese string) lang.Text {
	if n == 1 {
		several = one
	}
	return lang.Of(several, chinese, stage.Number(n))
}

// tellCrash tells the story of a holder that crashes while two clients wait.
func tellCrash(s *scene) {
	cast := s.cast(3)
	s.phase("3 clients arrive", "来了 3 个客户端")
	s.takes(cast[0])
	waiting := s.lines(cast[1:]...)
	s.sum("client 0 holds the lock, 2 wait.", "客户端 0 持有锁，2 个在等。")
	s.phase("client 0 crashes", "客户端 0 崩溃")
	s.expire(cast[0])
	if len(s.Names(s.dir)) == 0 { // no children: dir is the lock's one znode
		s.sumOfWindow("The server has ended client 0's session, and the znode still exists: nobody will ever get the lock.",
			"服务器结束了客户端 0 的会话，znode 还在：再也没有客户端能拿到锁。")
		return
	}
	next, waiting := s.served(waiting)
	s.settles(waiting)
	s.sum("The server has ended client 0's session and deleted its znode: %s holds the lock.",
		"服务器结束了客户端 0 的会话，删除了它的 znode：%s 持有锁。", names(next.Member))
}

// tellUnlockByAnother tells the story of a client that calls Unlock and does not hold the lock.
func tellUnlockByAnother(s *scene) {
	cast := s.cast(3)
	s.phase("client 0 locks, client 1 waits", "客户端 0 加锁，客户端 1 等待")
	s.takes(cast[0])
	next := s.lines(cast[1])[0]
	s.sum("client 0 holds the lock, client 1 waits.", "客户端 0 持有锁，客户端 1 在等。")
	s.phase("client 2 calls Unlock", "客户端 2 调用 Unlock")
	if cast[2].HasHolds() {
		next.StillWaits()
		s.sum("client 2 has no hold, and only a hold unlocks. Client 0 holds the lock.",
			"客户端 2 没有 hold，而只有凭 hold 才能解锁。客户端 0 仍持有锁。")
		return
	}
	if err := cast[2].Unlock(); err != nil {
		next.StillWaits()
		s.sum("client 2 has no znode to delete, and gets an error. Client 0 holds the lock.",
			"客户端 2 没有 znode 可删，得到一个错误。客户端 0 仍持有锁。")
		return
	}
	next.Acquired()
	s.sum("client 2 deleted the znode that client 0 had created: clients 0 and 1 hold the lock at once.",
		"客户端 2 删除了客户端 0 创建的 znode：客户端 0 和 1 同时持有锁。")
}

// tellDeath tells the story of a waiter that crashes.
func tellDeath(s *scene) {
	cast := s.cast(3)
	s.phase("3 clients arrive", "来了 3 个客户端")
	holder := s.takes(cast[0])
	line := s.lines(cast[1:]...)
	s.settles(line)
	s.sum("client 0 holds the lock, 2 wait.", "客户端 0 持有锁，2 个在等。")
	s.phase("client 1 crashes", "客户端 1 崩溃")
	s.expire(cast[1])
	line[1].MustWait("client 0")
	s.Barrier(cast[0].Client)
	s.sum("client 2 was woken by the crash of client 1, looked again, and still waits.",
		"客户端 1 崩溃，唤醒了客户端 2。客户端 2 重新检查，继续等。")
	s.phase("client 0 releases", "客户端 0 释放锁")
	holder.Release()
	line[1].Acquired()
	s.sum("client 0 released: now it is client 2's turn.", "客户端 0 释放了锁：现在轮到客户端 2。")
}

// tellDeaths tells the story of several waiters that crash at the same moment.
func tellDeaths(s *scene) {
	q := &Queue{scene: s}
	q.come(10)
	s.phase("clients 2, 5 and 8 crash", "客户端 2、5 和 8 崩溃")
	c := q.die(3)
	s.sum("3 sessions expired: %s, %s, and it is nobody's turn.", "3 个会话过期：一共 %s，%s，却没有轮到任何客户端。",
		plural(c.Notifications, "%s notification", "%s notifications", "%s 条通知"),
		plural(c.Requests[wiretap.GetChildren], "%s list", "%s lists", "列目录 %s 次"),
	)
}

// tellLostReply tells the story of a create whose reply never arrives.
func tellLostReply(s *scene) {
	cast := s.cast(2)
	s.phase("the reply to a create is lost", "create 的响应丢失")
	lost := cast[0].Tap.LoseReply(wiretap.Create, 1)
	unlucky := s.asks(cast[0])
	zktest.AwaitChan(s.Zoo, "the reply to be lost", lost.Sprung())
	if unlucky.Waits() == zktest.Returned && unlucky.Err() != nil {
		s.sum("client 0 got an error, and does not know that it has a znode.", "客户端 0 得到一个错误，不知道自己有一个 znode。")
		s.phase("client 0 calls Lock again, and client 1 arrives", "客户端 0 再次加锁，客户端 1 也来了")
		s.lines(cast...)
		s.sum("client 0 waits for its own first znode, and client 1 for client 0: nobody holds the lock.",
			"客户端 0 在等自己的第一个 znode，客户端 1 在等客户端 0：没有客户端持有锁。")
		return
	}
	unlucky.Acquired()
	s.sum("client 0 looked for its znode, recognized it by the guid in its name, and holds the lock.",
		"客户端 0 去找自己的 znode，凭名字里的 guid 认出了它，于是持有锁。")
	s.phase("client 1 arrives", "客户端 1 来了")
	s.lines(cast[1])
	s.sum("client 0 holds the lock with one znode, client 1 waits.", "客户端 0 凭一个 znode 持有锁，客户端 1 在等。")
}

// tellCutOff tells the story of a holder that can no longer reach the server.
func tellCutOff(s *scene) {
	cast := []*zktest.Member{s.join("client 0", zktest.MortalTimeout), s.join("client 1", zktest.SessionTimeout)}
	s.phase("client 0 locks, client 1 waits", "客户端 0 加锁，客户端 1 等待")
	holder := s.takes(cast[0])
	next := s.lines(cast[1])[0]
	s.sum("client 0 holds the lock, client 1 waits.", "客户端 0 持有锁，客户端 1 在等。")
	s.phase("client 0 loses its connection", "客户端 0 失去连接")
	seen := s.filmed[holder.Tap]
	s.camera.Becomes(seen.Figure, actor.State{Name: actor.CutOff})
	holder.Crash()
	if holder.HasHolds() {
		s.Await("client 0 to be notified", func() bool { return seen.calls.State() == actor.Told })
	}
	s.AwaitExpiry(holder.Client)
	s.ended(holder.Member)
	next.Acquired()
	if !holder.HasHolds() {
		s.sum("client 1 got the lock, and client 0 was not notified: two clients hold the lock.",
			"客户端 1 拿到了锁，客户端 0 却没有得到通知：两个客户端同时持有锁。")
		return
	}
	s.sum("client 0 was notified that it had lost the lock, and then client 1 got it.",
		"客户端 0 先得知自己丢了锁，然后客户端 1 才拿到锁。")
}

// tellShared tells the story of two readers, a writer, and two more readers. If the lock cannot be
// shared, all five take it in the same way.
func tellShared(s *scene) {
	var turns []*zktest.Turn
	for _, name := range []string{"reader 1", "reader 2", "writer", "reader 3", "reader 4"} {
		s.join(name, zktest.SessionTimeout)
	}
	shares := s.members[0].Reader != nil
	s.phase("five clients arrive", "来了五个客户端")
	for _, m := range s.members {
		if shares && m.Name != "writer" {
			m = m.Reader
		}
		turn := s.asks(m)
		turn.Waits()
		turns = append(turns, turn)
	}
	if shares {
		s.sum("readers 1 and 2 read together; the writer waits for both, readers 3 and 4 for the writer.",
			"读者 1 和 2 一起读；写者等这两个读者，读者 3 和 4 等写者。")
	} else {
		s.sum("reader 1 holds the lock; each of the others waits for the one before it.", "读者 1 持有锁；其余的客户端各等自己前面的那一个。")
	}
	s.phase("readers 1 and 2 are done", "读者 1 和 2 读完了")
	writer := turns[2]
	counted := s.Count(writer)
	turns[0].Release()
	turns[1].Release()
	writer.Acquired()
	s.settles(turns[3:])
	notifications := plural(counted().Notifications, "%s notification", "%s notifications", "%s 条通知")
	s.sum("the writer holds the lock alone, after %s.", "写者收到 %s，独占了锁。", notifications)
	s.phase("the writer is done", "写者写完了")
	writer.Release()
	turns[3].Acquired()
	if turns[4].Waits() == zktest.Returned {
		turns[4].Acquired()
		s.sum("readers 3 and 4 read together.", "读者 3 和 4 一起读。")
		return
	}
	s.sum("reader 3 holds the lock, and reader 4 waits for it, though neither of them writes.",
		"读者 3 持有锁，读者 4 在等它，尽管它们都不写。")
}
