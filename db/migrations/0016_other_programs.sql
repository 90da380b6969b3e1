-- Who had the processors beside the job (docs/relay.md, "Other programs"). Of steps that were stored before nobody knows: 0.
ALTER TABLE step ADD COLUMN delayed_s REAL NOT NULL DEFAULT 0;
ALTER TABLE step ADD COLUMN others_s REAL NOT NULL DEFAULT 0;
ALTER TABLE step ADD COLUMN limited_s REAL NOT NULL DEFAULT 0;
ALTER TABLE step ADD COLUMN stolen_percent REAL NOT NULL DEFAULT 0;
ALTER TABLE step ADD COLUMN softirq_percent REAL NOT NULL DEFAULT 0;
