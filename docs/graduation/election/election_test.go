package election

import (
	"testing"

	"zklock/docs/graduation/check"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

func TestProperties(t *testing.T) { check.All(t, check.ElectionProperties(New)) }
