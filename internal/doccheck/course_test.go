package doccheck

import (
	"fmt"
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
	chineseResult = regexp.MustCompile(`^\*\*(有条件成立|部分成立|不成立|没有依据|成立)(?:（([^，）]+)[^）]*）)?\*\*`)
)

// In both languages each row of the course page has the same name, the same result, and the same worst that follows.
func TestTheCoursePageHasTheSameResults(t *testing.T) {
	r := read(t)
	english, chinese := judgedOn(r.pages["docs/course.md"]), judgedOn(r.pages["docs/course.zh-CN.md"])
	require.Greater(t, len(english), 100, "rows with a result")
	require.Len(t, chinese, len(english))
	for i, e := range english {
		z := chinese[i]
		result, said := englishResult.FindStringSubmatch(e.result), chineseResult.FindStringSubmatch(z.result)
		require.NotNil(t, result, "docs/course.md:%d: no result: %s", e.line, e.result)
		require.NotNil(t, said, "docs/course.zh-CN.md:%d: no result: %s", z.line, z.result)
		assert.Equal(t, e.name, z.name, "docs/course.md:%d and docs/course.zh-CN.md:%d", e.line, z.line)
		assert.Equal(t, e.isStarred, z.isStarred, "docs/course.md:%d and docs/course.zh-CN.md:%d", e.line, z.line)
		assert.Equal(t, results[result[1]], said[1], "docs/course.md:%d and docs/course.zh-CN.md:%d", e.line, z.line)
		if result[1] == "Mostly" || result[1] == "Partly" {
			assert.Equal(t, results[result[2]], said[2], "docs/course.md:%d and docs/course.zh-CN.md:%d", e.line, z.line)
		}
	}
}

