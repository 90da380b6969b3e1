-- For how long ranks stood still because a relay had a processor that one of them wanted (docs/cost-system.md, "Held up").
-- Of steps that were stored before nobody knows: 0.
ALTER TABLE cost ADD COLUMN held_up_s REAL NOT NULL DEFAULT 0;
