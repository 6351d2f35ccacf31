module github.com/poundlock/poundlock/bench/sections

go 1.26.0

replace github.com/poundlock/poundlock => ../..

require (
	github.com/poundlock/poundlock v0.0.0-00010101000000-000000000000
	go.etcd.io/raft/v3 v3.7.0
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/creack/pty v1.1.24 // indirect
	golang.org/x/sys v0.48.0 // indirect
)
