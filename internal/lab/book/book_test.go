package book

import (
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/doccheck"
)

const root = "../../.."

var built = sync.OnceValues(func() (Files, error) { return Build(root) })

// book is the whole book, made once.
func book(t *testing.T) Files {
	t.Helper()
	files, err := built()
	require.NoError(t, err)
	return files
}

// chapters are the names of the chapters' files.
func chapters(t *testing.T) (names []string) {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(root, "step0*"))
	require.NoError(t, err)
	require.Len(t, folders, 6)
	for _, folder := range folders {
		name := filepath.Base(folder)[:len("step01")]
		names = append(names, name+".html", "zh-CN/"+name+".html")
	}
	return names
}

func TestEveryPageIsThereInBothLanguages(t *testing.T) {
	t.Parallel()
	files := book(t)
	texts, err := doccheck.Files(root, ".md")
	require.NoError(t, err)
	made := map[string]int{}
	for source := range texts {
		if !isPage(source) {
			continue
		}
		name := nameOf(source) + ".html"
		if isChinese(source) {
			name = "zh-CN/" + name
		}
		made[name]++
		require.Contains(t, files, name, source)
		assert.Contains(t, string(files[name]), "</h1>", source)
	}
	for name, n := range made {
		assert.Equal(t, 1, n, "pages that are to be %s", name)
		if !strings.HasPrefix(name, "zh-CN/") {
			assert.Contains(t, made, "zh-CN/"+name, "in Chinese")
		}
	}
	assert.Greater(t, len(made), 20, "pages in both languages")
	for _, name := range chapters(t) {
		assert.Contains(t, made, name)
	}
}

var printedOnItsOwn = regexp.MustCompile(`(?m)^.*break-before: page`)

// A heading with which a printed page begins is a heading of the book.
func TestEachPageThatIsPrintedOnItsOwnHasItsHeading(t *testing.T) {
	t.Parallel()
	css, err := os.ReadFile("book.css")
	require.NoError(t, err)
	var all strings.Builder
	for name, content := range book(t) {
		if strings.HasSuffix(name, ".html") {
			all.Write(content)
		}
	}
	rules := strings.Join(printedOnItsOwn.FindAllString(string(css), -1), ",")
	ids := regexp.MustCompile(`#[^\s,)]+`).FindAllString(rules, -1)
	assert.NotEmpty(t, ids)
	for _, id := range ids {
		assert.True(t, strings.Contains(all.String(), `id="`+id[1:]+`"`), "no page has %s", id)
	}
}

// What a teacher has in the hand prints on two sides: the second begins after the commands of the first, at 1:58.
func TestTheHandIsCutAtTheBreak(t *testing.T) {
	t.Parallel()
	for name, ids := range map[string][2]string{
		"workshop.html": {"in-your-hand", "answers"}, "zh-CN/workshop.html": {"手里的一页", "答案"},
	} {
		_, hand, found := strings.Cut(string(book(t)[name]), `id="`+ids[0]+`"`)
		require.True(t, found, name)
		hand, _, found = strings.Cut(hand, `<h2 id="`+ids[1]+`"`)
		require.True(t, found, name)
		sides := cutAfterCommands.Split(hand, -1)
		require.Len(t, sides, 2, name)
		assert.Contains(t, sides[0], "<td>1:48</td>", name)
		assert.Regexp(t, `(?s)^[^/]*<table>.*?<tbody>\s*<tr>\s*<td>1:58</td>`, sides[1], name)
	}
}

var cutAfterCommands = regexp.MustCompile(`</pre>\s*<div class="wide"`)

var hrefs = regexp.MustCompile(`href="([^"]*)"`)

// A link leads to a file of the book. Whether the place in it is there, the check of the
// pages tells.
func TestEveryLinkLeadsToAPageOfTheBook(t *testing.T) {
	t.Parallel()
	everyLinkLeads(t, book(t))
}

var teachersPages = regexp.MustCompile(`(?m)^rm docs/\{(.*)\}\.\*$`)

