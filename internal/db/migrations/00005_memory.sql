-- +goose Up

-- What a person decided, believes, prefers and the like, one sentence each. status: proposed, current, superseded, retired,
-- declined. folded: the hash of what of the statement tells near-duplicates. supersedes and successor name the neighbours in
-- a chain of changes of mind. reason: why it stands no more; of a proposal to supersede, why the other shouldn't. source: the
-- thing it came with ("decision:ID").
CREATE TABLE context (
	id             TEXT PRIMARY KEY,
	heap           TEXT NOT NULL REFERENCES heap (id),
	kind           TEXT NOT NULL,
	subject        TEXT NOT NULL,
	subject_folded TEXT NOT NULL,
	statement      TEXT NOT NULL,
	folded         TEXT NOT NULL,
	status         TEXT NOT NULL,
	private        BIGINT NOT NULL DEFAULT 0,
	supersedes     TEXT,
	successor      TEXT,
	reason         TEXT,
	source         TEXT,
	actor          TEXT NOT NULL,
	at             BIGINT NOT NULL,
	trashed_at     BIGINT,
	created_at     BIGINT NOT NULL,
	updated_at     BIGINT NOT NULL
);
CREATE INDEX context_heap ON context (heap, status, at);
CREATE INDEX context_guards ON context (heap, at) WHERE kind = 'correction' AND status = 'current';
CREATE INDEX context_same ON context (heap, folded);
CREATE INDEX context_subject ON context (heap, subject_folded, kind, at, id) WHERE subject_folded <> '';
CREATE INDEX context_source ON context (source) WHERE source IS NOT NULL;
CREATE INDEX context_actor ON context (actor, created_at) WHERE status = 'proposed';

CREATE TABLE daily_note (
	id           TEXT PRIMARY KEY,
	heap         TEXT NOT NULL REFERENCES heap (id),
	external_ref TEXT NOT NULL,
	date         TEXT NOT NULL,
	title        TEXT NOT NULL,
	body         TEXT NOT NULL,
	source_url   TEXT,
	actor        TEXT NOT NULL,
	trashed_at   BIGINT,
	created_at   BIGINT NOT NULL,
	updated_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX daily_note_ref ON daily_note (heap, external_ref);
CREATE INDEX daily_note_date ON daily_note (heap, date, id);

CREATE TABLE decision (
	id           TEXT PRIMARY KEY,
	heap         TEXT NOT NULL REFERENCES heap (id),
	external_ref TEXT NOT NULL,
	title        TEXT NOT NULL,
	detail       TEXT,
	decided_at   BIGINT NOT NULL,
	source_url   TEXT,
	context      TEXT,
	actor        TEXT NOT NULL,
	trashed_at   BIGINT,
	created_at   BIGINT NOT NULL,
	updated_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX decision_ref ON decision (heap, external_ref);
CREATE INDEX decision_at ON decision (heap, decided_at, id);

-- People the owner knows. slug is unique in a heap.
CREATE TABLE person (
	id         TEXT PRIMARY KEY,
	heap       TEXT NOT NULL REFERENCES heap (id),
	slug       TEXT NOT NULL,
	name       TEXT NOT NULL,
	aliases    TEXT NOT NULL,
	private    BIGINT NOT NULL DEFAULT 0,
	trashed_at BIGINT,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX person_slug ON person (heap, slug);

CREATE TABLE quest (
	id         TEXT PRIMARY KEY,
	heap       TEXT NOT NULL REFERENCES heap (id),
	title      TEXT NOT NULL,
	why        TEXT,
	status     TEXT NOT NULL,
	from_date  TEXT,
	until_date TEXT,
	trashed_at BIGINT,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL
);
CREATE INDEX quest_heap ON quest (heap);

-- What happened, by when it happened. kind: journal, evidence, meeting, or an agent's own (episode and others). Moments are
-- microseconds since 1970 UTC, back to year 1.
CREATE TABLE episode (
	id           TEXT PRIMARY KEY,
	heap         TEXT NOT NULL REFERENCES heap (id),
	external_ref TEXT,
	kind         TEXT NOT NULL,
	summary      TEXT NOT NULL,
	detail       TEXT,
	at           BIGINT NOT NULL,
	project      TEXT,
	quest        TEXT,
	source_url   TEXT,
	private      BIGINT NOT NULL DEFAULT 0,
	actor        TEXT NOT NULL,
	trashed_at   BIGINT,
	created_at   BIGINT NOT NULL,
	updated_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX episode_ref ON episode (heap, external_ref) WHERE external_ref IS NOT NULL;
CREATE INDEX episode_at ON episode (heap, at, id);
-- The timeline reads completed tasks by when they were.
CREATE INDEX task_completed ON task (heap, completed_at, id) WHERE completed_at IS NOT NULL AND trashed_at IS NULL;

CREATE TABLE episode_person (
	episode TEXT NOT NULL REFERENCES episode (id),
	person  TEXT NOT NULL REFERENCES person (id),
	PRIMARY KEY (person, episode)
);
CREATE INDEX episode_person_episode ON episode_person (episode);

-- What the owner stands on, by section: foundation, values, beliefs. One text a section and heap.
CREATE TABLE blueprint (
	id         TEXT PRIMARY KEY,
	heap       TEXT NOT NULL REFERENCES heap (id),
	section    TEXT NOT NULL,
	text       TEXT NOT NULL,
	private    BIGINT NOT NULL DEFAULT 0,
	trashed_at BIGINT,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX blueprint_section ON blueprint (heap, section);

-- The Self page of a heap as it was last compiled. lines: JSON, each with what it cites. stale: what it cites has changed.
CREATE TABLE self_page (
	heap        TEXT PRIMARY KEY REFERENCES heap (id),
	lines       TEXT NOT NULL,
	stale       BIGINT NOT NULL DEFAULT 0,
	compiled_at BIGINT NOT NULL
);

-- Vectors of passages, as search keeps tokens. vec: int8 values and their scale, packed. model: whose they are.
CREATE TABLE search_vector (
	heap  TEXT NOT NULL,
	thing TEXT NOT NULL,
	part  BIGINT NOT NULL,
	model TEXT NOT NULL,
	seq   BIGINT NOT NULL,
	vec   TEXT NOT NULL,
	PRIMARY KEY (heap, thing, part, model)
);
CREATE INDEX search_vector_seq ON search_vector (heap, seq);
