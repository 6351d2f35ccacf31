//go:build unix && !linux

package node

import "syscall"

func sysWrite(fd uintptr, b []byte) (int, error) { return syscall.Write(int(fd), b) }

func sysRead(fd uintptr, b []byte) (int, error) { return syscall.Read(int(fd), b) }
