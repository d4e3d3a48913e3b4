package doccheck

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// papersOfTheHunt runs docs/workshop.sh, and returns the files that it has written, such as 3-slip, 3-go, 3-listing.
func papersOfTheHunt(t *testing.T, language string) func(name string) string {
	t.Helper()
	return papersOf(t, language, standIns())
}

// papersOf is papersOfTheHunt with these texts.
func papersOf(t *testing.T, language string, standIns map[string]string) func(name string) string {
	t.Helper()
	papers, texts := t.TempDir(), t.TempDir()
	for name, text := range standIns {
		require.NoError(t, os.WriteFile(filepath.Join(texts, name+".txt"), []byte(text), 0o600))
	}
	script := exec.CommandContext(t.Context(), "bash", filepath.Join(root, "docs/workshop.sh"), papers, texts)
	script.Env = append(os.Environ(), "ZKLOCK_LANG="+language)
	said, err := script.CombinedOutput()
	require.NoError(t, err, "docs/workshop.sh: %s", said)
	return func(name string) string {
		if filepath.Ext(name) == "" {
			name += ".txt"
		}
		text, err := os.ReadFile(filepath.Join(papers, name))
		require.NoError(t, err)
		return string(text)
	}
}

// standIns have the outlines of the five documents, which are not in this repository.
func standIns() map[string]string {
	var listings strings.Builder
	for i, first := range []string{"class ZkDistributedLock {", "void lock() {", "class ZkDistributedLock {"} {
		fmt.Fprintf(&listings, "text\n1. public %s\n", first)
		last := []int{80, 29, 107}[i]
		for line := 2; line < last; line++ {
			fmt.Fprintf(&listings, "%d. substringAfter(path, '_')\n", line)
		}
		fmt.Fprintf(&listings, "%d. }\n", last)
	}
	methods := func(indent string, heads ...string) (all string) {
		for _, head := range heads {
			all += fmt.Sprintf("%s%s {\n%s    body\n%s}\n", indent, head, indent, indent)
		}
		return all
	}
	return map[string]string{
		"alibaba": listings.String() + "小结\n1. 互斥\n2. 防死锁\n",
		"51cto": "public class ZooKeeperLock {\n" + methods("    ", "public boolean lock()", "public boolean tryLock()",
			"private boolean waitOtherLock()", "public void unlock()", "public void process()") + "}\n测试\n",
		"lenshood": "### Zookeeper 分布式锁原理\n2. 排序\n4. 休眠\n### 代码实现\n" + methods("", "public void lock()", "void acquire()",
			"private class LockWatcher implements", "String getCurrentFirstPath()", "String getPreviousPath()",
			"private List<String> getAllSortedPaths()", "public void unlock()") + "因此不会被自动释放\n### 总结\n",
		"mxjuly":   "### 判断读写顺序\n第一步\n### 释放锁\n**改进方案\n",
		"nileader": "<h1>改进后的分布式锁实现</h1>\n<p>唯一不同之处</p>\n<li>create</li>\n<li>getChildren</li>\n<h1>结论</h1>\n",
	}
}

// The Go of a group has each mistake of the command on its slip, as it is after the change, with a sentence before it,
// and no name, belief or mark of Markdown; the key has the names, the lines, and the changes.
func TestTheGoOfTheHuntHasEachMistakeAndNoName(t *testing.T) {
	var tests string
	for name, text := range read(t).code {
		if strings.HasSuffix(name, "/wrong_test.go") {
			tests += text
		}
	}
	for _, language := range []string{"en", "zh"} {
		papers := papersOfTheHunt(t, language)
		for group := 1; group <= 9; group++ {
			command, code := papers(fmt.Sprintf("%d-slip", group)), papers(fmt.Sprintf("%d-go", group))
			asked, ok := strings.CutPrefix(command, "bash docs/kit/hunt.sh ")
			require.True(t, ok, command)
			mistakes := strings.Fields(asked)
			for _, mistake := range mistakes {
				assert.Regexp(t, `func TestW`+mistake+`[A-Z]`, tests, command)
			}
			pieces := pieceOfGo.FindAllStringSubmatch(code, -1)
			assert.NotEmpty(t, mistakes, command)
			assert.Len(t, pieces, len(mistakes), "%s, group %d: pieces of Go, each with a sentence before it", language, group)
			assert.NotRegexp(t, `W\d|our list|清单|belief|有人以为`, code, "%s, group %d: names and beliefs", language, group)
			assert.NotRegexp(t, `(?m)^\d+\. [-+]|^\D.*[*]`, code, "%s, group %d: marks of a diff, of Markdown", language, group)
			last := 0 // each mistake is in the key with its lines, which follow one another
			for _, piece := range regexp.MustCompile(fmt.Sprintf(`(?m)^%d, (\d+)-(\d+): W(\d+)[:：]`, group)).FindAllStringSubmatch(papers("go-key"), -1) {
				assert.Equal(t, fmt.Sprint(last+1), piece[1], "%s, group %d: the first line of W%s", language, group, piece[3])
				last, _ = strconv.Atoi(piece[2])
				mistakes = slices.DeleteFunc(mistakes, func(m string) bool { return m == piece[3] })
			}
			assert.Empty(t, mistakes, "%s, group %d: not in the key", language, group)
			assert.Len(t, numberedLine.FindAllString(code, -1), last, "%s, group %d: lines with a number", language, group)
			if slices.Contains(strings.Fields(asked), "8") { // one of those that the pages show as a diff
				assert.Contains(t, papers("go-key"), "\n-\t\t\tif event.Err != nil {")
				assert.NotContains(t, code, "if event.Err != nil")
			}
		}
		assert.Contains(t, papers("go.html"), "<b>before</b>", "a name in the text above the Go")
		assert.NotContains(t, papers("go.html"), "`")
	}
}

