package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/cli/clitest"
)

var draw = flag.Bool("draw", false, "with TestPictures: write the pictures")

// Each picture of a run in the documentation is what a command on the page that shows it
// draws now, and each run there has its picture. What the laboratory draws is in
// docs/figures, and its own business.
func TestPictures(t *testing.T) {
	files, err := readDocs("../../docs")
	if err != nil {
		t.Fatal(err)
	}
	commands := picturesOf(files)
	for name := range files {
		base := strings.TrimSuffix(name, ".txt")
		if picture := base + ".svg"; base != name && commands[picture] == nil {
			t.Errorf("docs/%s: no page has the command that draws it into %s, and shows that", name, picture)
		}
		if path.Ext(name) == ".svg" && commands[name] == nil {
			t.Errorf("docs/%s: no page has the command that draws it, and shows it", name)
		}
	}
	for name, args := range commands {
		t.Run(name, func(t *testing.T) {
			got, err := drawn(t.TempDir(), files, args)
			if err != nil {
				t.Fatal(err)
			}
			if *draw {
				if err := os.WriteFile(filepath.Join("../../docs", name), got, 0o644); err != nil {
					t.Fatal(err)
				}
			} else if !bytes.Equal(got, files[name]) {
				t.Errorf("docs/%s is not what poundlock-lab %s draws: go test ./cmd/poundlock-lab -run TestPictures -draw",
					name, strings.Join(args, " "))
			}
		})
	}
}

// readDocs returns the files of the documentation by name.
func readDocs(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	root := os.DirFS(dir)
	return files, fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err == nil && name == "figures":
			return fs.SkipDir
		case err == nil && !d.IsDir():
			files[name], err = fs.ReadFile(root, name)
		}
		return err
	})
}

// picturesOf returns the words after poundlock-lab of the command that draws each picture:
// one that a page both has, on a line of its own, and shows.
func picturesOf(files map[string][]byte) map[string][]string {
	commands := map[string][]string{}
	for name, text := range files {
		if path.Ext(name) != ".md" {
			continue
		}
		for line := range strings.Lines(string(text)) {
			words := strings.Fields(line)
			if !strings.HasPrefix(line, "    poundlock-lab ") || svgOf(words) == "" {
				continue
			}
			base := path.Base(svgOf(words))
			if strings.Contains(string(text), "]("+base+")") {
				commands[path.Join(path.Dir(name), base)] = words[1:]
			}
		}
	}
	return commands
}

// svgOf is the argument of --svg, "" if there is none.
func svgOf(words []string) string {
	for i, w := range words[:len(words)-1] {
		if w == "--svg" {
			return words[i+1]
		}
	}
	return ""
}

// drawn is what a command draws in a directory that has the runs of the documentation where
// the repository has them.
func drawn(dir string, files map[string][]byte, args []string) ([]byte, error) {
	for name, text := range files {
		if path.Ext(name) != ".txt" {
			continue
		}
		name = filepath.Join(dir, "docs", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, text, 0o600)); err != nil {
			return nil, err
		}
	}
	c := clitest.Command(args...)
	c.Dir = dir
	var exit *exec.ExitError
	if out, err := c.CombinedOutput(); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == cli.ExitViolated) {
		return nil, fmt.Errorf("poundlock-lab %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return os.ReadFile(filepath.Join(dir, svgOf(args)))
}

// A page must both have the command and show the picture.
func TestPicturesOf(t *testing.T) {
	const line = "    poundlock-lab replay docs/a/run.txt --all --svg docs/a/run.svg\n"
	for text, want := range map[string]bool{
		line + "![a run](run.svg)": true,
		line:                       false,
		"![a run](run.svg)":        false,
		"poundlock-lab replay x --svg run.svg\n![a run](run.svg)":    false, // in the middle of the text
		"    poundlock-lab check x --svg other.svg\n![run](run.svg)": false,
		"    poundlock-lab check x --svg\n![run](run.svg)":           false,
	} {
		commands := picturesOf(map[string][]byte{"a/page.md": []byte(text), "a/run.txt": nil})
		if _, got := commands["a/run.svg"]; got != want || len(commands) > 1 {
			t.Errorf("%q: %v", text, commands)
		}
	}
}
