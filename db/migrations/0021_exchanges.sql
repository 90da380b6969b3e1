-- Exchanges of large messages (docs/adr/0008-rendezvous-and-shared-links.md). Of steps that were stored before nobody knows: 0.
ALTER TABLE prediction ADD COLUMN exchange_percent REAL NOT NULL DEFAULT 0;
