-- When the job was submitted, seconds since the epoch: with it a job number that Slurm gives again is another step. 0: stored
-- before, or the relay was an older one. sqlite changes no UNIQUE, so the table is made anew, with its rows' numbers.
CREATE TABLE step_with_submit (
  step_row INTEGER PRIMARY KEY,
  cluster TEXT NOT NULL,
  job INTEGER NOT NULL,
  step INTEGER NOT NULL,
  restart INTEGER NOT NULL,
  submit_s INTEGER NOT NULL DEFAULT 0,
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
  array_job INTEGER,
  array_task INTEGER,
  het_job INTEGER,
  het_offset INTEGER,
  command_json TEXT,
  command_cut INTEGER NOT NULL DEFAULT 0 CHECK (command_cut IN (0, 1)),
  account TEXT NOT NULL DEFAULT '',
  partition_name TEXT NOT NULL DEFAULT '',
  fastest_position INTEGER,
  self_position INTEGER,
  UNIQUE (cluster, job, step, restart, submit_s)
);
INSERT INTO step_with_submit
  SELECT step_row, cluster, job, step, restart, 0, user_name, uid, job_name, command, state, why_partial, nodes_json, ranks,
         node_of_rank_json, network, start_s, end_s, measured_s, events, messages, collectives, wire_bytes, stored_bytes,
         wildcard_receives, lost_events, mpi_s, unmodelled_s, capture_s, relay_cpu_s, notes_json, array_job, array_task,
         het_job, het_offset, command_json, command_cut, account, partition_name, fastest_position, self_position
  FROM step;
DROP TABLE step;
ALTER TABLE step_with_submit RENAME TO step;

CREATE INDEX step_by_user ON step (uid, start_s);
CREATE INDEX step_by_start ON step (start_s);
CREATE INDEX step_by_job ON step (job, step, restart);
CREATE INDEX step_by_array_job ON step (array_job, array_task);
CREATE INDEX step_by_het_job ON step (het_job, het_offset);
CREATE INDEX step_by_end ON step (ifnull(end_s, 1e300));
CREATE INDEX step_by_user_end ON step (uid, ifnull(end_s, 1e300));
CREATE INDEX step_by_account ON step (account, start_s);
CREATE INDEX step_by_partition ON step (partition_name, start_s);
CREATE INDEX step_by_state ON step (state, start_s);
