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
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/upkeep/doccheck"
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
		title := doccheck.Parse(source, texts[source]).Of("Heading")[0].Text
		assert.Contains(t, string(files[name]), ">"+html.EscapeString(title)+"</h1>", source)
		assert.Contains(
			t,
			files,
			path.Join(path.Dir(name), "search", strings.Replace(path.Base(name), ".html", ".js", 1)),
			"what can be found of it",
		)
	}
	for name, n := range made {
		assert.Equal(t, 1, n, "pages that are to be %s", name)
		if !strings.HasPrefix(name, "zh-CN/") {
			assert.Contains(t, made, "zh-CN/"+name, "in Chinese")
		}
	}
	assert.Greater(t, len(made), 50, "pages in both languages")
	for _, name := range chapters(t) {
		assert.Contains(t, made, name)
		assert.Contains(t, files, strings.Replace(name, ".html", "-code.html", 1))
	}
}

var (
	hrefs = regexp.MustCompile(`href="([^"]*)"`)
	ids   = regexp.MustCompile(`\bid="([^"]*)"`)
)

func TestEveryLinkLeadsToAPlaceInTheBook(t *testing.T) {
	t.Parallel()
	files, places, links := book(t), map[string]bool{}, 0
	for name, content := range files {
		places[name] = true
		seen := map[string]bool{}
		for _, id := range ids.FindAllStringSubmatch(string(content), -1) {
			places[name+"#"+html.UnescapeString(id[1])] = true
			assert.False(t, seen[id[1]], "%s has %s twice", name, id[0])
			seen[id[1]] = true
		}
	}
	for name, content := range files {
		if path.Ext(name) != ".html" {
			continue
		}
		for _, href := range hrefs.FindAllStringSubmatch(string(content), -1) {
			to, err := url.PathUnescape(html.UnescapeString(href[1]))
			require.NoError(t, err)
			if elsewhere.MatchString(to) {
				assert.Regexp(t, `^(https?:|data:,$)`, to, name)
				continue
			}
			links++
			file, anchor, hasAnchor := strings.Cut(to, "#")
			place := path.Join(path.Dir(name), file)
			if file == "" {
				place = name
			}
			if hasAnchor {
				place += "#" + anchor
			}
			assert.True(t, places[place], "%s has a link to %s", name, to)
		}
	}
	assert.Greater(t, links, 1000)
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

var (
	prediction = regexp.MustCompile(`(?m)^\*\*(?:Predict|先预测)[.。]\*\*`)
	sections   = regexp.MustCompile(`(?s)<section class="question".*?</section>`)
	wanted     = regexp.MustCompile(`data-answer="([^"]*)"`)
)

// The predictions of the chapters, by what they ask for: the numbers of the answer; a
// choice, of which one is right; or a few words.
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
	// of n waiters, served one after the other, each tells all that are left
	all := func(n int) int { return n * (n + 1) / 2 }
	both := func(kind string, args ...any) []string {
		kind = fmt.Sprintf(kind, args...)
		return []string{kind, kind}
	}
	assert.Equal(t, map[string][]string{
		"step01-1": both("200"), "step02-1": both("a choice of 3"),
		"step03-1": both("%d", all(100)), "step04-1": both("%d", all(100)),
		"step05-1": both("words"), "step05-2": both("words"), "step05-3": both("a choice of 3"),
		"step05-4": both("0"), "step05-5": both("a choice of 3"), "step05-6": both("words"),
		"step06-1": both("1"), "step06-2": both("words"), "step06-3": both("words"),
	}, asked)
	says := func(step, format string, args ...any) {
		folder, err := filepath.Glob(filepath.Join(root, step+"_*", "README.md"))
		require.NoError(t, err)
		require.Len(t, folder, 1)
		text, err := os.ReadFile(folder[0])
		require.NoError(t, err)
		assert.Contains(t, string(text), "\n» "+fmt.Sprintf(format, args...), "what the answer rests on")
	}
	says("step01", "10 waiters try 20 times each: 200 creates fail")
	says("step02", "20 waiters look once: 20 lists of 21 names, 9820 bytes")
	for _, n := range []int{10, 50} {
		says("step03", "%d waiters, all served: %d notifications to waiters", n, all(n))
		says("step04", "%d waiters, all served: %d notifications, %d lists, %d names in them", n, n, n, all(n))
	}
	says("step05", "locking again inside it: 0 requests")
	says(
		"step06",
		"a watch on the directory: 10 readers leave one by one: notifications to the writer behind them: 10\n",
	)
	says("step06", "a watch on one znode: 10 readers leave one by one: notifications to the writer behind them: 1\n")
}

