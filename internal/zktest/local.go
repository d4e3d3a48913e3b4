package zktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// An installation is a ZooKeeper on this machine and the java to run it with.
type installation struct {
	name      string // for people
	classpath string
	java      string
}

var errNoJava = errors.New("there is no java to run it")

// findLocal looks in ZOOKEEPER_HOME, and only there if it is set, then where
// Debian and Homebrew put ZooKeeper.
func findLocal() (installation, error) {
	if home := os.Getenv("ZOOKEEPER_HOME"); home != "" {
		classpath, ok := classpathIn(home)
		if !ok {
			return installation{}, fmt.Errorf("ZOOKEEPER_HOME=%s holds no zookeeper-*.jar, nor does its lib folder", home)
		}
		return withJava(installation{name: home, classpath: classpath})
	}

	// The manifest of Debian's jar names all others but one that writes a log.
	const debian, debianLog = "/usr/share/java/zookeeper.jar", "/usr/share/java/slf4j-simple.jar"
	if _, err := os.Stat(debian); err == nil {
		return withJava(installation{name: "Debian's package", classpath: debian + ":" + debianLog})
	}

	for _, prefix := range []string{"/opt/homebrew", "/usr/local", "/home/linuxbrew/.linuxbrew"} {
		if classpath, ok := classpathIn(prefix + "/opt/zookeeper/libexec"); ok {
			// Homebrew keeps its java off the PATH.
			return withJava(installation{name: "Homebrew", classpath: classpath}, prefix+"/opt/openjdk/bin/java")
		}
	}
	return installation{}, fmt.Errorf("no ZooKeeper is installed: ZOOKEEPER_HOME is not set, and there is no %s and no Homebrew zookeeper", debian)
}

// classpathIn returns the class path of an Apache distribution's folder.
func classpathIn(home string) (string, bool) {
	home, err := filepath.Abs(home)
	if err != nil {
		return "", false
	}
	var found []string
	for _, pattern := range []string{"lib/zookeeper-[0-9]*.jar", "zookeeper-[0-9]*.jar"} {
		jars, _ := filepath.Glob(filepath.Join(home, pattern))
		found = append(found, jars...)
	}
	return strings.Join(append(found, filepath.Join(home, "lib", "*")), ":"), len(found) > 0
}

// withJava adds the java of JAVA_HOME, else one of those given, else of PATH.
func withJava(found installation, candidates ...string) (installation, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		candidates = append([]string{filepath.Join(home, "bin", "java")}, candidates...)
	}
	candidates = append(candidates, "java")
	for _, java := range candidates {
		if path, err := exec.LookPath(java); err == nil {
			found.java = path
			return found, nil
		}
	}
	return found, fmt.Errorf("ZooKeeper is there (%s), but %w: %s not found", found.name, errNoJava, strings.Join(candidates, ", "))
}

// mendLocal returns the command that helps against an error of startLocal.
func mendLocal(err error) string {
	if os.Getenv("ZOOKEEPER_HOME") != "" && !errors.Is(err, errNoJava) {
		return "unset ZOOKEEPER_HOME"
	}
	return InstallCommand()
}

func checkLocal(context.Context) error {
	_, err := findLocal()
	return err
}

// startLocal runs a private server as a child process on a free port, with
// its data in a temporary folder.
func startLocal(ctx context.Context) (*Server, error) {
	found, err := findLocal()
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		s, err := found.launch(ctx, port)
		// Someone may have taken the port before java did: take another.
		if err == nil || attempt == 5 || !strings.Contains(err.Error(), "BindException") {
			return s, err
		}
	}
}

// launch starts java under a watchdog and waits until it serves.
func (found installation) launch(ctx context.Context, port int) (*Server, error) {
	dir, err := os.MkdirTemp("", "zklock-")
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	defer log.Close()
	p, err := found.run(dir, port, log)
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}

	s := &Server{pid: p.pid, stop: p.stop}
	addrs := []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	// Should the port be another server's, that one would answer, and be gone
	// when its own test ends: make sure that it is the one with our folder.
	s.Addr, err = await(ctx, addrs, "conf", filepath.Base(dir)+"/data", 150*time.Millisecond, 30*time.Second, p.exited)
	if err != nil {
		s.Stop()
		text, _ := io.ReadAll(io.NewSectionReader(log, 0, 1<<20)) // readable though removed
		return nil, fmt.Errorf("%s with the ZooKeeper of %s: %w; the end of its log:\n%s", found.java, found.name, err, lastLines(string(text), 25))
	}
	s.servers = addrs
	s.Origin = fmt.Sprintf("%s, %s, private process on %s", found.name, s.version(), s.Addr)
	return s, nil
}

