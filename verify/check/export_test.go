package check

// Break breaks the reductions of a search, for tests of tests.
func (c *Config) Break(answers, sections, believes bool) {
	c.sabotage = sabotage{answers: answers, sections: sections, believes: believes}
}

// Apart lets decisions be made at any time before somebody hears of them.
func (c *Config) Apart() { c.apart = true }
