package doccheck

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const archives = 9 // that fetch.sh gets: ZooKeeper, and Go and a JRE for four systems

var knownSum = regexp.MustCompile(`(?m)^[0-9a-f]{64,128}  .*\n`)

// fetches runs fetch.sh in a folder of its own. There it replaces each sum that fetch.sh knows by sum, and the minute
// for which a download may stall by a second. curl is what curl does, in the shell: $2 is the file that it should write,
// and $3 the address; options are those of the real curl.
func fetches(t *testing.T, sum, curl string) (kit, said string, err error) {
	t.Helper()
	kit, bin := t.TempDir(), t.TempDir()
	script, err := os.ReadFile(filepath.Join(root, "docs/kit/fetch.sh"))
	require.NoError(t, err)
	known := knownSum.ReplaceAll(script, []byte(sum))
	require.NotEqual(t, string(script), string(known), "the sums that fetch.sh knows")
	soon := bytes.ReplaceAll(known, []byte("--speed-time 60"), []byte("--speed-time 1"))
	require.NotEqual(t, string(known), string(soon), "the time after which fetch.sh gives up")
	require.NoError(t, os.WriteFile(filepath.Join(kit, "fetch.sh"), soon, 0o600))
	curl = "#!/bin/bash\noptions=()\nwhile test $1 != -o; do options+=($1); shift; done\n" + curl + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "curl"), []byte(curl), 0o700))
	fetch := exec.CommandContext(t.Context(), "bash", filepath.Join(kit, "fetch.sh"))
	fetch.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	text, err := fetch.CombinedOutput()
	return kit, string(text), err
}

// When sites are out of reach, fetch.sh gets the other archives, and says what to fetch by hand, and from where.
func TestFetchNamesWhatItCannotFetch(t *testing.T) {
	kit, said, err := fetches(t, "", "[[ $3 == *zookeeper* ]] && echo $3 >$2")
	require.Error(t, err, "eight archives are missing")
	files, err := filepath.Glob(filepath.Join(kit, "*.tar.gz"))
	require.NoError(t, err)
	assert.Len(t, files, archives-8)
	for name, other := range map[string]string{
		"jre-linux-amd64.tar.gz": "/Adoptium/17/jre/x64/linux/", "jre-darwin-arm64.tar.gz": "/Adoptium/17/jre/aarch64/mac/",
		"go-linux-arm64.tar.gz": `/golang/go1\..*\.linux-arm64\.tar\.gz`,
	} {
		assert.Regexp(t, "(?m)^"+name+": https://.*, or .*https://mirrors.*"+other+"$", said)
	}
	list := strings.Split(strings.TrimSpace(said), "\n")
	assert.NotContains(t, strings.Join(list[len(list)-8:], " "), "…", "the list is at the end")
}

