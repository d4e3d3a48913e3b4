package doccheck

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// isBilingual matches the pages that have a Chinese page beside them: those that a learner reads.
// The page for people who change the code is only in English, as the comments in the code are.
var isBilingual = regexp.MustCompile(`^(README|docs/\w+|step\d\d_\w+/\w+|leased(/\w+)?/README|leased/[a-z]+)\.md$`)

func TestEachPageHasItsChineseOneBesideIt(t *testing.T) {
	r := read(t)
	for _, p := range r.pages {
		_, hasChinese := r.pages[inChinese(p.path)]
		if isBilingual.MatchString(p.path) && p.path != "docs/CONTRIBUTING.md" && !hasChinese {
			t.Errorf("%s: there is no %s", p.path, inChinese(p.path))
		}
		english := strings.Replace(p.path, ".zh-CN.md", ".md", 1)
		if _, hasEnglish := r.pages[english]; !hasEnglish {
			t.Errorf("%s: there is no %s", p.path, english)
		}
	}
}

func TestTheChinesePageSaysTheSame(t *testing.T) {
	r := read(t)
	for _, en := range r.pages {
		zh, hasChinese := r.pages[inChinese(en.path)]
		if !hasChinese {
			continue
		}
		for i := range max(len(en.sections), len(zh.sections)) {
			if i >= len(en.sections) || i >= len(zh.sections) || en.sections[i].level != zh.sections[i].level {
				t.Errorf("%s and %s: the %d. heading differs: %s", en.path, zh.path, i, headings(i, en, zh))
				break
			}
			e, z := en.sections[i], zh.sections[i]
			sameCode(t, zh.path, e, z)
			sameNumbers(t, zh.path, e, z)
			r.sameLinks(t, en, zh, e, z)
			sameRows(t, en, zh, e, z)
		}
	}
}

