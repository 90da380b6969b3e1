-- What a run costs once (docs/cost-system.md, "Once per run"), and what its recorded calls cost: later runs are predicted
-- from it. NULL: stored before, or the relay was an older one.
ALTER TABLE cost ADD COLUMN once_capture_s REAL;
ALTER TABLE cost ADD COLUMN once_relay_s REAL;
ALTER TABLE cost ADD COLUMN recording_s REAL;
