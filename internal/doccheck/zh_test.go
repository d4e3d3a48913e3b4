package doccheck

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// chinese is the folder of the Chinese edition.
const chinese = "docs/zh-CN"

// original is the English page that a page of the Chinese edition tells; of any
// other page, the page itself.
func (p page) original() string {
	dir, file := path.Split(p.path)
	switch {
	case path.Clean(dir) != chinese:
		return p.path
	case file == "README.md":
		return file
	}
	found, _ := filepath.Glob(filepath.Join(root, strings.TrimSuffix(file, ".md")+"_*", "README.md"))
	if len(found) != 1 {
		return p.path
	}
	relative, _ := filepath.Rel(root, found[0])
	return filepath.ToSlash(relative)
}

// An edition is a page in both languages.
type edition struct {
	zh, en page
	names  map[string]string // the properties' Chinese names, by the English ones
}

func TestTheChineseEditionSaysTheSame(t *testing.T) {
	t.Parallel()
	r := repo(t)
	english := map[string]page{}
	told := map[string]bool{}
	var front page
	for _, p := range r.pages {
		english[p.path] = p
		told[p.original()] = told[p.original()] || p.original() != p.path
		if p.path == chinese+"/README.md" {
			front = p
		}
	}
	names := properties(english["README.md"])
	if len(names) < 17 {
		t.Fatalf("README.md: %d properties in the matrix, want 17 or more", len(names))
	}
	inChinese, problems := translated(names, front)
	for _, problem := range problems {
		t.Error(problem)
	}
	for _, p := range r.pages {
		if path.Dir(p.path) == chinese && p.original() == p.path {
			t.Errorf("%s: there is no English page of it", p.path)
		}
		if isChapter := p.path == "README.md" || stepReadme.MatchString(p.path); isChapter && !told[p.path] {
			t.Errorf("%s: %s has no page of it", p.path, chinese)
		}
		if p.original() == p.path {
			continue
		}
		for _, problem := range (edition{p, english[p.original()], inChinese}).differences() {
			t.Error(problem)
		}
	}
}

// differences lists what the two pages do not say alike.
func (e edition) differences() (all []string) {
	for _, compare := range []func() []string{e.blocks, e.commands, e.code, e.links, e.sections} {
		all = append(all, compare()...)
	}
	return all
}

// says names both pages and what differs.
func (e edition) says(zhLine, enLine int, format string, args ...any) string {
	at := func(p page, line int) string {
		if line == 0 {
			return p.path
		}
		return fmt.Sprintf("%s:%d", p.path, line)
	}
	return fmt.Sprintf("%s and %s: %s", at(e.zh, zhLine), at(e.en, enLine), fmt.Sprintf(format, args...))
}

// unlike is the message for a thing that has to be equal.
func (e edition) unlike(zhLine, enLine int, what string, zh, en any) string {
	return e.says(zhLine, enLine, "%s differs:\n\tChinese: %v\n\tEnglish: %v", what, zh, en)
}

// blocks: the code blocks are the same, in the same order.
func (e edition) blocks() (problems []string) {
	if zh, en := len(e.zh.blocks), len(e.en.blocks); zh != en {
		problems = append(problems, e.unlike(0, 0, "the number of code blocks", zh, en))
	}
	for i := range min(len(e.zh.blocks), len(e.en.blocks)) {
		zh, en := e.zh.blocks[i], e.en.blocks[i]
		if zh.language != en.language {
			problems = append(problems, e.unlike(zh.first-1, en.first-1, "the language of code block "+strconv.Itoa(i+1), zh.language, en.language))
		}
		for n := range max(len(zh.lines), len(en.lines)) {
			line := func(b block) string {
				if n < len(b.lines) {
					return strconv.Quote(b.lines[n])
				}
				return "(ends before)"
			}
			if line(zh) != line(en) {
				problems = append(problems, e.unlike(zh.first+n, en.first+n, fmt.Sprintf("line %d of code block %d", n+1, i+1), line(zh), line(en)))
				break // what follows has shifted
			}
		}
	}
	return problems
}

