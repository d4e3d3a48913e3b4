// Command ready sees to it that a ZooKeeper is there before the tests or
// the tour start: where none is there, and no question has to be asked for
// it, it installs one.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"zklock/internal/server/zkserver"
)

func main() {
	ctx := context.Background()
	err := zkserver.Check(ctx)
	if command := zkserver.InstallCommand(); err != nil && mayInstall(command) {
		fmt.Fprintf(os.Stdout, "no ZooKeeper found on this machine, so one is installed: %s\n", command)
		if err := install(command); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		err = zkserver.Check(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// mayInstall reports whether the command would help, and needs neither a
// password nor an answer. Who has named a server or a folder wants no other.
func mayInstall(command string) bool {
	if os.Getenv("ZK_SERVERS") != "" || os.Getenv("ZOOKEEPER_HOME") != "" {
		return false
	}
	if backend := os.Getenv("ZK_BACKEND"); backend != "" && backend != "local" {
		return false
	}
	if strings.HasPrefix(command, "sudo ") {
		return exec.Command("sudo", "-n", "true").Run() == nil
	}
	return !strings.HasPrefix(command, "export ") // which a reader has to complete
}

// install runs the command. What it prints is of interest only if it fails.
func install(command string) error {
	cmd := exec.Command("sh", "-c", command)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "HOMEBREW_NO_AUTO_UPDATE=1")
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", command, err, output)
	}
	return nil
}