// Where Adoptium sends no JRE, fetch.sh looks into the mirror's folder of this machine for the newest, and does not mix
// it with a part that Adoptium has begun. It prints the sum beside the name of that version.
func TestFetchTakesTheNewestJREOfTheMirror(t *testing.T) {
	folder := `<a href="../">..</a>
<a href="OpenJDK17U-jre_x64_linux_hotspot_17.0.9_9.tar.gz" title="17">OpenJDK17U-jre_x64</a>
<a href="OpenJDK17U-jre_x64_linux_hotspot_17.0.20.1_1.tar.gz">a</a>
<a href="OpenJDK17U-jre_x64_linux_hotspot_17.0.20.1_1.tar.gz.sig">b</a>
<a href="OpenJDK17U-jre_x64_linux_hotspot_17.0.13_11.tar.gz">c</a>`
	kit, said, err := fetches(t, "", `case $3 in
		*adoptium.net*) echo a part >$2; exit 1 ;;
		*/Adoptium/17/jre/*/) echo '`+folder+`' >$2 ;;
		*) test ! -s $2 || exit 1; echo $3 >$2 ;;
		esac`)
	require.NoError(t, err, "%s", said)
	for machine, its := range map[string]string{"linux-amd64": "x64/linux", "darwin-arm64": "aarch64/mac"} {
		from, err := os.ReadFile(filepath.Join(kit, "jre-"+machine+".tar.gz"))
		require.NoError(t, err, "%s", said)
		assert.Equal(t, "https://mirrors.tuna.tsinghua.edu.cn/Adoptium/17/jre/"+its+
			"/OpenJDK17U-jre_x64_linux_hotspot_17.0.20.1_1.tar.gz\n", string(from))
		assert.Regexp(t, `(?m)^[0-9a-f]{64}  jre-`+machine+`\.tar\.gz \(OpenJDK17U-.*_17\.0\.20\.1_1\.tar\.gz\)$`, said)
	}
	parts, err := filepath.Glob(filepath.Join(kit, "*.part"))
	require.NoError(t, err)
	assert.Empty(t, parts)

	kit, said, err = fetches(t, "", `case $3 in
		*adoptium.net*) exit 1 ;;
		*/Adoptium/*) echo "no JRE" >$2 ;;
		*) echo $3 >$2 ;;
		esac`)
	require.Error(t, err, "four are missing")
	files, err := filepath.Glob(filepath.Join(kit, "*.tar.gz"))
	require.NoError(t, err)
	assert.Len(t, files, archives-4, said)
}

// A download that stalls ends: fetch.sh gets the other archives, and says what to fetch by hand.
func TestFetchGivesUpADownloadThatStalls(t *testing.T) {
	curl, err := exec.LookPath("curl")
	require.NoError(t, err)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "80000000")
		_, _ = w.Write(make([]byte, 1000))
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(20 * time.Second):
			t.Error("curl still waits")
		}
	}))
	defer site.Close()
	kit, said, err := fetches(t, "", "if [[ $3 != *zookeeper* ]]; then echo $3 >$2; exit; fi\n"+
		curl+" --noproxy '*' ${options[@]} -o $2 "+site.URL)
	require.Error(t, err, "an archive is missing")
	files, err := filepath.Glob(filepath.Join(kit, "*.tar.gz"))
	require.NoError(t, err)
	assert.Len(t, files, archives-1)
	assert.Contains(t, said, "\nzookeeper.tar.gz: https://archive.apache.org/")
}

// A download that broke goes on where it ended. Here the first site of Go sends half of an archive, and the second the
// rest.
func TestFetchGoesOnWithAPart(t *testing.T) {
	curl, err := exec.LookPath("curl")
	require.NoError(t, err)
	whole, asked := strings.Repeat("whole", 100), []string{}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Range"))
		if len(asked) == 1 {
			w.Header().Set("Content-Length", fmt.Sprint(len(whole)))
			_, _ = w.Write([]byte(whole[:200]))
			return // the server closes the connection, since that was not all
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(whole))
	}))
	defer site.Close()
	kit, said, err := fetches(t, fmt.Sprintf("%x  go-linux-amd64.tar.gz\n", sha256.Sum256([]byte(whole))),
		"if [[ $2 != go-linux-amd64* ]]; then echo $3 >$2; exit; fi\n"+
			curl+" --noproxy '*' ${options[@]} -o $2 "+site.URL)
	require.NoError(t, err, "%s", said)
	text, err := os.ReadFile(filepath.Join(kit, "go-linux-amd64.tar.gz"))
	require.NoError(t, err, "%s", said)
	assert.Equal(t, whole, string(text))
	assert.Equal(t, []string{"", "bytes=200-"}, asked)
	parts, err := filepath.Glob(filepath.Join(kit, "*.part"))
	require.NoError(t, err)
	assert.Empty(t, parts)
}

