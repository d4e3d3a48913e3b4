package explorer

import (
	"zklock/internal/explore"
	"zklock/internal/lab/locks"
	"zklock/internal/lang"
)

// What the page calls a lock that stands beside another. Somebody who has only this page knows no steps.
var (
	recipe   = text("the recipe", "官方做法")
	repaired = text("the repaired lock", "修好的锁")
)

// hunts are the levels of the book's page. Who presses at random reaches the first goal of a level
// at most once in twenty times.
var hunts = []Level{
	{
		Key: "4", Title: recipe, Coins: 1, Beside: "5", Other: repaired,
		Asks: text("If programs A and B both hold the lock, both ship order 17. You choose what arrives next, "+
			"and may make one thing go wrong. Can you make both hold the lock?",
			"程序 A 和 B 要是同时持有锁，17 号订单就会发两次货。下一个送达哪个请求，由你选择；"+
				"你还可以让一件事出错。你能让它们同时持有锁吗？"),
		Repairs: []Repair{{
			Says: text("The server ended {X}'s session and deleted its znode. {X} knows only that its connection is lost. "+
				"The repair: no connection, no lock.",
				"服务器结束了 {X} 的会话，删掉了它的节点。{X} 只知道连接断了。修法：连接一断，客户端就不再持有锁。"),
			Code: "  case zk.StateDisconnected, zk.StateExpired:\n+     s.disconnect(ErrLost)",
			Step: 5, Page: "step05-holder.html",
		}, {
			Fault: "lose-reply create",
			Code:  "+ mine, err := l.find(prefix)\n+ if err != nil || mine.node != \"\" {",
			Step:  5, Page: "step05.html",
		}, {
			Fault: "lose-request delete",
			Code:  "+ for {\n      err := l.s.conn.Delete(mine.node, -1)",
			Step:  5, Page: "step05.html",
		}},
		Met: text("a session ends, and its client goes on → connection lost, the hold ends",
			"会话结束了，客户端照常运行 → 连接断开，hold 就结束"),
		Hints: []lang.Text{
			text("A client's session can end while the client still runs.", "客户端还在运行，它的会话也可能已经结束。"),
			text("The server may have carried out a request whose reply is lost.", "响应丢了，请求却可能已经照办。"),
			text("The request that deletes a znode can be lost.", "删除节点的请求也可能丢失。"),
		},
		Goals: anyOf(explore.Gravest[:3]...),
	},
	{
		Key: "W23", Title: text("a blog's lock", "博客里的锁"), Coins: 1, Beside: "4", Other: recipe,
		Asks: text("Can you make both hold it, where the recipe, on the right, would not? "+
			"One difference: what a client's call, Lock, answers after a wait. From a blog (lenshood, 2020).",
			"你能让两个客户端同时持有它，而旁边的官方做法不会这样吗？"+
				"只有一处不同：客户端调用 Lock，等待之后得到什么。出自一篇博客（lenshood，2020 年）。"),
		Repairs: []Repair{{
			Says: text("{X} gave up and deleted its znode, but its Lock returned without an error: "+
				"{X} believes that it holds the lock. The repair: return the error, as the recipe, beside it, does.",
				"{X} 放弃等待，删掉了自己的节点，但 Lock 返回时没有报错，于是 {X} 以为自己持有锁。"+
					"修法：像旁边的官方做法那样，返回错误。"),
			Code: "  if errors.Is(err, context.Canceled) {\n-     return nil\n+     return err",
			Step: 4, Page: "step04.html",
		}},
		Met: text("a client gives up, and Lock returns no error → return it",
			"客户端放弃等待，Lock 却不报错 → 返回错误"),
		Hints: []lang.Text{text("A client that waits can stop waiting.", "正在等待的客户端，也可以不再等下去。")},
		Goals: []Goal{{Kind: explore.TwoInside, Faults: []string{"give-up"}}},
	},
	{
		Key: "W19", Title: text("51CTO's lock", "51CTO 上的锁"), Coins: 1, Beside: "4", Other: recipe,
		Asks: text("Again: can you make both hold it, where the recipe, on the right, would not? "+
			"One difference: how a client looks for the znode before its own. From 51CTO, a site for programmers.",
			"再来一次：你能让两个客户端同时持有它，而旁边的官方做法不会这样吗？"+
				"也只有一处不同：客户端怎样找自己前面的节点。出自 51CTO 上的一篇文章。"),
		Repairs: []Repair{{
			Says: text("{X}'s list failed, so {X} did not know which znode is before its own, and asked for one that does "+
				"not exist. For this lock, that means that {X}'s turn has come. "+
				"The repair: return the error, as the recipe, beside it, does.",
				"{X} 没能列出队列，不知道自己前面是哪个节点，就去查一个不存在的节点。前面的节点不存在，"+
					"这把锁就当作轮到 {X} 了。修法：像旁边的官方做法那样，返回错误。"),
			Code: "  if err != nil {\n-     return watch(l, ctx, l.dir+\"/null\")\n+     return err",
			Step: 4, Page: "step04.html",
		}},
		Met: text("a list fails, and Lock goes on → return the error",
			"没能列出队列，Lock 却照样往下走 → 返回错误"),
		Hints: []lang.Text{text("A client may fail to learn who is before it.", "客户端可能没能得知谁排在自己前面。")},
		Goals: []Goal{{Kind: explore.TwoInside, Faults: []string{"lose-reply getChildren"}}},
	},
	{
		Key: locks.PartA, Title: text("the half repaired lock", "修了一半的锁"), Coins: 1, Beside: "4", Other: recipe,
		Asks: text("This is the recipe, half repaired: a client whose message was lost asks again. "+
			"A client holds the lock. "+
			"Which lost message then leaves the other waiting forever with the recipe, on the right, but not here?",
			"这是修了一半的官方做法：消息丢了，客户端会再问一次。"+
				"一个客户端正持有锁。"+
				"接下来丢掉哪条消息，另一个客户端会在旁边的官方做法里永远等下去，在这里却不会？"),
		Repairs: []Repair{{
			Says: text("{X}'s delete was lost, so {X} deleted again, until the server answered. "+
				"The recipe, on the right, deletes once: its znode stays, and the other client waits for it.",
				"{X} 的删除请求丢了，于是 {X} 再删一次，直到服务器答复为止。"+
					"旁边的官方做法只删一次：节点还留着，另一个客户端就一直等它。"),
			Code: "+ for {\n      err := l.s.conn.Delete(mine.node, -1)",
			Step: 5, Page: "step05.html",
		}, {
			Says: text("The moves of level 1 win here too: asking again does not help, because {X}'s Lock returned "+
				"before its session ended. The repair: Lock returns a hold, which ends with the connection.",
				"第 1 关的走法在这里照样能赢：{X} 的 Lock 早已返回，会话后来才结束，再问也没有用。"+
					"修法：Lock 返回一个 hold，连接一断，hold 就结束。"),
			Code: "- return nil\n+ return newHold(l, mine, connection, stat.Pzxid), nil",
			Step: 5, Page: "step05-holder.html",
		}},
		Met: text("a message is lost → ask again, and look for one's own znode first",
			"消息丢了 → 再问一次，并且先找自己的节点"),
		Hints: []lang.Text{
			text("A client that has finished sends one more request.", "客户端用完锁之后，还要发一个请求。"),
			text("A request or a reply need not be lost. What else can the fault be?",
				"不一定要丢失请求或响应。故障还可以是什么？"),
		},
		Goals: []Goal{
			{Kind: explore.WaitsOn, Faults: []string{"lose-request delete"}, Mends: true},
			{Kind: explore.TwoInside},
		},
	},
	{
		Key: "5", Title: repaired, Coins: 1, Beside: "4", Other: recipe,
		Asks: text("With two clients and one fault, nobody has broken this one. Can you?",
			"两个客户端，一次故障：还没有人攻破过这一把。你能吗？"),
		Goals: anyOf(explore.Gravest[:3]...),
	},
}

// anyOf returns goals that are reached by whichever fault.
func anyOf(kinds ...string) (goals []Goal) {
	for _, kind := range kinds {
		goals = append(goals, Goal{Kind: kind})
	}
	return goals
}

// Network returns the book's page in a language, en or zh-CN.
func Network(language string, b Book) (Page, error) {
	p := Page{Language: language, Book: &b, Levels: hunts, Games: map[string]*Game{}}
	for _, l := range hunts {
		for _, key := range []string{l.Key, l.Beside} {
			if key == "" || p.Games[key] != nil {
				continue
			}
			game, err := Recorded(key)
			if err != nil {
				return p, err
			}
			p.Games[key] = game
		}
	}
	return p, nil
}
