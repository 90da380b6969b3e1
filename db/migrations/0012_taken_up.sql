-- Targets that were deferred when their step ended and were replayed later (docs/lbfd.md, "Budgets"). Of steps that were
-- stored before nobody knows: 0.
ALTER TABLE prediction ADD COLUMN taken_up INTEGER NOT NULL DEFAULT 0 CHECK (taken_up IN (0, 1));
CREATE INDEX prediction_taken_up ON prediction (step_row) WHERE taken_up = 1;
CREATE INDEX prediction_not_replayed ON prediction (step_row) WHERE why_deferred <> '';
