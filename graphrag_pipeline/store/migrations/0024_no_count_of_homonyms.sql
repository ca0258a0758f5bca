-- Of a hundred names that were counted about ninety stood for one thing.
ALTER TABLE releases DROP COLUMN n_homonyms;
