package api

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// snakeJSON is JSON with the names of the schema. Unlike connect's own it writes
// zeros, so that nobody has to know what the absence of a field means, and refuses
// fields that it does not know, so that a misspelt one is not ignored.
type snakeJSON struct{ name string }

// Name implements connect.Codec: it is the content type.
func (c snakeJSON) Name() string { return c.name }

// Marshal implements connect.Codec.
func (snakeJSON) Marshal(message any) ([]byte, error) {
	m, ok := message.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is no message", message)
	}
	return protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true}.Marshal(m)
}

// Unmarshal implements connect.Codec.
func (snakeJSON) Unmarshal(text []byte, message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is no message", message)
	}
	return protojson.Unmarshal(text, m)
}
