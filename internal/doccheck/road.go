package doccheck

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// A Stop is a page of the road: the order in which a learner reads the pages.
type Stop struct {
	Path    string // from the repository's root
	Title   string
	Minutes int
}

// stopRow matches a row of the table that is the road: | 3 | [title](link) | question | 60 |
var stopRow = regexp.MustCompile(`(?m)^\| \d+ \| \[([^\]]+)\]\(([^)\s]+)\) \|.*\| (\d+) \|$`)

// Road reads the road from the page that lists it, which is docs/README.md or its Chinese edition.
func Road(list, text string) (road []Stop) {
	for _, row := range stopRow.FindAllStringSubmatch(text, -1) {
		minutes, _ := strconv.Atoi(row[3])
		road = append(road, Stop{path.Join(path.Dir(list), row[2]), row[1], minutes})
	}
	return road
}

// Head returns the line below the title of the road's page i. It says where the reader is, and leads
// to the pages before and after it.
func Head(road []Stop, i int) string {
	here := road[i]
	name := strings.TrimSuffix(path.Base(here.Path), ".md")
	where := fmt.Sprintf("**%d of %d**, %d minutes", i+1, len(road), here.Minutes)
	other := "[中文](" + name + ".zh-CN.md)"
	if english, isChinese := strings.CutSuffix(name, ".zh-CN"); isChinese {
		where = fmt.Sprintf("**第 %d 页，共 %d 页**，%d 分钟", i+1, len(road), here.Minutes)
		other = "[English](" + english + ".md)"
	}
	var parts []string
	if i > 0 {
		parts = append(parts, fmt.Sprintf("[← %s](%s)", road[i-1].Title, link(here.Path, road[i-1].Path)))
	}
	parts = append(parts, where)
	if i+1 < len(road) {
		parts = append(parts, fmt.Sprintf("[%s →](%s)", road[i+1].Title, link(here.Path, road[i+1].Path)))
	}
	return strings.Join(append(parts, other), " · ")
}

// link returns how one page links to another.
func link(from, to string) string {
	relative, err := filepath.Rel(filepath.Dir(from), to)
	if err != nil {
		return to
	}
	return filepath.ToSlash(relative)
}
