-- The nodes of Slurm's topology that a target was predicted on: {"file":"...","nodes":[...]}; '': all nodes were equally
-- far apart.
ALTER TABLE prediction ADD COLUMN topology_json TEXT NOT NULL DEFAULT '';