// commands: the reader is told to type the same.
func (e edition) commands() []string {
	list := func(p page) (all []string) {
		for _, c := range p.commands() {
			all = append(all, strings.Join(c.words, " "))
		}
		return all
	}
	return e.sameThings("the commands", list(e.zh), list(e.en))
}

// code: what stands between backquotes in one is in the other; how often and in
// which order is a matter of style.
func (e edition) code() []string {
	list := func(p page) (all []string) {
		for _, l := range p.prose {
			all = append(all, spans(l.text)...)
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	return e.sameThings("the words in code", list(e.zh), list(e.en))
}

// links: where the English page leads, the Chinese one does, and to a page in
// Chinese where there is one. It also leads to the English page.
func (e edition) links() (problems []string) {
	found := map[string]bool{}
	for _, l := range e.zh.links() {
		found[e.zh.resolve(l.target)] = true
	}
	wanted := map[string]bool{e.en.path: true}
	for _, l := range e.en.links() {
		to := e.en.resolve(l.target)
		if chapter := stepReadme.FindStringSubmatch(to); chapter != nil {
			to = chinese + "/" + chapter[1] + ".md"
		} else if to == "README.md" {
			to = chinese + "/README.md"
		}
		// The English page's link to the Chinese one is the Chinese one's to it.
		wanted[to] = wanted[to] || to != e.zh.path
	}
	for to, want := range wanted {
		if want && !found[to] {
			problems = append(problems, e.says(0, 0, "the Chinese page has no link to %s", to))
		}
	}
	slices.Sort(problems)
	return problems
}

var stepReadme = regexp.MustCompile(`^(step\d\d)_[a-z_]+/README\.md$`)

// resolve is where a link leads, from the repository's root, without its anchor.
func (p page) resolve(target string) string {
	if scheme.MatchString(target) {
		return target
	}
	file, _, _ := strings.Cut(target, "#")
	if file == "" {
		return p.path
	}
	return path.Join(path.Dir(p.path), file)
}

// sections: the headings have the same levels, and below each stand as many
// paragraphs, the same numbers and the same table.
func (e edition) sections() (problems []string) {
	zh, en := e.zh.sections(), e.en.sections()
	outline := func(sections []section) (all []string) {
		for _, s := range sections {
			all = append(all, strings.Repeat("#", s.level))
		}
		return all
	}
	if !slices.Equal(outline(zh), outline(en)) {
		return []string{e.unlike(0, 0, "the outline", outline(zh), outline(en))}
	}
	for i := range zh {
		z, n := zh[i], en[i]
		below := fmt.Sprintf("below %q and %q: ", z.title, n.title)
		if z.paragraphs() != n.paragraphs() {
			problems = append(problems, e.unlike(z.first, n.first, below+"the number of paragraphs", z.paragraphs(), n.paragraphs()))
		}
		if only, missing := difference(z.numbers(), n.numbers()); len(only)+len(missing) > 0 {
			problems = append(problems, e.says(z.first, n.first, "%sthe numbers differ: only in Chinese %v, only in English %v", below, only, missing))
		}
		problems = append(problems, e.tables(z.rows(), n.rows(), below)...)
	}
	return problems
}

// tables: the rows have the same cells: as many, with the same marks, numbers
// and properties, in the same order.
func (e edition) tables(zh, en []line, below string) (problems []string) {
	if len(zh) != len(en) {
		return []string{e.says(0, 0, "%sthe number of table rows differs: Chinese %d, English %d", below, len(zh), len(en))}
	}
	for i, zhRow := range zh {
		enRow := en[i]
		z, n := strings.Split(zhRow.text, "|"), strings.Split(enRow.text, "|")
		if len(z) != len(n) {
			problems = append(problems, e.unlike(zhRow.number, enRow.number, "the number of cells", len(z)-2, len(n)-2))
			continue
		}
		for c := range z {
			if zh, en := marks(z[c]), marks(n[c]); !slices.Equal(zh, en) {
				problems = append(problems, e.unlike(zhRow.number, enRow.number, fmt.Sprintf("what stands in column %d", c), zh, en))
			}
		}
		if zh, en := e.named(zhRow.text, true), e.named(enRow.text, false); !slices.Equal(zh, en) {
			problems = append(problems, e.unlike(zhRow.number, enRow.number, "the list of properties", zh, en))
		}
	}
	return problems
}

// named lists the properties that a text names, by their English names.
func (e edition) named(text string, inChinese bool) (all []string) {
	at := map[string]int{}
	for en, zh := range e.names {
		name := en
		if inChinese {
			name = zh
		}
		if i := strings.Index(text, name); i >= 0 {
			all, at[en] = append(all, en), i
		}
	}
	slices.SortFunc(all, func(a, b string) int { return at[a] - at[b] })
	return all
}

// sameThings compares two lists in which the order is free.
func (e edition) sameThings(what string, zh, en []string) []string {
	only, missing := difference(zh, en)
	if len(only)+len(missing) == 0 {
		return nil
	}
	return []string{e.says(0, 0, "%s differ: only in Chinese %q, only in English %q", what, only, missing)}
}

// difference lists what is in one list and not in the other; what is in a list
// twice has to be twice in the other.
func difference(a, b []string) (onlyA, onlyB []string) {
	count := map[string]int{}
	for _, x := range b {
		count[x]++
	}
	for _, x := range a {
		if count[x]--; count[x] < 0 {
			onlyA = append(onlyA, x)
		}
	}
	for _, x := range b {
		if count[x] > 0 {
			count[x]--
			onlyB = append(onlyB, x)
		}
	}
	return onlyA, onlyB
}

// A section is a heading and what stands below it, up to the next heading.
type section struct {
	level int
	title string
	first int // the heading's line
	lines []line
}

// toPage is a link to a page. Such a line at the head of a page is its
// navigation, which only one of the editions may have.
var toPage = regexp.MustCompile(`\]\([^)]*\.md(?:#[^)]*)?\)`)

func (p page) sections() (all []section) {
	for _, l := range p.prose {
		if m := heading.FindStringSubmatch(l.text); m != nil || len(all) == 0 {
			s := section{first: l.number}
			if m != nil {
				s.level, s.title = len(l.text)-len(strings.TrimLeft(l.text, "#")), m[1]
			}
			all = append(all, s)
		}
		last := &all[len(all)-1]
		if len(all) == 1 && toPage.MatchString(l.text) {
			l.text = "" // the way to other pages
		}
		last.lines = append(last.lines, l)
	}
	return all
}

func (s section) paragraphs() (n int) {
	blank := true
	for _, l := range s.lines {
		now := strings.TrimSpace(l.text) == ""
		if blank && !now {
			n++
		}
		blank = now
	}
	return n
}

// rows lists the lines of the section's tables.
func (s section) rows() (all []line) {
	for _, l := range s.lines {
		if strings.HasPrefix(l.text, "|") {
			all = append(all, l)
		}
	}
	return all
}

// numbers lists the section's numbers, where a link leads and code left out.
func (s section) numbers() (all []string) {
	for _, l := range s.lines {
		all = append(all, numbers(l.text)...)
	}
	return all
}

// A number is in figures, or in words from three on: one and two are too often
// no numbers (one another, 一起). In Chinese a word for a thing counted follows.
var (
	figures   = regexp.MustCompile(`\d+(?:,\d{3})*(?:\.\d+)?`)
	inEnglish = regexp.MustCompile(`(?i)\b(three|four|five|six|seven|eight|nine|ten|eleven|sixteen|seventeen|twenty|hundred)\b`)
	inChinese = regexp.MustCompile(`(第?)(一百|二十|十七|十六|十一|三|四|五|六|七|八|九|十)[个种次件点步轮项倍台名条行份章场]`)
	values    = map[string]string{
		"three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9", "ten": "10",
		"eleven": "11", "sixteen": "16", "seventeen": "17", "twenty": "20", "hundred": "100",
		"三": "3", "四": "4", "五": "5", "六": "6", "七": "7", "八": "8", "九": "9", "十": "10",
		"十一": "11", "十六": "16", "十七": "17", "二十": "20", "一百": "100",
	}
	leadsTo = regexp.MustCompile(`\]\([^)]*\)`)
)

func numbers(text string) (all []string) {
	text = leadsTo.ReplaceAllString(codeSpan.ReplaceAllString(text, ""), "]")
	for _, number := range figures.FindAllString(text, -1) {
		all = append(all, strings.ReplaceAll(number, ",", ""))
	}
	for _, m := range inEnglish.FindAllStringSubmatch(text, -1) {
		all = append(all, values[strings.ToLower(m[1])])
	}
	for _, m := range inChinese.FindAllStringSubmatch(text, -1) {
		if m[1] == "" { // 第三 is an ordinal, as third is
			all = append(all, values[m[2]])
		}
	}
	return all
}

// marks lists what a cell of a table has besides words.
func marks(cell string) []string {
	all := numbers(cell)
	for _, mark := range []string{"✓", "✗", "–"} {
		for range strings.Count(cell, mark) {
			all = append(all, mark)
		}
	}
	return all
}

// properties lists the rows of the matrix.
func properties(front page) (names []string) {
	inMatrix := false
	for _, l := range front.prose {
		cells := strings.Split(l.text, "|")
		if len(cells) < 3 {
			inMatrix = false
			continue
		}
		name := strings.TrimSpace(cells[1])
		if inMatrix && !strings.HasPrefix(name, "--") {
			names = append(names, name)
		}
		inMatrix = inMatrix || name == "property"
	}
	return names
}

// translated finds the properties' Chinese names in the Chinese matrix, where
// they stand above the English ones, which the tests print.
func translated(names []string, front page) (inChinese map[string]string, problems []string) {
	inChinese = map[string]string{}
	for _, l := range front.prose {
		cells := strings.Split(l.text, "|")
		if len(cells) < 3 {
			continue
		}
		if zh, en, both := strings.Cut(strings.TrimSpace(cells[1]), "<br>"); both && slices.Contains(names, en) {
			inChinese[en] = zh
		}
	}
	for _, name := range names {
		if inChinese[name] == "" {
			problems = append(problems, fmt.Sprintf("%s and README.md: the Chinese matrix has no row 中文<br>%s", front.path, name))
		}
	}
	return inChinese, problems
}

// Each comparison is shown two pages that differ in one thing, and has to find
// it; and a pair that says the same, where it may find nothing.
func TestDifferencesOfTheEditionsAreFound(t *testing.T) {
	t.Parallel()
	const en, zh = "step04_predecessor_watch/README.md", chinese + "/step04.md"
	const link = "[English](../../" + en + ")\n\n"
	fence := func(text string) string { return "```\n" + text + "\n```" }
	for _, c := range []struct {
		english, wrong, says, right string
	}{
		{fence("» 10 waiters: 1 list"), fence("» 10 waiters: 2 lists"), "line 1 of code block 1 differs", fence("» 10 waiters: 1 list")},
		{fence("a\nb"), fence("a"), "(ends before)", fence("a\nb")},
		{fence("a"), "", "the number of code blocks differs", fence("a")},
		{"```go\na\n```", "```sh\na\n```", "the language of code block 1 differs", "```go\na\n```"},
		{"`Lock`", "`Unlock`", `only in Chinese ["Unlock"], only in English ["Lock"]`, "`Lock` `Lock`"},
		{"## A\nten take 1,275 in step 3", "## 甲\n第 3 步中十个用 1,257", "only in Chinese [1257], only in English [1275]", "## 甲\n十个，第 3 步 1275"},
		{"ten and four", "4 个", "only in English [10]", "四次和 10"},
		{"the third try, one by one", "三次", "only in Chinese [3]", "第三次，一个接一个"},
		{"# A\n## B", "# 甲\n### 乙", "the outline differs", "# 甲\n## 乙"},
		{"# A\n## B", "# 甲", "the outline differs", "# 甲\n## 乙"},
		{"a\n\nb", "甲乙", "the number of paragraphs differs", "甲\n\n乙"},
		{"| a | ✓ | ✗ |", "| 甲 | ✗ | ✓ |", "what stands in column 2 differs", "| 甲 | ✓ | ✗ |"},
		{"| a | 1 · 3 |", "| 甲 | 3 · 1 |", "what stands in column 2 differs", "| 甲 | 1 · 3 |"},
		{"| a | b |", "| 甲 |", "the number of cells differs", "| 甲 | 乙 |"},
		{"| a |\n| b |", "| 甲 |", "the number of table rows differs", "| 甲 |\n| 乙 |"},
		{"| ✓ | it is fair · it is quick |", "| ✓ | 快 · 公平 |", "the list of properties differs", "| ✓ | 公平 · 快 |"},
		{"[a](../step05_reentrant/README.md)", "[甲](../../step05_reentrant/README.md)", "no link to docs/zh-CN/step05.md", "[甲](step05.md#x)"},
		{"[a](wrong_test.go)", "甲", "no link to step04_predecessor_watch/wrong_test.go", "[甲](../../step04_predecessor_watch/wrong_test.go)"},
		{"say `make see STEP=04`", "`make see STEP=04`, `make see STEP=04`", `the commands differ: only in Chinese ["make see STEP=04"]`, "`make see STEP=04`"},
	} {
		compare := func(text string) []string {
			english, err := parsePage(en, "[中文](../"+zh+")\n\n"+c.english)
			must(t, err)
			translation, err := parsePage(zh, link+text)
			must(t, err)
			return edition{translation, english, map[string]string{"it is fair": "公平", "it is quick": "快"}}.differences()
		}
		found := compare(c.wrong)
		if !slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, c.says) }) {
			t.Errorf("%s\nfor\n%s\nwant %q, and found %q", c.wrong, c.english, c.says, found)
		}
		for _, f := range found {
			if !strings.HasPrefix(f, zh) || !strings.Contains(f, " and "+en) {
				t.Errorf("%q does not name both files", f)
			}
		}
		if found := compare(c.right); len(found) != 0 {
			t.Errorf("%s\nsays what\n%s\nsays, and found was %q", c.right, c.english, found)
		}
	}
	alone, err := parsePage(zh, "甲")
	must(t, err)
	if found := (edition{alone, page{path: en}, nil}).links(); len(found) != 1 || !strings.Contains(found[0], "no link to "+en) {
		t.Errorf("a page without a link to its original: found %q", found)
	}
	front, err := parsePage(chinese+"/README.md", "| 公平<br>it is fair | ✓ |")
	must(t, err)
	if _, problems := translated([]string{"it is fair", "it is quick"}, front); len(problems) != 1 || !strings.Contains(problems[0], "it is quick") {
		t.Errorf("a property without a Chinese name: found %q", problems)
	}
}

