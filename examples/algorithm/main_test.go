package main

func Example() {
	main()
	// Output:
	// violated exclusion: p1 and p2 are inside
	// try p1
	// try p2
	// read p1 door
	// read p2 door
	// write p1 door
	// write p2 door
}
