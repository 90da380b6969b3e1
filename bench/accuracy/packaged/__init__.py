"""How far predictions are from measured times of programs that Debian packages (docs/accuracy.md). One purpose each:

programs  commands, packages, and the inputs that are written here
plan      configurations, rounds: a captured run between two bare ones
measure   the cluster, all rounds, repeated where the bare runs differ; what is in runs.csv already is not run again
predict   from the stored trace of each captured run: lbf-advise with its interval, and SimGrid where it is asked for
tables    dedicated, oversubscribed, coverage, every miss
"""
