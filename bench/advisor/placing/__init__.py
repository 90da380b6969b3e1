"""Placements that are advised, and placements that are run (docs/advisor.md). One purpose each:

plan      programs, networks, the placements that are feasible, the order of the runs
cluster   what is added to the cluster of bench/accuracy: one captured run, its advice, a run in any placement
measure   all runs, with progress; what is in runs.csv already is not run again
tables    predicted gain against measured gain, and every placement
"""