// When the first site of Go is out of reach, or sends another file, fetch.sh gets Go from the second.
func TestFetchTriesTheSecondSiteOfGo(t *testing.T) {
	var sums strings.Builder
	for _, system := range []string{"linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64"} {
		fmt.Fprintf(&sums, "%x  go-%s.tar.gz\n", sha256.Sum256([]byte("whole\n")), system)
	}
	for _, first := range []string{"exit 1", "echo another >$2"} {
		kit, said, err := fetches(t, sums.String(), "[[ $3 == https://golang* ]] || { echo whole >$2; exit; }\n"+first)
		require.NoError(t, err, "%s", said)
		files, err := filepath.Glob(filepath.Join(kit, "go-*.tar.gz"))
		require.NoError(t, err)
		assert.Len(t, files, 4, said)
		assert.Contains(t, said, "/temurin/releases/?version=17&package=jre\n", "where the sums of the others are")
	}
}

// An archive whose sum fetch.sh knows is kept if it has that sum; the sums of the others are printed, to be compared by
// hand.
func TestFetchComparesTheSumsThatItKnows(t *testing.T) {
	whole := fmt.Sprintf("%x", sha512.Sum512([]byte("whole\n")))
	for sum, isKept := range map[string]bool{whole: true, strings.Repeat("0", 128): false} {
		kit, said, err := fetches(t, sum+"  zookeeper.tar.gz\n", "[[ $3 == *zookeeper* ]] && echo whole >$2 || echo $3 >$2")
		_, missing := os.Stat(filepath.Join(kit, "zookeeper.tar.gz"))
		assert.Equal(t, isKept, missing == nil, said)
		assert.Equal(t, isKept, err == nil, said)
		assert.Equal(t, !isKept, strings.Contains(said, "zookeeper.tar.gz: https://archive.apache.org/"), said)
		assert.Len(t, regexp.MustCompile(`(?m)^[0-9a-f]{64}  (go|jre)-`).FindAllString(said, -1), 8, said)
	}
}

// fetch.sh leaves the archives that ready.sh copies on each kind of machine, and no others. Here curl only writes down
// what it is asked for: the addresses are not tried.
func TestFetchHasTheArchivesThatReadyCopies(t *testing.T) {
	kit, said, err := fetches(t, "", "echo $3 >$2")
	require.NoError(t, err, "%s", said)

	ready, err := os.ReadFile(filepath.Join(root, "docs/kit/ready.sh"))
	require.NoError(t, err)
	system := regexp.MustCompile(`(?m)^system=.*$`).Find(ready)
	archives := regexp.MustCompile(`\{zklock,modules,\S*\}\.tar\.gz`).Find(ready)
	require.NotNil(t, system, "how ready.sh names a kind of machine")
	require.NotNil(t, archives, "what ready.sh copies")
	want := map[string]string{} // by the name of an archive, a piece of its address
	for machine, its := range map[string]string{
		"Linux x86_64": "linux/x64/jre", "Linux aarch64": "linux/aarch64/jre",
		"Darwin x86_64": "mac/x64/jre", "Darwin arm64": "mac/aarch64/jre",
	} {
		kernel, processor, _ := strings.Cut(machine, " ")
		uname := fmt.Sprintf("uname() { test $1 = -s && echo %s || echo %s; }\n", kernel, processor)
		names, err := exec.CommandContext(t.Context(), "bash", "-c", uname+string(system)+"\necho "+string(archives)).Output()
		require.NoError(t, err)
		for _, name := range strings.Fields(string(names)) {
			switch kind, machine, _ := strings.Cut(strings.TrimSuffix(name, ".tar.gz"), "-"); kind {
			case "zookeeper":
				want[name] = "-bin.tar.gz"
			case "go":
				want[name] = "." + machine + ".tar.gz"
			case "jre":
				want[name] = "/" + its + "/"
			}
		}
	}
	require.Len(t, want, 9, "archives")
	files, err := filepath.Glob(filepath.Join(kit, "*.tar.gz"))
	require.NoError(t, err)
	assert.Len(t, files, len(want))
	for name, piece := range want {
		address, err := os.ReadFile(filepath.Join(kit, name))
		assert.NoError(t, err)
		assert.Contains(t, string(address), piece, name)
	}
}

