CREATE TABLE stage_seconds (
    stage VARCHAR NOT NULL,
    runs BIGINT NOT NULL,
    seconds DOUBLE NOT NULL,
    finished_at TIMESTAMPTZ NOT NULL
);
-- Of runs from now on: how long stages took before was kept nowhere.
INSERT INTO stage_seconds
SELECT 'before', count(*), 0, max(created_at) FROM releases HAVING count(*) > 0;
