-- Of documents read from now on: the reader's new version has all read once more.
ALTER TABLE documents ADD COLUMN language VARCHAR DEFAULT '';
ALTER TABLE staging.documents ADD COLUMN language VARCHAR DEFAULT '';
