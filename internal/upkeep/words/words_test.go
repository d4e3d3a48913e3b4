package words

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
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

// What the tools can say, with the place of each: the strings of their code and of their
// pages, what the Makefile says of its commands, and what the tests say for the pages and
// for make see.
type said struct {
	sentences map[string]string // each of them needs its Chinese
	all       map[string]string // and what may have it: a word that is put into a sentence
	composed  []string          // sentences in which something is put by other means than this package's
}

func (s *said) part(where, text string) { s.all[strings.TrimSpace(text)] = where }

func (s *said) whole(where, text string) {
	s.part(where, text)
	s.sentences[strings.TrimSpace(text)] = where
}

func (s *said) either(where, text string) {
	if isSentence(text) {
		s.whole(where, text)
	} else {
		s.part(where, text)
	}
}

func (s *said) compose(where, text string) {
	s.composed = append(s.composed, where+"\t"+strings.ReplaceAll(text, "\n", `\n`))
}

func everythingSaid(t *testing.T) *said {
	t.Helper()
	s := &said{sentences: map[string]string{}, all: map[string]string{}}
	texts, err := doccheck.Files(root, ".go", ".diff", ".js", ".tmpl")
	require.NoError(t, err)
	for path, text := range texts {
		switch {
		case quoted.MatchString(path):
			test := parsed(t, path, text)
			for _, formats := range doccheck.Said(test) {
				for _, format := range formats {
					s.either(path, format)
				}
			}
			for _, text := range written(test) {
				s.part(path, text)
			}
		case steps.MatchString(path) && !silent.MatchString(path):
			for _, text := range written(parsed(t, path, text)) {
				if len(verbs(strings.Replace(text, "%w", "", 1))) == 0 { // else it is shown as the step says it
					s.either(path, text)
				}
			}
		case tools.MatchString(path) && !silent.MatchString(path):
			s.code(path, parsed(t, path, text))
		case markup.MatchString(path):
			for _, m := range shown.FindAllStringSubmatch(text, -1) {
				if text := strings.TrimSpace(m[1] + m[2] + m[3]); word.MatchString(text) && text != "0 ms" && text != "ls" {
					s.whole(path, text)
				}
			}
		case scripts.MatchString(path):
			for _, m := range quotes.FindAllStringSubmatch(text, -1) {
				if strings.Contains(m[2], "${") && isSentence(inserted.ReplaceAllString(m[2], "")) {
					s.compose(path, m[2])
				} else {
					s.either(path, m[1]+m[2])
				}
			}
		case strings.Contains(path, "/parts/"): // a part's title
			title, _, _ := strings.Cut(text, "\n")
			s.whole(path, title)
		}
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`(?m)^(?:[a-z]+:.*)?##@? (?:[A-Z]+=\S* *)*(.*)$`).FindAllStringSubmatch(string(makefile), -1) {
		s.whole("Makefile", m[1])
	}
	for _, m := range regexp.MustCompile(`echo '([^']*)'`).FindAllStringSubmatch(string(makefile), -1) {
		s.either("Makefile", m[1])
	}
	return s
}

func parsed(t *testing.T, path, text string) *ast.File {
	file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
	require.NoError(t, err)
	return file
}

// code takes each string of a tool's file. A sentence gets what is put into it from this
// package, and not from fmt or a +.
func (s *said) code(path string, file *ast.File) {
	for _, text := range written(file) {
		s.either(path, text)
	}
	mute := map[ast.Node]bool{} // what is said in a panic is for who changes the code
	for n := range ast.Preorder(file) {
		switch n := n.(type) {
		case *ast.CallExpr:
			if types.ExprString(n.Fun) == "panic" {
				for at := range ast.Preorder(n) {
					mute[at] = true
				}
			}
			if printing.MatchString(types.ExprString(n.Fun)) {
				for _, arg := range n.Args {
					if text, isText := sum(arg); isText && isSentence(text) {
						s.compose(path, text)
					}
				}
			}
		case *ast.BinaryExpr:
			if _, isText := sum(n); n.Op == token.ADD && !isText && !mute[n] {
				for _, side := range []ast.Expr{n.X, n.Y} {
					if text, isText := sum(side); isText && isSentence(text) {
						s.compose(path, text)
					}
				}
			}
		}
	}
}

// printing is how fmt puts something into a format.
var printing = regexp.MustCompile(`^fmt\.(Errorf|S?[Pp]rintf|Fprintf|Appendf)$`)

