package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"zklock/internal/zkserver"
)

// installIfMissing installs a ZooKeeper if there is none, and if the installation asks no
// question.
func installIfMissing(ctx context.Context) error {
	err := zkserver.Check(ctx)
	command := zkserver.InstallCommand()
	if err == nil || !mayInstall(command) {
		return err
	}
	fmt.Printf("no ZooKeeper was found on this machine; installing one now: %s\n", command)
	if err := install(ctx, command); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return zkserver.Check(ctx)
}

// mayInstall reports whether the command would help, and needs neither a
// password nor an answer. A user who has named a server or a folder wants no other.
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
	return !strings.HasPrefix(command, "export ") // the reader has to complete such a command
}

// install runs the command. What it prints is of interest only if it fails.
func install(ctx context.Context, command string) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "HOMEBREW_NO_AUTO_UPDATE=1")
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", command, err, output)
	}
	return nil
}
