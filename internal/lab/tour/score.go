package tour

import (
	"slices"

	"zklock/internal/chapter"
	"zklock/internal/lab/stage"
	"zklock/internal/lang"
	"zklock/internal/property"
)

// A Group is some rows of the scoreboard under one title.
type Group struct {
	Title lang.Text
	Rows  []Row
}

// A Row has one cell for each lock. A cell is a string or an int if it is the same in every run.
// Otherwise it is a chapter.Rough.
type Row struct {
	Label lang.Text
	Cells []any
}

const none = "–"

// Score returns the scoreboard, in which each lock has a column.
func (rec *Recording) Score() (groups []Group) {
	type row struct {
		label lang.Text
		cell  func(*Queue, *Crowd) any
	}
	group := func(title lang.Text, waiters int, rows ...row) {
		g := Group{Title: title}
		for _, r := range rows {
			var cells []any
			for _, q := range rec.Queues {
				if c := q.Crowd(waiters); c != nil { // not every lock has a crowd of this size
					cells = append(cells, r.cell(q, c))
				} else {
					cells = append(cells, none)
				}
			}
			g.Rows = append(g.Rows, Row{r.label, cells})
		}
		groups = append(groups, g)
	}
	// told makes a row that is void for waiters that poll, because they are never notified.
	told := func(label lang.Text, cell func(*Queue, *Crowd) any) row {
		return row{label, func(q *Queue, c *Crowd) any {
			if q.Polls {
				return none
			}
			return cell(q, c)
		}}
	}
	// beside makes a row whose cell is blank for a lock for which this was not measured.
	beside := func(label lang.Text, cell func(*Crowd) any) row {
		return row{label, func(_ *Queue, c *Crowd) any {
			if c.Deaths == nil {
				return ""
			}
			return cell(c)
		}}
	}

	group(
		lang.Of("one client, alone", "只有一个客户端"),
		10,
		row{text("requests to lock and unlock", "一次加锁和解锁的请求数"), func(q *Queue, _ *Crowd) any { return q.Alone.All() }},
	)
	for _, n := range scored(rec.Largest) {
		crowd := stage.Number(n)
		if slices.ContainsFunc(rec.Queues, func(q *Queue) bool { return q.Polls && q.Crowd(n) != nil }) {
			group(
				lang.Of("%v clients wait for one second", "%v 个客户端等待一秒", crowd),
				n,
				row{text("requests", "请求"), func(_ *Queue, c *Crowd) any { return often(c.Waiting.All()) }},
				row{text("of these, writes", "其中写操作"), func(_ *Queue, c *Crowd) any { return often(c.Waiting.Writes()) }},
				row{text("kilobytes sent to them", "发给它们的数据，KB"),
					func(_ *Queue, c *Crowd) any { return kilobytes(c.Waiting.Received, 10) },
				},
			)
		}
		if n == 10 {
			group(
				lang.Of("one more arrives while %v wait", "%v 个客户端在等，又来一个", crowd),
				n,
				told(text("notifications", "通知"), func(q *Queue, _ *Crowd) any { return q.Arrival.Notifications }),
			)
		}
		group(
			lang.Of("the holder releases while %v wait", "持有者释放，%v 个客户端在等", crowd),
			n,
			told(text("notifications", "通知"), func(_ *Queue, c *Crowd) any { return c.median(notifications) }),
			told(text("requests until all is quiet", "直到不再有请求，共发出的请求数"), func(_ *Queue, c *Crowd) any { return c.median(requests) }),
			told(text("kilobytes sent to them", "发给它们的数据，KB"),
				func(_ *Queue, c *Crowd) any { return kilobytes(c.median(toWaiters), 1.1) },
			),
			row{text("milliseconds until the next holds it", "到下一个客户端拿到锁的毫秒数"),
				func(_ *Queue, c *Crowd) any { return machines(float64(c.median(took)) / 1e6) },
			},
		)
	}
	if n := rec.Largest; n > 100 && len(rec.measured("3", "4")) > 0 {
		group(
			lang.Of("a bystander reads and writes while %v are served", "%v 个等待者轮流拿锁时，旁观者在读和写", stage.Number(n)),
			n,
			beside(text("its median wait, relative to quiet", "等待时间的中位数，是平静时的几倍"),
				func(c *Crowd) any { return machines(c.Bystander.times()) },
			),
			beside(text("most kilobytes to others in one wait", "旁观者每等一次响应，服务器同时发给别的客户端的数据，KB"),
				func(c *Crowd) any { return kilobytes(c.Bystander.Meanwhile, 500) },
			),
		)
		group(lang.Of("%v of %v waiters expire at once", "%[2]v 个等待者中有 %[1]v 个的会话同时过期", stage.Number(n/10), stage.Number(n)), n,
			beside(text("notifications", "通知"), func(c *Crowd) any { return often(c.Deaths.Notifications) }),
			beside(text("requests", "请求"), func(c *Crowd) any { return often(c.Deaths.All()) }),
			beside(text("kilobytes sent to them", "发给它们的数据，KB"), func(c *Crowd) any { return kilobytes(c.Deaths.Received, 10) }))
	}
	kept := Group{Title: lang.Of("does it keep its promises?", "承诺的性质都成立吗？")}
	for _, p := range promises {
		kept.Rows = append(kept.Rows, Row{p.Name, rec.verdicts(slices.Index(property.Properties, p))})
	}
	return append(groups, kept)
}

