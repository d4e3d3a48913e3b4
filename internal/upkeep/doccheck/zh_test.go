package doccheck

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"zklock/internal/check/lockcheck"
	"zklock/internal/upkeep/words"
)

var stepReadme = regexp.MustCompile(`^(step\d\d)_[a-z_]+/README\.md$`)

// original is the English page beside a Chinese one. Of any other page it is the page itself.
func (p Page) original() string {
	if folder, isHints := strings.CutSuffix(p.Path, "/hints.zh.md"); isHints {
		return folder + "/hints.md"
	}
	return strings.Replace(p.Path, ".zh-CN.md", ".md", 1)
}

// twins gives the Chinese page by the English one.
func (r repository) twins() map[string]Page {
	twins := map[string]Page{}
	for _, p := range r.pages {
		if p.original() != p.Path {
			twins[p.original()] = p
		}
	}
	return twins
}

func TestTheChineseEditionSaysTheSame(t *testing.T) {
	t.Parallel()
	r := repo(t)
	problems, twins := r.withoutTwin(), r.twins()
	for english, zh := range twins {
		problems = append(problems, edition{zh, r.pages[english], twins}.differences()...)
	}
	assert.Empty(t, strings.Join(append(problems, r.quotedOtherwise()...), "\n"))
	for _, p := range lockcheck.Properties { // the tests print the English name
		assert.Contains(t, twins["docs/properties.md"].Source, "\n| "+words.Whole(p.Name).ZH+"<br>"+p.Name+" |", "the Chinese matrix")
	}
}

// quotedOtherwise: what several pages quote, with a » in front, is the same in Chinese on
// all of them. One of them is the page that the test holds.
func (r repository) quotedOtherwise() (problems []string) {
	said := map[string]Piece{}
	for english, zh := range r.twins() {
		inEnglish, inChinese := r.pages[english].quoted(), zh.quoted()
		for i := range min(len(inEnglish), len(inChinese)) { // else the code differs
			own := inChinese[i]
			other, again := said[inEnglish[i].Text]
			if again && other.Text != own.Text {
				problems = append(problems, zh.at(own.Line, "another page has %q, and not %q", other.Text, own.Text))
			}
			said[inEnglish[i].Text] = own
		}
	}
	return problems
}

// withoutTwin: each page has its Chinese one, and each Chinese page its English one.
func (r repository) withoutTwin() (problems []string) {
	twins := r.twins()
	for _, p := range r.pages {
		_, told := twins[p.Path]
		_, hasOriginal := r.pages[p.original()]
		isChinese := p.original() != p.Path
		switch {
		case ForWhoChangesTheCode(p.Path):
		case !hasOriginal:
			problems = append(problems, p.at(1, "there is no English page of it"))
		case !isChinese && !told:
			problems = append(problems, p.at(1, "there is no Chinese page of it"))
		}
	}
	return problems
}

func TestTheChinesePagesUseTheWordsOfTheGlossary(t *testing.T) { check(t, repository.badWords) }

// badWords: what the last table of the Chinese glossary has in its first column
// stands on no other Chinese page.
func (r repository) badWords(p Page) (problems []string) {
	const glossary = "docs/glossary.zh-CN.md"
	if p.original() == p.Path || p.Path == glossary {
		return nil
	}
	sections := r.pages[glossary].sections()
	cells := sections[len(sections)-1].Of("TableCell")
	for row := range slices.Chunk(cells[3:], 3) { // behind the head
		for word := range strings.SplitSeq(row[0].Text, "，") {
			if n := strings.Index(p.Source, word); n >= 0 {
				problems = append(
					problems,
					p.at(1+strings.Count(p.Source[:n], "\n"), "%s: the glossary says %s", word, row[1].Text),
				)
			}
		}
	}
	return problems
}

// An edition is a page in both languages.
type edition struct {
	zh, en Page
	twins  map[string]Page // the Chinese pages by the English ones
}