func headings(i int, pages ...page) string {
	var texts []string
	for _, p := range pages {
		text := "(none)"
		if i < len(p.sections) {
			text = strings.Repeat("#", p.sections[i].level) + " " + p.sections[i].heading
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

// isDrawing reports whether a block of code has words in the language of the page.
func isDrawing(b block) bool { return b.language == "text" || b.language == "mermaid" }

// sameCode checks that both sections have the same blocks of code. It leaves out drawings, the
// sketches in hints, and comments beside commands and in YAML.
func sameCode(t *testing.T, path string, en, zh section) {
	t.Helper()
	if len(en.blocks) != len(zh.blocks) {
		t.Errorf("%s:%d: %d blocks of code, in English %d", path, zh.line, len(zh.blocks), len(en.blocks))
		return
	}
	for i, e := range en.blocks {
		z := zh.blocks[i]
		if e.language != z.language {
			t.Errorf("%s:%d: a block of %q, in English of %q", path, z.line, z.language, e.language)
		}
		if isDrawing(e) || isHints(path) || slices.Equal(comparable(e), comparable(z)) {
			continue
		}
		t.Errorf("%s:%d: this code differs from the English page's\n%s", path, z.line, strings.Join(z.lines, "\n"))
	}
}

func comparable(b block) (all []string) {
	for _, text := range b.lines {
		if b.language == "yaml" || slices.Contains(shells, b.language) {
			text = withoutComment(text)
		}
		all = append(all, text)
	}
	return all
}

var number = regexp.MustCompile(`\d+(?:[.,]\d+)*`)

// numbers lists the numbers that are written in digits, except those in links.
func (s section) numbers() (all []string) {
	for _, l := range s.prose {
		text := linkTarget.ReplaceAllString(l.text, "]")
		for _, found := range number.FindAllString(text, -1) {
			all = append(all, strings.ReplaceAll(found, ",", ""))
		}
	}
	return all
}

// sameNumbers checks that the Chinese section has each number of the English one. It does not check
// the other direction, because English may have a word for a number.
func sameNumbers(t *testing.T, path string, en, zh section) {
	t.Helper()
	inChinese := zh.numbers()
	for _, n := range en.numbers() {
		if !slices.Contains(inChinese, n) {
			t.Errorf("%s:%d: %s, %s: no %s here", path, zh.line, en.heading, zh.heading, n)
		}
	}
}

// sameLinks checks that the Chinese section links to everything that the English one links to, and
// to a Chinese page if there is one.
func (r repository) sameLinks(t *testing.T, en, zh page, e, z section) {
	t.Helper()
	leads := map[string]bool{}
	for _, l := range z.links() {
		file, _ := zh.resolve(l.text)
		leads[file] = true
		if hasTwin := exists(inChinese(file)) && !isElsewhere.MatchString(file); hasTwin && file != en.path {
			t.Errorf("%s:%d: %s is there in Chinese: %s", zh.path, l.number, file, inChinese(file))
		}
	}
	for _, l := range e.links() {
		file, _ := en.resolve(l.text)
		wanted := file
		if exists(inChinese(file)) && !isElsewhere.MatchString(file) {
			wanted = inChinese(file)
		}
		isLinkToTwin := file == zh.path
		if !leads[wanted] && !isLinkToTwin {
			t.Errorf("%s:%d: no link to %s, as %s:%d has", zh.path, z.line, wanted, en.path, l.number)
		}
	}
}

// sameRows checks that the tables have the same rows in the same order. It compares what is not
// translated: the code, the numbers, and the files in the links.
func sameRows(t *testing.T, en, zh page, e, z section) {
	t.Helper()
	if len(e.rows) != len(z.rows) {
		t.Errorf("%s:%d: %d rows of tables, in English %d", zh.path, z.line, len(z.rows), len(e.rows))
		return
	}
	for i, english := range e.rows {
		chinese := z.rows[i]
		if cells(english) != cells(chinese) {
			t.Errorf("%s:%d: a row of %d cells, in English of %d", zh.path, chinese.number, cells(chinese), cells(english))
		}
		found := untranslated(zh, chinese)
		for _, wanted := range untranslated(en, english) {
			if !slices.Contains(found, wanted) {
				t.Errorf("%s:%d: no %s in this row, as %s:%d has", zh.path, chinese.number, wanted, en.path, english.number)
			}
		}
	}
}

func cells(row line) int { return strings.Count(row.text, "|") }

// untranslated lists what a row of a table has in common with the row in the other language.
func untranslated(p page, row line) (all []string) {
	for _, span := range codeSpan.FindAllStringSubmatch(row.text, -1) {
		all = append(all, span[1])
	}
	of := section{prose: []line{{row.number, codeSpan.ReplaceAllString(row.text, "")}}}
	all = append(all, of.numbers()...)
	for _, l := range of.links() {
		file, _ := p.resolve(l.text)
		all = append(all, strings.Replace(file, ".zh-CN.", ".", 1))
	}
	return all
}

// The glossary has the same terms, in the same order, in both languages, and each term once.
func TestTheGlossaryHasTheSameTerms(t *testing.T) {
	r := read(t)
	english := glossary(t, r.pages["docs/glossary.md"], "Glossary")
	chinese := glossary(t, r.pages["docs/glossary.zh-CN.md"], "术语表")
	if len(english) == 0 || len(english) != len(chinese) {
		t.Fatalf("%d rows in English, %d in Chinese", len(english), len(chinese))
	}
	isThere := map[string]bool{}
	for i, e := range english {
		z := chinese[i]
		for name := range strings.SplitSeq(e.cells[0], ", ") {
			if isThere[name] {
				t.Errorf("docs/glossary.md:%d: the glossary has %s twice", e.number, name)
			}
			isThere[name] = true
		}
		isSame := e.cells[0] == z.cells[1] && e.cells[1] == z.cells[0]
		if !isSame {
			t.Errorf("docs/glossary.md:%d says %q, docs/glossary.zh-CN.md:%d says %q", e.number, e.cells, z.number, z.cells)
		}
	}
}

type term struct {
	number int
	cells  []string // the term in this language, in the other one, and what it is
}

func glossary(t *testing.T, p page, heading string) (terms []term) {
	t.Helper()
	i := slices.IndexFunc(p.sections, func(s section) bool { return s.heading == heading })
	if i < 0 {
		t.Fatalf("%s has no section %s", p.path, heading)
	}
	for _, row := range p.sections[i].rows[2:] { // below the head and its line
		var cells []string
		for _, cell := range strings.Split(strings.Trim(row.text, "|"), "|") {
			cells = append(cells, strings.ReplaceAll(strings.TrimSpace(cell), "，", ", "))
		}
		terms = append(terms, term{row.number, cells})
	}
	return terms
}
