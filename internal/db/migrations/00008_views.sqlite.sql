-- +goose Up

-- linked: 0 where no relation but those to files leads from or to the block, as far as was known when one last came or went;
-- who reads it asks the relations too.
ALTER TABLE block ADD COLUMN linked BIGINT NOT NULL DEFAULT 0;
UPDATE block SET linked = 1 WHERE id IN (SELECT from_block FROM relation WHERE kind <> 'file') OR id IN (SELECT to_block FROM relation);
CREATE INDEX block_unlinked ON block (heap, updated_at, id) WHERE linked = 0;
CREATE INDEX block_created ON block (heap, created_at, id);
CREATE INDEX block_title ON block (heap, title_folded, id);

-- heap: the block's. head: what values are compared and ordered by, '' until it is made; folded: the text of a value as it is
-- looked through.
ALTER TABLE property ADD COLUMN heap TEXT NOT NULL DEFAULT '';
ALTER TABLE property ADD COLUMN head TEXT NOT NULL DEFAULT '';
ALTER TABLE property ADD COLUMN folded TEXT NOT NULL DEFAULT '';
UPDATE property SET heap = (SELECT b.heap FROM block b WHERE b.id = property.block);
CREATE INDEX property_head ON property (heap, key, head, block);
CREATE INDEX property_unread ON property (block, key) WHERE head = '';

-- Saved views of a heap's blocks. body: JSON of what they show and how.
CREATE TABLE saved_view (
	id          TEXT PRIMARY KEY,
	heap        TEXT NOT NULL REFERENCES heap (id),
	name        TEXT NOT NULL,
	name_folded TEXT NOT NULL,
	layout      TEXT NOT NULL,
	body        TEXT NOT NULL,
	actor       TEXT NOT NULL,
	trashed_at  BIGINT,
	created_at  BIGINT NOT NULL,
	updated_at  BIGINT NOT NULL
);
CREATE UNIQUE INDEX saved_view_name ON saved_view (heap, name_folded) WHERE trashed_at IS NULL;