// aStick returns the folder of a stick whose archives hold only what ready.sh looks for. Its go builds nothing, and its
// tests fail while the home of a learner has a file slow.
func aStick(t *testing.T) string {
	t.Helper()
	stick := filepath.Join(t.TempDir(), "kit")
	for name, text := range map[string]string{
		"book/index.html": "", "zklock/out/bin/zk": "#!/bin/sh\ntest ! -e ~/slow\n", "zklock/out/bin/exercise": "#!/bin/sh\n",
		"download/cache": "", "apache-zookeeper-3-bin/conf": "",
		"go/bin/go": "#!/bin/sh\n", "jdk-17-jre/release": "",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(stick, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(stick, name), []byte(text), 0o700))
	}
	for name, folder := range map[string]string{
		"zklock": "zklock", "modules": "download", "zookeeper": "apache-zookeeper-3-bin",
		"go-" + runtime.GOOS + "-" + runtime.GOARCH: "go", "jre-" + runtime.GOOS + "-" + runtime.GOARCH: "jdk-17-jre",
	} {
		archive := filepath.Join(stick, name+".tar.gz")
		require.NoError(t, exec.CommandContext(t.Context(), "tar", "czf", archive, "-C", stick, folder).Run())
	}
	for _, script := range []string{"ready.sh", "rehearse.sh", "env.sh"} {
		text, err := os.ReadFile(filepath.Join(root, "docs/kit", script))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(stick, script), text, 0o600))
	}
	return stick
}

// learner runs what is typed, and returns what it prints, and the last line of it.
func learner(t *testing.T, home, typed string) (said, last string, err error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-c", typed)
	command.Env = append(os.Environ(), "HOME="+home)
	text, err := command.CombinedOutput()
	said = strings.TrimSpace(string(text))
	return said, said[strings.LastIndex(said, "\n")+1:], err
}

// The last line that ready.sh prints is what a learner types next: it leads to the commands of the class, and the
// sheet has it too.
func TestReadySaysWhatToTypeNext(t *testing.T) {
	home := t.TempDir()
	said, next, err := learner(t, home, "bash "+filepath.Join(aStick(t), "ready.sh"))
	require.NoError(t, err, "%s", said)
	said, last, err := learner(t, home, next+` && echo "$PWD $(command -v go)"`)
	require.NoError(t, err, "%s", said)
	assert.Equal(t, home+"/kit/zklock "+home+"/kit/go/bin/go", last)
	for _, sheet := range []string{"docs/workshop_sheet.md", "docs/workshop_sheet.zh-CN.md"} {
		text, err := os.ReadFile(filepath.Join(root, sheet))
		require.NoError(t, err)
		assert.Contains(t, string(text), "`"+next+"`", sheet)
	}
}

// When a test fails, the last line that ready.sh prints does the work again, and the stick is with somebody else.
func TestReadySaysWhatToTypeWhenATestFails(t *testing.T) {
	stick, home := aStick(t), t.TempDir()
	slow := filepath.Join(home, "slow")
	require.NoError(t, os.WriteFile(slow, nil, 0o600))
	said, again, err := learner(t, home, "bash "+filepath.Join(stick, "ready.sh"))
	require.Error(t, err, "a test fails: %s", said)
	require.NoError(t, os.RemoveAll(stick))
	require.NoError(t, os.Remove(slow))
	said, _, err = learner(t, home, again)
	assert.NoError(t, err, "%s", said)
	assert.Contains(t, said, "Ready.")
}

// All of the kit was copied by hand, with another system's archive, and a Mac's file beside an archive.
func TestReadyUnpacksTheArchivesOfItsSystemAlone(t *testing.T) {
	home := t.TempDir()
	require.NoError(t, os.Rename(aStick(t), filepath.Join(home, "kit")))
	for _, name := range []string{"go-plan9-mips.tar.gz", "._zklock.tar.gz"} {
		require.NoError(t, os.WriteFile(filepath.Join(home, "kit", name), []byte("not of this system"), 0o600))
	}
	said, _, err := learner(t, home, "bash ~/kit/ready.sh")
	require.NoError(t, err, "%s", said)
	assert.Contains(t, said, "Ready.")
}

