//go:build unix && (!linux || !(amd64 || arm64) || race)

package node

import "syscall"

// The race detector knows of these calls that what was done before one end has written comes before what the other does after it has read.

func sysWrite(fd uintptr, b []byte) (int, error) { return syscall.Write(int(fd), b) }

func sysRead(fd uintptr, b []byte) (int, error) { return syscall.Read(int(fd), b) }
