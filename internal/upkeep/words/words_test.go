package words

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/upkeep/doccheck"
)

const root = "../../.."

// said lists the sentences that the tools can print, with the place of each: the
// strings of their code and of their pages, what the Makefile says of its commands, and
// what the tests say for the pages and for make see. Of a sum of strings, what is no
// constant is a %v. All are these, and what a sentence may stand in as a part.
func said(t *testing.T) (sentences, all map[string]string) {
	t.Helper()
	sentences, all = map[string]string{}, map[string]string{}
	part := func(where, text string) {
		all[text], all[several.Replace(text)], all[strings.Trim(text, ":;, ")] = where, where, where
		all["%d "+text], all["%d "+text+"s"] = where, where // a number of something
	}
	whole := func(where, text string) {
		part(where, text)
		sentences[text] = where
	}
	either := func(where, text string) {
		text = strings.ReplaceAll(strings.TrimSpace(text), "{who}", "%v") // make play says it of one client, or of several
		if isSentence(text) {
			whole(where, text)
		} else {
			part(where, text)
		}
	}
	texts, err := doccheck.Files(root, ".go", ".diff", ".js", ".tmpl", ".svg")
	require.NoError(t, err)
	parsed := func(path, text string) *ast.File {
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		require.NoError(t, err)
		return file
	}
	for path, text := range texts {
		switch {
		case quoted.MatchString(path):
			test := parsed(path, text)
			for _, formats := range doccheck.Said(test) {
				for line := range strings.Lines(strings.Join(formats, "\n")) {
					either(path, strings.TrimLeft(line, "» "))
				}
			}
			written(test, func(text string) { part(path, strings.TrimSpace(text)) })
		case tools.MatchString(path) && !silent.MatchString(path):
			written(parsed(path, text), func(text string) { either(path, text) })
		case markup.MatchString(path):
			for _, m := range shown.FindAllStringSubmatch(placed.ReplaceAllString(text, "%v"), -1) {
				if text := strings.TrimSpace(m[1] + m[2]); word.MatchString(text) && text != "0 ms" && text != "ls" {
					whole(path, text)
				}
			}
		case scripts.MatchString(path):
			for _, m := range quotes.FindAllStringSubmatch(text, -1) {
				either(path, inserted.ReplaceAllString(strings.ReplaceAll(m[1]+m[2], "${i}", "%d"), "%v")) // i is a client's number
			}
		case strings.Contains(path, "/parts/"): // a part's title
			title, _, _ := strings.Cut(text, "\n")
			whole(path, title)
		}
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`(?m)^(?:[a-z]+:.*)?##@? (?:[A-Z]+=\S* *)*(.*)$`).FindAllStringSubmatch(string(makefile), -1) {
		whole("Makefile", strings.TrimSpace(m[1]))
	}
	for _, m := range regexp.MustCompile(`echo '([^']*)'`).FindAllStringSubmatch(string(makefile), -1) {
		either("Makefile", m[1])
	}
	return sentences, all
}

var several = strings.NewReplacer("%v makes", "%v make", "%v lists", "%v list", "%v watches", "%v watch", "%v has", "%v have",
	"%v tries", "%v try", "%v looks", "%v look", "%v deletes", "%v delete")

var (
	// What speaks to the user of a tool: the tools' packages, and the errors of the locks.
	tools = regexp.MustCompile(`^(internal/.*|step[^/]*/[^/]+)\.go$`)
	// What the pages quote.
	quoted = regexp.MustCompile(`^(step[^/]*|docs|internal/(show/storm|show/peers|check/explore))/[^/]+_test\.go$|^internal/show/page/beside_test\.go$`)
	// What speaks to nobody but a test.
	silent = regexp.MustCompile(`_test\.go$|^internal/((upkeep/(words|doccheck|mutants|chapter)|show/browser|server/wiretap|check/leasemodel|check/changed)/|teach/exercise/(texts\.go$|after/|wronglocks/)|check/lockcheck/(badinput|queued|names)\.go$|check/tables/generate/(main|comment)\.go$|` +
		`check/explore/quiet\.go$|show/peers/(kv/|[a-z]+\.go$)|check/zktest/(lag|race|child|main)\.go$)`)
	// What stands on the pages that the tools make, and what their templates put into a sentence.
	markup   = regexp.MustCompile(`^internal/(show/page/(page\.html\.tmpl|legend\.html\.tmpl|film_legend\.svg)|teach/play/page\.html\.tmpl)$`)
	shown    = regexp.MustCompile(`>([^<>{}]+)<|(?:aria-label|title)="([^"{}]+)"`)
	placed   = regexp.MustCompile(`\{\{(?:number )?\.[^{}]*\}\}`)
	scripts  = regexp.MustCompile(`^internal/(show/page|teach/play)/.*\.js$`)
	quotes   = regexp.MustCompile("\"((?:[^\"\\\\\n]|\\\\.)*)\"|`([^`]*)`")
	inserted = regexp.MustCompile(`\$\{[^{}]*\}`)
	// What is no sentence: markup and drawing, commands, ZooKeeper's own words, words of code.
	code = regexp.MustCompile(`<|\{|^M%|^go test |^[a-z]( [a-z])?$|^(big|caption|count|soft|title|watch|dot) [a-z]+ ?$|^(apt-get|brew|docker|export|sudo|tar|unset|import|package|for file|read -r|if redis|INFO) |` +
		`^wiretap: |^(Zookeeper version|ephemeral nodes dump|Connections dump):|not in the whitelist$|\\[wdW.]|\(\?|"\$|^cat |apt-get update|px system-ui|^(GET|POST) /|^attachment; |^\[data-|^Step %v:$|^%v (makes?|lists?|watch(es)?|has|have|tries|try|looks?|deletes?)$|^text/|^default-src|^data: |^exit status|^--- FAIL: |^\.ls |^button, a, |^button\[|^select, input$|^\(prefers-|^button, a$|^select, summary$|^use strict$|^zklock: %s %s|^step %s%s$|^box plain$|^func %v$|^(box|gone|watch off|fires|woken|off|mine) %v$`)
	word = regexp.MustCompile(`[A-Za-z]{2,}`)
)

