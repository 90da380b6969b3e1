-- What measuring a procedure was predicted to cost and did cost, as shares of the ranks' time; how often it was called
-- (the next run's history); and, of what was not measured, its time as statistical samples say, with its 95 % interval
-- (docs/procedures.md). NULL: not known.
ALTER TABLE procedure ADD COLUMN predicted_cost REAL;
ALTER TABLE procedure ADD COLUMN predicted_from TEXT NOT NULL DEFAULT '';
ALTER TABLE procedure ADD COLUMN observed_cost REAL;
ALTER TABLE procedure ADD COLUMN calls_per_s REAL;
ALTER TABLE procedure ADD COLUMN samples INTEGER NOT NULL DEFAULT 0;
ALTER TABLE procedure ADD COLUMN sampled_s REAL;
ALTER TABLE procedure ADD COLUMN sampled_low_s REAL;
ALTER TABLE procedure ADD COLUMN sampled_high_s REAL;
