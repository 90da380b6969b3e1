-- Parallel regions of OpenMP (docs/adr/0012-threads.md). Of steps that were stored before nobody knows: 0.
ALTER TABLE step ADD COLUMN threads INTEGER NOT NULL DEFAULT 0;
ALTER TABLE step ADD COLUMN regions_s REAL NOT NULL DEFAULT 0;
ALTER TABLE step ADD COLUMN region_work_s REAL NOT NULL DEFAULT 0;
