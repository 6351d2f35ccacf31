// Package poundlockv1 is what protoc makes of the schema of the API, in
// api/proto/poundlock/v1. Nothing but this file is written by hand.
package poundlockv1
