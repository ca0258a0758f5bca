-- How often a chunk was tried, and under which version last: one that fails is left at last.
ALTER TABLE extractions ADD COLUMN tried_version VARCHAR;
ALTER TABLE extractions ADD COLUMN attempts BIGINT;
UPDATE extractions SET tried_version = version, attempts = 1;
ALTER TABLE staging.extractions ADD COLUMN tried_version VARCHAR;
ALTER TABLE staging.extractions ADD COLUMN attempts BIGINT;
UPDATE staging.extractions SET tried_version = version, attempts = 1;
