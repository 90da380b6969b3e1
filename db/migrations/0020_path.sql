-- What the longest path through a run is made of (docs/adr/0016-scaling.md), in seconds. Of steps that were stored before nobody
-- knows: NULL.
ALTER TABLE step ADD COLUMN path_work_s REAL;
ALTER TABLE step ADD COLUMN path_rank_work_s REAL;
ALTER TABLE step ADD COLUMN path_copies_s REAL;
ALTER TABLE step ADD COLUMN path_overhead_s REAL;
ALTER TABLE step ADD COLUMN path_latency_inside_s REAL;
ALTER TABLE step ADD COLUMN path_latency_between_s REAL;
ALTER TABLE step ADD COLUMN path_bytes_inside_s REAL;
ALTER TABLE step ADD COLUMN path_bytes_between_s REAL;
ALTER TABLE step ADD COLUMN path_kept_s REAL;
ALTER TABLE step ADD COLUMN path_unseen_s REAL;
