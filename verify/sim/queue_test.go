package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/poundlock/poundlock/verify/workload"
)

// Items come in order, whichever way they take through the queue: lane and heap, or
// wheel and heap, with many at one time, far ones, and none for a while.
func TestQueueIsInOrder(t *testing.T) {
	for _, delay := range []Dist{
		Constant(0),
		Constant(time.Microsecond),
		Uniform(0, 0),
		Uniform(0, time.Microsecond),
		Uniform(0, 200*time.Microsecond),
		Exponential(time.Millisecond),
	} {
		var q queue
		for seed := range uint64(3) {
			var random workload.Stream
			random.Begin(seed, workload.ForDelay, 0)
			inOrder(t, &q, delay, &random)
		}
	}
}

func inOrder(t *testing.T, q *queue, delay Dist, random *workload.Stream) {
	t.Helper()
	q.reset(delay.Mean(), delay.Shape == workload.ConstantShape, 1+random.IntN(300))
	mean := int64(delay.Mean())
	var want []item
	key, now := uint64(0), int64(0)
	for round := range 1000 {
		burst := 1 + random.IntN(1+round%100*3)
		for range burst {
			key++
			x := item{at: now, key: key, to: random.Uint32(), slot: random.Uint32()}
			switch random.IntN(8) {
			case 0: // due now
				q.push(x)
			case 1: // far away
				x.at += random.Int64N(1 + 100*mean)
				q.push(x)
			case 2: // comes back after a pause, with the key that it had
				x.key = key - 1000_000
				x.at += random.Int64N(1 + mean)
				q.push(x)
			default:
				x.at += int64(delay.Draw(random))
				if delay.Shape == workload.ConstantShape {
					q.follow(x)
				} else {
					q.push(x)
				}
			}
			want = append(want, x)
		}
		slices.SortFunc(want, func(a, b item) int {
			if a.before(&b) {
				return -1
			}
			return 1
		})
		leave := random.IntN(1 + burst)
		if round%100 == 99 {
			leave = 0
		}
		for len(want) > leave {
			got := q.pop()
			if got != want[0] {
				t.Fatalf("delay %v, round %d: got %v, want %v", delay, round, got, want[0])
			}
			want, now = want[1:], got.at
		}
		if round%10 == 0 {
			all := slices.Collect(q.all)
			slices.SortFunc(all, func(a, b item) int {
				if a.before(&b) {
					return -1
				}
				return 1
			})
			if !slices.Equal(all, want) {
				t.Fatalf("delay %v, round %d: all yields %d items, %v, want %d", delay, round, len(all), all, len(want))
			}
		}
		if q.len() != len(want) {
			t.Fatalf("delay %v, round %d: %d items, want %d", delay, round, q.len(), len(want))
		}
	}
	q.push(item{at: now, key: key + 1}) // a run may end with items left
	q.push(item{at: now + mean, key: key + 1})
}

// The parts of the queue are used as they should: else the test above shows little.
func TestQueueParts(t *testing.T) {
	var q queue
	q.reset(time.Millisecond, false, 10)
	ms := int64(time.Millisecond)
	for i, at := range []int64{0, ms, 4 * ms, 1000 * ms} {
		q.push(item{at: at, key: uint64(i)})
	}
	if len(q.wheel.front) != 1 || q.wheel.count != 2 || len(q.heap) != 1 {
		t.Errorf("%d in front, %d in the wheel, %d in the heap", len(q.wheel.front), q.wheel.count, len(q.heap))
	}
	for q.len() > 0 {
		q.pop()
	}
	if q.push(item{at: 1001 * ms, key: 9}); q.wheel.len() != 1 {
		t.Error("the wheel stands still when it is empty")
	}
	for i := range 1000 {
		q.push(item{at: q.last, key: uint64(i)})
	}
	if len(q.wheel.front) > crowd {
		t.Errorf("%d in front: each had to pass all before it", len(q.wheel.front))
	}
	q.reset(time.Millisecond, true, 10)
	for i := range 1000 {
		q.follow(item{at: int64(i), key: uint64(i)})
	}
	q.push(item{at: ms})
	if q.wheel.len() != 0 || len(q.heap) != 1 || len(q.lane) != 1024 {
		t.Errorf("%d in the wheel, %d in the heap, a lane of %d", q.wheel.len(), len(q.heap), len(q.lane))
	}
}
