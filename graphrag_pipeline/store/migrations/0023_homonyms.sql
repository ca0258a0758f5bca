-- Of releases from now on: those before have it NULL.
ALTER TABLE releases ADD COLUMN n_homonyms BIGINT;
