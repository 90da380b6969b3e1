-- Array tasks and components of heterogeneous jobs (NULL: the job is neither), and the command's words.
ALTER TABLE step ADD COLUMN array_job INTEGER;
ALTER TABLE step ADD COLUMN array_task INTEGER;
ALTER TABLE step ADD COLUMN het_job INTEGER;
ALTER TABLE step ADD COLUMN het_offset INTEGER;
-- `command` stays: the words with blanks between them. NULL here: stored before there was this column.
ALTER TABLE step ADD COLUMN command_json TEXT;
ALTER TABLE step ADD COLUMN command_cut INTEGER NOT NULL DEFAULT 0 CHECK (command_cut IN (0, 1));
CREATE INDEX step_by_array_job ON step (array_job, array_task);
CREATE INDEX step_by_het_job ON step (het_job, het_offset);
