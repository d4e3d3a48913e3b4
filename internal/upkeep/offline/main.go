// Command offline puts all that a machine without a network needs into one archive,
// besides Go, make and git: this repository, the modules, what has been compiled of
// both, ZooKeeper and a java. The make target offline calls it, from the root of the
// repository.
package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"zklock/internal/server/zkserver"
	"zklock/internal/upkeep/words"
)

// folder is where the archive is made and where it is unpacked. Both have to be the
// same: Go compiles a package anew when its folder is another.
const folder = "/var/tmp/zklock-offline"

const archive = "out/zklock-offline.tar.gz"

// unpack is what to type beside the archive on another machine.
const unpack = `tar -xzmf zklock-offline.tar.gz -C /var/tmp
. ` + folder + `/environment
cd ` + folder + `/zklock
make tour
`

// settings make Go, the tests and the tools use what is in the folder. Without cgo all
// machines compile alike, whether they have a C compiler or not.
var settings = []string{
	"GOMODCACHE=" + folder + "/modules",
	"GOCACHE=" + folder + "/build",
	"GOPROXY=off",
	"GOTOOLCHAIN=local",
	"CGO_ENABLED=0",
	"ZOOKEEPER_HOME=" + folder + "/zookeeper",
	"JAVA_HOME=" + folder + "/java",
}

func main() {
	if err := pack(); err != nil {
		words.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func pack() error {
	if _, err := os.Stat(folder); err == nil {
		return words.Errorf("%s is there already, and may be in use; remove it with: rm -rf %s", folder, folder)
	}
	defer os.RemoveAll(folder)
	for _, step := range []struct {
		title string
		do    func() error
	}{
		{"the repository, as it is committed", clone},
		{"how to use the folder", environment},
		{"the modules", modules},
		{"ZooKeeper and a Java", zookeeper},
		{"what Go compiles: this takes minutes", compile},
		{"the archive", compress},
	} {
		words.Fprintln(os.Stdout, step.title)
		if err := step.do(); err != nil {
			return err
		}
	}
	info, err := os.Stat(archive)
	if err != nil {
		return err
	}
	words.Fprintf(
		os.Stdout,
		"%s has %d MB. The other machines need %s for %s/%s, make and git. There, type:\n%s",
		archive,
		info.Size()/1_000_000,
		runtime.Version(),
		runtime.GOOS,
		runtime.GOARCH,
		unpack,
	)
	return nil
}

// clone takes what is committed.
func clone() error {
	if err := run(exec.Command("git", "clone", "--quiet", "--no-hardlinks", ".", folder+"/zklock")); err != nil {
		return err
	}
	return run(exec.Command("git", "-C", folder+"/zklock", "remote", "remove", "origin"))
}

// environment writes the file that a terminal reads.
func environment() error {
	text := ""
	for _, setting := range settings {
		text += "export " + setting + "\n"
	}
	return os.WriteFile(folder+"/environment", []byte(text), 0o644)
}

// modules takes them from this machine's cache, which make ready has filled.
func modules() error {
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		return err
	}
	download := inside("mod", "download")
	downloaded := filepath.Join(strings.TrimSpace(string(cache)), "cache", "download")
	download.Env = append(download.Env, "GOPROXY=file://"+downloaded, "GOSUMDB=off", "GOFLAGS=-modcacherw")
	return run(download)
}

func zookeeper() error { return zkserver.CopyLocal(folder+"/zookeeper", folder+"/java") }

// compile fills the build cache with what make test and make tour compile. Nothing of
// it is run: true runs in place of each test, and of each command.
func compile() error {
	for _, command := range []*exec.Cmd{
		inside("build", "./..."),
		inside("test", "-count=1", "-exec=true", "./..."),
		inside("run", "-exec=true", "./internal/upkeep/ready"),
		inside("run", "-exec=true", "./internal/show/tour"),
	} {
		if err := run(command); err != nil {
			return err
		}
	}
	return nil
}

func compress() error {
	if err := os.MkdirAll(filepath.Dir(archive), 0o755); err != nil {
		return err
	}
	return run(exec.Command("tar", "-czf", archive, "-C", filepath.Dir(folder), filepath.Base(folder)))
}

// inside is a go command in the clone, as who has unpacked the archive types it.
func inside(args ...string) *exec.Cmd {
	command := exec.Command("go", args...)
	command.Dir = folder + "/zklock"
	command.Env = append(append(os.Environ(), "GOFLAGS="), settings...)
	return command
}

// run runs a command in silence, unless it fails.
func run(command *exec.Cmd) error {
	said, err := command.CombinedOutput()
	if err != nil {
		return words.Errorf("%s: %w\n%s", command, err, said)
	}
	return nil
}
