-- Procedures that a step measured (--lbf-procedures), and what is predicted of them on the configuration that ran
-- (docs/procedures.md). A step that measured none has no rows. NULL times: not predicted.
CREATE TABLE procedure (
  step_row INTEGER NOT NULL REFERENCES step (step_row) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  name TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('measured', 'off', 'refused')),
  note TEXT NOT NULL,
  ranks INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  inclusive_s REAL NOT NULL,
  exclusive_s REAL NOT NULL,
  critical_path_s REAL,
  receiver_s REAL,
  sender_s REAL,
  zeroed_s REAL,
  stayed_receiver_s REAL,
  stayed_sender_s REAL,
  PRIMARY KEY (step_row, position)
) WITHOUT ROWID;

-- The critical path of such a step ('': it was not replayed), and whether that replay still waits for room (as
-- prediction.why_deferred).
CREATE TABLE procedure_run (
  step_row INTEGER PRIMARY KEY REFERENCES step (step_row) ON DELETE CASCADE,
  path_json TEXT NOT NULL,
  why_deferred TEXT NOT NULL,
  deferred_for_good INTEGER NOT NULL DEFAULT 0 CHECK (deferred_for_good IN (0, 1))
);
