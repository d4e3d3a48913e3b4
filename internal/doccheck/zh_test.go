package doccheck

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// chinese is the folder of the Chinese edition.
const chinese = "docs/zh-CN"

var stepReadme = regexp.MustCompile(`^(step\d\d)_[a-z_]+/README\.md$`)

// original is the English page that a page of the Chinese edition tells; of any
// other page, the page itself.
func (p Page) original() string {
	dir, file := path.Split(p.Path)
	found, _ := fs.Glob(os.DirFS(root), strings.TrimSuffix(file, ".md")+"_*/README.md")
	switch {
	case dir == chinese+"/" && file == "README.md":
		return file
	case dir == chinese+"/" && len(found) == 1:
		return found[0]
	}
	return p.Path
}

func TestTheChineseEditionSaysTheSame(t *testing.T) {
	t.Parallel()
	r := repo(t)
	assert.Empty(t, strings.Join(r.withoutTwin(), "\n"))
	pages := map[string]Page{}
	for _, p := range r.pages {
		pages[p.Path] = p
	}
	properties := pages["README.md"].properties()
	require.GreaterOrEqual(t, len(properties), 17, "properties in README.md's matrix")
	names, problems := translated(properties, pages[chinese+"/README.md"])
	for _, p := range r.pages {
		if p.original() != p.Path {
			problems = append(problems, edition{p, pages[p.original()], names}.differences()...)
		}
	}
	assert.Empty(t, strings.Join(problems, "\n"))
}

// withoutTwin: each chapter has its Chinese page, and each Chinese page its chapter.
func (r repository) withoutTwin() (problems []string) {
	told := map[string]bool{}
	for _, p := range r.pages {
		told[p.original()] = told[p.original()] || p.original() != p.Path
	}
	for _, p := range r.pages {
		isChapter := p.Path == "README.md" || stepReadme.MatchString(p.Path)
		if isChapter && !told[p.Path] {
			problems = append(problems, p.at(1, "%s has no page of it", chinese))
		}
		if path.Dir(p.Path) == chinese && p.original() == p.Path {
			problems = append(problems, p.at(1, "there is no English page of it"))
		}
	}
	return problems
}

// properties lists the rows of the matrix.
func (p Page) properties() (names []string) {
	inMatrix := false
	for i, piece := range p.Pieces {
		switch {
		case piece.Kind == "TableHeader":
			inMatrix = p.Pieces[i+1].Text == "property"
		case piece.Kind == "TableRow" && inMatrix:
			names = append(names, p.Pieces[i+1].Text)
		}
	}
	return names
}

// translated gives the properties' English names by the Chinese ones, which stand
// above them in the Chinese matrix: the tests print the English ones.
func translated(properties []string, zh Page) (english map[string]string, problems []string) {
	english = map[string]string{}
	for _, cell := range zh.Of("TableCell") {
		if above, below, both := strings.Cut(cell.Text, "<br>"); both && slices.Contains(properties, below) {
			english[above] = below
		}
	}
	for _, name := range properties {
		if !slices.Contains(slices.Collect(maps.Values(english)), name) {
			problems = append(problems, zh.at(1, "the Chinese matrix has no row 中文<br>%s", name))
		}
	}
	return english, problems
}

// An edition is a page in both languages.
type edition struct {
	zh, en  Page
	english map[string]string // the properties' names by the Chinese ones
}

// differences lists what the two pages do not say alike.
func (e edition) differences() []string {
	all := slices.Concat(
		e.inOrder("the code", e.zh.code(), e.en.code()),
		e.inAnyOrder(1, 1, "the commands", texts(e.zh.commands()), texts(e.en.commands())),
		e.inAnyOrder(1, 1, "the words in code", e.zh.words(), e.en.words()),
		e.links())
	e.zh, e.en = e.zh.withoutWayOn(), e.en.withoutWayOn()
	outline := e.inOrder("the order of headings, paragraphs and tables", e.zh.outline(), e.en.outline())
	zh, en := e.zh.sections(), e.en.sections()
	for i := range min(len(zh), len(en)) {
		all = append(all, e.inAnyOrder(zh[i].Pieces[0].Line, en[i].Pieces[0].Line, "the numbers below this heading", zh[i].numbers(), en[i].numbers())...)
	}
	return slices.Concat(all, outline, e.inOrder("what stands in the table", e.cells(e.zh), e.cells(e.en)))
}

// unlike names both pages, and what differs.
func (e edition) unlike(zhLine, enLine int, what string, zh, en any) []string {
	return []string{e.zh.at(zhLine, "and %s", e.en.at(enLine, "%s differ:\n\tChinese: %q\n\tEnglish: %q", what, zh, en))}
}

