package explorer

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"

	"zklock/internal/explore"
	"zklock/internal/lab/stage"
	"zklock/internal/lang"
)

//go:embed walk.html.tmpl
var markup string

//go:embed walk.css
var style string

//go:embed walk.js
var script string

var walk = template.Must(template.New("walk").Funcs(stage.Functions).Parse(markup))

// A Page shows what an exploration has found: one wrong interleaving of each kind, the most serious
// first, and all interleavings, for a reader to walk through.
type Page struct {
	Origin   string // where the interleavings were played
	Lock     lang.Text
	Result   explore.Result
	Settings explore.Settings
	Record   func(explore.Run) (explore.Recording, error) // plays an interleaving again, and records it for drawing
}

// Write writes the page.
func (p Page) Write(w io.Writer) error {
	broken := slices.DeleteFunc(slices.Clone(explore.Gravest), func(invariant string) bool {
		_, isBroken := p.Result.Findings[invariant]
		return !isBroken
	})
	page := stage.Page{
		Heading: lang.Of("%s. Every interleaving", "%s：所有交错次序", p.Lock),
		Choose:  text("What goes wrong", "错在哪里"),
		Intro:   p.intro(len(broken)),
		Footer:  lang.Of("Played on %s.", "运行环境：%s。", p.Origin),
		Locks:   []stage.Column{{Key: "lock", Heading: p.Lock}},
		Style:   style,
		Script:  script,
	}
	for i, invariant := range broken {
		found := p.Result.Findings[invariant]
		title := named(invariant)
		watch := lang.Of(
			"The promise: %s It is broken in %d interleavings. "+
				"This is the shortest of them, one message or fault after the other:",
			"承诺：%s在 %d 种交错次序里，这个承诺没有兑现。下面是其中最短的一种，每行是一条消息或一个故障：",
			promised(invariant), found.Orders)
		if err := p.shows(&page, fmt.Sprintf("wrong-%d", i+1), title, watch, found.Shortest); err != nil {
			return err
		}
	}
	if len(broken) == 0 && len(p.Result.Runs) > 0 {
		title := text("An interleaving that is right, as all are", "一种正确的交错次序：所有交错次序都正确")
		watch := text("One message or fault after the other:", "每行是一条消息或一个故障：")
		isWhole := func(r explore.Run) bool { return !r.Covered }
		right := p.Result.Runs[slices.IndexFunc(p.Result.Runs, isWhole)]
		if err := p.shows(&page, "right", title, watch, right); err != nil {
			return err
		}
	}
	if len(p.Result.Runs) > 0 {
		var more bytes.Buffer
		shortest := 0
		for _, invariant := range broken {
			if n := len(p.Result.Findings[invariant].Shortest.Moments); shortest == 0 || n < shortest {
				shortest = n
			}
		}
		title := text("Walk through the interleavings yourself", "自己走一遍交错次序")
		if p.Result.Wrong > 0 {
			title = text("Find a wrong interleaving yourself", "自己找出错误的交错次序")
		}
		err := walk.Execute(&more, map[string]any{
			"Title":    title,
			"Faults":   p.Settings.Faults,
			"Tree":     grow(p.Result.Runs),
			"Orders":   p.Result.Orders,
			"Wrong":    p.Result.Wrong,
			"Shortest": shortest,
		})
		if err != nil {
			return err
		}
		page.More = template.HTML(more.String())
		page.Parts = []stage.Part{{ID: "walk", Title: title}}
	}
	return page.Write(w)
}

// shows adds an interleaving to the page.
func (p Page) shows(page *stage.Page, id string, title, watch lang.Text, run explore.Run) error {
	recording, err := p.Record(run)
	if err != nil {
		return err
	}
	story := Story(recording)
	story.ID, story.Step = id, "lock"
	page.Stories = append(page.Stories, story)
	only := []string{"lock"}
	page.Titles = append(page.Titles, stage.Title{ID: id, Title: title, Watch: watch, Steps: only, Pair: only})
	return nil
}

// intro says what a lock promises, and what was found.
func (p Page) intro(kinds int) template.HTML {
	promise := text(
		"Above all, a lock promises two things: at most one client holds it at any moment; and every client "+
			"that asks for it gets it in the end, whichever request arrives first, and whatever fails.",
		"一把锁最主要的承诺有两个：任何时刻，最多有一个客户端持有它；每个请求加锁的客户端，最后都能拿到它，"+
			"无论哪个请求先到，无论什么出了故障。",
	)
	played := lang.Of(
		"Here %d clients take it once each. Their requests can reach the server in many interleavings, "+
			"and faults can happen anywhere: at most %d in each interleaving. All %d interleavings were played on a real server. ",
		"这里有 %d 个客户端，各加锁一次。它们的请求到达服务器的交错次序有很多种，"+
			"每种里最多有 %d 个故障，位置任意。全部 %d 种交错次序都在真实的服务器上运行过。",
		p.Settings.Clients, p.Settings.Faults, p.Result.Orders)
	found := text("All of them are right.", "它们全都正确。")
	if kinds > 0 {
		found = lang.Of("%d of them are wrong, in %d ways. The most serious comes first.",
			"其中 %d 种有错，错误分为 %d 类，最严重的排在最前面。", p.Result.Wrong, kinds)
	}
	return stage.Say(promise) + stage.Say(lang.Of("%s%s", "%s%s", played, found))
}

// promised returns the promise of the lock that an invariant checks.
func promised(invariant string) lang.Text {
	if invariant == explore.TwoInside {
		return text("Two clients never hold the lock at once.", "任何时刻都不会有两个客户端同时持有锁。")
	}
	if invariant == explore.WaitsOn {
		return text("When nobody holds the lock, the next client that waits gets it.",
			"没有人持有锁的时候，下一个等待的客户端会拿到它。")
	}
	return explore.Should[invariant]
}

// named returns what the page calls a broken invariant.
func named(invariant string) lang.Text {
	switch invariant {
	case explore.TwoInside:
		return text("Two clients hold the lock at the same time", "两个客户端同时持有锁")
	case explore.WaitsOn:
		return text("Nobody holds the lock, and a client waits forever",
			"没有人持有锁，却有客户端永远等下去")
	}
	return lang.Text{EN: capital(invariant), ZH: explore.Chinese[invariant]}
}

func capital(s string) string { return string(bytes.ToUpper([]byte(s[:1]))) + s[1:] }

var text = lang.Both
