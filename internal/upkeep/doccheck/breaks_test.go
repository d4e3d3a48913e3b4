package doccheck

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Each check is shown pages that are wrong in one thing, and has to find it;
// and the same page put right, where it may find nothing.
func TestTheChecksFindWhatIsWrong(t *testing.T) {
	t.Parallel()
	r := repo(t)
	const chapter, zh, doc = "step04_predecessor_watch/README.md", "step04_predecessor_watch/README.zh-CN.md", "docs/zookeeper.md"
	block := func(language, text string) string { return "# T\n\n```" + language + "\n" + text + "\n```\n" }
	for _, c := range []struct {
		finds       func(repository, Page) []string
		path        string
		wrong, says string
		right       string
	}{
		{repository.badLinks, doc, "[a](nowhere.md)", "no such file", "[a](fencing.md)"},
		{repository.badLinks, doc, "[a](fencing.md#nowhere)", "no such heading", "[a](fencing.md#the-token)"},
		{repository.badLinks, doc, "# Here\n[a](#there)", "no such heading", "[a](#sessions)"},
		{repository.badLinks, doc, "[a](../out/tour.html)", "git does not keep", "`out/tour.html`"},
		{repository.badLinks, doc, "[a](../../elsewhere.md)", "leaves the repository", "[a](../README.md)"},
		{repository.badLinks, doc, "[a](/README.md)", "root of the disk", "[a]\n\n[a]: fencing.md"},
		{repository.badLinks, doc, "[a][b]\n\n[b]: nowhere.md", "no such file", "`[a](nowhere.md)`"},
		{repository.badLinks, doc, "![a](herd.svg)", "no such file", "[a](https://zookeeper.apache.org)"},
		{repository.badLinks, doc, `<img src="herd.svg">`, "would not be looked at", "`<img src=\"herd.svg\">`"},
		{
			repository.badLinks,
			doc,
			"<details>\n<summary><a href=\"x\">a</a></summary>\n",
			"would not be looked at",
			"<details>\n<summary>a</summary>\n\nb\n\n</details>",
		},
		{repository.badFences, doc, "# T\n```go\nx\n", "a code block is not closed", block("go", "x")},
		{repository.badCode, chapter, block("go", "\tbefore := \"\""), "stands in no go file",
			block("go", "\t\tnames, _, err := l.conn.Children(l.dir)")},
		// step 5's
		{
			repository.badCode,
			chapter,
			block("go", "\tw := &waiter{ctx, once, make(chan answer, 1)}"),
			"stands in no go file",
			"",
		},
		// step 3's
		{repository.badCode, zh, block("go", "\t\tnames, _, changed, err := l.conn.ChildrenW(l.dir)"), "stands in no go file",
			block("go", "\t\tnames, _, err := l.conn.Children(l.dir)")},
		{repository.badCode, doc, block("go", "package main\n\nfunc main() { f() }"), "stands in no go file", ""},
		{repository.badCode, chapter, block("go", "func New(conn *zk.Conn) *Lock"), "stands in no go file",
			block("go", "func New(conn *zk.Conn, path string) *Lock\nfunc (l *Lock) Unlock() error")},
		{
			repository.badCode,
			"step01_plain_node/exercise/hints.md",
			block("go", "if {"),
			"not Go",
			block("go", "if f() {\n}"),
		},
		{repository.badCode, "step05_reentrant/README.md", block("diff", "+nothing"), "stands in no diff file", ""},
		{repository.badQuotes, chapter, block("", "» 10 waiters, one release: many notifications"), "no test says this",
			// the numbers are held from the other side
			block("", "» 11 waiters, one release: 2 notification, 3 list, 4 names in it")},
		{
			repository.badQuotes,
			doc,
			block("", "» a read: 0 zxid s"),
			"no test says this",
			block("", "» a create: 1 zxid"),
		},
		{repository.badNames, chapter, "`TestNowhere`", "there is no TestNowhere", "`TestReleaseWakesOne`"},
		// step 2's
		{repository.badNames, chapter, "`TestW1PersistentZnode`", "there is no TestW1", "`TestW8TrustsTheWakeUp`"},
		{repository.badNames, zh, "`TestQueueDrained`", "there is no TestQueueDrained", "`TestReleaseWakesOne`"},
		{repository.badWords, zh, "它的任期", "任期: the glossary says 持锁期", "它的持锁期"},
		{repository.badWords, zh, "一\n\n锁存器", "锁存器: the glossary says 闭锁", "闭锁"},
		{repository.badCommands, doc, block("", "make nothing"), "no nothing", block("", "make test")},
		{repository.badCommands, doc, "say `make see STEP=7`", "no step 7", "say `make see STEP=3`"},
		{
			repository.badCommands,
			doc,
			block("sh", "make tour STOPS=3"),
			"nobody looks at STOPS",
			block("sh", "WAITERS=9 make tour STEPS=3 # few"),
		},
		{
			repository.badCommands,
			doc,
			block("", "go test ./step7"),
			"no package",
			block("", "go test -timeout 9s ./step0* ./internal/..."),
		},
		{
			repository.badCommands,
			doc,
			block("", "go test -run TestNowhere ./step01_plain_node"),
			"no test there",
			block("", "go test -v -run 'TestW[0-9]/x' ./step02_sequential_spin"),
		},
		{
			repository.badCommands,
			doc,
			"`go test -bench=BenchmarkNowhere ./internal/server/wiretap`",
			"no test there",
			"`go mod edit -replace=zklock=../zklock`",
		},
		{
			repository.badCommands,
			doc,
			block("", "$ go run ./internal/nothing"),
			"no package",
			block("", "go run ./internal/show/tour matrix"),
		},
		{
			repository.badCommands,
			doc,
			block("", "diff -u step01_plain_node/lock.go step02/lock.go"),
			"exit status 2",
			block("", "diff -u step01_plain_node/lock.go step02_sequential_spin/lock.go"),
		},
		{repository.badCommands, doc, block("", "diff README.md README.md"), "do not differ", ""},
	} {
		head := ""
		if c.path == zh {
			head = "[English](../" + chapter + ")\n\n"
		}
		found := c.finds(r, Parse(c.path, head+c.wrong))
		if assert.Len(t, found, 1, "problems of\n%s", c.wrong) {
			assert.Contains(t, found[0], c.path+":", "where the problem is")
			assert.Contains(t, found[0], c.says, "the problem of\n%s", c.wrong)
		}
		assert.Empty(t, c.finds(r, Parse(c.path, head+c.right)), "problems of\n%s\nwhich is right", c.right)
	}
}

