package words

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../.."

// said lists the sentences that the tools can print, with the place of each: the
// strings of their code, what the Makefile says of its commands, and what
// the tests say for the pages and for make see. Of a sum of strings, what is no constant is a %v.
func said(t *testing.T) (sentences, all map[string]string) {
	t.Helper()
	sentences, all = map[string]string{}, map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case quoted.MatchString(rel):
			spoken(t, path, rel, func(text, where string) { sentences[text], all[text] = where, where })
			written(t, path, rel, func(text, where string) { all[strings.Trim(text, ": ")] = where })
		case silent.MatchString(rel):
			if d.IsDir() {
				return fs.SkipDir
			}
		case tools.MatchString(rel) && strings.HasSuffix(rel, ".go") && !strings.HasSuffix(rel, "_test.go"):
			written(t, path, rel, func(text, where string) {
				text = strings.ReplaceAll(text, "{who}", "%v") // make play says it of one client, or of several
				all[text], all[several.Replace(text)] = where, where
				all[strings.TrimLeft(text, ":;, ")] = where
				all["%d "+text], all["%d "+text+"s"] = where, where // a number of something
				if isSentence(text) {
					sentences[text] = where
				}
			})
		}
		return nil
	})
	require.NoError(t, err)
	for _, name := range []string{"page/page.html.tmpl", "page/film_legend.svg", "play/page.html.tmpl"} {
		markup, err := os.ReadFile(filepath.Join(root, "internal", name))
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`>([^<>{}]+)<|(?:aria-label|title)="([^"{}]+)"`).FindAllStringSubmatch(placed.ReplaceAllString(string(markup), "%v"), -1) {
			if text := strings.TrimSpace(m[1] + m[2]); word.MatchString(text) && text != "0 ms" && text != "ls" {
				sentences[text], all[text], all[strings.TrimLeft(text, ":;, ")] = name, name, name
			}
		}
	}
	for _, name := range []string{"page/page.js", "page/stage.js", "play/play.js"} {
		script, err := os.ReadFile(filepath.Join(root, "internal", name))
		require.NoError(t, err)
		for _, m := range regexp.MustCompile("\"((?:[^\"\\\\\n]|\\\\.)*)\"|`([^`]*)`").FindAllStringSubmatch(string(script), -1) {
			text := strings.TrimSpace(regexp.MustCompile(`\$\{[^{}]*\}`).ReplaceAllString(m[1]+m[2], "%v"))
			all[text], all[strings.TrimLeft(text, ":;, ")] = name, name
			if isSentence(text) {
				sentences[text] = name
			}
		}
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`(?m)^(?:[a-z]+:.*)?## (?:[A-Z]+=\S* *)*(.*)$`).FindAllStringSubmatch(string(makefile), -1) {
		text := strings.TrimSpace(m[1])
		sentences[text], all[text] = "Makefile", "Makefile"
	}
	for n := 1; n <= 22; n++ { // as make hunt finds them
		for _, path := range mistakes(t) {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			if !regexp.MustCompile(fmt.Sprintf(`func TestW%d\D`, n)).Match(text) {
				continue
			}
			comment := regexp.MustCompile(fmt.Sprintf(`(?m)^// W%d\D.*\n(?://.*\n)*`, n)).FindString(string(text))
			told := strings.Join(strings.Fields(strings.ReplaceAll(comment, "// ", "")), " ")
			sentences[told], all[told] = path, path
			break
		}
	}
	titles, err := filepath.Glob(root + "/step*/parts/*.diff")
	require.NoError(t, err)
	for _, path := range titles {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		title, _, _ := strings.Cut(string(text), "\n")
		sentences[title], all[title] = path, path
	}
	return sentences, all
}

var several = strings.NewReplacer("%v makes", "%v make", "%v lists", "%v list", "%v watches", "%v watch", "%v has", "%v have",
	"%v tries", "%v try", "%v looks", "%v look", "%v deletes", "%v delete")

// placed is what a page's template puts into a sentence.
var placed = regexp.MustCompile(`\{\{(?:number )?\.[^{}]*\}\}`)

func mistakes(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(root + "/step*/wrong_test.go")
	require.NoError(t, err)
	return paths
}

