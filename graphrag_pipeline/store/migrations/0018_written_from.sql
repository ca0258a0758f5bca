CREATE TABLE written_from (
    kind VARCHAR NOT NULL,
    id VARCHAR NOT NULL,
    version VARCHAR NOT NULL,
    document_id VARCHAR NOT NULL
);

-- Empty until the layers are next brought up to date: until then no summary entity is open to
-- who may see some documents only.
CREATE TABLE hirag_basis (id VARCHAR NOT NULL, entity_id VARCHAR NOT NULL);