// A rehearsal says what failed, and leaves nothing in the home of whoever lent the laptop.
func TestARehearsalSaysWhatFailed(t *testing.T) {
	stick, home := aStick(t), t.TempDir() // its exercise prints nothing
	said, last, err := learner(t, home, "bash "+filepath.Join(stick, "rehearse.sh"))
	require.Error(t, err, "%s", said)
	assert.Contains(t, said, "Ready.")
	assert.Regexp(t, "^Not rehearsed: the exercise does not stop", last)
	left, err := os.ReadDir(home)
	require.NoError(t, err)
	assert.Empty(t, left)
}

// Ctrl-C, as when the page does not open, is no rehearsal. Here ready.sh sends the signal.
func TestARehearsalThatIsInterruptedIsNone(t *testing.T) {
	stick := aStick(t)
	require.NoError(t, os.WriteFile(filepath.Join(stick, "ready.sh"), []byte("kill -INT $PPID\n"), 0o600))
	said, last, err := learner(t, t.TempDir(), "bash "+filepath.Join(stick, "rehearse.sh"))
	require.Error(t, err, "%s", said)
	assert.Regexp(t, "^Not rehearsed: ready.sh", last)
}

// hunts runs hunt.sh with these numbers. command is what go does there, in the shell.
func hunts(t *testing.T, command string, numbers ...string) (said string, err error) {
	t.Helper()
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "go"), []byte("#!/bin/bash\n"+command+"\n"), 0o700))
	script := filepath.Join(root, "docs/kit/hunt.sh")
	hunt := exec.CommandContext(t.Context(), "bash", append([]string{script}, numbers...)...)
	hunt.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	text, err := hunt.CombinedOutput()
	return string(text), err
}

// Of each test hunt.sh prints what was seen, and that the mistake was found: a test passes if its lock is wrong, and
// PASS would read like praise. It fails if a test does, and says so if a mistake has no test.
func TestTheHuntPrintsWhatWasSeen(t *testing.T) {
	said, err := hunts(t, `echo '=== RUN   TestW1Persistent
=== RUN   TestW1Persistent/W1:_a_crash
    property.go:235: as expected, W1 lacks "a crash": its znode still exists
--- PASS: TestW1Persistent (0.00s)
    --- PASS: TestW1Persistent/W1:_a_crash (9.67s)
PASS
ok  	zklock/step02_sequential_spin	10.174s
testing: warning: no tests to run
PASS
ok  	zklock/step03_children_watch	0.012s [no tests to run]'`, "1")
	require.NoError(t, err, "%s", said)
	assert.Equal(t, "W1 lacks \"a crash\": its znode still exists\nFOUND W1 Persistent\n", said)

	said, err = hunts(t, "echo '    wrong_test.go:9: B waits'; echo '--- FAIL: TestW8Trusts (1.00s)'; exit 1", "8")
	require.Error(t, err)
	assert.Equal(t, "B waits\nFAIL TestW8Trusts\n", said)

	said, err = hunts(t, "echo all is well", "8", "99")
	require.Error(t, err)
	assert.Regexp(t, "^There is no W99: .*\n$", said)
}

// The test of each mistake prints what it saw, as a property does that the lock lacks.
func TestEachTestOfTheHuntSaysWhatItSaw(t *testing.T) {
	tests := regexp.MustCompile(`(?ms)^func (TestW\d+[A-Z]\w*)\(.*?^}`)
	seen := 0
	for name, text := range read(t).code {
		if !strings.HasSuffix(name, "/wrong_test.go") {
			continue
		}
		for _, test := range tests.FindAllStringSubmatch(text, -1) {
			assert.Regexp(t, `property\.Lacks\(|t\.Logf\("(W\d+|%s): `, test[0], test[1])
			seen++
		}
	}
	assert.Greater(t, seen, 20)
}
