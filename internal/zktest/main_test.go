package zktest

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	if os.Getenv("ZKTEST_LEAK") != "" {
		patience = 0
		go forgotten()
	}
	Main(m)
}

func TestMainNamesALeftGoroutine(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "ZKTEST_LEAK=yes")
	output, err := cmd.CombinedOutput()
	require.Error(t, err, "a goroutine was left")
	require.Contains(t, string(output), "zktest.forgotten")
}

func forgotten() { select {} }
