-- Programs, recognised when they run again; predictions beside what was measured later (docs/lbfd.md, "Programs and
-- outcomes"); targets that wait for room (docs/lbfd.md, "Budgets").

-- One program with one kind of input. The profile is that of its first run: what later ones are compared with.
CREATE TABLE program (
  program_row INTEGER PRIMARY KEY,
  identity TEXT NOT NULL,
  name TEXT NOT NULL,
  ranks INTEGER NOT NULL,
  calls_per_rank_json TEXT NOT NULL,
  work_s REAL NOT NULL,
  sent_bytes REAL
);
CREATE INDEX program_by_identity ON program (identity, ranks);

-- What is known of a step beside its own table. program_row NULL: not complete, or no program is known.
CREATE TABLE run (
  step_row INTEGER PRIMARY KEY REFERENCES step (step_row) ON DELETE CASCADE,
  program_row INTEGER REFERENCES program (program_row),
  uid INTEGER NOT NULL,
  ranks INTEGER NOT NULL,
  program_word TEXT NOT NULL,
  command_json TEXT NOT NULL,
  build_id TEXT NOT NULL,
  script TEXT NOT NULL,
  calls INTEGER NOT NULL,
  rank_s REAL NOT NULL,
  lbfd_cpu_s REAL NOT NULL
);
CREATE INDEX run_by_program ON run (program_row);
CREATE INDEX run_by_command ON run (uid, command_json);
CREATE INDEX run_by_program_word ON run (uid, program_word);

-- Predicted from the run from_row, measured in the run step_row (the same one: its self-prediction).
CREATE TABLE outcome (
  step_row INTEGER NOT NULL REFERENCES step (step_row) ON DELETE CASCADE,
  from_row INTEGER NOT NULL REFERENCES step (step_row) ON DELETE CASCADE,
  program_row INTEGER NOT NULL REFERENCES program (program_row),
  distance TEXT NOT NULL CHECK (distance IN ('self', 'nodes', 'placement', 'network', 'several')),
  predicted_s REAL NOT NULL,
  measured_s REAL NOT NULL,
  error_percent REAL NOT NULL,
  measured_at_s REAL NOT NULL,
  PRIMARY KEY (step_row, from_row)
) WITHOUT ROWID;
CREATE INDEX outcome_by_from ON outcome (from_row);
CREATE INDEX outcome_by_program ON outcome (program_row);
CREATE INDEX outcome_by_time ON outcome (measured_at_s);

-- '': not deferred; else why. `deferred_for_good`: it will not be taken up any more.
ALTER TABLE prediction ADD COLUMN why_deferred TEXT NOT NULL DEFAULT '';
ALTER TABLE prediction ADD COLUMN deferred_for_good INTEGER NOT NULL DEFAULT 0 CHECK (deferred_for_good IN (0, 1));
CREATE INDEX prediction_deferred ON prediction (step_row) WHERE why_deferred <> '' AND deferred_for_good = 0;
