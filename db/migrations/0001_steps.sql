-- Steps, what was measured of them, and what was predicted (docs/lbfd.md, "Database").
-- Times of day: seconds since the epoch. Lists that nobody searches in are JSON.
CREATE TABLE step (
  step_row INTEGER PRIMARY KEY,
  cluster TEXT NOT NULL,
  job INTEGER NOT NULL,
  step INTEGER NOT NULL,
  restart INTEGER NOT NULL,
  user_name TEXT NOT NULL,
  uid INTEGER NOT NULL,
  job_name TEXT NOT NULL,
  command TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('running', 'complete', 'partial')),
  why_partial TEXT NOT NULL,
  nodes_json TEXT NOT NULL,
  ranks INTEGER NOT NULL,
  node_of_rank_json TEXT NOT NULL,
  network TEXT NOT NULL,
  start_s REAL NOT NULL,
  end_s REAL,
  measured_s REAL,
  events INTEGER NOT NULL,
  messages INTEGER NOT NULL,
  collectives INTEGER NOT NULL,
  wire_bytes INTEGER NOT NULL,
  stored_bytes INTEGER NOT NULL,
  wildcard_receives INTEGER NOT NULL,
  lost_events INTEGER NOT NULL,
  mpi_s REAL NOT NULL,
  unmodelled_s REAL NOT NULL,
  capture_s REAL NOT NULL,
  relay_cpu_s REAL NOT NULL,
  notes_json TEXT NOT NULL,
  UNIQUE (cluster, job, step, restart)
);
CREATE INDEX step_by_user ON step (uid, start_s);
CREATE INDEX step_by_start ON step (start_s);
CREATE INDEX step_by_job ON step (job, step, restart);

-- MPI calls of all ranks of a step.
CREATE TABLE call (
  step_row INTEGER NOT NULL REFERENCES step (step_row) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  function TEXT NOT NULL,
  calls INTEGER NOT NULL,
  total_s REAL NOT NULL,
  unmodelled INTEGER NOT NULL CHECK (unmodelled IN (0, 1)),
  PRIMARY KEY (step_row, position)
) WITHOUT ROWID;

CREATE TABLE prediction (
  step_row INTEGER NOT NULL REFERENCES step (step_row) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  target TEXT NOT NULL,
  nodes INTEGER NOT NULL,
  cores_per_node INTEGER NOT NULL,
  placement TEXT NOT NULL,
  network TEXT NOT NULL,
  contention TEXT NOT NULL,
  speed REAL NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('self', 'LBF', 'NF', 'LBF+NF')),
  predicted_s REAL NOT NULL,
  speedup REAL,
  self_error_percent REAL,
  partial INTEGER NOT NULL CHECK (partial IN (0, 1)),
  progress_s REAL NOT NULL,
  measured_at_progress_s REAL NOT NULL,
  rank_finish_s_json TEXT NOT NULL,
  PRIMARY KEY (step_row, position)
) WITHOUT ROWID;
