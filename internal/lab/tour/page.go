package tour

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"zklock/internal/chapter"
	"zklock/internal/lab/stage"
	"zklock/internal/lang"
	"zklock/internal/property"
	"zklock/internal/wiretap"
)

//go:embed sections.html.tmpl
var markup string

var sections = template.Must(template.New("sections").Funcs(stage.Functions).Funcs(template.FuncMap{
	"number":   stage.Number,
	"cell":     cell,
	"plain":    withCommas,
	"messages": messages,
	"both":     inBoth,
	"evidence": func(r property.Result) lang.Text {
		return lang.Of("%v evidence: %v, %v", "%v 证据：%v，%v", r.Verdict, inBoth(r.Subject), r.Property.Name)
	},
	"verdict": func(r property.Result) lang.Text {
		if r.Verdict == property.No {
			return lang.Of("%v lacks this property: %v", "%v 缺少这条性质：%v",
				inBoth(r.Subject), r.Property.Name)
		}
		return lang.Of("%v %v: %v", "%v %v：%v", r.Verdict, inBoth(r.Subject), r.Property.Name)
	},
}).Parse(markup))

// intro returns the first text of the page. The page begins with two locks side by side or, if there
// is only one lock, with that one.
func (rec *Recording) intro() lang.Text {
	ways := text("Here are two ways to build it", "下面是两种实现方法")
	if len(rec.Locks) == 1 {
		ways = text("Here is one way to build it", "下面是一种实现方法")
	}
	return lang.Of(
		"A distributed lock lets one client at a time change what many share. ZooKeeper is a server that keeps the lock, "+
			"in small files called znodes. %v: press ▶ Play to see what happens.",
		"有了分布式锁，在许多客户端当中，同一时刻只有一个能修改共享的数据。ZooKeeper 是保管锁的服务器，"+
			"锁放在叫做 znode 的小文件里。%v：请按 ▶ 播放，看会发生什么。", ways)
}

// Write writes the page: the replay of the stories, and below it the measurements.
func (rec *Recording) Write(w io.Writer) error {
	p := stage.Page{
		Heading: text("zklock: the tour", "zklock 导览"),
		Footer: lang.Of(
			"Recorded on %v, %v, with up to %v clients. Everything on this page comes from that one run.",
			"录制环境：%v，%v，最多 %v 个客户端。本页的全部内容都出自这一次运行。",
			rec.Origin, rec.date(), stage.Number(rec.Largest+1)),
		Intro:   stage.Say(rec.intro()),
		Titles:  rec.Titles,
		Stories: rec.Stories,
		Parts: []stage.Part{
			{ID: "score", Title: text("Scoreboard", "成绩表")},
			{ID: "matrix", Title: text("Properties", "性质")},
			{ID: "growth", Title: text("Growth", "增长")},
		},
	}
	for _, l := range rec.Locks {
		p.Locks = append(p.Locks, l.onPage())
	}
	groups := rec.Score()
	growth, err := rec.growth()
	if err != nil {
		return err
	}
	var more bytes.Buffer
	err = sections.Execute(&more, map[string]any{
		"Rec":       rec,
		"Columns":   len(rec.Locks) + 1,
		"Story":     rec.story(),
		"Beside":    rec.besideTheSteps(),
		"Score":     groups[:len(groups)-1], // the last group is shown in the matrix below
		"Measured":  rec.measured(compared...),
		"Sizes":     scored(min(rec.Largest, 100)),
		"Releases":  rec.releases(),
		"Growth":    growth,
		"HandOvers": rec.handOverTimes(),
		"Promised": lang.Of(
			"From the call of Unlock to the return of the next client's Lock, in milliseconds: "+
				"%v hand-overs, ten waiting.",
			"从调用 Unlock 到下一个客户端的 Lock 返回的毫秒数：一共 %v 次易主，有十个客户端在等。", handOvers),
	})
	if err != nil {
		return err
	}
	p.More = template.HTML(more.String())
	return p.Write(w)
}

// inBoth returns the short name of a lock in both languages.
func inBoth(name any) lang.Text {
	key, isStep := strings.CutPrefix(name.(string), "step ")
	if !isStep {
		return text(name.(string), name.(string))
	}
	return lang.Of("step %s", "第 %s 步", key)
}

// noSteps explains each column that is not a step, in one sentence.
var noSteps = map[string]lang.Text{
	"3w": text("Step 3w is NewWatched of step 3: a watch, and no queue.",
		"第 3w 步是第 3 步的 NewWatched：有监听器，没有队列。"),
	"leased": text("leased is the production lock.", "leased 是生产环境用的锁。"),
	"zk":     text("zk.Lock is the Go client's own.", "zk.Lock 是 Go 客户端自带的锁。"),
}

