-- +goose Up

-- Bytes of files, each kept once under object in the store of files, whatever number of files have them. media_type: what the bytes
-- are. width and height: of a picture, in pixels, as it is shown. thumbnails: wanted (not made yet), made, or none (no picture, or
-- one that can't be made smaller). unused_at: since when no file has had them (what is just being uploaded has none yet), NULL where
-- one has; after a time they are deleted.
CREATE TABLE blob (
	sha256     TEXT PRIMARY KEY,
	object     TEXT NOT NULL,
	size       BIGINT NOT NULL,
	media_type TEXT NOT NULL,
	width      BIGINT,
	height     BIGINT,
	thumbnails TEXT NOT NULL,
	unused_at  BIGINT,
	created_at BIGINT NOT NULL
);
CREATE INDEX blob_unused ON blob (unused_at) WHERE unused_at IS NOT NULL;
CREATE INDEX blob_wanted ON blob (created_at) WHERE thumbnails = 'wanted';

-- The small pictures of a picture: size is s, m or l.
CREATE TABLE thumbnail (
	sha256     TEXT NOT NULL REFERENCES blob (sha256),
	size       TEXT NOT NULL,
	object     TEXT NOT NULL,
	media_type TEXT NOT NULL,
	bytes      BIGINT NOT NULL,
	PRIMARY KEY (sha256, size)
);

-- Objects of the store that are to be deleted: nothing refers to them, and nothing will.
CREATE TABLE blob_gone (
	object TEXT PRIMARY KEY
);

-- Files: id is that of their block, of type file or image. name: exactly as it was given. actor: who uploaded it.
CREATE TABLE file (
	id         TEXT PRIMARY KEY REFERENCES block (id),
	sha256     TEXT NOT NULL REFERENCES blob (sha256),
	name       TEXT NOT NULL,
	actor      TEXT NOT NULL,
	created_at BIGINT NOT NULL
);
CREATE INDEX file_blob ON file (sha256);
