package main

import (
	"fmt"
	"strconv"
	"time"
)

// seconds is a duration that may be given as a number of seconds.
type seconds time.Duration

func (s *seconds) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		var x float64
		if x, err = strconv.ParseFloat(text, 64); err != nil || x != x || x > 1e9 || x < -1e9 {
			return fmt.Errorf("want a duration such as 1m30s, or a number of seconds")
		}
		d = time.Duration(x * float64(time.Second))
	}
	*s = seconds(d)
	return nil
}

func (s seconds) String() string { return time.Duration(s).String() }
func (s *seconds) Type() string  { return "seconds" }
