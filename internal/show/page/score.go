package page

import (
	"slices"

	"zklock/internal/property"
	"zklock/internal/upkeep/chapter"
	"zklock/internal/upkeep/words"
)

// A Group of rows of the scoreboard has a title of its own.
type Group struct {
	Title words.Text
	Rows  []Row
}

// A Row has a cell a lock: a string or an int, where it is the same in every run,
// and else a chapter.Rough.
type Row struct {
	Label string
	Cells []any
}

const none = "–"

// Score is the scoreboard: a column a lock.
func (rec *Recording) Score() (groups []Group) {
	type row struct {
		label string
		cell  func(*Queue, *Crowd) any
	}
	group := func(title words.Text, waiters int, rows ...row) {
		g := Group{Title: title}
		for _, r := range rows {
			var cells []any
			for _, q := range rec.Queues {
				if c := q.Crowd(waiters); c != nil { // not every lock has one
					cells = append(cells, r.cell(q, c))
				} else {
					cells = append(cells, none)
				}
			}
			g.Rows = append(g.Rows, Row{r.label, cells})
		}
		groups = append(groups, g)
	}
	// What waiters are told who are never told does not arise.
	told := func(label string, cell func(*Queue, *Crowd) any) row {
		return row{label, func(q *Queue, c *Crowd) any {
			if q.Polls {
				return none
			}
			return cell(q, c)
		}}
	}
	// A cell is blank if that was not measured of the lock.
	beside := func(label string, cell func(*Crowd) any) row {
		return row{label, func(_ *Queue, c *Crowd) any {
			if c.Deaths == nil {
				return ""
			}
			return cell(c)
		}}
	}
	waits := func(label string, percent int) row {
		return beside(label, func(c *Crowd) any { return machines(c.Bystander.times(percent)) })
	}

	group(
		words.Of("one client, alone"),
		10,
		row{"requests to lock and unlock", func(q *Queue, _ *Crowd) any { return q.Alone.All() }},
	)
	for _, n := range scored(rec.Largest) {
		crowd := number(n)
		if slices.ContainsFunc(rec.Queues, func(q *Queue) bool { return q.Polls && q.Crowd(n) != nil }) {
			group(
				words.Of("%v clients wait for one second", crowd),
				n,
				row{"requests", func(_ *Queue, c *Crowd) any { return often(c.Waiting.All()) }},
				row{"of these, writes", func(_ *Queue, c *Crowd) any { return often(writes(c.Waiting)) }},
				row{
					"kilobytes sent to them",
					func(_ *Queue, c *Crowd) any { return kilobytes(c.Waiting.Received, 10) },
				},
			)
		}
		if n == 10 {
			group(
				words.Of("one more comes, %v wait", crowd),
				n,
				told("notifications", func(q *Queue, _ *Crowd) any { return q.Arrival.Notifications }),
			)
		}
		group(
			words.Of("the holder releases, %v wait", crowd),
			n,
			told("notifications", func(_ *Queue, c *Crowd) any { return c.median(notifications) }),
			told("requests until all is quiet", func(_ *Queue, c *Crowd) any { return c.median(requests) }),
			told("kilobytes sent to them", func(_ *Queue, c *Crowd) any { return kilobytes(c.median(toWaiters), 1.1) }),
			row{
				"milliseconds until the next is in",
				func(_ *Queue, c *Crowd) any { return machines(float64(c.median(took)) / 1e6) },
			},
		)
	}
	if n := rec.Largest; n > 100 && len(rec.measured("34")) > 0 {
		group(
			words.Of("a bystander reads and writes while %v are served", number(n)),
			n,
			waits("its median wait, times quiet", 50),
			waits("99th percentile, times quiet", 99),
			waits("longest wait, times quiet", 100),
			beside(
				"kilobytes to others in one wait",
				func(c *Crowd) any { return kilobytes(c.Bystander.Meanwhile, 500) },
			),
		)
		group(words.Of("%v of %v who wait expire at once", number(n/10), number(n)), n,
			beside("notifications", func(c *Crowd) any { return often(c.Deaths.Notifications) }),
			beside("requests", func(c *Crowd) any { return often(c.Deaths.All()) }),
			beside("kilobytes sent to them", func(c *Crowd) any { return kilobytes(c.Deaths.Received, 10) }))
	}
	kept := Group{Title: words.Of("does it keep its promises?")}
	for _, p := range promises {
		kept.Rows = append(kept.Rows, Row{p.Name.EN, rec.verdicts(slices.Index(property.Properties, p))})
	}
	return append(groups, kept)
}

// verdicts are all locks' on a property.
func (rec *Recording) verdicts(property int) (cells []any) {
	for _, answers := range rec.Answers {
		cells = append(cells, string(answers[property].Verdict))
	}
	return cells
}

// Crowd is the one of that size, if the lock has it.
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

// median of what the crowd's releases have in common.
func (c *Crowd) median(of func(Release) int) int {
	var all []int
	for _, r := range c.Releases {
		all = append(all, of(r))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// machines is a time, or a ratio of times: the machine's.
func machines(time float64) any { return chapter.About(time, 500) }

// often is how often something was done that depends on the clock: 0 does not.
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
