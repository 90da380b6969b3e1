-- Memory domains (docs/adr/0014-memory.md). Of steps that were stored before nobody knows: 0.
ALTER TABLE step ADD COLUMN ranks_per_domain INTEGER NOT NULL DEFAULT 0;
ALTER TABLE step ADD COLUMN memory_demand_MBps REAL NOT NULL DEFAULT 0;
ALTER TABLE step ADD COLUMN memory_most_MBps REAL NOT NULL DEFAULT 0;
ALTER TABLE prediction ADD COLUMN memory_percent REAL NOT NULL DEFAULT 0;
-- Process time of a rank, the mean; 0: not known, or others disturbed it.
ALTER TABLE run ADD COLUMN work_s REAL NOT NULL DEFAULT 0;