// differences lists what the two pages do not say alike.
func (e edition) differences() []string {
	all := slices.Concat(
		e.inOrder("the code", withoutSaid(withoutComments(e.zh.code())), asHeld(withoutSaid(withoutComments(e.en.code())))),
		e.inAnyOrder(1, 1, "the commands", texts(e.zh.commands()), texts(e.en.commands())),
		e.inAnyOrder(1, 1, "the words in code", e.zh.words(), e.en.words()),
		e.links())
	outline := e.inOrder("the order of headings, paragraphs and tables", e.zh.outline(), e.en.outline())
	zh, en := e.zh.sections(), e.en.sections()
	for i := range min(len(zh), len(en)) {
		missing := without(en[i].numbers(), zh[i].numbers()) // the other way, English may have a word for it
		all = append(
			all,
			e.inAnyOrder(zh[i].Pieces[0].Line, en[i].Pieces[0].Line, "the numbers below this heading", nil, missing)...,
		)
	}
	if e.en.isHints() {
		all = append(all, e.inOrder("the properties", e.zh.subheadings(), translated(e.en.subheadings()))...)
		all = append(all, e.zh.inEnglish()...)
	}
	zhCells, enCells := e.cells()
	return slices.Concat(all, outline, e.inOrder("what stands in the table", zhCells, enCells))
}

