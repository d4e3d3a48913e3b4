package zkserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// An installation is a ZooKeeper on this machine and the java to run it with.
type installation struct {
	name      string   // for people
	jars      []string // patterns; ZooKeeper is installed if a file matches one of them
	classpath string
	java      string
}

var (
	errNotInstalled = errors.New("no ZooKeeper is installed")
	errNoJava       = errors.New("there is no java to run it")
	errNoFolder     = errors.New("cannot make a folder for its files")
)

// findInstallation looks only in ZOOKEEPER_HOME, if it is set, and otherwise where Debian and
// Homebrew put ZooKeeper. It uses the java of JAVA_HOME, or else Homebrew's, which is not on the
// PATH, or else the java on the PATH.
func findInstallation() (found installation, err error) {
	// The manifest of Debian's jar names all other jars that are needed, except one that writes a
	// log and two for TLS.
	const debian = "/usr/share/java/zookeeper.jar"
	const more = ":/usr/share/java/slf4j-simple.jar" +
		":/usr/share/java/netty-codec.jar" +
		":/usr/share/java/netty-resolver.jar"
	places := []installation{{"Debian's package", []string{debian}, debian + more, ""}}
	for _, prefix := range []string{"/opt/homebrew", "/usr/local", "/home/linuxbrew/.linuxbrew"} {
		places = append(places, apache("Homebrew", prefix+"/opt/zookeeper/libexec", prefix+"/opt/openjdk/bin/java"))
	}
	notThere := fmt.Errorf(
		"%w: ZOOKEEPER_HOME is not set, and there is no %s and no Homebrew zookeeper",
		errNotInstalled,
		debian,
	)
	if home := os.Getenv("ZOOKEEPER_HOME"); home != "" {
		places = []installation{apache(home, home, "")}
		notThere = fmt.Errorf("there is no zookeeper-*.jar in ZOOKEEPER_HOME=%s, nor in its folder lib", home)
	}
	i := slices.IndexFunc(places, installation.isThere)
	if i < 0 {
		return found, notThere
	}
	found = places[i]

	var candidates []string
	if home := os.Getenv("JAVA_HOME"); home != "" {
		candidates = append(candidates, filepath.Join(home, "bin", "java"))
	}
	if found.java != "" {
		candidates = append(candidates, found.java)
	}
	candidates = append(candidates, "java")
	for _, candidate := range candidates {
		if found.java, err = exec.LookPath(candidate); err == nil {
			return found, nil
		}
	}
	return found, fmt.Errorf(
		"ZooKeeper is installed (%s), but %w: %s not found",
		found.name,
		errNoJava,
		strings.Join(candidates, ", "),
	)
}

// apache returns the installation of Apache's distribution in a folder.
func apache(name, home, java string) installation {
	lib := filepath.Join(home, "lib")
	const jar = "zookeeper-[0-9]*.jar"
	jars := []string{
		filepath.Join(lib, jar),
		filepath.Join(home, jar),
		filepath.Join(home, "zookeeper.jar"), // as Debian calls it
	}
	return installation{name, jars, filepath.Join(lib, "*") + ":" + filepath.Join(home, "*"), java}
}

func (i installation) isThere() bool {
	return slices.ContainsFunc(i.jars, func(pattern string) bool {
		files, _ := filepath.Glob(pattern)
		return len(files) > 0
	})
}

// repairLocal returns the command that may repair an error of the backend local. If ZooKeeper and
// java are installed, it does not install them again.
func repairLocal(err error) string {
	switch {
	case errors.Is(err, errNotInstalled), errors.Is(err, errNoJava):
		return InstallCommand()
	case errors.Is(err, errNoFolder):
		return "export TMPDIR=/tmp, or another folder that exists and that you may write to"
	case os.Getenv("ZOOKEEPER_HOME") != "":
		return "unset ZOOKEEPER_HOME"
	}
	return "the end of the server's log above says what to look at; or: export ZK_BACKEND=docker"
}

// findLocal finds an installation that can run private servers as child processes, with their data
// in a temporary folder.
func findLocal(context.Context) (launcher, error) {
	found, err := findInstallation()
	return found.place().start, err
}

func (i installation) place() place {
	const here = "127.0.0.1"
	return place{name: i.name, machine: i.machine, address: here, host: here, listen: here, gateway: here}
}

// freePorts returns ports on which nothing listens. They are below the ports that systems give to
// outgoing connections, because an outgoing connection could take the port of a server that is down
// for a while.
func freePorts(n int) (ports []int, err error) {
	for len(ports) < n {
		port := 20000 + rand.IntN(12000)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return nil, err
		}
		defer listener.Close() // not before, or the port could be chosen twice
		ports = append(ports, port)
	}
	return ports, nil
}