var pieceOfGo = regexp.MustCompile(`(?m)^\D.*\n\n(?:\d+\. .*\n)+`) // and the line above it

var numberedLine = regexp.MustCompile(`(?m)^\d+\. `)

var markedLine = regexp.MustCompile(`(?m)^>> (\d+)\.`)

// A listing is whole, its lines are numbered, and the group's part is marked, also if a browser has copied the text.
func TestTheListingsOfTheHuntMarkEachGroupsPart(t *testing.T) {
	listingsAreMarked(t, papersOfTheHunt(t, "en"))
	listingsAreMarked(t, papersOf(t, "en", copied()))
}

func listingsAreMarked(t *testing.T, papers func(name string) string) {
	t.Helper()
	for _, group := range []struct {
		number, lines int
		marked        string // the numbers of the marked lines
	}{
		{1, 80, "7 8 9 10 11 12 13 14 15 16 17 70 71 72 73 74 75 76 77 78 79"},
		{3, 29 + 29, strings.Trim(fmt.Sprint(upTo(29)), "[]")},
		{5, 17, "5 6 7 11 12 13"},           // tryLock, unlock
		{6, 17, "8 9 10 14 15 16"},          // waitOtherLock, process
		{7, 24, "5 6 7 11 12 13 14 15 16"},  // acquire, getCurrentFirstPath, getPreviousPath
		{8, 24, "8 9 10 17 18 19 20 21 22"}, // LockWatcher, getAllSortedPaths, unlock
	} {
		listing := papers(fmt.Sprintf("%d-listing", group.number))
		assert.Equal(t, group.lines, strings.Count(listing, "\n"), "group %d: lines", group.number)
		var marked []string
		for _, found := range markedLine.FindAllStringSubmatch(listing, -1) {
			marked = append(marked, found[1])
		}
		assert.Equal(t, group.marked, strings.Join(marked, " "), "group %d", group.number)
	}
	assert.Contains(t, papers("3-listing"), "\n55. substringAfter(node, '_')\n")
	assert.Contains(t, papers("9-listing"), "2. 排序\n4. 休眠\n### 判断读写顺序\n")
	assert.Contains(t, papers("9-listing"), "\n2. getChildren\n")
}

var (
	shownNumber = regexp.MustCompile(`(?m)^\d+\. `)
	tag         = regexp.MustCompile(`<[^>]*>`)
)

// copied are standIns as a browser copies them: no tags, and no numbers before the lines.
func copied() map[string]string {
	texts := standIns()
	texts["alibaba"] = shownNumber.ReplaceAllString(texts["alibaba"], "")
	texts["nileader"] = tag.ReplaceAllString(texts["nileader"], "")
	for name, text := range texts {
		texts[name] = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return texts
}

// Each group begins a page, whose head has its number and whose first sentence is the task.
func TestThePrintedPapersHaveTheGroupAndItsTask(t *testing.T) {
	for language, words := range map[string][2]string{
		"en": {"Group %d · ", "what is wrong in your part?"}, "zh": {"第 %d 组 · ", "错在哪里？"},
	} {
		papers := papersOfTheHunt(t, language)
		for _, name := range []string{"papers.html", "go.html"} {
			pages := strings.Split(papers(name), "<table>")
			for group := 1; group <= 9; group++ {
				head := "<thead><tr><th>" + fmt.Sprintf(words[0], group)
				at := slices.IndexFunc(pages, func(page string) bool { return strings.HasPrefix(page, head) })
				require.NotEqual(t, -1, at, "%s of group %d, %s", name, group, language)
				assert.Contains(t, pages[at], words[1], "%s of group %d", name, group)
			}
		}
	}
}

// What the class opens is on one page: the improved lock of nileader, 小结 1 of Alibaba, and lenshood's reason.
func TestThePapersHaveTheThreePassagesThatTheClassOpens(t *testing.T) {
	var passages []string
	for line := range strings.Lines(papersOfTheHunt(t, "en")("class")) {
		passages = append(passages, strings.TrimSpace(line))
	}
	assert.Subset(t, passages, []string{"改进后的分布式锁实现", "2. getChildren", "1. 互斥", "因此不会被自动释放"})
	assert.NotContains(t, passages, "结论", "the end of nileader's lock")
	assert.NotContains(t, passages, "2. 防死锁", "the end of 小结 1")
}

func upTo(last int) (all []int) {
	for i := 1; i <= last; i++ {
		all = append(all, i)
	}
	return all
}
