-- +goose Up

-- Blocks: notes, tags, collections, files and images of a heap. title_folded: what titles are compared by. hash is that of
-- title and content, content_hash of the content alone; version is the newest in block_version. updated_at is always that of
-- the block's newest change.
CREATE TABLE block (
	id           TEXT PRIMARY KEY,
	heap         TEXT NOT NULL REFERENCES heap (id),
	type         TEXT NOT NULL,
	title        TEXT NOT NULL,
	title_folded TEXT NOT NULL,
	hash         TEXT NOT NULL,
	content_hash TEXT NOT NULL,
	version      BIGINT NOT NULL,
	external_ref TEXT,
	pinned       BIGINT NOT NULL DEFAULT 0,
	actor        TEXT NOT NULL,
	trashed_at   BIGINT,
	created_at   BIGINT NOT NULL,
	updated_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX block_ref ON block (heap, external_ref) WHERE external_ref IS NOT NULL;
CREATE INDEX block_updated ON block (heap, updated_at, id);
CREATE INDEX block_type ON block (heap, type, updated_at, id);
CREATE INDEX block_pinned ON block (heap, updated_at, id) WHERE pinned = 1;
CREATE INDEX block_trashed ON block (heap, updated_at, id) WHERE trashed_at IS NOT NULL;
CREATE INDEX block_tag ON block (heap, title_folded) WHERE type IN ('tag', 'collection');

-- The document of a block, as canonical JSON: apart from the rows that lists read, since it may be large.
CREATE TABLE block_content (
	block   TEXT PRIMARY KEY REFERENCES block (id),
	content TEXT NOT NULL
);

-- Each version that a block's document had. body, in base64, makes it of the version after it (a delta), or is it whole where
-- whole is 1; the newest has none, for it is in block_content. deltas: the bytes of bodies up to here since the last whole one.
-- nodes: a JSON array of the ids of the nodes that it changed, '' where those are too many.
CREATE TABLE block_version (
	block        TEXT NOT NULL REFERENCES block (id),
	version      BIGINT NOT NULL,
	hash         TEXT NOT NULL,
	content_hash TEXT NOT NULL,
	actor        TEXT NOT NULL,
	nodes        TEXT NOT NULL,
	body         TEXT NOT NULL,
	whole        BIGINT NOT NULL DEFAULT 0,
	deltas       BIGINT NOT NULL,
	at           BIGINT NOT NULL,
	PRIMARY KEY (block, version)
);
CREATE INDEX block_version_hash ON block_version (block, hash);
CREATE INDEX block_version_content ON block_version (block, content_hash);
CREATE INDEX block_version_at ON block_version (block, at);

-- What blocks say of each other. kind tag: to_block is a parent of from_block; mention: a link; file: to_block is a file's id.
-- origin: set (by a relation of its own) or content (found in the document).
CREATE TABLE relation (
	from_block TEXT NOT NULL,
	to_block   TEXT NOT NULL,
	kind       TEXT NOT NULL,
	origin     TEXT NOT NULL,
	at         BIGINT NOT NULL,
	PRIMARY KEY (from_block, kind, to_block, origin)
);
CREATE INDEX relation_to ON relation (to_block, kind, from_block);

-- Typed properties. value: JSON.
CREATE TABLE property (
	block TEXT NOT NULL REFERENCES block (id),
	key   TEXT NOT NULL,
	type  TEXT NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (block, key)
);
