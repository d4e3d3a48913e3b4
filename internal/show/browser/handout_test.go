package browser

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
)

// sheet is how the handout is printed: A4, in letters of 10 points.
// DejaVu Sans, which has the widest letters of the usual ones, needs no smaller ones.
const sheet = `<!doctype html><meta charset="utf-8"><style>
@page { size: A4; margin: 15mm }
body { font: 10pt/1.4 sans-serif }
table { border-collapse: collapse }
td, th { border: 1px solid; padding: 5px; text-align: left; vertical-align: top }
pre { font-size: 9pt }
</style>`

var pdfPage = regexp.MustCompile(`/Type /Page[^s]`)

// The handout is one sheet of paper, printed on one side.
func TestTheHandoutFitsOnOnePageInABrowser(t *testing.T) {
	program := chromium(t)
	for _, page := range []string{"../../../docs/handout.md", "../../../docs/handout.zh-CN.md"} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		html := bytes.NewBufferString(sheet)
		require.NoError(t, goldmark.New(goldmark.WithExtensions(extension.Table)).Convert(text, html))
		folder := t.TempDir()
		written, printed := filepath.Join(folder, "handout.html"), filepath.Join(folder, "handout.pdf")
		require.NoError(t, os.WriteFile(written, html.Bytes(), 0o644))
		command := exec.CommandContext(t.Context(), program, "--headless", "--no-sandbox", "--disable-gpu",
			"--user-data-dir="+folder, "--no-pdf-header-footer", "--print-to-pdf="+printed, "file://"+written)
		said, err := command.CombinedOutput()
		require.NoError(t, err, "%s", said)
		pdf, err := os.ReadFile(printed)
		require.NoError(t, err, "%s", said)
		assert.Len(t, pdfPage.FindAll(pdf, -1), 1, "pages of %s", page)
	}
}
