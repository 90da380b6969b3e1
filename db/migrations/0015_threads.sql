-- Parallel regions (docs/adr/0012-threads.md): threads of the largest team, and of each rank on a target. Of steps that
-- were stored before nobody knows: 0.
ALTER TABLE step ADD COLUMN threads INTEGER NOT NULL DEFAULT 0;
ALTER TABLE step ADD COLUMN regions_s REAL NOT NULL DEFAULT 0;
ALTER TABLE step ADD COLUMN region_work_s REAL NOT NULL DEFAULT 0;
ALTER TABLE prediction ADD COLUMN threads INTEGER NOT NULL DEFAULT 0;
