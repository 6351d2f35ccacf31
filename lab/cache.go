package lab

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// codePrefix begins the names of the directories that a cache has, one for each version
// of the code. Others in the same place are left alone.
const codePrefix = "code-"

// keptVersions is how many of these directories stay: those used last.
const keptVersions = 3

// A cache keeps samples in files. The nil cache keeps none.
type cache struct {
	dir  string // of this code
	code string
}

// A trialKey is what a sample depends on, but for the code.
type trialKey struct {
	Experiment    string `json:"experiment"`
	Configuration string `json:"configuration"`
	Setup         string `json:"setup"`
	Point         int    `json:"point"`
	Seed          uint64 `json:"seed"`
}

type entry struct {
	Code   string          `json:"code"`
	Key    trialKey        `json:"key"`
	SHA256 string          `json:"sha256"` // of Sample
	Sample json.RawMessage `json:"sample"`
}

// codeVersion is the SHA-256 of this executable.
var codeVersion = sync.OnceValues(func() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	return checksum(text), err
})

// openCache opens the cache in dir, and forgets the versions of the code that were used
// longest ago; "" is no cache.
func openCache(dir string) (*cache, error) {
	if dir == "" {
		return nil, nil
	}
	code, err := codeVersion()
	if err != nil {
		return nil, fmt.Errorf("lab: which code is this: %w", err)
	}
	c := &cache{dir: filepath.Join(dir, codePrefix+code[:16]), code: code}
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCache, err)
	}
	// The time of the directory says when it was used: this is for people's eyes and
	// for prune, and nothing depends on it.
	now := time.Now()
	if err := errors.Join(os.Chtimes(c.dir, now, now), prune(dir)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCache, err)
	}
	return c, nil
}

func prune(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var versions []fs.FileInfo
	for _, d := range list {
		info, err := d.Info()
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), codePrefix) {
			versions = append(versions, info)
		}
	}
	slices.SortFunc(versions, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, v := range versions[min(keptVersions, len(versions)):] {
		if err := os.RemoveAll(filepath.Join(dir, v.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (c *cache) path(k trialKey) string {
	text, _ := json.Marshal(k) // strings and numbers
	return filepath.Join(c.dir, checksum(text)[:32]+".json")
}

// get returns the sample of k, if the cache has it unharmed.
func (c *cache) get(k trialKey) (s Sample, ok bool) {
	if c == nil {
		return s, false
	}
	text, err := os.ReadFile(c.path(k))
	if err != nil {
		return s, false
	}
	var e entry
	if json.Unmarshal(text, &e) != nil || e.Code != c.code || e.Key != k || e.SHA256 != checksum(e.Sample) {
		return s, false
	}
	return s, json.Unmarshal(e.Sample, &s) == nil
}

// put keeps the sample of k. Whoever reads the file at any time finds all of it, or none.
func (c *cache) put(k trialKey, s Sample) error {
	if c == nil {
		return nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	file, err := json.Marshal(entry{Code: c.code, Key: k, SHA256: checksum(text), Sample: text})
	if err != nil {
		return err
	}
	return replace(c.path(k), file)
}

func checksum(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// replace writes a file by way of another one beside it.
func replace(path string, text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".lab-*")
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Chmod(0o644), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
	}
	return err
}