// inOrder compares two lists, and names the first difference: what follows has
// shifted.
func (e edition) inOrder(what string, zh, en []Piece) []string {
	end := Piece{Line: 1, Text: "(ends before)"}
	zh, en = append(zh, end), append(en, end)
	for i := range min(len(zh), len(en)) {
		if zh[i].Text != en[i].Text {
			return e.unlike(zh[i].Line, en[i].Line, what, zh[i].Text, en[i].Text)
		}
	}
	return nil
}

// inAnyOrder compares two lists in which the order is free; what is in one of them
// twice has to be twice in the other.
func (e edition) inAnyOrder(zhLine, enLine int, what string, zh, en []string) []string {
	onlyChinese, onlyEnglish := without(zh, en), without(en, zh)
	if len(onlyChinese)+len(onlyEnglish) == 0 {
		return nil
	}
	return e.unlike(zhLine, enLine, what, onlyChinese, onlyEnglish)
}

func without(all, others []string) []string {
	all = slices.Clone(all)
	for _, other := range others {
		if i := slices.Index(all, other); i >= 0 {
			all = slices.Delete(all, i, i+1)
		}
	}
	return all
}

func texts(pieces []Piece) (all []string) {
	for _, p := range pieces {
		all = append(all, p.Text)
	}
	return all
}

// code lists the lines of the code blocks, and how each block begins.
func (p Page) code() (all []Piece) {
	for _, b := range p.Blocks() {
		all = append(all, Piece{Line: b.Line, Text: "```" + b.Language})
		all = append(all, b.lines()...)
	}
	return all
}

// words lists what stands between backquotes. How often is a matter of style.
func (p Page) words() []string {
	all := texts(p.Of("CodeSpan"))
	slices.Sort(all)
	return slices.Compact(all)
}

// links: where the English page leads, the Chinese one does, and to a page in
// Chinese where there is one. It also leads to the English page.
func (e edition) links() []string {
	wanted, found := []string{e.en.Path}, []string{e.zh.Path} // to itself: the English page's link to it
	for _, l := range e.zh.Of("Link", "Image") {
		found = append(found, e.zh.resolve(l.Text))
	}
	for _, l := range e.en.Of("Link", "Image") {
		to := e.en.resolve(l.Text)
		if chapter := stepReadme.FindStringSubmatch(to); chapter != nil {
			to = chinese + "/" + chapter[1] + ".md"
		} else if to == "README.md" {
			to = chinese + "/README.md"
		}
		wanted = append(wanted, to)
	}
	missing := slices.DeleteFunc(wanted, func(to string) bool { return slices.Contains(found, to) })
	return e.inAnyOrder(1, 1, "the links", nil, missing)
}

// withoutWayOn leaves out a line at the head of a page that leads to other pages:
// only one of the editions may have it.
func (p Page) withoutWayOn() Page {
	head := p.Pieces[:len(p.sections()[0].Pieces)]
	all := slices.DeleteFunc(slices.Clone(head), func(l Piece) bool { return l.ToPage })
	return Page{Path: p.Path, Pieces: append(all, p.Pieces[len(head):]...)}
}

// outline lists the kinds of the blocks, and the levels of the headings.
func (p Page) outline() (all []Piece) {
	for _, piece := range p.Pieces {
		if piece.Block {
			piece.Text = piece.Kind + strings.Repeat("#", piece.Level)
			all = append(all, piece)
		}
	}
	return all
}

// cells lists what the cells of the tables have besides words: numbers, marks, and
// names of properties.
func (e edition) cells(p Page) (all []Piece) {
	for _, cell := range p.Of("TableCell") {
		has := numbers(cell.Words)
		for _, mark := range []string{"✓", "✗", "–"} {
			has = append(has, slices.Repeat([]string{mark}, strings.Count(cell.Text, mark))...)
		}
		at := map[string]int{}
		for zh, en := range e.english {
			at[en] = max(strings.Index(cell.Text, zh), strings.Index(cell.Text, en))
		}
		for _, name := range slices.SortedFunc(maps.Keys(at), func(a, b string) int { return at[a] - at[b] }) {
			if at[name] >= 0 {
				has = append(has, name)
			}
		}
		cell.Text = strings.Join(has, ", ")
		all = append(all, cell)
	}
	return all
}

// numbers lists a section's numbers, code left out.
func (p Page) numbers() (all []string) {
	for _, text := range p.Of("Heading", "Paragraph", "TextBlock", "TableCell") {
		all = append(all, numbers(text.Words)...)
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
)

func numbers(text string) (all []string) {
	for _, number := range figures.FindAllString(text, -1) {
		all = append(all, strings.ReplaceAll(number, ",", ""))
	}
	for _, m := range inEnglish.FindAllString(text, -1) {
		all = append(all, values[strings.ToLower(m)])
	}
	for _, m := range inChinese.FindAllStringSubmatch(text, -1) {
		if m[1] == "" { // 第三 is an ordinal, as third is
			all = append(all, values[m[2]])
		}
	}
	return all
}