// unlike names both pages, and what differs.
func (e edition) unlike(zhLine, enLine int, what string, zh, en any) []string {
	return []string{e.zh.at(
		zhLine,
		"and %s",
		e.en.at(enLine, "%s differ:\n\tChinese: %q\n\tEnglish: %q", what, zh, en),
	)}
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

// code lists the lines of the code blocks, and how each block begins. A block of
// text is a drawing: its words are in the page's language.
func (p Page) code() (all []Piece) {
	for _, b := range p.Blocks() {
		all = append(all, Piece{Line: b.Line, Text: "```" + b.Language})
		if b.Language != "text" {
			all = append(all, b.lines()...)
		}
	}
	return all
}

var (
	saidLine = regexp.MustCompile(`^» .*`)
	heldLine = regexp.MustCompile(`^([a-z]\w* +\d\d:\d\d:\d\d[.\d]* +)(.*?)( \(\d+ times\))?$`)
)

// withoutSaid leaves out what follows a »: the test that says so holds both pages to it.
func withoutSaid(code []Piece) []Piece {
	for i, l := range code {
		code[i].Text = saidLine.ReplaceAllString(l.Text, "»")
	}
	return code
}

// asHeld turns lines of make hold into what a Chinese reader sees.
func asHeld(code []Piece) []Piece {
	for i, l := range code {
		if m := heldLine.FindStringSubmatch(l.Text); m != nil {
			code[i].Text = m[1] + inChinese(m[2])
			if m[3] != "" {
				code[i].Text += " " + inChinese(m[3][1:])
			}
		}
	}
	return code
}

// heldForms are what a line of make hold is made of, those first that say most. A sentence
// about somebody is there without its subject, which is the name before it.
var heldForms = []string{"got a notification: %v", "%v, and set a watch", "tried to create %v: %v", "listed %v: %v",
	"created %v", "deleted %v", "%v has other children", "%v is gone", "is not the first: it watches %v",
	"holds the lock%s; Enter releases it", "was told: %v", ", its token is %d", "(%d times)", "%d names"}

// inChinese is a line of make hold. It is quoted, and was not made here: so its form has to
// be found.
func inChinese(text string) string {
	for _, form := range heldForms {
		m := regexp.MustCompile("^" + verb.ReplaceAllString(regexp.QuoteMeta(form), "(.*?)") + "$").FindStringSubmatch(text)
		if m == nil {
			continue
		}
		chinese := cmp.Or(words.Pairs()[form], strings.TrimPrefix(words.Pairs()["%v "+form], "%v "))
		for _, arg := range m[1:] {
			chinese = strings.Replace(chinese, verb.FindString(chinese), inChinese(arg), 1)
		}
		return chinese
	}
	return words.Whole(text).ZH
}

var (
	shellComment = regexp.MustCompile(` +# .*`)
	goComment    = regexp.MustCompile(`\s*//.*`)
)

// withoutComments cuts comments: they stand in the page's language. Those in a step's own code
// are held by TestCodeStandsInTheFiles.
func withoutComments(code []Piece) []Piece {
	for i, l := range code {
		switch l.Language {
		case "", "sh":
			code[i].Text = shellComment.ReplaceAllString(l.Text, "")
		case "go":
			code[i].Text = goComment.ReplaceAllString(l.Text, "")
		}
	}
	return code
}

// subheadings lists the headings of the second level. Those of hints are the names of
// properties: make hint looks for them.
func (p Page) subheadings() []Piece {
	return slices.DeleteFunc(p.Of("Heading"), func(h Piece) bool { return h.Level != 2 })
}

// translated turns names into the Chinese ones.
func translated(names []Piece) []Piece {
	for i, name := range names {
		names[i].Text = words.Whole(name.Text).ZH
	}
	return names
}

var threeWords = regexp.MustCompile(`[A-Za-z]+ [a-z]+ [a-z]+`)

// inEnglish: no hint has three English words in a row, but in its code. Other pages name
// English books.
func (p Page) inEnglish() (problems []string) {
	for _, text := range p.Of("Paragraph", "TextBlock") {
		if english := threeWords.FindString(text.Words); english != "" {
			problems = append(problems, p.at(text.Line, "this is English: %s", english))
		}
	}
	return problems
}

// words lists what stands between backquotes. How often is a matter of style.
func (p Page) words() []string {
	all := texts(p.Of("CodeSpan"))
	slices.Sort(all)
	return slices.Compact(all)
}

// links: where the English page leads, the Chinese one does, and to a page in
// Chinese where there is one. The English one leads to the Chinese, but for hints, which
// make hint shows.
func (e edition) links() (problems []string) {
	wanted, found := []string{}, []string{e.zh.Path} // to itself: the English page's link to it
	for _, l := range e.zh.Of("Link", "Image") {
		to := e.zh.resolve(l.Text)
		if twin, ok := e.twins[to]; ok && to != e.en.Path {
			problems = append(problems, e.zh.at(l.Line, "%s is there in Chinese: %s", to, twin.Path))
		}
		found = append(found, to)
	}
	for _, l := range e.en.Of("Link", "Image") {
		to := e.en.resolve(l.Text)
		if twin, ok := e.twins[to]; ok {
			to = twin.Path
		} else if figure, ok := strings.CutPrefix(to, "docs/figures/"); ok {
			to = "docs/figures/" + strings.Replace(figure, ".svg", ".zh-CN.svg", 1)
		}
		wanted = append(wanted, to)
	}
	isLinked := slices.ContainsFunc(e.en.Of("Link"), func(l Piece) bool { return e.en.resolve(l.Text) == e.zh.Path })
	if !isLinked && !e.en.isHints() {
		problems = append(problems, e.en.at(1, "no link leads to %s", e.zh.Path))
	}
	missing := slices.DeleteFunc(wanted, func(to string) bool { return slices.Contains(found, to) })
	return append(e.inAnyOrder(1, 1, "the links", nil, missing), problems...)
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

// englishOf gives the marks that stand in tables, and the names of the properties, by what
// either edition has: the Chinese matrix has both names.
var englishOf = func() map[string]string {
	all := map[string]string{"✓": "✓", "✗": "✗", "–": "–"}
	for _, p := range lockcheck.Properties {
		zh := words.Whole(p.Name).ZH
		all[p.Name], all[zh], all[zh+"<br>"+p.Name] = p.Name, p.Name, p.Name
	}
	return all
}()

// inCells finds these: POSIX means the longest of them.
var inCells = regexp.MustCompilePOSIX(strings.Join(slices.Collect(maps.Keys(englishOf)), "|"))

// cells lists what the cells of both pages' tables have besides words: marks, names of
// properties, and figures. Of the Chinese figures only those count that the English cell has
// as well, for it may have a word for a number.
func (e edition) cells() (zh, en []Piece) {
	zh, en = e.zh.Of("TableCell"), e.en.Of("TableCell")
	for i := range min(len(zh), len(en)) {
		inEnglish := numbers(en[i].Words)
		onlyChinese := without(numbers(zh[i].Words), inEnglish)
		inBoth := without(numbers(zh[i].Words), onlyChinese)
		zh[i].Text, en[i].Text = marked(zh[i].Text, inBoth), marked(en[i].Text, inEnglish)
	}
	return zh, en
}

// marked are figures, and the marks and names of properties of a cell.
func marked(cell string, figures []string) string {
	for _, seen := range inCells.FindAllString(cell, -1) {
		figures = append(figures, englishOf[seen])
	}
	return strings.Join(figures, ", ")
}

// numbers lists a section's numbers, code left out.
func (p Page) numbers() (all []string) {
	for _, text := range p.Of("Heading", "Paragraph", "TextBlock", "TableCell") {
		all = append(all, numbers(text.Words)...)
	}
	return all
}

var figures = regexp.MustCompile(`\d+(?:,\d{3})*(?:\.\d+)?`)

// numbers lists those that are in figures. Those in words are too often none (one another,
// 一起).
func numbers(text string) (all []string) {
	for _, number := range figures.FindAllString(text, -1) {
		all = append(all, strings.ReplaceAll(number, ",", ""))
	}
	return all
}
