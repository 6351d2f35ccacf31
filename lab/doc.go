// Package lab runs experiments: a number of algorithms, a quantity that is varied, a
// number of seeds, and for each of these what was measured, what was expected, and
// whether the two agree.
//
// An Experiment is a value. Its plan lists configurations; each is tried at some points
// of the sweep, with each seed. One such trial is a function of its configuration, its
// point and its seed, so trials run in parallel and the report does not depend on how
// many do, nor on what an earlier run had kept in the cache. All configurations
// get the same seeds, so that what chance does to one it does to the others (common
// random numbers), and ratios of them can be paired (RatioOf). Where a configuration says so,
// seeds are added until what is asked for is known well (Configuration.Most).
//
// # The cache
//
// A finished trial is kept in a directory, under a key made of the code, the
// configuration, the point and the seed. The code is the SHA-256 of the executable:
// whatever was changed, and be it a comment that moved a line number, makes all trials
// new ones. What is in the cache is believed only if it has the whole key and its own
// checksum; anything else is computed again. So an experiment that was interrupted, or
// killed, goes on where it was.
//
// # Replications
//
// A report may have the table of what each trial gave (Results.Replications). Recompute makes
// the report again from that table, by the rules that the code has now, without a trial.
//
// # Verdicts
//
// A measure may be expected to lie in an interval. It is Equal if the interval is one
// number and every trial gave it, Within if the mean lies in the interval or its 95 %
// confidence interval meets it, and Differs otherwise. Experiments that decide
// properties, and those that repeat what a paper measured, have verdicts of their own. A report
// counts them all.
package lab