// A process is a java under a watchdog.
type process struct {
	pid  int
	gone chan struct{} // closed when java has ended
	stop func() error
}

// Without a configuration, logback writes all it can, each request included.
const quietLogback = `<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%level %logger: %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
`

// run starts java and its watchdog.
//
// Java has to end, and its folder to go, however this process ends: by Stop,
// os.Exit, a panic, Ctrl-C, or SIGKILL, which leaves no time for a clean-up.
// Only another process can see to that, and the kernel tells it: it closes a
// pipe that this process alone holds open. (Linux could kill java by itself,
// through Pdeathsig, but it does so as soon as the *thread* that started java
// ends, which Go's scheduler decides; and nothing would remove the folder.)
func (found installation) run(dir string, port int, log *os.File) (*process, error) {
	write := func(name, text string) (path string, err error) {
		path = filepath.Join(dir, name)
		return path, os.WriteFile(path, []byte(text), 0o600)
	}
	conf, err := write("zoo.cfg", config(filepath.Join(dir, "data"), "127.0.0.1", port))
	if err != nil {
		return nil, err
	}
	logback, err := write("logback.xml", quietLogback)
	if err != nil {
		return nil, err
	}

	// The shell becomes java only once it is told to, which is when the
	// watchdog stands: at no moment is there a java that nobody watches.
	java := exec.Command("sh", "-c", `read -r go && exec "$@" </dev/null`, "sh", found.java,
		// Quick to start, and small.
		"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m",
		// A killed java would leave its performance file in /tmp.
		"-XX:-UsePerfData",
		// Warnings only, in Apache's distribution and in Debian's.
		"-Dlogback.configurationFile="+logback, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", found.classpath, "org.apache.zookeeper.server.quorum.QuorumPeerMain", conf)
	java.Stdout, java.Stderr = log, log
	java.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is not for java
	start, err := java.StdinPipe()
	if err != nil {
		return nil, err
	}
	defer start.Close()
	if err := java.Start(); err != nil {
		return nil, err
	}

	stop, err := watchdog(`kill -9 "$1"; rm -rf "$2" || { sleep 1; rm -rf "$2"; }`, strconv.Itoa(java.Process.Pid), dir)
	if err != nil {
		start.Close()
		java.Wait()
		return nil, err
	}
	p := &process{pid: java.Process.Pid, gone: make(chan struct{})}
	p.stop = func() error {
		err := stop()
		if err != nil { // someone has ended the watchdog
			java.Process.Kill()
		}
		<-p.gone
		return err
	}
	go func() {
		java.Wait()
		close(p.gone)
		// A java that ended by itself has freed its number: the watchdog must
		// act before another process gets it.
		stop()
	}()
	_, err = start.Write([]byte("go\n"))
	if err != nil {
		p.stop()
	}
	return p, err
}

// exited tells that java has ended, if it has.
func (p *process) exited() error {
	select {
	case <-p.gone:
		return errors.New("java ended before it served")
	default:
		return nil
	}
}

// watchdog starts a shell that runs the script once this process has ended,
// in whatever way, or has called stop, which waits until the script is done.
// The script finds args in $1, $2 and so on; none may be empty.
func watchdog(script string, args ...string) (stop func() error, err error) {
	for _, arg := range args {
		if arg == "" {
			return nil, errors.New("zktest: a watchdog's argument is empty") // think of rm -rf
		}
	}
	// Go opens both ends close-on-exec: no child inherits the write end.
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	shell := exec.Command("sh", append([]string{"-c", "cat >/dev/null; " + script, "sh"}, args...)...)
	shell.Stdin = r
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must not end it
	if err := shell.Start(); err != nil {
		w.Close()
		return nil, err
	}
	return sync.OnceValue(func() error {
		w.Close()
		if err := shell.Wait(); err != nil {
			return fmt.Errorf("cleaning up after ZooKeeper: %w", err)
		}
		return nil
	}), nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// lastLines returns the last n lines of a text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
