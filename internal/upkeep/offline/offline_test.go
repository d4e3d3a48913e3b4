package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../../.."

// makeReady is make ready in a language, with these variables.
func makeReady(language string, variables ...string) *exec.Cmd {
	make := exec.Command("make", "--no-print-directory", "ready")
	make.Dir = root
	make.Env = append(os.Environ(), "ZKLOCK_LANG="+language)
	make.Env = append(make.Env, variables...)
	return make
}

// Who cannot fetch the modules is told how, in both languages, before anything else fails.
func TestWithoutModulesOneIsToldOfMirrors(t *testing.T) {
	for language, want := range map[string]string{
		"en": "Go could not fetch the modules.",
		"zh": "Go 下载不了模块。",
	} {
		t.Run(language, func(t *testing.T) {
			make := makeReady(language, "GOMODCACHE="+t.TempDir(), "GOPROXY=off", "GOFLAGS=-modcacherw")
			said, err := make.CombinedOutput()
			require.Error(t, err)
			require.Contains(t, string(said), want)
			require.Contains(t, string(said), "\n  go env -w GOPROXY=https://goproxy.cn,direct\n")
		})
	}
}

// Who has no Go, or one that cannot read go.mod, is told which one this needs, and
// not that a proxy is out of reach. The go that is found here fails as an old one does.
func TestWithoutANewGoOneIsToldWhichOneThisNeeds(t *testing.T) {
	old := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(old, "go"), []byte("#!/bin/sh\nexit 1\n"), 0o755))
	for language, want := range map[string]string{
		"en": "This needs Go 1.25 or newer: https://go.dev/dl/\n",
		"zh": "这里需要 Go 1.25 或更新的版本：https://golang.google.cn/dl/\n",
	} {
		t.Run(language, func(t *testing.T) {
			make := makeReady(language, "PATH="+old+":"+os.Getenv("PATH"))
			said, err := make.Output()
			require.Error(t, err)
			require.Equal(t, want, string(said))
		})
	}
}

// A go.work that is older than go.mod is no matter of which Go is here: Go says what to do, and
// nothing else is said.
func TestOfAnOldGoWorkOnlyGoSpeaks(t *testing.T) {
	repository, err := filepath.Abs(root)
	require.NoError(t, err)
	old := filepath.Join(t.TempDir(), "go.work")
	require.NoError(t, os.WriteFile(old, fmt.Appendf(nil, "go 1.20\n\nuse %q\n", repository), 0o644))
	for _, language := range []string{"en", "zh"} {
		t.Run(language, func(t *testing.T) {
			var advice strings.Builder
			make := makeReady(language, "GOWORK="+old)
			make.Stderr = &advice
			said, err := make.Output()
			require.Error(t, err)
			require.Contains(t, advice.String(), "go work use")
			require.Empty(t, string(said))
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
	require.Contains(t, read(t, "Makefile"), "This needs Go "+found[2]+" or newer")
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	return string(text)
}
