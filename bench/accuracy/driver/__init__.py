"""How far predictions are from measured times (docs/accuracy.md). One purpose each:

plan      programs, configurations, the order of the runs
cluster   the Slurm cluster of tests/cluster, its links, lbf-calibrate, one run of a program
measure   all runs, with progress; what is in runs.csv already is not run again
predict   from the stored trace of each captured run: lbf-whatif, and SimGrid where it is asked for
simgrid   a platform like a network file, and a replay on it
papers    what the papers measured and predicted
analysis  medians, errors, spreads
tables    the same as text and Markdown
"""
