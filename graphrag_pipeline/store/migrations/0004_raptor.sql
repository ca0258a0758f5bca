CREATE TABLE raptor_nodes (
    id VARCHAR NOT NULL,
    human_readable_id BIGINT NOT NULL,
    layer INTEGER NOT NULL,
    text VARCHAR NOT NULL,
    n_tokens BIGINT NOT NULL,
    n_children BIGINT NOT NULL,
    written_by VARCHAR NOT NULL
);

CREATE TABLE raptor_edges (node_id VARCHAR NOT NULL, child_id VARCHAR NOT NULL);

CREATE TABLE staging.raptor_mixtures (layer INTEGER NOT NULL, made_with VARCHAR NOT NULL, mixture BLOB NOT NULL, n_fitted BIGINT NOT NULL);

CREATE TABLE staging.raptor_fitted (layer INTEGER NOT NULL, row_id VARCHAR NOT NULL);
