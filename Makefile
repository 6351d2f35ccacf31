# What is neither built nor tested by one command of Go.

FOR = 30m

# Hunt in every algorithm, unattended: a table, and status 1 if anything is found, with scenarios in out/hunt.
.PHONY: hunt
hunt:
	go run ./cmd/poundlock hunt all --for $(FOR) --trace out/hunt/
