-- Of documents read from now on: the reader of PDF has a new version.
ALTER TABLE documents ADD COLUMN page_starts BIGINT[];
ALTER TABLE staging.documents ADD COLUMN page_starts BIGINT[];