var mistake = regexp.MustCompile(`(?m)^### W\d+`)

func TestAPredictionNeedsAnAnswer(t *testing.T) {
	t.Parallel()
	for text, said := range map[string]string{
		"# A\n\n**Predict.** How many?\n\n## B\n": "step01-1: a question without an answer",
		"# A\n\n**Predict.** How many?\n":         "step01-1: a question without an answer",
		"# A\n\n**Predict.** How many?\n\n<details>\n<summary>The answer</summary>\n\n**3 a.**\n\n</details>\n": "",
	} {
		const source = "step01_a/README.md"
		p := &page{doccheck.Parse(source, text), nameOf(source), &edition{language: "en"}}
		_, err := p.render()
		if said == "" {
			assert.NoError(t, err, text)
		} else {
			assert.ErrorContains(t, err, said, text)
		}
	}
}

// Of the lines of a step's page of code, those without a mark and the new ones are the
// step's file, and those without a mark and the old ones that of the step before.
func TestTheCodeIsMarkedAgainstTheStepBefore(t *testing.T) {
	t.Parallel()
	sources, err := doccheck.Files(root, ".md", ".go")
	require.NoError(t, err)
	e := &edition{language: "en", sources: sources}
	for source, text := range sources {
		if isPage(source) && !isChinese(source) {
			e.pages = append(e.pages, &page{doccheck.Parse(source, text), nameOf(source), e})
		}
	}
	require.NoError(t, e.sort())
	require.NoError(t, e.compare())
	require.Len(t, e.codes, 6)
	for i, c := range e.codes {
		require.NotEmpty(t, c.files)
		require.Equal(t, "lock.go", c.files[0].name)
		now, then, marked := "", "", 0
		for _, line := range c.files[0].lines {
			if line.mark != '-' {
				now += line.text
			}
			if line.mark != '+' {
				then += line.text
			}
			if line.mark != ' ' {
				marked++
			}
		}
		assert.Equal(t, sources[c.folder+"/lock.go"], now, c.step)
		if i > 0 {
			assert.Equal(t, sources[e.codes[i-1].folder+"/lock.go"], then, c.step)
			assert.Positive(t, marked, c.step)
			assert.Contains(t, c.render(), "<ins>+", c.step)
		}
	}
}

// Beside a step's code stands all that its chapter quotes of the tests' output.
func TestTheOutputStandsBesideTheCode(t *testing.T) {
	t.Parallel()
	printed := regexp.MustCompile(`(?m)^» .*$`)
	for _, folder := range []string{"", "zh-CN/"} {
		for i := range 6 {
			name := fmt.Sprintf("%sstep%02d", folder, i+1)
			chapter, code := string(book(t)[name+".html"]), string(book(t)[name+"-code.html"])
			lines := printed.FindAllString(strings.ReplaceAll(chapter, "<code>", "\n"), -1)
			require.NotEmpty(t, lines, name)
			for _, line := range lines {
				assert.Contains(t, code, strings.TrimSuffix(line, "</code></pre>"), name)
			}
			assert.Contains(t, code, fmt.Sprintf(`<details class="outputs" data-answered="step%02d-1`, i+1))
		}
	}
}

var (
	plays = regexp.MustCompile(`(?s)<figure class="run with-script">.*?</figure>`)
	data  = regexp.MustCompile(`<script type="application/json">(.*)</script>`)
	latin = regexp.MustCompile(`[a-z]{2,} [a-z]{2,}`)
)

// Below each figure of runsOf, and in each section of runsIn, the run plays, in both languages.
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
				var played struct {
					Stories []any
					Drawn   map[string]string
				}
				require.NoError(t, json.Unmarshal([]byte(data.FindStringSubmatch(run)[1]), &played), folder+name)
				assert.Len(t, played.Stories, stages[i], folder+name)
				assert.Equal(t, folder != "", len(played.Drawn) > 0, folder+name)
				for english, own := range played.Drawn {
					assert.NotRegexp(t, latin, own, english)
				}
			}
		}
	}
}
