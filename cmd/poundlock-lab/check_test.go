package main

import "testing"

func TestSize(t *testing.T) {
	for text, want := range map[string]int64{
		"4GiB": 4 << 30, "500MiB": 500 << 20, "1.5 KiB": 1536, "2MB": 2e6, "12345": 12345,
	} {
		if got, err := size(text); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "-1GiB", "0", "9999999TiB", "NaN", "GiB"} {
		if got, err := size(text); err == nil {
			t.Errorf("%q: accepted as %d", text, got)
		}
	}
}