var (
	// What speaks to the user of a tool: the tools' packages, and the errors of the locks.
	tools = regexp.MustCompile(`^internal/|^step[^/]*/[^/]+\.go$`)
	// What the pages quote.
	quoted = regexp.MustCompile(`^(step[^/]*|docs|internal/(storm|peers))/[^/]+_test\.go$|^internal/page/beside_test\.go$`)
	// What speaks to nobody but a test.
	silent = regexp.MustCompile(`^(\.git|out|exercise|internal/(words|browser|doccheck|mutants|chapter|wiretap)|internal/lockcheck/(badinput|contexts|promises|queued|names)\.go|internal/peers/(kv|[a-z]+\.go)|internal/zktest/(lag|race|child|main)\.go)$`)
	// What is no sentence: markup and drawing, commands, ZooKeeper's own words, words of code.
	code = regexp.MustCompile(`<|\{|^M%|^[a-z]( [a-z])?$|^(big|caption|count|soft|title|watch|dot) [a-z]+ ?$|^(apt-get|brew|docker|export|sudo|unset|import|package|for file|read -r|if redis|INFO) |` +
		`^wiretap: |^(Zookeeper version|ephemeral nodes dump|Connections dump):|not in the whitelist$|\\[wdW.]|\(\?|"\$|^cat |apt-get update|px system-ui|^(GET|POST) /|^attachment; |^\[data-|^Step %v:$|^%v (makes?|lists?|watch(es)?|has|have|tries|try|looks?|deletes?)$|^text/|^default-src|^data: |^exit status|^\.ls |^button, a, |^button\[|^select, input$|^\(prefers-|^button, a$|^select, summary$|^use strict$|^zklock: %s %s|^step %s%s$|^box plain$|^(box|gone|watch off|fires|woken|off|mine) %v$`)
	word  = regexp.MustCompile(`[A-Za-z]{2,}`)
	verbs = regexp.MustCompile(`%(\[\d+\])?[-+# 0]*[0-9]*(\.[0-9]+)?[a-zA-Z%]`)
)

func isSentence(text string) bool {
	bare := verbs.ReplaceAllString(text, " ")
	return len(word.FindAllString(bare, -1)) > 0 && strings.Contains(text, " ") && !code.MatchString(text)
}

func parsed(t *testing.T, path string) (*token.FileSet, *ast.File) {
	t.Helper()
	lines := token.NewFileSet()
	file, err := parser.ParseFile(lines, path, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	return lines, file
}

// written takes each string of a file, without the white space around it.
func written(t *testing.T, path, rel string, take func(text, where string)) {
	lines, file := parsed(t, path)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field: // its tag
			return n.Tag == nil
		case *ast.BinaryExpr:
			text, isText := sum(n)
			if isText {
				take(strings.TrimSpace(text), rel+":"+strconv.Itoa(lines.Position(n.Pos()).Line))
				for _, side := range []ast.Expr{n.X, n.Y} { // what is not constant may have strings in it
					ast.Inspect(side, func(n ast.Node) bool {
						if call, ok := n.(*ast.CallExpr); ok {
							for _, arg := range call.Args {
								if text, isText := sum(arg); isText {
									take(strings.TrimSpace(text), rel+":"+strconv.Itoa(lines.Position(n.Pos()).Line))
								}
							}
						}
						return true
					})
				}
				return false
			}
		case *ast.BasicLit:
			if text, isText := sum(n); isText {
				take(strings.TrimSpace(text), rel+":"+strconv.Itoa(lines.Position(n.Pos()).Line))
			}
		}
		return true
	})
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

// spoken takes what a test says for its chapter.
func spoken(t *testing.T, path, rel string, take func(text, where string)) {
	_, file := parsed(t, path)
	for _, decl := range file.Decls {
		for n := range ast.Preorder(decl) {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				continue
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				continue
			}
			format, says := map[string]int{"Says": 1, "SaysIn": 2}[f.Sel.Name]
			if !says {
				continue
			}
			text, isText := sum(call.Args[format])
			if !isText { // a variable: it is one of the strings of this function
				ast.Inspect(decl, func(n ast.Node) bool {
					if e, ok := n.(ast.Expr); ok {
						if text, _ := sum(e); strings.Contains(text, "%") && isSentence(text) {
							take(text, rel)
						}
					}
					return true
				})
			}
			if isText {
				for line := range strings.SplitSeq(text, "\n") {
					if line = strings.TrimLeft(line, "» "); isSentence(line) {
						take(line, rel)
					}
				}
			}
		}
	}
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
		"nothing that a tool says": "nothing that a tool says",
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
