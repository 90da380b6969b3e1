-- Targets on which the program would wait for ever, although it ended where it ran: why ('': it ends).
ALTER TABLE prediction ADD COLUMN why_stuck TEXT NOT NULL DEFAULT '';
