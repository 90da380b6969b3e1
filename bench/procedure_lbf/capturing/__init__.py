"""Procedure LBF of captured runs against really modified programs (docs/procedures.md). One purpose each:

plan      programs, modifications, versions, the order of the runs
cluster   what is added to the cluster of bench/accuracy: a bare run of a version, a captured one with procedures
measure   all runs, with progress; what is in runs.csv already is not run again
tables    predicted against measured, in the form of CS-TR-4375, Figs. 3 and 4
"""
