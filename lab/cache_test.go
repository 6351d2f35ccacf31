package lab

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

const trialsOfToy = (3 + 2) * 8

// What is in the cache is not tried again, unless it is harmed or not its own.
func TestCache(t *testing.T) {
	dir := t.TempDir()
	count := func(want int64, what string, y *toy) {
		t.Helper()
		if report(t, y, Options{Cache: dir, Workers: 2}); y.tried.Load() != want {
			t.Errorf("%s: %d trials, want %d", what, y.tried.Load(), want)
		}
	}
	count(trialsOfToy, "an empty cache", &toy{})
	count(0, "a full one", &toy{})
	count(trialsOfToy, "another setup", &toy{added: 1})
	files, err := filepath.Glob(filepath.Join(dir, codePrefix+"*", "*.json"))
	if err != nil || len(files) != 2*trialsOfToy {
		t.Fatalf("%d files, want %d (%v)", len(files), 2*trialsOfToy, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	mine := &toy{} // whose file that is
	if bytes.Contains(whole, []byte("added=1")) {
		mine.added = 1
	}
	for what, text := range map[string][]byte{
		"cut short":      whole[:len(whole)/2],
		"empty":          nil,
		"another number": bytes.Replace(whole, []byte(`"sum":`), []byte(`"sum":1`), 1),
		"another code":   bytes.Replace(whole, []byte(`"code":"`), []byte(`"code":"0`), 1),
		"another trial":  bytes.Replace(whole, []byte(`"seed":`), []byte(`"seed":9`), 1),
	} {
		if bytes.Equal(text, whole) {
			t.Fatalf("%s: nothing was changed", what)
		}
		if err := os.WriteFile(files[0], text, 0o644); err != nil {
			t.Fatal(err)
		}
		count(1, what, &toy{added: mine.added})
		count(0, what+", mended", &toy{added: mine.added})
	}
}

// Old versions of the code are forgotten; what is not of a cache stays.
func TestPrune(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"1", "2", "3", "4"} {
		path := filepath.Join(dir, codePrefix+name)
		at := time.Unix(int64(i), 0)
		if err := errors.Join(os.Mkdir(path, 0o755), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "mine"), 0o755); err != nil {
		t.Fatal(err)
	}
	c, err := openCache(dir)
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, d := range list {
		left = append(left, d.Name())
	}
	if len(left) != keptVersions+1 || slices.Contains(left, codePrefix+"1") {
		t.Errorf("left %v, want mine, %s and the newest", left, c.dir)
	}
}

// A cache that cannot be written does not cost the report.
func TestUnwritable(t *testing.T) {
	dir := t.TempDir()
	y := &toy{try: func(context.Context, int, uint64) error {
		versions, _ := filepath.Glob(filepath.Join(dir, codePrefix+"*"))
		for _, v := range versions {
			os.RemoveAll(v)
		}
		return nil
	}}
	r, err := Run(t.Context(), y.experiment(), Options{Cache: dir, Workers: 1})
	if !errors.Is(err, ErrCache) || r.Verdicts[Equal] != 5 {
		t.Errorf("error %v with verdicts %v, want %v and a whole report", err, r.Verdicts, ErrCache)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if r, err := Run(t.Context(), (&toy{}).experiment(), Options{Cache: file}); !errors.Is(err, ErrCache) || r.Experiment != "" {
		t.Errorf("a file as the cache: error %v, report of %q", err, r.Experiment)
	}
}

// A run that is told to end keeps what it did, and the next one goes on from there.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	y := &toy{try: func(ctx context.Context, _ int, _ uint64) error {
		return ctx.Err()
	}}
	done := 0
	_, err := Run(ctx, y.experiment(), Options{Cache: dir, Workers: 2, Progress: func(p Progress) {
		if done = p.Done; done == 7 {
			cancel()
		}
		if p.Total != trialsOfToy {
			t.Errorf("%d trials in all, want %d", p.Total, trialsOfToy)
		}
	}})
	if !errors.Is(err, ErrInterrupted) {
		t.Fatalf("error %v, want %v", err, ErrInterrupted)
	}
	again := &toy{}
	if report(t, again, Options{Cache: dir}); again.tried.Load() != int64(trialsOfToy-done) {
		t.Errorf("%d trials after %d of %d", again.tried.Load(), done, trialsOfToy)
	}
}

// killedCache is the variable that makes this test's process the one that is killed.
const killedCache = "POUNDLOCK_TEST_KILLED_CACHE"

// A run that is killed goes on, too: whatever file is there is whole.
func TestKilled(t *testing.T) {
	if dir := os.Getenv(killedCache); dir != "" {
		var begun atomic.Int32
		y := &toy{try: func(context.Context, int, uint64) error {
			if begun.Add(1) > trialsOfToy/2 {
				time.Sleep(time.Minute) // whoever shall kill it may be slow
			}
			time.Sleep(2 * time.Millisecond)
			return nil
		}}
		_, err := Run(t.Context(), y.experiment(), Options{Cache: dir, Workers: 2})
		t.Fatalf("nobody killed it: %v", err)
	}
	dir := t.TempDir()
	c := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	c.Env = append(os.Environ(), killedCache+"="+dir)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); len(entries(t, dir)) < 5; time.Sleep(time.Millisecond) {
		if time.Since(began) > time.Minute {
			c.Process.Kill()
			t.Fatal("no trial was kept in a minute")
		}
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); c.ProcessState.ExitCode() != -1 {
		t.Fatalf("it ended by itself: %v", err)
	}
	kept := len(entries(t, dir))
	if kept == trialsOfToy {
		t.Fatal("it was done before it was killed")
	}
	y := &toy{}
	_, got := report(t, y, Options{Cache: dir})
	if y.tried.Load() != int64(trialsOfToy-kept) {
		t.Errorf("%d trials after a run that kept %d of %d", y.tried.Load(), kept, trialsOfToy)
	}
	if _, want := report(t, &toy{}, Options{}); got["toys-dice.json"] != want["toys-dice.json"] {
		t.Error("the report of the run that went on is another one")
	}
}

// entries are the files that a cache has.
func entries(t *testing.T, dir string) (list []string) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".json" {
			list = append(list, path)
		}
		return nil // a directory may not be there yet
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
