//go:build !linux

package faultnet

import "time"

// Sleep is time.Sleep.
func Sleep(d time.Duration) { time.Sleep(d) }
