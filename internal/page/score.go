package page

import (
	"slices"

	"zklock/internal/chapter"
	"zklock/internal/lockcheck"
)

// A Group of rows of the scoreboard has a title of its own.
type Group struct {
	Title string
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
func (rec *Recording) Score() []Group {
	groups := []Group{{"one client, alone", []Row{
		rec.row("requests to lock and unlock", 10, func(q *Queue, _ *Crowd) any { return q.Alone.All() }),
	}}}
	for _, n := range scored(rec.Largest) {
		crowd := number(n)
		if slices.ContainsFunc(rec.Queues, func(q *Queue) bool { return q.Polls && q.Crowd(n) != nil }) {
			groups = append(groups, Group{crowd + " clients wait for one second", []Row{
				rec.row("requests", n, func(_ *Queue, c *Crowd) any { return often(c.Waiting.All()) }),
				rec.row("of these, writes", n, func(_ *Queue, c *Crowd) any { return often(writes(c.Waiting)) }),
				rec.row("kilobytes sent to them", n, func(_ *Queue, c *Crowd) any { return kilobytes(c.Waiting.Received, 10) }),
			}})
		}
		if n == 10 {
			groups = append(groups, Group{"one more comes, " + crowd + " wait", []Row{
				rec.row("notifications", n, ifTold(func(q *Queue, _ *Crowd) any { return q.Arrival.Notifications })),
			}})
		}
		groups = append(groups, Group{"the holder releases, " + crowd + " wait", []Row{
			rec.row("notifications", n, ifTold(func(_ *Queue, c *Crowd) any { return c.median(notifications) })),
			rec.row("requests until all is quiet", n, ifTold(func(_ *Queue, c *Crowd) any { return c.median(requests) })),
			rec.row("kilobytes sent to them", n, ifTold(func(_ *Queue, c *Crowd) any { return kilobytes(c.median(toWaiters), 1.1) })),
			rec.row("milliseconds until the next is in", n, func(_ *Queue, c *Crowd) any {
				return chapter.About(float64(c.median(took))/1e6, 500) // a time is the machine's
			}),
		}})
	}
	groups = append(groups, rec.beside(rec.Largest)...)
	kept := Group{Title: "does it keep its promises?"}
	for _, p := range promises {
		r := Row{Label: p.Name}
		for _, answers := range rec.Answers {
			r.Cells = append(r.Cells, string(answers[slices.Index(lockcheck.Properties, p)].Verdict))
		}
		kept.Rows = append(kept.Rows, r)
	}
	return append(groups, kept)
}

// beside is what a queue of n does to others, and many deaths to the queue.
func (rec *Recording) beside(n int) []Group {
	if !slices.ContainsFunc(rec.Queues, func(q *Queue) bool { c := q.Crowd(n); return c != nil && c.Deaths != nil }) {
		return nil
	}
	waits := func(label string, percent int) Row {
		return rec.row(label, n, ifMeasured(func(c *Crowd) any {
			return chapter.About(c.Bystander.times(percent), 500) // a time is the machine's
		}))
	}
	crowd, dead := number(n), number(n/10)
	return []Group{{"a bystander reads and writes while " + crowd + " are served", []Row{
		waits("its median wait, times quiet", 50),
		waits("99th percentile, times quiet", 99),
		waits("longest wait, times quiet", 100),
		rec.row("kilobytes to others in one wait", n, ifMeasured(func(c *Crowd) any { return kilobytes(c.Bystander.Meanwhile, 500) })),
	}}, {dead + " of " + crowd + " who wait expire at once", []Row{
		rec.row("notifications", n, ifMeasured(func(c *Crowd) any { return often(c.Deaths.Notifications) })),
		rec.row("requests", n, ifMeasured(func(c *Crowd) any { return often(c.Deaths.All()) })),
		rec.row("kilobytes sent to them", n, ifMeasured(func(c *Crowd) any { return kilobytes(c.Deaths.Received, 10) })),
	}}}
}

// ifMeasured leaves a cell blank if that was not measured of the lock.
func ifMeasured(cell func(*Crowd) any) func(*Queue, *Crowd) any {
	return func(_ *Queue, c *Crowd) any {
		if c.Deaths == nil {
			return ""
		}
		return cell(c)
	}
}

// row is about the crowds of a size. Not every lock has one.
func (rec *Recording) row(label string, waiters int, cell func(*Queue, *Crowd) any) Row {
	r := Row{Label: label}
	for _, q := range rec.Queues {
		if c := q.Crowd(waiters); c != nil {
			r.Cells = append(r.Cells, cell(q, c))
		} else {
			r.Cells = append(r.Cells, none)
		}
	}
	return r
}

// ifTold leaves a cell empty if the waiters ask instead of being told.
func ifTold(cell func(*Queue, *Crowd) any) func(*Queue, *Crowd) any {
	return func(q *Queue, c *Crowd) any {
		if q.Polls {
			return none
		}
		return cell(q, c)
	}
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
