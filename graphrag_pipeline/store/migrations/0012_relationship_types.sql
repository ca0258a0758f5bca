-- What kind of relationship a mention tells of: the next extraction by rule and fold say.
ALTER TABLE relationship_mentions ADD COLUMN type VARCHAR DEFAULT '';
ALTER TABLE staging.relationship_mentions ADD COLUMN type VARCHAR DEFAULT '';
ALTER TABLE record_links ADD COLUMN type VARCHAR DEFAULT '';
ALTER TABLE relationships ADD COLUMN type VARCHAR DEFAULT '';