// The learners' book, on a stick, is built without the pages that docs/kit/make.sh deletes. It has no link to them,
// and has the sheet and the glossary. The teacher's course page, which learners get after the class, has no link to what
// is not in it.
func TestTheLearnersBookHasNoLinkToTheTeachersPages(t *testing.T) {
	t.Parallel()
	texts, err := doccheck.Files(root, ".md", ".svg", ".json")
	require.NoError(t, err)
	kit, err := os.ReadFile(filepath.Join(root, "docs/kit/make.sh"))
	require.NoError(t, err)
	found := teachersPages.FindStringSubmatch(string(kit))
	require.NotNil(t, found, "docs/kit/make.sh deletes the teacher's pages")
	deleted := strings.Split(found[1], ",")
	learners := t.TempDir()
	for name, text := range texts {
		base, _, _ := strings.Cut(path.Base(name), ".")
		if path.Dir(name) == "docs" && slices.Contains(deleted, base) {
			continue
		}
		file := filepath.Join(learners, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	files, err := Build(learners)
	require.NoError(t, err)
	everyLinkLeads(t, files)
	for _, name := range []string{"workshop.html", "workshop_exam.html", "course.html"} {
		assert.NotContains(t, files, name)
		assert.NotContains(t, files, "zh-CN/"+name)
	}
	for _, name := range []string{"workshop_sheet.html", "glossary.html", "mistakes.html"} {
		assert.Contains(t, files, name)
		assert.Contains(t, files, "zh-CN/"+name)
	}
	for _, name := range []string{"course.html", "zh-CN/course.html"} {
		files[name] = book(t)[name]
	}
	everyLinkLeads(t, files)
}

func everyLinkLeads(t *testing.T, files Files) {
	t.Helper()
	links := 0
	for name, content := range files {
		for _, href := range hrefs.FindAllStringSubmatch(string(content), -1) {
			to, err := url.PathUnescape(html.UnescapeString(href[1]))
			require.NoError(t, err)
			file, _, _ := strings.Cut(to, "#")
			if elsewhere.MatchString(to) || file == "" {
				continue
			}
			links++
			assert.Contains(t, files, path.Join(path.Dir(name), file), "%s has a link to %s", name, to)
		}
	}
	assert.Greater(t, links, 500)
}

// 300 kB is what a page may have: it is read on a phone, too.
func TestEveryFileIsSmall(t *testing.T) {
	t.Parallel()
	for name, content := range book(t) {
		assert.Less(t, len(content), 300_000, "bytes of %s", name)
	}
}

var loads = regexp.MustCompile(
	`<(?:img|script|iframe|object|embed|source)\b[^>]*\b(?:src|data)=|<link\b[^>]*href="[^d]|url\(|@import|\bfetch\(|XMLHttpRequest|\bimport\(`,
)

func TestNothingFromElsewhereIsLoaded(t *testing.T) {
	t.Parallel()
	for name, content := range book(t) {
		if path.Ext(name) == ".html" {
			assert.Empty(t, loads.FindAllString(withoutText(string(content)), -1), name)
		}
	}
	for _, example := range []string{
		`<img alt="" src="x.png">`,
		`<script src="x.js">`,
		`<link rel="stylesheet" href="https://x/y.css">`,
		`background: url(x.png)`,
		`fetch("x")`,
	} {
		assert.Regexp(t, loads, example)
	}
}

var listing = regexp.MustCompile(`(?s)<pre.*?</pre>|<code>.*?</code>`)

// withoutText is a page without the code that it shows.
func withoutText(page string) string { return listing.ReplaceAllString(page, "") }

var next = regexp.MustCompile(`<a rel="next" href="([^"]*)">`)

// A reader who only follows Next reads the road, from the front page to its end.
func TestNextIsTheRoad(t *testing.T) {
	t.Parallel()
	files := book(t)
	for folder, list := range map[string]string{"": "docs/README.md", "zh-CN/": "docs/README.zh-CN.md"} {
		text, err := os.ReadFile(filepath.Join(root, list))
		require.NoError(t, err)
		var road, read []string
		for _, stop := range doccheck.Road(list, string(text)) {
			road = append(road, nameOf(stop.Path)+".html")
		}
		for here := "index.html"; here != "" && len(read) <= len(road); {
			read = append(read, here)
			here = ""
			if link := next.FindStringSubmatch(string(files[folder+read[len(read)-1]])); link != nil {
				here = link[1]
			}
		}
		assert.Equal(t, road, read, "by Next alone, in %q", folder)
	}
}

var (
	prediction = regexp.MustCompile(`(?m)^\*\*(?:Predict|先预测|先猜一猜|猜)[.。]\*\*`)
	sections   = regexp.MustCompile(`(?s)<section class="question".*?</section>`)
	wanted     = regexp.MustCompile(`data-answer="([^"]*)"`)
)

// The predictions of the chapters ask for the numbers of the answer; a choice, of which one
// is right; or a few words: for the same in both languages.
func TestEveryPredictionIsAQuestion(t *testing.T) {
	t.Parallel()
	files := book(t)
	texts, err := doccheck.Files(root, ".md")
	require.NoError(t, err)
	asked := map[string][]string{}
	for source, text := range texts {
		if !isPage(source) || !stepName.MatchString(nameOf(source)) {
			continue
		}
		name := nameOf(source) + ".html"
		if isChinese(source) {
			name = "zh-CN/" + name
		}
		questions := sections.FindAllString(string(files[name]), -1)
		assert.Len(t, questions, len(prediction.FindAllString(text, -1)), name)
		for i, q := range questions {
			key := fmt.Sprintf("%s-%d", nameOf(source), i+1)
			assert.Contains(t, q, fmt.Sprintf("data-key=%q", key))
			assert.Regexp(
				t,
				`<details class="answer"><summary>.*</summary>\n<p class="yours" role="status"></p>\n<p>`,
				q,
				key,
			)
			kind := "words"
			if choices := strings.Count(q, `type="radio"`); choices > 0 {
				kind = "a choice of " + fmt.Sprint(choices)
				assert.Equal(t, 1, strings.Count(q, " data-right "), "right choices of %s", key)
			} else if numbers := wanted.FindAllStringSubmatch(q, -1); numbers != nil {
				kind = ""
				for _, n := range numbers {
					kind += n[1] + " "
				}
			} else {
				assert.Contains(t, q, "<textarea", key)
			}
			asked[key] = append(asked[key], strings.TrimSpace(kind))
		}
	}
	for key, kinds := range asked {
		require.Len(t, kinds, 2, "%s is asked in both languages", key)
		assert.Equal(t, kinds[0], kinds[1], "%s is the same in both languages", key)
	}
	for _, first := range []string{"step01-1", "step02-1", "step03-1", "step04-1", "step05-1", "step06-1"} {
		assert.Contains(t, asked, first)
	}
}

func TestAPredictionNeedsAnAnswer(t *testing.T) {
	t.Parallel()
	for text, said := range map[string]string{
		"# A\n\n**Predict.** How many?\n\n## B\n": "step01-1: a question without an answer",
		"# A\n\n**Predict.** How many?\n":         "step01-1: a question without an answer",
		"# A\n\n**Predict.** *One* or *two*?\n\n<details>\n\n**Three.**\n\n</details>\n"://
		`step01-1: none of the choices ["One" "two"] is the first bold text of the answer`,
		"# A\n\n**Predict.** How many?\n\n<details>\n<summary>The answer</summary>\n\n**3 a.**\n\n</details>\n": "",
	} {
		const source = "step01_a/README.md"
		p := newPage(source, text, &edition{language: "en"})
		_, err := p.render()
		if said == "" {
			assert.NoError(t, err, text)
		} else {
			assert.ErrorContains(t, err, said, text)
		}
	}
}

var (
	plays = regexp.MustCompile(`(?s)<figure class="run with-script">.*?</figure>`)
	data  = regexp.MustCompile(`<script type="application/json">(.*)</script>`)
)

// Where a chapter has a mark, the run plays, in both languages.
func TestTheRunsAreInTheChapters(t *testing.T) {
	t.Parallel()
	files := book(t)
	for name, stages := range map[string][]int{
		"step01.html": {1},
		"step02.html": {2},
		"step03.html": {1},
		"step04.html": {2, 1},
		"step05.html": {1},
		"step06.html": {2},

		"step05-holder.html": {2},
	} {
		for _, folder := range []string{"", "zh-CN/"} {
			runs := plays.FindAllString(string(files[folder+name]), -1)
			require.Len(t, runs, len(stages), folder+name)
			for i, run := range runs {
				assert.Equal(t, stages[i], strings.Count(run, "<canvas"), "stages in %s", folder+name)
				assert.Contains(
					t,
					run,
					map[string]string{"": "holds the lock</li>", "zh-CN/": "持有锁</li>"}[folder],
					"the legend of %s",
					folder+name,
				)
				var played []any
				require.NoError(t, json.Unmarshal([]byte(data.FindStringSubmatch(run)[1]), &played), folder+name)
				assert.Len(t, played, stages[i], folder+name)
			}
		}
	}
}
