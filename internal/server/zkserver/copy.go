package zkserver

import (
	"archive/zip"
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// CopyLocal copies this machine's ZooKeeper, and the java that runs it, into two folders
// that can be ZOOKEEPER_HOME and JAVA_HOME on another machine of the same kind.
func CopyLocal(zookeeperHome, javaHome string) error {
	found, err := firstOf([]backend{local}, func(backend) (installation, error) { return findInstallation() })
	if err != nil {
		return err
	}
	jars, err := found.allJars()
	if err != nil {
		return err
	}
	for _, jar := range jars {
		if err := copyTree(jar, filepath.Join(zookeeperHome, filepath.Base(jar))); err != nil {
			return err
		}
	}
	installed, err := homeOf(found.java)
	if err != nil {
		return err
	}
	for _, part := range []string{"bin/java", "conf", "lib"} {
		if err := copyTree(filepath.Join(installed, part), filepath.Join(javaHome, part)); err != nil {
			return err
		}
	}
	return nil
}

// allJars lists the jars of the classpath, and those that the manifests of these name.
func (i installation) allJars() (all []string, err error) {
	var wanted []string
	for _, entry := range filepath.SplitList(i.classpath) {
		if folder, isAllOf := strings.CutSuffix(entry, "*"); isAllOf {
			jars, _ := filepath.Glob(filepath.Join(folder, "*.jar"))
			wanted = append(wanted, jars...)
		} else {
			wanted = append(wanted, entry)
		}
	}
	for len(wanted) > 0 {
		jar := wanted[0]
		wanted = wanted[1:]
		_, notThere := os.Stat(jar)
		if notThere != nil || slices.Contains(all, jar) {
			continue // java, too, goes on without a jar that is not there
		}
		all = append(all, jar)
		named, err := namedIn(jar)
		if err != nil {
			return nil, err
		}
		wanted = append(wanted, named...)
	}
	return all, nil
}

// namedIn lists the jars that the manifest of a jar names as its Class-Path.
func namedIn(jar string) (all []string, err error) {
	archive, err := zip.OpenReader(jar)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", jar, err)
	}
	defer archive.Close()
	manifest, err := archive.Open("META-INF/MANIFEST.MF")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", jar, err)
	}
	defer manifest.Close()
	classPath, reading := "", false
	for lines := bufio.NewScanner(manifest); lines.Scan(); {
		value, begins := strings.CutPrefix(lines.Text(), "Class-Path: ")
		more, continues := strings.CutPrefix(lines.Text(), " ")
		switch {
		case begins:
			classPath, reading = value, true
		case continues && reading:
			classPath += more
		default:
			reading = false
		}
	}
	for _, name := range strings.Fields(classPath) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(jar), name)
		}
		all = append(all, name)
	}
	return all, nil
}

var javaHomeLine = regexp.MustCompile(`(?m)^ *java\.home = (.*)$`)

// homeOf asks a java where it is installed.
func homeOf(java string) (string, error) {
	said, err := exec.Command(java, "-XshowSettings:properties", "-version").CombinedOutput()
	home := javaHomeLine.FindStringSubmatch(string(said))
	if err != nil || home == nil {
		return "", fmt.Errorf("%s does not say its java.home: %w\n%s", java, err, said)
	}
	return home[1], nil
}

// copyTree copies a file or a folder, and in place of a link, what it leads to. A link
// that leads nowhere is left out: Debian's java has some, to what is not installed.
func copyTree(from, to string) error {
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return copyFile(from, to, info.Mode().Perm())
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := copyTree(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	copied, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(copied, source)
	return errors.Join(err, copied.Close())
}
