# What is neither built nor tested by one command of Go.

FOR = 30m
ONLY = .

# Hunt in every algorithm, unattended: a table, and status 1 if anything is found, with scenarios in out/hunt.
.PHONY: hunt
hunt:
	go run ./cmd/poundlock-lab hunt all --for $(FOR) --trace out/hunt/

# Fuzz every decoder for a minute each, an hour in all; ONLY=TEXT some of them.
.PHONY: fuzz
fuzz: FOR = 60s
fuzz:
	FOR=$(FOR) ONLY='$(ONLY)' tools/fuzz

# Known vulnerabilities in what the module calls; needs Go's database of them.
.PHONY: vulnerabilities
vulnerabilities:
	tools/vulnerabilities

# What takes an hour and more, and only adds time to what .ci/run tries in short.
.PHONY: long
long: fuzz vulnerabilities
