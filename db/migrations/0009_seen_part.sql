-- Runs whose capture ended before the program (docs/lbfd.md, "Programs and outcomes"): `calls` and `rank_s` are then of the
-- recorded part, and this is the ranks' process time in it. NULL: the run was captured or counted to its end.
ALTER TABLE run ADD COLUMN seen_process_s REAL;
