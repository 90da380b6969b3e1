-- A database of schema version 13: tests/unit/db/make_dump 13
BEGIN TRANSACTION;
CREATE TABLE call (
  step_row INTEGER NOT NULL REFERENCES step (step_row) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  function TEXT NOT NULL,
  calls INTEGER NOT NULL,
  total_s REAL NOT NULL,
  unmodelled INTEGER NOT NULL CHECK (unmodelled IN (0, 1)),
  PRIMARY KEY (step_row, position)
) WITHOUT ROWID;
INSERT INTO "call" VALUES(1,0,'MPI_Send',4,0.5,0);
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
, once_capture_s REAL, once_relay_s REAL, recording_s REAL, held_up_s REAL NOT NULL DEFAULT 0);
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
  rank_finish_s_json TEXT NOT NULL, why_stuck TEXT NOT NULL DEFAULT '', topology_json TEXT NOT NULL DEFAULT '', low_s REAL, high_s REAL, seen_share REAL, why_deferred TEXT NOT NULL DEFAULT '', deferred_for_good INTEGER NOT NULL DEFAULT 0 CHECK (deferred_for_good IN (0, 1)), taken_up INTEGER NOT NULL DEFAULT 0 CHECK (taken_up IN (0, 1)),
  PRIMARY KEY (step_row, position)
) WITHOUT ROWID;
INSERT INTO "prediction" VALUES(1,0,'2 nodes, block',2,1,'block','lan','none',1.0,'self',7.6,0.98,1.3,0,7.6,7.5,'[7.6,7.0]','','',NULL,NULL,NULL,'',0,0);
INSERT INTO "prediction" VALUES(1,1,'1 node, block',1,1,'block','lan','none',1.0,'LBF',5.5,1.36,1.3,0,7.6,7.5,'[7.6,7.0]','','',NULL,NULL,NULL,'',0,0);
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
  stayed_sender_s REAL, predicted_cost REAL, predicted_from TEXT NOT NULL DEFAULT '', observed_cost REAL, calls_per_s REAL, samples INTEGER NOT NULL DEFAULT 0, sampled_s REAL, sampled_low_s REAL, sampled_high_s REAL,
  PRIMARY KEY (step_row, position)
) WITHOUT ROWID;
CREATE TABLE procedure_run (
  step_row INTEGER PRIMARY KEY REFERENCES step (step_row) ON DELETE CASCADE,
  path_json TEXT NOT NULL,
  why_deferred TEXT NOT NULL,
  deferred_for_good INTEGER NOT NULL DEFAULT 0 CHECK (deferred_for_good IN (0, 1))
);
CREATE TABLE program (
  program_row INTEGER PRIMARY KEY,
  identity TEXT NOT NULL,
  name TEXT NOT NULL,
  ranks INTEGER NOT NULL,
  calls_per_rank_json TEXT NOT NULL,
  work_s REAL NOT NULL,
  sent_bytes REAL
);
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
, seen_process_s REAL);
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
  notes_json TEXT NOT NULL, array_job INTEGER, array_task INTEGER, het_job INTEGER, het_offset INTEGER, command_json TEXT, command_cut INTEGER NOT NULL DEFAULT 0 CHECK (command_cut IN (0, 1)), account TEXT NOT NULL DEFAULT '', partition_name TEXT NOT NULL DEFAULT '', fastest_position INTEGER, self_position INTEGER,
  UNIQUE (cluster, job, step, restart)
);
INSERT INTO "step" VALUES(1,'c',7,0,0,'u',1000,'name','./app a b','complete','','["n1","n2"]',2,'[0,1]','lan',1.0,9.0,7.5,10,4,1,100,90,0,0,1.5,0.25,0.01,0.02,'["a note"]',NULL,NULL,NULL,NULL,NULL,0,'','',1,0);
INSERT INTO "step" VALUES(2,'c',8,0,0,'u',1000,'name','./app a b','running','','["n1","n2"]',2,'[0,1]','lan',1.0,NULL,NULL,10,4,1,100,90,0,0,1.5,0.25,0.01,0.02,'["a note"]',NULL,NULL,NULL,NULL,NULL,0,'','',NULL,NULL);
CREATE TABLE step_node (
  node TEXT NOT NULL,
  step_row INTEGER NOT NULL REFERENCES step (step_row) ON DELETE CASCADE,
  PRIMARY KEY (node, step_row)
) WITHOUT ROWID;
INSERT INTO "step_node" VALUES('n1',1);
INSERT INTO "step_node" VALUES('n2',1);
INSERT INTO "step_node" VALUES('n1',2);
INSERT INTO "step_node" VALUES('n2',2);
CREATE INDEX step_by_user ON step (uid, start_s);
CREATE INDEX step_by_start ON step (start_s);
CREATE INDEX step_by_job ON step (job, step, restart);
CREATE INDEX step_by_array_job ON step (array_job, array_task);
CREATE INDEX step_by_het_job ON step (het_job, het_offset);
CREATE INDEX program_by_identity ON program (identity, ranks);
CREATE INDEX run_by_program ON run (program_row);
CREATE INDEX run_by_command ON run (uid, command_json);
CREATE INDEX run_by_program_word ON run (uid, program_word);
CREATE INDEX outcome_by_from ON outcome (from_row);
CREATE INDEX outcome_by_program ON outcome (program_row);
CREATE INDEX outcome_by_time ON outcome (measured_at_s);
CREATE INDEX prediction_deferred ON prediction (step_row) WHERE why_deferred <> '' AND deferred_for_good = 0;
CREATE INDEX step_node_by_step ON step_node (step_row);
CREATE INDEX step_by_end ON step (ifnull(end_s, 1e300));
CREATE INDEX step_by_user_end ON step (uid, ifnull(end_s, 1e300));
CREATE INDEX step_by_account ON step (account, start_s);
CREATE INDEX step_by_partition ON step (partition_name, start_s);
CREATE INDEX step_by_state ON step (state, start_s);
CREATE INDEX prediction_taken_up ON prediction (step_row) WHERE taken_up = 1;
CREATE INDEX prediction_not_replayed ON prediction (step_row) WHERE why_deferred <> '';
COMMIT;
PRAGMA user_version = 13;
