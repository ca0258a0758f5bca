CREATE TABLE document_labels (document_id VARCHAR NOT NULL, labels VARCHAR[] NOT NULL);