var (
	// What speaks to the user of a tool: the tools' packages, and the errors of the locks.
	tools = regexp.MustCompile(`^internal/.*\.go$`)
	steps = regexp.MustCompile(`^step[^/]*/[^/]+\.go$`)
	// What the pages quote.
	quoted = regexp.MustCompile(`^(step[^/]*|docs|internal/(show/storm|show/peers|check/explore))/[^/]+_test\.go$|^internal/show/page/beside_test\.go$`)
	// What speaks to nobody but a test.
	silent = regexp.MustCompile(`_test\.go$|^internal/((upkeep/(words|doccheck|mutants|chapter)|show/browser|check/leasemodel|check/changed)/|server/wiretap/(counts|frame|gate|wiretap)\.go$|teach/exercise/(texts\.go$|after/|wronglocks/)|check/lockcheck/(badinput|queued|names)\.go$|check/tables/generate/(main|comment)\.go$|` +
		`check/explore/quiet\.go$|show/peers/(kv/|[a-z]+\.go$)|check/zktest/(lag|race|child|main)\.go$)`)
	// What stands on the pages that the tools make, and what their templates put into a sentence.
	markup   = regexp.MustCompile(`^internal/(show/page/(page|legend)|teach/play/page)\.html\.tmpl$`)
	shown    = regexp.MustCompile(`>([^<>{}]+)<|(?:aria-label|title)="([^"{}]+)"|\{\{(?:say|label) "([^"]*)"`)
	scripts  = regexp.MustCompile(`^internal/(show/page|teach/play)/.*\.js$`)
	quotes   = regexp.MustCompile("\"((?:[^\"\\\\\n]|\\\\.)*)\"|`([^`]*)`")
	inserted = regexp.MustCompile(`\$\{[^{}]*\}`)
	// What is no sentence: markup and drawing, commands, ZooKeeper's own words, words of code.
	code = regexp.MustCompile(`<|\{|^M%|^go test |^[a-z]( [a-z])?$|^(big|caption|count|soft|title|watch|dot) [a-z]+ ?$|^(apt-get|brew|docker|export|sudo|tar|unset|import|package|for file|read -r|if redis|INFO) |` +
		`^wiretap: |^(unknown error: -127|Failed to set previous watches|gave up trying to send opClose)$|^(Zookeeper version|ephemeral nodes dump|Connections dump):|not in the whitelist$|\\[wdW.]|\(\?|"\$|^cat |apt-get update|px system-ui|^(GET|POST) /|^attachment; |^\[data-|^text/|^default-src|^data: |^exit status|^--- FAIL: |^\.ls |^button, a, |^button\[|^select, input$|^\(prefers-|^button, a$|^select, summary$|^use strict$|^zklock: %s %s|^box plain$|^aria-label=|^/|^%(s, TryLock\(%v\)|\.1f ms)$`)
	word = regexp.MustCompile(`[A-Za-z]{2,}`)
	// A name with a number behind it, which is looked up with the number.
	name = regexp.MustCompile(`^[a-z]+ %[ds]$`)
)

func isSentence(text string) bool {
	text = strings.TrimSpace(text)
	return !name.MatchString(text) && word.MatchString(verb.ReplaceAllString(text, " ")) && strings.Contains(text, " ") && !code.MatchString(text)
}

// written lists the strings of a file.
func written(file *ast.File) (all []string) {
	inside := map[ast.Node]bool{} // a sum that was taken
	for n := range ast.Preorder(file) {
		switch n := n.(type) {
		case *ast.CallExpr:
			if types.ExprString(n.Fun) == "panic" { // it is for who changes the code
				for at := range ast.Preorder(n) {
					inside[at] = true
				}
			}
		case *ast.ImportSpec:
			inside[n.Path] = true
		case *ast.Field:
			inside[n.Tag] = true
		case ast.Expr:
			text, isText := sum(n)
			if isText && !inside[n] {
				all = append(all, text)
			}
			if of, ok := n.(*ast.BinaryExpr); ok && (isText || inside[n]) {
				inside[of.X], inside[of.Y] = true, true
			}
		}
	}
	return all
}

// sum is a string, or a sum of strings that are all written there.
func sum(e ast.Expr) (text string, isText bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ = strconv.Unquote(e.Value)
			return text, true
		}
	case *ast.BinaryExpr:
		x, isX := sum(e.X)
		y, isY := sum(e.Y)
		return x + y, e.Op == token.ADD && isX && isY
	}
	return "", false
}