func isSentence(text string) bool {
	return word.MatchString(verb.ReplaceAllString(text, " ")) && strings.Contains(text, " ") && !code.MatchString(text)
}

// written takes each string of a file.
func written(file *ast.File, take func(text string)) {
	inside := map[ast.Node]bool{} // a sum that was taken
	for n := range ast.Preorder(file) {
		switch n := n.(type) {
		case *ast.ImportSpec:
			inside[n.Path] = true
		case *ast.Field:
			inside[n.Tag] = true
		case ast.Expr:
			text, isText := sum(n)
			if isText && !inside[n] {
				take(text)
			}
			if of, ok := n.(*ast.BinaryExpr); ok && isText {
				inside[of.X], inside[of.Y] = true, true
			}
		}
	}
}

// sum is the format that a string, or a sum of strings, prints.
func sum(e ast.Expr) (text string, isText bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ = strconv.Unquote(e.Value)
			return text, true
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			x, isX := sum(e.X)
			y, isY := sum(e.Y)
			if !isX {
				x = "%v"
			}
			if !isY {
				y = "%v"
			}
			return x + y, isX || isY
		}
	}
	return "", false
}

func TestEverySentenceIsInBothLanguages(t *testing.T) {
	sentences, all := said(t)
	require.Greater(t, len(sentences), 300)
	known := read().exact
	var missing, idle []string
	for text, where := range sentences {
		_, whole := known[text]
		if _, rest := known[strings.TrimLeft(text, ":;, ")]; !whole && !rest {
			missing = append(missing, where+"\t"+strings.ReplaceAll(text, "\n", `\n`))
		}
	}
	for text, chinese := range known {
		assert.NotContains(t, chinese, "\n# ", "no empty line between two pairs: %s", text)
		if _, ok := all[text]; !ok {
			idle = append(idle, text)
		}
	}
	slices.Sort(missing)
	slices.Sort(idle)
	assert.Empty(t, strings.Join(missing, "\n"), "no Chinese in zh-CN.txt for")
	assert.Empty(t, strings.Join(idle, "\n"), "no tool says this any more")
}

func TestWhatWasPrintedIsTranslated(t *testing.T) {
	for english, chinese := range map[string]string{
		"":                    "",
		"a release wakes one": "一次释放只唤醒一个",
		"  ✗ a release wakes one: one release sent 5 notifications to 5 waiters\n":                                                      "  ✗ 一次释放只唤醒一个: 一次释放给 5 个等待者发了 5 个通知\n",
		"✓ a lost reply to create does no harm: A's create was answered to nobody, twice, and A held the lock with one znode each time": "✓ create 的应答丢失无害: A 的 create 两次都没有收到应答，每次 A 都只凭一个 znode 持有锁",
		"I list /locks/step03: 1 name; I watch the list":                                                                                "我列出 /locks/step03：1 个名字；我监听这个列表",
		"waited in vain for waiter 3's Lock to return":                                                                                  "白等了：等待者 3 的 Lock 返回",
		"zklock: unlock /lock: the lock was lost: its session ended or was cut off, or its znode was deleted":                           "zklock: unlock /lock: 锁已丢失：会话已结束或失去连接，或者 znode 被删除",
		"Client 2 lists: 3 znodes.":                        "客户端 2 列出：3 个 znode。",
		"Client 1 lists: 3 znodes, its own is the first.":  "客户端 1 列出：3 个 znode，自己的排第一。",
		"Clients 1, 2 and 3 list: 4 znodes, with a watch.": "客户端 1, 2 和 3 列出：4 个 znode，并监听。",
		"nothing that a tool says":                         "nothing that a tool says",
	} {
		assert.Equal(t, chinese, Translate(english))
	}
}

// The environment decides, and in a test nothing else than ZKLOCK_LANG.
func TestSprintf(t *testing.T) {
	say := func() string { return Sprintf("%-8s|%s, %d\n", "done", errors.New("there is no read hold"), 3) }
	t.Setenv("LANG", "zh_CN.UTF-8")
	assert.Equal(t, "done    |there is no read hold, 3\n", say())
	t.Setenv("ZKLOCK_LANG", "zh")
	assert.Equal(t, "完成    |这把锁没有读锁, 3\n", say())
	t.Setenv("ZKLOCK_LANG", "")
	assert.True(t, Chinese(), "LANG is zh_CN.UTF-8")
}