// The table at the head of the course page counts the rows of each document, and of all, by their results. It splits
// Mostly by the worst that follows.
func TestTheCoursePageCountsItsRows(t *testing.T) {
	r := read(t)
	for _, p := range []page{r.pages["docs/course.md"], r.pages["docs/course.zh-CN.md"]} {
		var table []line
		for _, s := range p.sections {
			for i, row := range s.rows {
				if strings.HasPrefix(row.text, "| | ") {
					table = s.rows[i : i+3+len(documents)]
				}
			}
		}
		require.NotEmpty(t, table, p.path)
		words := cellsOf(table[0])
		for k, row := range table[2:] {
			cells, judged := cellsOf(row), judgedOn(p)
			if k < len(documents) {
				judged = judgedIn(p, cells[0])
			}
			require.NotEmpty(t, judged, "%s:%d: %s has no rows", p.path, row.number, cells[0])
			sum := 0
			for i, word := range words {
				n := 0
				for _, j := range judged {
					if word == resultOf(j.result) || word == shortResult(j.result) {
						n++
					}
				}
				assert.Equal(t, strconv.Itoa(n), cells[i+1], "%s:%d: rows of %s: %s", p.path, row.number, cells[0], word)
				sum += n
			}
			assert.Len(t, judged, sum, "%s:%d: each row of %s is counted once", p.path, row.number, cells[0])
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

var (
	nameOfRow = regexp.MustCompile(`^<a id="(\w+)"></a>(?:([A-Z]\d+)|\*\*([A-Z]\d+) ★\*\*) · `)
	rowLink   = regexp.MustCompile(`\[([ACLMN]\d+)\]\(#([^)]+)\)`)
)

// The rows of each document are numbered behind its letter, from 1, without a gap. A row's anchor is its name.
func TestTheCoursePageNumbersItsRows(t *testing.T) {
	r := read(t)
	for _, p := range []page{r.pages["docs/course.md"], r.pages["docs/course.zh-CN.md"]} {
		for i, document := range documents {
			judged := judgedIn(p, document)
			require.NotEmpty(t, judged, "%s: %s", p.path, document)
			for k, j := range judged {
				assert.Equal(t, fmt.Sprintf("%c%d", letters[i], k+1), j.name, "%s:%d", p.path, j.line)
				assert.Equal(t, strings.ToLower(j.name), j.anchor, "%s:%d", p.path, j.line)
			}
		}
	}
}

// A link whose text is the name of a row leads to that row.
func TestALinkToARowOfTheCourseLeadsToIt(t *testing.T) {
	r := read(t)
	for _, p := range []page{r.pages["docs/course.md"], r.pages["docs/course.zh-CN.md"]} {
		anchors := map[string]string{}
		for _, j := range judgedOn(p) {
			anchors[j.name] = j.anchor
		}
		links := 0
		for _, s := range p.sections {
			for _, l := range s.prose {
				for _, link := range rowLink.FindAllStringSubmatch(l.text, -1) {
					links++
					assert.Equal(t, anchors[link[1]], link[2], "%s:%d: the link to %s", p.path, l.number, link[1])
				}
			}
		}
		assert.Greater(t, links, 30, "%s: the rows with a star, and those with an arrow", p.path)
	}
}

// The table for the class, at the head of the course page, gives a star to the ten rows that have one, and to no
// others.
func TestTheCoursePageNamesTheRowsForTheClass(t *testing.T) {
	r := read(t)
	for _, p := range []page{r.pages["docs/course.md"], r.pages["docs/course.zh-CN.md"]} {
		var starred, named []string
		for _, j := range judgedOn(p) {
			if j.isStarred {
				starred = append(starred, j.name)
			}
		}
		for _, row := range rowsForTheClass(p) {
			if row.isStarred {
				named = append(named, row.name)
			}
		}
		assert.Len(t, starred, 10, p.path)
		assert.ElementsMatch(t, starred, named, "%s: the rows with a star, and those to which the head links", p.path)
	}
}

// The head of the course page lists the rows from which two holders follow: those that hold mostly, then those that
// hold partly.
func TestTheCoursePageListsTheRowsWithTwoHolders(t *testing.T) {
	r := read(t)
	for _, p := range []page{r.pages["docs/course.md"], r.pages["docs/course.zh-CN.md"]} {
		var mostly, partly []string
		for _, j := range judgedOn(p) {
			switch shortResult(j.result) {
			case "Mostly, two holders", "有条件成立（两个持有者）":
				mostly = append(mostly, j.name)
			case "Partly, two holders", "部分成立（两个持有者）":
				partly = append(partly, j.name)
			}
		}
		assert.NotEmpty(t, mostly, p.path)
		assert.Equal(t, slices.Concat(mostly, partly), rowsWithTwoHolders(p), p.path)
	}
}

// rowsWithTwoHolders are those to which the lines of the head lead that begin with these words.
func rowsWithTwoHolders(course page) (listed []string) {
	for _, s := range course.sections {
		for _, l := range s.prose {
			if !strings.HasPrefix(l.text, "**Two holders**") && !strings.HasPrefix(l.text, "**两个持有者**") {
				continue
			}
			for _, link := range rowLink.FindAllStringSubmatch(l.text, -1) {
				listed = append(listed, link[1])
			}
		}
	}
	return listed
}

// A row of the table for the class has its time in the workshop: the minute that stands before it, or a link for a
// class that is early. L10 is what is written at home.
func TestTheWorkshopHasTimeForTheRowsForTheClass(t *testing.T) {
	r := read(t)
	for course, workshop := range map[string]string{"course.md": "workshop.md", "course.zh-CN.md": "workshop.zh-CN.md"} {
		minutes, links := minutesOf(r.pages["docs/"+workshop]), linksOf(r.pages["docs/"+workshop])
		rows := rowsForTheClass(r.pages["docs/"+course])
		assert.Len(t, rows, 13, course)
		for _, row := range rows {
			var hasTime bool
			switch isAtAMinute := row.minute[0] >= '0' && row.minute[0] <= '9'; {
			case row.name == "L10":
				hasTime = true
			case isAtAMinute:
				hasTime = minutes[row.minute]
			default:
				hasTime = links[course+"#"+row.anchor]
			}
			assert.True(t, hasTime, "docs/%s has no time for %s %s", workshop, row.name, row.minute)
		}
	}
}

// minutesOf has the times of the class: the first cells of the hand.
func minutesOf(workshop page) map[string]bool {
	minutes := map[string]bool{}
	for _, s := range workshop.sections {
		if s.heading != "In your hand" && s.heading != "手里的一页" {
			continue
		}
		for _, row := range s.rows {
			minutes[cellsOf(row)[0]] = true
		}
	}
	return minutes
}

// linksOf has where a page's links lead.
func linksOf(p page) map[string]bool {
	links := map[string]bool{}
	for _, s := range p.sections {
		for _, l := range s.links() {
			links[l.text] = true
		}
	}
	return links
}

// A rowForTheClass is one of the table at the head of the course page, such as 0:17, C8 ★.
type rowForTheClass struct {
	minute, name, anchor string
	isStarred            bool
}

// rowsForTheClass lists the rows of the table that the course page begins with. In the tables below it, a row that only
// leads to another begins with an arrow, and is none of these.
func rowsForTheClass(course page) (all []rowForTheClass) {
	for _, s := range course.sections {
		for _, row := range s.rows {
			if found := rowOfTheClass.FindStringSubmatch(row.text); found != nil {
				all = append(all, rowForTheClass{found[1], found[2], found[3], found[4] != ""})
			}
		}
	}
	return all
}

var rowOfTheClass = regexp.MustCompile(`^\| ([^|→]+) \| \[([A-Z]\d+)\]\(#(\w+)\)( ★)? \|`)

// A row with an arrow leads to a row of another document, and has that row's result.
func TestARowOfTheCourseThatLeadsToAnotherHasItsResult(t *testing.T) {
	r := read(t)
	for _, p := range []page{r.pages["docs/course.md"], r.pages["docs/course.zh-CN.md"]} {
		results, documentOf := map[string]string{}, map[string]string{}
		for _, document := range documents {
			for _, j := range judgedIn(p, document) {
				results[j.name] = shortResult(j.result)
				documentOf[j.name] = document
			}
		}
		arrows := 0
		for _, document := range documents {
			for _, row := range rowsOf(p, document) {
				cells := cellsOf(row)
				if !strings.HasPrefix(cells[0], "→ ") {
					continue
				}
				arrows++
				link := rowLink.FindStringSubmatch(cells[1])
				require.NotNil(t, link, "%s:%d: no link to a row: %s", p.path, row.number, cells[1])
				name := link[1]
				assert.NotEqual(t, document, documentOf[name], "%s:%d: %s is in this table", p.path, row.number, name)
				assert.Equal(t, results[name], cells[2], "%s:%d: the result of %s", p.path, row.number, name)
			}
		}
		assert.Greater(t, arrows, 20, p.path)
	}
}

// shortResult is the result in a last cell, and the worst that follows, without marks and reasons.
func shortResult(cell string) string {
	if said := englishResult.FindStringSubmatch(cell); said != nil {
		if said[2] != "" {
			return said[1] + ", " + said[2]
		}
		return said[1]
	}
	said := chineseResult.FindStringSubmatch(cell)
	if said == nil {
		return ""
	}
	if said[1] == "有条件成立" || said[1] == "部分成立" {
		return said[1] + "（" + said[2] + "）"
	}
	return said[1]
}

// The sections of the course page that judge a document, and the letters of their rows.
var (
	documents = []string{"Alibaba", "51CTO", "lenshood", "MXJULY", "nileader"}
	letters   = "ACLMN"
)

// A judgement is a row of the course page that judges a statement.
type judgement struct {
	line      int
	name      string // such as A1
	anchor    string
	isStarred bool
	result    string // the last cell
}

// judgedOn lists the judgements in the documents' sections.
func judgedOn(p page) (all []judgement) {
	for _, document := range documents {
		all = append(all, judgedIn(p, document)...)
	}
	return all
}

// judgedIn lists the judgements in a document's section. A row without a name has an empty one.
func judgedIn(p page, document string) (all []judgement) {
	for _, row := range rowsOf(p, document) {
		cells := cellsOf(row)
		if strings.HasPrefix(cells[0], "→ ") {
			continue
		}
		j := judgement{line: row.number, result: cells[2]}
		if name := nameOfRow.FindStringSubmatch(cells[0]); name != nil {
			j.anchor, j.name, j.isStarred = name[1], name[2]+name[3], name[3] != ""
		}
		all = append(all, j)
	}
	return all
}

// rowsOf lists the rows of a document's section, below the head and its line.
func rowsOf(p page, document string) (all []line) {
	for _, s := range p.sections {
		if s.heading == document {
			all = append(all, s.rows[2:]...)
		}
	}
	return all
}

func cellsOf(row line) []string { return strings.Split(strings.Trim(row.text, "| "), " | ") }
