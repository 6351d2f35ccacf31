package node

import (
	"testing"
	"unsafe"

	"github.com/poundlock/poundlock/algo/sigma"
)

// TestSizes: what a node has of each lock fits into what the allocator gives for so many bytes on 64 bits.
func TestSizes(t *testing.T) {
	for what, x := range map[string]struct{ has, most uintptr }{
		"an instance":            {unsafe.Sizeof(instance{}), 64},
		"what a member has more": {unsafe.Sizeof(serving{}), 64},
		"what hosts a process":   {unsafe.Sizeof(instanceOf[sigma.Message]{}), 32},
		"a user":                 {unsafe.Sizeof(user{}), 32},
	} {
		if x.has > x.most {
			t.Errorf("%s has %d bytes, want at most %d: a node may have very many", what, x.has, x.most)
		}
	}
}