func TestEverySentenceIsInBothLanguages(t *testing.T) {
	said := everythingSaid(t)
	require.Greater(t, len(said.sentences), 300)
	var missing, idle, other []string
	for text, where := range said.sentences {
		if _, known := Pairs()[text]; !known {
			missing = append(missing, where+"\t"+strings.ReplaceAll(text, "\n", `\n`))
		}
	}
	for text, chinese := range Pairs() {
		assert.NotContains(t, chinese, "\n# ", "no empty line between two pairs: %s", text)
		if _, ok := said.all[text]; !ok {
			idle = append(idle, text)
		}
		if !slices.Equal(verbs(text), verbs(chinese)) {
			other = append(other, text+"\n"+chinese)
		}
	}
	slices.Sort(missing)
	slices.Sort(idle)
	slices.Sort(said.composed)
	assert.Empty(t, strings.Join(missing, "\n"), "no Chinese in zh-CN.txt for")
	assert.Empty(t, strings.Join(idle, "\n"), "no tool says this any more")
	assert.Empty(t, strings.Join(said.composed, "\n"), "what is put into these stays English: say them by words.Of or words.Errorf, in a script by say")
	assert.Empty(t, strings.Join(other, "\n"), "something else is put into the Chinese sentence")
}

// verbs lists which arguments are put into a format.
func verbs(format string) (all []int) {
	next := 0
	for _, m := range verb.FindAllStringSubmatch(format, -1) {
		if m[2] == "%" {
			continue
		}
		if m[1] != "" {
			next, _ = strconv.Atoi(m[1])
			next--
		}
		all = append(all, next)
		next++
	}
	slices.Sort(all)
	return slices.Compact(all)
}

var verb = regexp.MustCompile(`%[-+# 0]*[0-9]*(?:\.[0-9]+)?(?:\[(\d+)\])?([a-zA-Z%])`)

// A text has its own words, and those of what is put into it, in both languages.
func TestOf(t *testing.T) {
	lost := errors.New("zk: node does not exist")
	for _, c := range []struct {
		text   Text
		en, zh string
	}{
		{Of("a release wakes one"), "a release wakes one", "一次释放只唤醒一个"},
		{Of("  %-9s%d\n", "done", 3), "  done     3\n", "  完成     3\n"},
		{Of("one release sent %d notifications to %d waiters", 5, 4), "one release sent 5 notifications to 4 waiters", "一次释放给 4 个等待者发了 5 个通知"},
		{Of("%s gave up, and left %v behind", "the stranger", "znodes"), "the stranger gave up, and left znodes behind", "非持有者 放弃了等待，留下了 znodes"},
		{Of("waited in vain for %s", Of("%v's Lock to return", "waiter 3")), "waited in vain for waiter 3's Lock to return", "白等了：等待者 3 的 Lock 返回"},
		{Error(Errorf("write %s: %w", "/lock", errors.New("there is no read hold"))), "write /lock: there is no read hold", "写 /lock：这把锁没有读锁"},
		{Error(fmt.Errorf("/lock: %w", errors.New("there is no read hold"))), "/lock: there is no read hold", "/lock: 这把锁没有读锁"},
		{Error(fmt.Errorf("/lock: %w (the session is closed: open another one)", lost)),
			"/lock: zk: node does not exist (the session is closed: open another one)", "/lock: zk: node does not exist （会话已关闭：请重新打开一个）"},
		{Error(fmt.Errorf("the lock was released: %w", errors.New("there is no read hold"))), "the lock was released: there is no read hold", "锁已释放：这把锁没有读锁"},
		{Error(errors.Join(lost, errors.New("there is no read hold"))), "zk: node does not exist\nthere is no read hold", "zk: node does not exist\n这把锁没有读锁"},
		{Of("%s:", lost), "zk: node does not exist:", "zk: node does not exist:"},
		{Whole("client 12"), "client 12", "客户端 12"},
		{Whole("nothing that a tool says"), "nothing that a tool says", "nothing that a tool says"},
		{Of("client %d crashes", 0).Capital(), "Client 0 crashes", "client 0 crashes"},
		{Join([]Text{Of("done"), Of("nothing")}, "; "), "done; nothing", "完成; 无"},
	} {
		assert.Equal(t, Text{c.en, c.zh}, c.text)
	}
	assert.ErrorIs(t, Errorf("write %s: %w", "/lock", lost), lost)
	assert.EqualError(t, Errorf("write %s: %w", "/lock", lost), "write /lock: zk: node does not exist")
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
