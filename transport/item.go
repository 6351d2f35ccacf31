package transport

import (
	"encoding/binary"
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

// A Type says what an item of a frame is.
type Type uint8

// The types of items.
const (
	HelloItem   Type = iota + 1 // first item of the dialing end; Body is a Hello
	WelcomeItem                 // its answer; Body is a Welcome
	RefuseItem                  // or this one, or the last item before the end; Body is a Refuse
	MessageItem                 // a message of the lock Name, of kind Kind, number Seq of its session
	AckItem                     // every message up to Seq was received
	PingItem                    // asks for a Pong with the same Seq, and renews the lease
	PongItem
	CallItem  // control request Seq
	ReplyItem // its answer; Kind is 0, or 1 when Body is an error text
	ByeItem   // the session ends here, at will; who accepted the connection answers with the same
	// RefuseNameItem answers messages of the lock Name, of kind Kind, that the other end
	// does not serve; Body says why. It is numbered like a message.
	RefuseNameItem
	// PartItem is the beginning of a message that is too large for one item, or goes on with it: Body
	// begins with a varint, how many bytes of the message follow this item. The MessageItem that follows is its end.
	PartItem
	// LabelledItem is a message of a lock whose user has a label: Body begins with the
	// length of the label, a varint, and the label.
	LabelledItem
	// WakeItem says that the user of the lock Name, of kind Kind, waits at the other end, whose process may have to hear of the one
	// here. It is numbered like a message, and Body is empty.
	WakeItem
)

// An Item is one part of a frame. Its slices point into the frame.
type Item struct {
	Type Type
	Kind uint8
	Seq  uint64
	Name []byte
	Body []byte
}

// Append appends the encoding of i.
func (i Item) Append(b []byte) []byte {
	b = append(b, byte(i.Type))
	switch i.Type {
	case HelloItem, WelcomeItem, RefuseItem:
		return protocol.AppendText(b, i.Body)
	case MessageItem, RefuseNameItem, PartItem, LabelledItem, WakeItem:
		return appendNamed(b, i.Seq, i.Kind, i.Name, i.Body)
	case AckItem, PingItem, PongItem:
		return binary.AppendUvarint(b, i.Seq)
	case CallItem:
		return protocol.AppendText(binary.AppendUvarint(b, i.Seq), i.Body)
	case ReplyItem:
		return protocol.AppendText(append(binary.AppendUvarint(b, i.Seq), i.Kind), i.Body)
	}
	return b // Bye
}

// AppendLabelled appends the body of a LabelledItem.
func AppendLabelled(b []byte, label string, msg []byte) []byte {
	return append(protocol.AppendText(b, label), msg...)
}

// SplitLabelled takes the label from the body of a LabelledItem, and returns the message.
func SplitLabelled(body []byte) (label, msg []byte, err error) {
	r := protocol.Reader{Rest: body}
	label = r.Bytes(MaxUserLabel)
	if r.Err != nil {
		return nil, nil, fmt.Errorf("%w: label of a user: want at most %d bytes", ErrFrame, MaxUserLabel)
	}
	if err := CheckText("label", string(label), MaxUserLabel); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrFrame, err)
	}
	return label, r.Rest, nil
}

// AppendNamed appends a MessageItem, RefuseNameItem, PartItem, LabelledItem or WakeItem whose name is a string.
func AppendNamed(b []byte, t Type, seq uint64, kind uint8, name string, body []byte) []byte {
	return appendNamed(append(b, byte(t)), seq, kind, name, body)
}

func appendNamed[T string | []byte](b []byte, seq uint64, kind uint8, name T, body []byte) []byte {
	b = append(binary.AppendUvarint(b, seq), kind)
	return protocol.AppendText(protocol.AppendText(b, name), body)
}

// ReadItem takes the first item of items.
func ReadItem(items []byte) (i Item, rest []byte, err error) {
	if len(items) == 0 {
		return i, nil, fmt.Errorf("%w: no item", ErrFrame)
	}
	i.Type = Type(items[0])
	r := protocol.Reader{Rest: items[1:]}
	switch i.Type {
	case HelloItem, WelcomeItem, RefuseItem:
		i.Body = r.Bytes(MaxHandshake)
	case MessageItem, RefuseNameItem, PartItem, LabelledItem, WakeItem:
		i.Seq, i.Kind = r.Uint(), r.Byte()
		i.Name, i.Body = r.Bytes(wireName), r.Bytes(MaxMessage)
	case AckItem, PingItem, PongItem:
		i.Seq = r.Uint()
	case CallItem:
		i.Seq, i.Body = r.Uint(), r.Bytes(MaxRequest)
	case ReplyItem:
		i.Seq, i.Kind, i.Body = r.Uint(), r.Byte(), r.Bytes(MaxBody)
	case ByeItem:
	default:
		return i, nil, fmt.Errorf("%w: item of unknown type %d", ErrFrame, i.Type)
	}
	if r.Err != nil {
		return Item{}, nil, fmt.Errorf("%w: item of type %d", ErrFrame, i.Type)
	}
	return i, r.Rest, nil
}
