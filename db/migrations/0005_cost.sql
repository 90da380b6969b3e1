-- What the capture cost, and what was decided about it (docs/cost-system.md, "The record"). A step that was stored before,
-- or of which no relay said anything, has no row.
CREATE TABLE cost (
  step_row INTEGER PRIMARY KEY REFERENCES step (step_row) ON DELETE CASCADE,
  limit_percent REAL,
  predicted_percent REAL,
  corrected_percent REAL,
  state TEXT NOT NULL CHECK (state IN ('open', 'counting', 'off')),
  program_cpu_s REAL NOT NULL,
  direct_s REAL NOT NULL,
  ideal_s REAL NOT NULL,
  relay_cpu_s REAL NOT NULL,
  recorded_calls INTEGER NOT NULL,
  counted_calls INTEGER NOT NULL,
  disbelieved INTEGER NOT NULL,
  windows INTEGER NOT NULL,
  seen_share REAL NOT NULL,
  nodes_json TEXT NOT NULL,
  ranks_json TEXT NOT NULL
);
-- Of a run that was captured in windows: the 95 % interval of predicted_s (NULL: it cannot be told), and the share of the
-- run's measured time that was seen. NULL seen_share: stored before; all of it.
ALTER TABLE prediction ADD COLUMN low_s REAL;
ALTER TABLE prediction ADD COLUMN high_s REAL;
ALTER TABLE prediction ADD COLUMN seen_share REAL;
