package page

import (
	"zklock/internal/check/explore"
	"zklock/internal/property"
	"zklock/internal/server/wiretap"
	"zklock/internal/upkeep/words"
)

// Order makes a page of one order of requests: each choice is a part of the replay.
func Order(origin, lock words.Text, wrong string, run explore.Run, record explore.Record) *Recording {
	d := &deduction{dir: record.Dir, start: record.Choices[0]}
	for i, lane := range record.Lanes {
		d.lines = append(d.lines, property.Line{Client: string(rune('A' + i)), Frames: lane.Frames, Moods: lane.Moods})
	}
	for _, e := range record.Ends {
		d.changes = append(
			d.changes,
			&change{e.Zxid, e.Client, wiretap.Close, "", true, d.us(e.After), d.us(e.Seen), 0},
		)
	}
	s := d.deduce(len(d.lines), record.Over)
	for i, at := range record.Choices {
		over := record.Over
		if i+1 < len(record.Choices) {
			over = record.Choices[i+1]
		}
		s.Phases = append(s.Phases, Phase{At: d.us(at), Over: d.us(over)})
	}
	said := make([][]words.Text, len(s.Phases)) // what came of each choice
	part := -1
	for _, line := range run.Told {
		switch {
		case line.Choice > 0:
			part = line.Choice - 1
			s.Phases[part].Title = words.Whole(line.Text)
		case part >= 0:
			said[part] = append(said[part], words.Whole(line.Text))
		}
	}
	said[part] = append(said[part], words.Whole(run.Outcome))
	for i, texts := range said {
		if len(texts) > 0 {
			s.Phases[i].Sum = words.Of("%s.", words.Join(texts, "; "))
		}
	}
	step := Step{Key: lock.EN, Heading: lock, Lesson: words.Whole(explore.Outcome(run.Wrong))}
	return oneStory(
		origin,
		words.Whole(wrong),
		words.Of("The shortest order of requests in which this happens. Each part is a choice of what comes next."),
		[]Step{step},
		[]Story{s},
	)
}
