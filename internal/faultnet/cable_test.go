package faultnet

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// A cut cable loses what is written on either side, and nobody is told; one that is mended goes on with none of what it had.
func TestCable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Mesh
		l, err := m.Listen("b")
		if err != nil {
			t.Fatal(err)
		}
		accepted := make(chan net.Conn, 1)
		go func() {
			conn, _ := l.Accept()
			accepted <- conn
		}()
		here, err := m.Dial(t.Context(), "a", "b")
		if err != nil {
			t.Fatal(err)
		}
		there := <-accepted
		got := make(chan string, 10)
		read := func(conn net.Conn) {
			b := make([]byte, 100)
			for {
				n, err := conn.Read(b)
				if err != nil {
					got <- "broken"
					return
				}
				got <- string(b[:n])
			}
		}
		go read(here)
		go read(there)
		write := func(conn net.Conn, text string) {
			t.Helper()
			if _, err := conn.Write([]byte(text)); err != nil {
				t.Error(err)
			}
		}
		hear := func(want string) {
			t.Helper()
			synctest.Wait()
			select {
			case text := <-got:
				if text != want {
					t.Errorf("%q arrives, want %q", text, want)
				}
			default:
				if want != "" {
					t.Errorf("nothing arrives, want %q", want)
				}
			}
		}
		write(here, "there")
		hear("there")
		write(there, "here")
		hear("here")
		cable := m.Between("b", "a")
		cable.Cut(true)
		write(here, "lost")
		write(there, "lost, too")
		hear("")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := m.Dial(ctx, "a", "b"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("dialing by a cut cable: %v", err)
		}
		cable.Cut(false)
		hear("broken")
		hear("broken")
		l.Close()
	})
}
