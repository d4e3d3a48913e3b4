package book

import (
	"encoding/json"
	"strings"
)

// searchIndex is a script with the sections of a page: the page's name, its title, and of
// each section the anchor, the title and the text. A page that a browser opens from a
// disk may load scripts, and nothing else.
func searchIndex(name, title string, sections []section) []byte {
	var script strings.Builder
	script.WriteString("index.push(")
	var places [][]string
	for _, s := range sections {
		places = append(places, []string{s.ID, s.Title, s.Text})
	}
	line, _ := json.Marshal([]any{name, title, places}) // strings can always be written
	script.Write(line)
	script.WriteString(");\n")
	return []byte(script.String())
}