// Each comparison is shown two pages that differ in one thing, and has to find
// it; and a pair that says the same, where it may find nothing.
func TestDifferencesOfTheEditionsAreFound(t *testing.T) {
	t.Parallel()
	const en, zh = "step04_predecessor_watch/README.md", "step04_predecessor_watch/README.zh-CN.md"
	twins := map[string]Page{
		en:                           {Path: zh},
		"step05_reentrant/README.md": {Path: "step05_reentrant/README.zh-CN.md"},
		"docs/fencing.md":            {Path: "docs/fencing.zh-CN.md"},
	}
	block := func(text string) string { return "```\n" + text + "\n```" }
	table := func(rows string) string { return "| a | b |\n|---|---|\n" + rows }
	compare := func(english, chinese string) []string {
		return edition{
			Parse(zh, "[English](../"+en+")\n\n"+chinese),
			Parse(en, "[中文](../"+zh+")\n\n"+english),
			twins,
		}.differences()
	}
	const outline = "the order of headings, paragraphs and tables differ"
	for _, c := range []struct {
		english, wrong, says, right string
	}{
		{block("» 10 waiters: 1 look"), block("10 waiters: 1 look"), zh + ":4: and " + en + ":4: the code differ", block("» 10 个等待者：查看 1 次")},
		{block("a\nb"), block("a"), "(ends before)", block("a\nb")},
		{
			block("b 04:52:11  holds the lock; Enter releases it"),
			block("b 04:52:11  holds the lock; Enter releases it"),
			"the code differ",
			block("b 04:52:11  持有锁；按 Enter 释放"),
		},
		{block("a"), "", "the code differ", block("a")},
		{block("make help # all"), block("make test # 全部"), "the code differ", block("make help # 全部")},
		{"```go\na\n```", "```sh\na\n```", "Chinese: \"```sh\"\n\tEnglish: \"```go\"", "```go\na\n```"},
		{"```go\na // b\n```", "```go\nb // 乙\n```", "the code differ", "```go\na // 乙\n```"},
		{"`Lock`", "`Unlock`", "Chinese: [\"Unlock\"]\n\tEnglish: [\"Lock\"]", "`Lock` `Lock`"},
		{
			"## A\nten take 1,275 in step 3",
			"## 甲\n第 3 步中十个用 1,257",
			"Chinese: []\n\tEnglish: [\"1275\"]",
			"## 甲\n十个，第 3 步 1275",
		},
		{"ten and 4", "10 个", "Chinese: []\n\tEnglish: [\"4\"]", "4 次和 10"},
		{"# A\n## B", "# 甲\n### 乙", "Chinese: \"Heading###\"\n\tEnglish: \"Heading##\"", "# 甲\n## 乙"},
		{"# A\n## B", "# 甲", outline, "# 甲\n## 乙"},
		{"a\n\nb", "甲乙", outline, "甲\n\n乙"},
		{"- a\n- b", "- 甲", outline, "- 甲\n- 乙"},
		{table("| a | ✓ |"), table("| 甲 | ✗ |"), "what stands in the table differ", table("| 甲 | ✓ |")},
		{table("| a | 1 · 3 |"), table("| 甲 | 3 · 1 |"), "what stands in the table differ", table("| 甲 | 1 · 3 |")},
		{table("| a | ten, 3 |"), table("| 甲 | 10，5 |"), "what stands in the table differ", table("| 甲 | 10，3 |")},
		{table("| a | b |"), table("| 甲 |"), outline, table("| 甲 | 乙 |")},
		{table("| a |\n| b |"), table("| 甲 |"), outline, table("| 甲 |\n| 乙 |")},
		{
			table("| ✓ | a release wakes one · no watch is left behind |"),
			table("| ✓ | 不遗留监听 · 一次释放只唤醒一个 |"),
			"what stands in the table differ",
			table("| ✓ | 一次释放只唤醒一个<br>a release wakes one · 不遗留监听 |"),
		},
		{
			"[a](../step05_reentrant/README.md)",
			"[甲](../step05_reentrant/README.md)",
			`["step05_reentrant/README.zh-CN.md"]`,
			"[甲](../step05_reentrant/README.zh-CN.md#x)",
		},
		{"[a](../docs/fencing.md)", "[甲](../docs/fencing.md)", `["docs/fencing.zh-CN.md"]`, "[甲](../docs/fencing.zh-CN.md#令牌)"},
		{
			"[a](wrong_test.go)",
			"甲",
			`["step04_predecessor_watch/wrong_test.go"]`,
			"[甲](wrong_test.go)",
		},
		{
			"say `make see STEP=4`",
			"`make see STEP=4`, `make see STEP=4`",
			"the commands differ:\n\tChinese: [\"make see STEP=4\"]",
			"`make see STEP=4`",
		},
	} {
		found := strings.Join(compare(c.english, c.wrong), "\n")
		assert.Contains(t, found, c.says, "%s\nfor\n%s", c.wrong, c.english)
		assert.Regexp(t, `^`+zh+`:\d+: and `+en+`:\d+: `, found, "the two pages")
		assert.Empty(t, compare(c.english, c.right), "%s\nsays what\n%s\nsays", c.right, c.english)
	}
	alone := edition{Parse(zh, "甲"), Page{Path: en}, twins}.links()
	assert.Equal(t, []string{en + ":1: no link leads to " + zh}, alone, "a page without a link to its twin")
	both := edition{
		Parse(zh, "[甲](../"+en+") [乙](../docs/fencing.md) [乙](../docs/fencing.zh-CN.md)"),
		Parse(en, "[a](../"+zh+") [b](../docs/fencing.md)"),
		twins,
	}.links()
	assert.Equal(
		t,
		[]string{zh + ":1: docs/fencing.md is there in Chinese: " + "docs/fencing.zh-CN.md"},
		both,
		"a link to an English page beside one to the Chinese",
	)
	const hints = "step04_predecessor_watch/exercise/hints.md"
	inHints := func(heading, hint string) string {
		zh := Parse("step04_predecessor_watch/exercise/hints.zh.md", "## "+heading+"\n\n1. "+hint)
		en := Parse(hints, "## an arrival wakes nobody\n\n1. look again at once")
		return strings.Join(edition{zh, en, twins}.differences(), "\n")
	}
	assert.Empty(t, inHints("新来者不唤醒任何人", "马上再看一次"), "hints need no link")
	assert.Contains(t, inHints("新来者", "马上再看一次"), "the properties differ")
	assert.Contains(t, inHints("新来者不唤醒任何人", "look again at once"), "this is English: look again at")
	lonely := repository{pages: map[string]Page{
		en:    {Path: en},
		hints: {Path: hints},
		"":    {Path: "docs/step09.zh-CN.md"},
	}}.withoutTwin()
	assert.Len(t, lonely, 3, "pages without a twin")
}
