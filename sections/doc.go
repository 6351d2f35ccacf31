// Package sections gives a program critical sections over an object that its own processes replicate, without servers.
//
// Each member of a fixed set of processes has a copy of the object. A user that enters a section executes operations on it,
// one after the other, and no operation of another section comes in between:
//
//	m, err := sections.Open(ctx, sections.Config{Name: "a", Members: members, Objects: objects, Bootstrap: first})
//	s, err := m.Enter(ctx, "shards")
//	result, err := s.Do(ctx, op) // executed, once; or ErrEjected: it never will be
//	s.Exit()
//
// Sections exclude each other weakly. A user whose process is suspected by mistake may believe to be inside while another one is; but of
// each operation it hears the truth. It was executed, once, after all operations of the sections before and with none of
// another section in between; or it was not executed, and never will be. Start, or Do from many goroutines, issues several of them at
// once, and it hears as much of each. No clock is needed for that, and no disk: the
// object lives as long as a majority of the members does. With Config.Dir members have a journal on disk, and what has had a result
// survives them all. docs/replicated-sections.md says what it rests on, what it costs, and
// when something else is better. Package kv, below this one, is an object for keys and values.
package sections
