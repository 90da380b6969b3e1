-- What lbf-report asks for in sacct's habits: account, partition ('': not said), nodes, state; and indexes that keep any
-- report fast with 100,000 steps and 5 million predictions (bench/report).
ALTER TABLE step ADD COLUMN account TEXT NOT NULL DEFAULT '';
ALTER TABLE step ADD COLUMN partition_name TEXT NOT NULL DEFAULT '';
-- prediction.position of the fastest target and of the one that ran: a list of steps shows these two (NULL: there is none).
ALTER TABLE step ADD COLUMN fastest_position INTEGER;
ALTER TABLE step ADD COLUMN self_position INTEGER;
UPDATE step SET
  fastest_position = (SELECT position FROM prediction WHERE prediction.step_row = step.step_row AND why_stuck = '' AND why_deferred = ''
                      ORDER BY predicted_s, position LIMIT 1),
  self_position = (SELECT min(position) FROM prediction WHERE prediction.step_row = step.step_row AND kind = 'self');

CREATE TABLE step_node (
  node TEXT NOT NULL,
  step_row INTEGER NOT NULL REFERENCES step (step_row) ON DELETE CASCADE,
  PRIMARY KEY (node, step_row)
) WITHOUT ROWID;
INSERT OR IGNORE INTO step_node (node, step_row)
  SELECT json_each.value, step.step_row FROM step, json_each(step.nodes_json) WHERE json_valid(step.nodes_json);
CREATE INDEX step_node_by_step ON step_node (step_row);

-- A running step ends after every time that anybody asks for.
CREATE INDEX step_by_end ON step (ifnull(end_s, 1e300));
CREATE INDEX step_by_user_end ON step (uid, ifnull(end_s, 1e300));
CREATE INDEX step_by_account ON step (account, start_s);
CREATE INDEX step_by_partition ON step (partition_name, start_s);
CREATE INDEX step_by_state ON step (state, start_s);
