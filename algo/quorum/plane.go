package quorum

// MostOrder is the largest order of planes that Singer makes: beyond, the search for one
// process takes longer than all else that it does at its start.
const MostOrder = 32

// Order returns the order q of the plane with n points, n = q^2+q+1, or 0 if there is none
// to MostOrder. The triangle, with 3 points and 3 lines of 2, counts as that of order 1.
func Order(n int) int {
	for q := 1; q <= MostOrder; q++ {
		if q*q+q+1 == n && (q == 1 || prime(q) > 0) {
			return q
		}
	}
	return 0
}

// Singer returns q+1 numbers from 0 on, in increasing order, whose differences modulo
// n = q^2+q+1 are all residues but 0 exactly once; nil unless q is 1 or a prime power to
// MostOrder. The sets i + D mod n are the lines of a projective plane with the points
// 0..n-1.
//
// The points of the plane are the multiples of the powers of x in the field of q^3
// elements, polynomials of degree at most 2 over that of q: as many as x has powers that
// are no multiples of each other, if x is chosen well. The polynomials of degree at most
// 1 make a line, and D is the powers that are on it. To multiply by x turns the plane.
//
// J. Singer, "A theorem in finite projective geometry and some applications to number
// theory", Trans. AMS 43, 1938.
func Singer(q int) []int {
	switch {
	case q == 1:
		return []int{0, 1}
	case q < 1 || q > MostOrder || prime(q) == 0:
		return nil
	}
	f := newField(q)
	for c := 1; ; c++ { // the cubes that x may have, c0 + c1 x + c2 x^2
		if line := f.line([3]int{c % f.q, c / f.q % f.q, c / f.q / f.q}); line != nil {
			return line
		}
	}
}

// line returns which powers of x are polynomials of degree at most 1, if x^3 is c and no
// two of the first q^2+q+1 powers are multiples of each other; else nil.
func (f *field) line(c [3]int) (line []int) {
	y := [3]int{1, 0, 0} // x^k
	for k := range f.q*f.q + f.q + 1 {
		if k > 0 && y[1] == 0 && y[2] == 0 {
			return nil
		}
		if y[2] == 0 {
			line = append(line, k)
		}
		top := y[2]
		y = [3]int{f.times(top, c[0]), f.plus(y[0], f.times(top, c[1])), f.plus(y[1], f.times(top, c[2]))}
	}
	if y[1] != 0 || y[2] != 0 {
		return nil
	}
	return line
}

// A field is the one of q elements, q a power of the prime p. An element is a polynomial
// over the integers modulo p, whose coefficients are the digits of a number to base p.
type field struct {
	q             int
	sums, product []int // by a*q+b
}

// irreducible has for each q that is no prime a polynomial modulo which the others are a
// field, written like elements: for 4 it is x^2+x+1, in binary digits 111.
var irreducible = map[int]int{
	4: 0b111, 8: 0b1011, 16: 0b10011, 32: 0b100101,
	9:  9 + 1,      // x^2+1
	27: 27 + 6 + 1, // x^3+2x+1
	25: 25 + 2,     // x^2+2
}

// prime returns the prime that q is a power of, 0 if there is none.
func prime(q int) int {
	for p := 2; p <= q; p++ {
		if q%p != 0 {
			continue
		}
		for q%p == 0 {
			q /= p
		}
		if q == 1 {
			return p
		}
		return 0
	}
	return 0
}

func newField(q int) *field {
	f := &field{q: q, sums: make([]int, q*q), product: make([]int, q*q)}
	p := prime(q)
	for a := range q {
		for b := range q {
			f.sums[a*q+b] = plus(a, b, p)
			f.product[a*q+b] = f.multiply(a, b, p)
		}
	}
	return f
}

func (f *field) plus(a, b int) int  { return f.sums[a*f.q+b] }
func (f *field) times(a, b int) int { return f.product[a*f.q+b] }

// plus adds digit by digit, without carry.
func plus(a, b, p int) (sum int) {
	for unit := 1; a > 0 || b > 0; unit *= p {
		sum += (a + b) % p * unit
		a, b = a/p, b/p
	}
	return sum
}

// multiply takes the digits of b from the highest on. What grows to degree k is brought
// down again by multiples of the irreducible polynomial.
func (f *field) multiply(a, b, p int) (product int) {
	if f.q == p {
		return a * b % p
	}
	for unit := f.q / p; unit > 0; unit /= p {
		product *= p
		for product >= f.q {
			product = plus(product, irreducible[f.q], p)
		}
		for range b / unit % p {
			product = plus(product, a, p)
		}
	}
	return product
}
