package jsonx

import (
	"hash/maphash"
	"slices"
)

// run is a stretch of n elements that two arrays share.
type run struct{ from, to, n int }

// maxEdits is how many insertions and removals align looks for between the
// common ends of two arrays.
const maxEdits = 200

// align finds elements that stay: runs in ascending order in both arrays. The
// common head and tail always stay; between them the shortest edit script is
// taken (Myers), if it has at most maxEdits steps, else one run that shows a
// list moved on. Arrays of the same length
// whose elements mostly changed in place give few or no runs, which is right
// too: what lies between runs is compared in pairs.
func align(from, to []*Value) []run {
	head := 0
	for head < len(from) && head < len(to) && Identical(from[head], to[head]) {
		head++
	}
	tail := 0
	for tail < len(from)-head && tail < len(to)-head &&
		Identical(from[len(from)-1-tail], to[len(to)-1-tail]) {
		tail++
	}
	runs := []run{{0, 0, head}}
	a, b := from[head:len(from)-tail], to[head:len(to)-tail]
	if len(a) > 0 && len(b) > 0 && len(a)+len(b) > 2 {
		ids := interner{seed: maphash.MakeSeed(), byHash: map[uint64][]int{}}
		idsA, idsB := ids.all(a), ids.all(b)
		middle, ok := editRuns(idsA, idsB)
		if !ok {
			middle = movedOn(idsA, idsB)
		}
		for _, r := range middle {
			runs = append(runs, run{r.from + head, r.to + head, r.n})
		}
	}
	return append(runs, run{len(from) - tail, len(to) - tail, tail})
}

// interner numbers elements so that identical ones have the same number.
type interner struct {
	seed   maphash.Seed
	byHash map[uint64][]int
	values []*Value
	buf    []byte
}

func (x *interner) all(values []*Value) []int {
	ids := make([]int, len(values))
	for i, v := range values {
		ids[i] = x.id(v)
	}
	return ids
}

func (x *interner) id(v *Value) int {
	x.buf = v.Append(x.buf[:0])
	h := maphash.Bytes(x.seed, x.buf)
	for _, id := range x.byHash[h] {
		if Identical(x.values[id], v) {
			return id
		}
	}
	id := len(x.values)
	x.values = append(x.values, v)
	x.byHash[h] = append(x.byHash[h], id)
	return id
}

// movedOn finds a list that lost or gained many elements at its head: the run
// that starts at the head of one and anywhere in the other.
func movedOn(a, b []int) []run {
	r := run{from: slices.Index(a, b[0])}
	if r.from < 0 {
		if r = (run{to: slices.Index(b, a[0])}); r.to < 0 {
			return nil
		}
	}
	for r.from+r.n < len(a) && r.to+r.n < len(b) && a[r.from+r.n] == b[r.to+r.n] {
		r.n++
	}
	return []run{r}
}

// editRuns returns the runs of a shortest edit script from a to b; ok is false
// when it has more than maxEdits steps. It is the greedy algorithm of E. Myers, "An
// O(ND) Difference Algorithm and Its Variations" (1986).
func editRuns(a, b []int) (runs []run, ok bool) {
	limit := min(len(a)+len(b), maxEdits)
	reach := make([]int, 2*limit+2) // furthest x on diagonal k (x-y), at k+limit
	var trace [][]int               // reach of diagonals -steps..steps before each step
	for steps := 0; steps <= limit; steps++ {
		trace = append(trace, slices.Clone(reach[limit-steps:limit+steps+1]))
		for k := -steps; k <= steps; k += 2 {
			x := 0
			switch {
			case steps == 0:
			case k == -steps || k != steps && reach[limit+k-1] < reach[limit+k+1]:
				x = reach[limit+k+1]
			default:
				x = reach[limit+k-1] + 1
			}
			for x < len(a) && x-k < len(b) && x-k >= 0 && a[x] == b[x-k] {
				x++
			}
			reach[limit+k] = x
			if x >= len(a) && x-k >= len(b) {
				return backtrack(trace, len(a), len(b)), true
			}
		}
	}
	return nil, false
}

// backtrack reads the runs off the trace of editRuns, from the end.
func backtrack(trace [][]int, x, y int) []run {
	var runs []run
	for steps := len(trace) - 1; steps >= 0; steps-- {
		prevX, prevY := 0, 0
		startX := 0
		if steps > 0 {
			reach, k := trace[steps], x-y // reach[steps+k] is diagonal k
			if k == -steps || k != steps && reach[steps+k-1] < reach[steps+k+1] {
				prevX = reach[steps+k+1]
				prevY = prevX - (k + 1)
				startX = prevX
			} else {
				prevX = reach[steps+k-1]
				prevY = prevX - (k - 1)
				startX = prevX + 1
			}
		}
		if n := x - startX; n > 0 {
			runs = append(runs, run{startX, y - n, n})
		}
		x, y = prevX, prevY
	}
	slices.Reverse(runs)
	return runs
}