// The checks of all pages hold a Chinese chapter to its step.
func TestAChineseChapterIsHeldToItsStep(t *testing.T) {
	t.Parallel()
	r := repo(t)
	for _, c := range []struct {
		finds       func(repository, page) []string
		right, also string // right in step 4; right only in another
	}{
		{repository.badCode, "```go\n\t\tnames, _, err := l.conn.Children(l.dir)\n```", "```go\n\t\tnames, _, changed, err := l.conn.ChildrenW(l.dir)\n```"},
		{repository.badQuotes, "```\n» a znode that is gone: GetW leaves 0 watches at the server, ExistsW 1\n```", "```\n» 10 waiters, 1 second: 0 requests but pings\n```"},
		{repository.badNames, "`TestReleaseWakesOne`", "`TestQueueDrained`"},
	} {
		for path, wrong := range map[string]string{chinese + "/step04.md": c.also, chinese + "/step03.md": c.right} {
			broken, err := parsePage(path, wrong)
			must(t, err)
			if found := c.finds(r, broken); len(found) != 1 {
				t.Errorf("%s: %s\nwant one problem, and found %q", path, wrong, found)
			}
		}
		sound, err := parsePage(chinese+"/step04.md", c.right)
		must(t, err)
		if found := c.finds(r, sound); len(found) != 0 {
			t.Errorf("%s\nis right, and found was %q", c.right, found)
		}
	}
}