// verdicts returns the verdict of each lock on a property.
func (rec *Recording) verdicts(property int) (cells []any) {
	for _, answers := range rec.Answers {
		cells = append(cells, string(answers[property].Verdict))
	}
	return cells
}

// story returns the three rows that sum up the tour: whether a lock is free again after its holder
// crashed, what waiting costs, and how many notifications a release causes.
func (rec *Recording) story() Group {
	n := scored(rec.Largest)[min(1, len(scored(rec.Largest))-1)]
	var crash, asked, woken []any
	for i, q := range rec.Queues {
		c := q.Crowd(n)
		crash = append(crash, string(rec.Answers[i][slices.Index(property.Properties, property.CrashFrees)].Verdict))
		asked = append(asked, often(c.Waiting.All()))
		if q.Polls {
			woken = append(woken, none)
		} else {
			woken = append(woken, c.median(notifications))
		}
	}
	return Group{Rows: []Row{
		{property.CrashFrees.Name, crash},
		{lang.Of("requests of %v clients that wait for one second", "%v 个客户端等待一秒发出的请求", stage.Number(n)), asked},
		{lang.Of("notifications for one release while %v wait", "一次释放引起的通知数，%v 个客户端在等", stage.Number(n)), woken},
	}}
}

// Crowd returns the crowd with so many waiters, or nil if the lock has none.
func (q *Queue) Crowd(waiters int) *Crowd {
	for i := range q.Crowds {
		if q.Crowds[i].Waiters == waiters {
			return &q.Crowds[i]
		}
	}
	return nil
}

func notifications(r Release) int { return r.Notifications }
func requests(r Release) int      { return r.All() }
func received(r Release) int      { return r.Received }
func toWaiters(r Release) int     { return r.ToWaiters }
func took(r Release) int          { return int(r.Took) }

// median returns the median of one number of each of the crowd's releases.
func (c *Crowd) median(of func(Release) int) int {
	var all []int
	for _, r := range c.Releases {
		all = append(all, of(r))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// machines returns a cell for a time, or a ratio of times, which depends on the machine.
func machines(time float64) any { return chapter.About(time, 500) }

// often returns a cell for a count that depends on the clock. A count of 0 does not.
func often(n int) any {
	if n == 0 {
		return n
	}
	return chapter.About(n, 10)
}

func kilobytes(bytes int, factor float64) any {
	if bytes == 0 {
		return bytes
	}
	return chapter.About(float64(bytes)/1000, factor)
}
