package classics

import (
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// said is what the lecture says about the four columns of the matrix, in their order:
// y holds, n does not, and - nothing.
type said struct {
	algorithm, variant string
	claims             string
}

// lecture is the matrix of the lecture "Mutual exclusion and election" (Cardellini, Sistemi
// Distribuiti e Cloud Computing, 2025/26), completed by the sources of the algorithms. What
// is said of no variant holds for the default form only.
var lecture = []said{
	{"dijkstra", "", "yynn"},
	{"bakery", "", "yyyy"}, // order is that of doorways
	{"bakery-messages", "", "yyy-"},
	{"bakery-messages", "polling", "yyy-"},
	{"centralised", "", "yyyn"}, // in the order of arrival at the coordinator only
	{"centralised", "denied", "yyyn"},
	{"lamport", "", "yyyy"},
	{"lamport", "unordered", "----"}, // it assumes FIFO channels
	{"ricart-agrawala", "", "yyyy"},
	{"ricart-agrawala", "printed", "yyyy"},
	{"carvalho-roucairol", "", "yyyn"},
	{"token-ring", "", "yyyn"},
	{"token-ring", "resting", "yyyn"},
	{"token-ring", "bidirectional", "yynn"},
	{"suzuki-kasami", "", "yyyn"},
	{"suzuki-kasami", "ricart-agrawala-token", "yyyn"},
	{"maekawa-basic", "", "ynnn"},
	{"maekawa-basic", "printed-vote", "ynnn"},
	{"maekawa", "", "yyyn"},
}

func inLecture(i protocol.Info) bool {
	return slices.ContainsFunc(lecture, func(s said) bool { return s.algorithm == i.Name && s.variant == i.Variant })
}

// claimOf is what the lecture says about a cell of the matrix, "" for nothing. It says of
// Dijkstra's algorithm only what holds with atomic registers.
func claimOf(algorithm, variant, under, column string) check.Result {
	if algorithm == "dijkstra" && under == safe {
		return ""
	}
	for _, s := range lecture {
		if s.algorithm == algorithm && s.variant == variant {
			return map[byte]check.Result{'y': check.Holds, 'n': check.Violated}[s.claims[slices.Index(columns, column)]]
		}
	}
	return ""
}
