package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zklock/internal/lab/book"
)

func TestTheBookBeginsInTheReadersLanguage(t *testing.T) {
	files, err := book.Build(filepath.Join("..", "..", "..", ".."))
	require.NoError(t, err)
	for language, wanted := range map[string]string{"": `<html lang="en"`, "en": `<html lang="en"`, "zh": `<html lang="zh-CN"`} {
		t.Setenv("ZKLOCK_LANG", language)
		isFound := strings.Contains(string(files[front()]), wanted)
		require.True(t, isFound, "ZKLOCK_LANG=%s: %s has no %s", language, front(), wanted)
	}
}
