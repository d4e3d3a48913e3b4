package doccheck

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// results are the words of the course page for a result, and for the worst that follows, in both languages.
var results = map[string]string{
	"Holds": "成立", "Mostly": "有条件成立", "Partly": "部分成立", "Not so": "不成立", "Not shown": "没有依据",
	"two holders": "两个持有者", "stuck": "卡住", "cost": "代价", "words": "措辞",
}

var (
	englishResult = regexp.MustCompile(`^\*\*([A-Z][a-z ]+)(?:, ([a-z ]+))?\.?\*\*`)
	chineseResult = regexp.MustCompile(`^[^：。]{0,20}?(有条件成立|部分成立|不成立|没有依据|成立)(?:（([^，）]+)[，）])?`)
)

// In both languages each row of the course page has the same result, and the same worst that follows.
func TestTheCoursePageHasTheSameResults(t *testing.T) {
	r := read(t)
	english, chinese := resultsOn(r.pages["docs/course.md"]), resultsOn(r.pages["docs/course.zh-CN.md"])
	require.Greater(t, len(english), 100, "rows with a result")
	require.Len(t, chinese, len(english))
	for i, e := range english {
		z := chinese[i]
		result, said := englishResult.FindStringSubmatch(e.text), chineseResult.FindStringSubmatch(z.text)
		require.NotNil(t, result, "docs/course.md:%d: no result: %s", e.number, e.text)
		require.NotNil(t, said, "docs/course.zh-CN.md:%d: no result: %s", z.number, z.text)
		assert.Equal(t, results[result[1]], said[1], "docs/course.md:%d and docs/course.zh-CN.md:%d", e.number, z.number)
		if result[1] == "Mostly" || result[1] == "Partly" {
			assert.Equal(t, results[result[2]], said[2], "docs/course.md:%d and docs/course.zh-CN.md:%d", e.number, z.number)
		}
	}
}

// The table at the head of the course page counts the rows of each document, by their results.
func TestTheCoursePageCountsItsRows(t *testing.T) {
	r := read(t)
	for _, p := range []page{r.pages["docs/course.md"], r.pages["docs/course.zh-CN.md"]} {
		var table []line
		for _, s := range p.sections {
			for i, row := range s.rows {
				if strings.Contains(row.text, "| 没有依据 |") || strings.Contains(row.text, "| Not shown |") {
					table = s.rows[i : i+2+len(documents)]
				}
			}
		}
		require.NotEmpty(t, table, p.path)
		words := cellsOf(table[0])
		for _, row := range table[2:] {
			cells := cellsOf(row)
			counts := map[string]int{}
			for _, result := range resultsIn(p, cells[0]) {
				counts[resultOf(result.text)]++
			}
			require.NotEmpty(t, counts, "%s:%d: %s has no rows", p.path, row.number, cells[0])
			for i, word := range words {
				assert.Equal(t, strconv.Itoa(counts[word]), cells[i+1], "%s:%d: rows of %s: %s", p.path, row.number, cells[0], word)
			}
		}
	}
}

// resultOf is the word for the result that a last cell begins with, in its language.
func resultOf(cell string) string {
	if said := englishResult.FindStringSubmatch(cell); said != nil {
		return said[1]
	}
	if said := chineseResult.FindStringSubmatch(cell); said != nil {
		return said[1]
	}
	return ""
}

// The sections of the course page that judge a document.
var documents = []string{"Alibaba", "51CTO", "lenshood", "MXJULY", "nileader"}

// resultsOn lists the last cells of the rows in the documents' sections.
func resultsOn(p page) (all []line) {
	for _, document := range documents {
		all = append(all, resultsIn(p, document)...)
	}
	return all
}

// resultsIn lists the last cells of the rows in a document's section.
func resultsIn(p page, document string) (all []line) {
	for _, s := range p.sections {
		if s.heading == document {
			for _, row := range s.rows[2:] { // below the head and its line
				all = append(all, line{row.number, cellsOf(row)[2]})
			}
		}
	}
	return all
}

func cellsOf(row line) []string { return strings.Split(strings.Trim(row.text, "| "), " | ") }

// The head of a document's section links to each other section that has a row about this document.
func TestEachDocumentOfTheCourseLinksToWhereElseItIsJudged(t *testing.T) {
	r := read(t)
	for _, p := range []page{r.pages["docs/course.md"], r.pages["docs/course.zh-CN.md"]} {
		links, elsewhere := map[string][]string{}, map[string][]string{}
		for _, s := range p.sections {
			if !slices.Contains(documents, s.heading) {
				continue
			}
			links[s.heading] = linksOfHead(s)
			for _, document := range documents {
				if document != s.heading && hasRowAbout(s, document) {
					elsewhere[document] = append(elsewhere[document], "#"+Anchor(s.heading))
				}
			}
		}
		for _, document := range documents {
			assert.ElementsMatch(t, elsewhere[document], links[document], "%s, %s", p.path, document)
		}
	}
}

// linksOfHead lists the links that stand above the rows of a section.
func linksOfHead(s section) (links []string) {
	for _, l := range s.links() {
		if l.number < s.rows[0].number {
			links = append(links, l.text)
		}
	}
	return links
}

// hasRowAbout reports whether the first cell of a row names a document.
func hasRowAbout(s section, document string) bool {
	return slices.ContainsFunc(s.rows, func(row line) bool { return strings.Contains(cellsOf(row)[0], document) })
}
