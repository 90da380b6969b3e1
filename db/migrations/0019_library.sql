-- The MPI library that ran. Of steps that were stored before nobody knows.
ALTER TABLE step ADD COLUMN library TEXT NOT NULL DEFAULT '';
