-- +goose Up

-- The version that block_content has; 0 = the newest, as it always was before. Of a large document the newest is made by the
-- steps from there on. bytes: of the steps up to here. From here on the bodies of block_version are JSON, not base64.
ALTER TABLE block_content ADD COLUMN version BIGINT NOT NULL DEFAULT 0;
CREATE TABLE block_redo (
	block   TEXT NOT NULL REFERENCES block (id),
	version BIGINT NOT NULL,
	step    TEXT NOT NULL,
	bytes   BIGINT NOT NULL,
	PRIMARY KEY (block, version)
);

-- Things whose text has changed and that are to be analyzed for search before the next one, or soon: what would hold up the write.
CREATE TABLE search_later (
	heap  TEXT NOT NULL,
	thing TEXT NOT NULL,
	kind  TEXT NOT NULL,
	seq   BIGINT NOT NULL,
	PRIMARY KEY (heap, thing)
);

-- Up to which number of a heap's counter nothing lacks vectors of a model.
CREATE TABLE search_embedded (
	heap  TEXT NOT NULL,
	model TEXT NOT NULL,
	seq   BIGINT NOT NULL,
	PRIMARY KEY (heap, model)
);
