package faultnet

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"
)

func TestMemory(t *testing.T) {
	var m Memory
	l, err := m.Listen("s1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Listen("s1"); err == nil {
		t.Error("two listen at one address")
	}
	go func() {
		there, err := l.Accept()
		if err == nil {
			there.Write([]byte("x"))
		}
	}()
	here, err := m.Dial(t.Context(), "s1")
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	if _, err := here.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := m.Dial(ctx, "s1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nobody accepts: %v", err)
	}
	l.Close()
	l.Close()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close: %v", err)
	}
	if _, err := m.Dial(t.Context(), "s1"); err == nil {
		t.Error("dialed a closed listener")
	}
	if l.Addr().Network() != "memory" || l.Addr().String() != "s1" {
		t.Errorf("address %v", l.Addr())
	}
}
