// Package doccheck checks the Markdown of the repository: its links lead somewhere, the code that
// it shows is in the files, the commands and tests that it names exist, and a Chinese page says
// what the English page beside it says.
package doccheck

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

var notInAnchors = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// Anchor returns what a link to a heading has after the #, as the usual hosts of Markdown make it.
func Anchor(heading string) string {
	name := strings.ToLower(notInAnchors.ReplaceAllString(heading, ""))
	return strings.ReplaceAll(name, " ", "-")
}

// Files reads all files below root with one of these extensions, by their paths. It leaves out
// hidden folders, out and yours, which git does not keep.
func Files(root string, extensions ...string) (texts map[string]string, err error) {
	tree := os.DirFS(root)
	texts = map[string]string{}
	err = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		isHidden := strings.HasPrefix(entry.Name(), ".") && name != "."
		isLeftOut := isHidden || slices.Contains([]string{"out", "yours"}, name)
		switch {
		case entry.IsDir() && isLeftOut:
			return fs.SkipDir
		case entry.IsDir() || !slices.Contains(extensions, path.Ext(name)):
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		texts[name] = string(text)
		return err
	})
	return texts, err
}
