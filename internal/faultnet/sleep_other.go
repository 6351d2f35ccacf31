//go:build !linux

package faultnet

import "time"

func sleep(d time.Duration) { time.Sleep(d) }
