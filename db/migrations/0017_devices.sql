-- Waits for devices (docs/adr/0013-devices.md). Of steps that were stored before nobody knows: none.
ALTER TABLE step ADD COLUMN devices TEXT NOT NULL DEFAULT '';
ALTER TABLE step ADD COLUMN device_s REAL NOT NULL DEFAULT 0;
ALTER TABLE step ADD COLUMN device_busy_s REAL NOT NULL DEFAULT 0;
