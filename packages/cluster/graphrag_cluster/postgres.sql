-- What an index shared by workers keeps in Postgres, in a schema of its own.

CREATE TABLE schema_version (version INTEGER NOT NULL);
INSERT INTO schema_version VALUES (0);

-- Who coordinates, and which release is the current one: one row at most.
CREATE TABLE lease (
    is_the_only_row BOOLEAN PRIMARY KEY DEFAULT true CHECK (is_the_only_row),
    fence BIGINT NOT NULL,
    token TEXT NOT NULL,
    holder TEXT NOT NULL,
    since TIMESTAMPTZ NOT NULL,
    renewed_at TIMESTAMPTZ NOT NULL,
    expires TIMESTAMPTZ NOT NULL,
    release TEXT,
    published_at TIMESTAMPTZ
);

-- As in llm_cache.sqlite (llm/database.py).
CREATE TABLE responses (
    key BYTEA PRIMARY KEY,
    model TEXT NOT NULL,
    text TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    finish_reason TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    made_for TEXT,
    used_on INTEGER NOT NULL,
    stage TEXT,
    digest BYTEA
);
CREATE TABLE embeddings (
    key BYTEA PRIMARY KEY,
    model TEXT NOT NULL,
    vector BYTEA NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    used_on INTEGER NOT NULL,
    stage TEXT,
    digest BYTEA
);
CREATE TABLE embedding_widths (source BYTEA PRIMARY KEY, dimensions INTEGER NOT NULL);
CREATE TABLE shared_entries (place TEXT NOT NULL, key BYTEA NOT NULL, PRIMARY KEY (place, key));
CREATE TABLE llm_calls (
    position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    called_at DOUBLE PRECISION NOT NULL,
    stage TEXT NOT NULL,
    batch TEXT,
    model TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cost DOUBLE PRECISION,
    seconds DOUBLE PRECISION NOT NULL,
    cached SMALLINT NOT NULL,
    error TEXT,
    cached_tokens INTEGER
);

-- What runs may spend. A budget is that of the runs that began at a position of the ledger; it
-- holds what was spent since and what calls in flight may spend, of which each is a row below.
CREATE TABLE budgets (
    since BIGINT PRIMARY KEY,
    spent_tokens BIGINT NOT NULL,
    spent_cost DOUBLE PRECISION NOT NULL,
    reserved_tokens BIGINT NOT NULL DEFAULT 0,
    reserved_cost DOUBLE PRECISION NOT NULL DEFAULT 0
);
CREATE TABLE reservations (
    id TEXT PRIMARY KEY,
    since BIGINT NOT NULL REFERENCES budgets,
    holder TEXT NOT NULL,
    tokens BIGINT NOT NULL,
    cost DOUBLE PRECISION NOT NULL,
    expires TIMESTAMPTZ NOT NULL,
    is_spent BOOLEAN NOT NULL DEFAULT false
);
CREATE INDEX reservations_of_holders ON reservations (holder);

-- What a worker asks a model right now, so that no other pays for it, too.
CREATE TABLE flights (key BYTEA PRIMARY KEY, holder TEXT NOT NULL, expires TIMESTAMPTZ NOT NULL);

-- When the worker that executes a run of Dagster was last heard of.
CREATE TABLE beats (run TEXT PRIMARY KEY, holder TEXT NOT NULL, beat_at TIMESTAMPTZ NOT NULL);