// besideTheSteps explains the columns of the recording that are not steps.
func (rec *Recording) besideTheSteps() (all lang.Text) {
	for _, l := range rec.Locks {
		about, isBeside := noSteps[l.Key]
		switch {
		case isBeside && all.EN == "":
			all = about
		case isBeside:
			all = lang.Text{EN: all.EN + " " + about.EN, ZH: all.ZH + about.ZH}
		}
	}
	return all
}

// cell returns a cell as the page's tables show it. A large number has commas. In a row that is
// "relative to quiet", a number below 1 is noise, and becomes "≤ 1".
func cell(label lang.Text, value any) string {
	text := withCommas(value)
	n, err := strconv.ParseFloat(text, 64)
	isBelowOne := err == nil && n < 1
	if isBelowOne && strings.HasSuffix(label.EN, "relative to quiet") {
		return "≤ 1"
	}
	return text
}

// withCommas returns a cell as text. A large integer gets commas.
func withCommas(value any) string {
	text := fmt.Sprint(value)
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		return stage.Number(n)
	}
	return text
}

// compared lists the locks whose waiting and hand-overs the page compares.
var compared = []string{"1", "2", "3", "4", "5", "6", "leased"}

// releases returns the table of what a release costs in crowds of several sizes.
func (rec *Recording) releases() (rows [][]any) {
	for _, q := range rec.measured(grown...) {
		for _, c := range q.Crowds {
			rows = append(rows,
				[]any{q.Lock.Subject.Name, c.Waiters, c.median(notifications), c.median(requests), c.median(received)})
		}
	}
	return rows
}

// handOverTimes returns the table of how long a hand-over takes: the shortest, the median and the
// longest time.
func (rec *Recording) handOverTimes() (rows [][]any) {
	for _, q := range rec.measured(compared...) {
		var all []time.Duration
		for _, r := range q.Crowds[0].Releases {
			all = append(all, r.Took)
		}
		slices.Sort(all)
		row := []any{q.Lock.Subject.Name}
		for _, took := range []time.Duration{all[0], all[len(all)/2], all[len(all)-1]} {
			row = append(row, twoDigits(float64(took.Microseconds())/1000))
		}
		rows = append(rows, row)
	}
	return rows
}

// twoDigits returns a number rounded to two digits: more digits would be noise.
func twoDigits(n float64) string { return chapter.About(n, 1).String() }

// A message is one row of a table: a frame between a client and the server, or the crash of a client.
type message struct {
	At     time.Time
	Client int    // -1: this row replaces the rows that are left out
	After  string // milliseconds since the first message
	Arrow  string
	Lost   bool // the frame is lost, or the client is killed
	Text   lang.Text
}

// How many messages a table has. If there are more, it has the first ones, which show how the story
// began, and the last ones.
const (
	shownFirst = 12
	shownLast  = 24
)

// messages returns the messages of all clients of a property's story, in the order of time.
func messages(lines []property.Line) (all []message) {
	for i, line := range lines {
		connected := false
		for _, f := range line.Frames {
			isGreeting := f.Op == wiretap.Connect && !connected // each client's first handshake
			connected = connected || f.Kind == wiretap.Reply
			if f.IsShown() && !isGreeting && f.Op != wiretap.Close {
				all = append(all, framed(i, f))
			}
		}
		if !line.Died.IsZero() {
			died := message{At: line.Died, Client: i, Arrow: "✗", Lost: true, Text: text("is killed", "被杀")}
			all = append(all, died)
		}
	}
	slices.SortStableFunc(all, func(a, b message) int { return a.At.Compare(b.At) })
	for i := range all {
		all[i].After = fmt.Sprintf("%.1f", float64(all[i].At.Sub(all[0].At).Microseconds())/1000)
	}
	if len(all) <= shownFirst+shownLast {
		return all
	}
	isDeath := func(m message) bool { return m.Arrow == "✗" }
	first := shownFirst
	if died := slices.IndexFunc(all, isDeath); died >= 0 && died < len(all)-shownLast && died >= first {
		// The story is about the crash, so this message is not left out.
		rest := []message{{Client: -1}, all[died], {Client: -1}}
		return slices.Concat(all[:first], rest, all[len(all)-shownLast:])
	}
	return slices.Concat(all[:first], []message{{Client: -1}}, all[len(all)-shownLast:])
}

// framed returns a client's frame as a message.
func framed(client int, f wiretap.Frame) message {
	arrow := [...]string{"→", "←", "!"}[f.Kind]
	m := message{At: f.At, Client: client, Arrow: arrow, Lost: f.Lost, Text: f.Briefly(short(f.Path))}
	if f.Lost {
		m.Text = lang.Of("%v: lost", "%v：丢失", m.Text)
	}
	return m
}

var zeroes = regexp.MustCompile(`0{3,9}(\d)`)

// short returns a short name for a path, such as lock-3: its last element without the guid and the
// leading zeroes.
func short(name string) string {
	return zeroes.ReplaceAllString(wiretap.WithoutGuid(path.Base(name)), "$1")
}
