CREATE TABLE community_updates (
    updated_at TIMESTAMPTZ NOT NULL,
    how VARCHAR NOT NULL,
    n_entities BIGINT NOT NULL,
    n_relationships BIGINT NOT NULL,
    n_communities BIGINT NOT NULL,
    modularity DOUBLE,
    drift DOUBLE
);
COMMENT ON TABLE community_updates IS 'Each time communities were clustered, repaired or adopted from an import.';
COMMENT ON COLUMN community_updates.drift IS 'Share of the modularity of a fresh clustering that these communities lack.';
