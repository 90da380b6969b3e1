"""The parts of bench/skeletons/run: what is run (plan), where (cluster), all runs (measure), the tables (tables)."""
