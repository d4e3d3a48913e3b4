package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../../.."

// Who cannot fetch the modules is told how, in both languages, before anything else fails.
func TestWithoutModulesOneIsToldOfMirrors(t *testing.T) {
	for language, want := range map[string]string{
		"en": "Go could not fetch the modules.",
		"zh": "Go 下载不了模块。",
	} {
		t.Run(language, func(t *testing.T) {
			make := exec.Command("make", "--no-print-directory", "ready")
			make.Dir = root
			make.Env = append(
				os.Environ(),
				"ZKLOCK_LANG="+language,
				"GOMODCACHE="+t.TempDir(),
				"GOPROXY=off",
				"GOFLAGS=-modcacherw",
			)
			said, err := make.CombinedOutput()
			require.Error(t, err)
			require.Contains(t, string(said), want)
			require.Contains(t, string(said), "\n  go env -w GOPROXY=https://goproxy.cn,direct\n")
		})
	}
}

// What is printed, what the page says and what .ci/offline tries are the same lines.
func TestThePageSaysHowToUnpack(t *testing.T) {
	require.Contains(t, read(t, "docs/workshop.md"), "```\n"+unpack+"```\n")
	tried := read(t, ".ci/offline")
	for line := range strings.Lines(unpack) {
		require.Contains(t, tried, "\t"+strings.TrimSpace(line))
	}
}

// Where a page or the container installs Go, it is new enough for go.mod.
func TestTheGoThatIsInstalledIsNewEnough(t *testing.T) {
	found := regexp.MustCompile(`(?m)^go ((\d+\.\d+)\.\d+)$`).FindStringSubmatch(read(t, "go.mod"))
	require.NotNil(t, found, "the line of go.mod")
	require.Contains(t, read(t, "docs/workshop.md"), "curl -LO https://go.dev/dl/go"+found[1]+".linux-amd64.tar.gz\n")
	require.Contains(t, read(t, ".devcontainer/Dockerfile"), "\nARG BASE=golang:"+found[2]+"-")
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	return string(text)
}
