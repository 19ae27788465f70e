-- +goose Up

-- One counter per heap ('' = things without a heap), bumped last in each write: see Tx.Numbered.
CREATE TABLE heap_seq (
	heap TEXT PRIMARY KEY,
	seq  BIGINT NOT NULL,
	at   BIGINT NOT NULL
);

CREATE TABLE account (
	id          TEXT PRIMARY KEY,
	name        TEXT NOT NULL,
	name_folded TEXT NOT NULL UNIQUE,
	zone        TEXT NOT NULL,
	admin       BIGINT NOT NULL DEFAULT 0,
	disabled_at BIGINT,
	created_at  BIGINT NOT NULL
);

CREATE TABLE heap (
	id          TEXT PRIMARY KEY,
	name        TEXT NOT NULL,
	kind        TEXT NOT NULL,
	owner       TEXT NOT NULL REFERENCES account (id),
	archived_at BIGINT,
	created_at  BIGINT NOT NULL,
	updated_at  BIGINT NOT NULL
);

CREATE TABLE member (
	heap       TEXT NOT NULL REFERENCES heap (id),
	account    TEXT NOT NULL REFERENCES account (id),
	role       TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (account, heap)
);
CREATE INDEX member_heap ON member (heap);

-- rights: a JSON object, read on every request: one column costs less than eight.
CREATE TABLE token (
	id           TEXT PRIMARY KEY,
	account      TEXT NOT NULL REFERENCES account (id),
	name         TEXT NOT NULL,
	hash         TEXT NOT NULL UNIQUE,
	rights       TEXT NOT NULL,
	expires_at   BIGINT,
	revoked_at   BIGINT,
	created_at   BIGINT NOT NULL,
	last_used_at BIGINT,
	calls        BIGINT NOT NULL DEFAULT 0,
	errors       BIGINT NOT NULL DEFAULT 0,
	total_us     BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX token_account ON token (account);

-- The append-only record of who did what to which thing when. before and after hold the fields changed.
CREATE TABLE change (
	id        TEXT PRIMARY KEY,
	heap      TEXT NOT NULL,
	seq       BIGINT NOT NULL,
	kind      TEXT NOT NULL,
	thing     TEXT NOT NULL,
	op        TEXT NOT NULL,
	effect    TEXT NOT NULL,
	actor     TEXT NOT NULL,
	on_behalf TEXT NOT NULL,
	via       TEXT NOT NULL,
	run       TEXT NOT NULL,
	request   TEXT NOT NULL,
	before    TEXT NOT NULL,
	after     TEXT NOT NULL,
	undoes    TEXT,
	summary   TEXT NOT NULL,
	at        BIGINT NOT NULL
);
CREATE INDEX change_heap_at ON change (heap, at, id);
CREATE INDEX change_thing ON change (thing, at);
CREATE INDEX change_request ON change (request);
CREATE INDEX change_run ON change (run, at);
CREATE INDEX change_actor ON change (actor, at) WHERE undoes IS NULL;
CREATE INDEX change_undoes ON change (undoes) WHERE undoes IS NOT NULL;

-- What a search reads: the tokens of each passage of a thing. seq is the heap's counter at the write.
CREATE TABLE search_passage (
	heap     TEXT NOT NULL,
	thing    TEXT NOT NULL,
	part     BIGINT NOT NULL,
	seq      BIGINT NOT NULL,
	kind     TEXT NOT NULL,
	analyzer BIGINT NOT NULL,
	tok      TEXT NOT NULL,
	gone     BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (heap, thing, part)
);
CREATE INDEX search_passage_seq ON search_passage (heap, seq);

CREATE TABLE project (
	id            TEXT PRIMARY KEY,
	heap          TEXT NOT NULL REFERENCES heap (id),
	name          TEXT NOT NULL,
	name_folded   TEXT NOT NULL,
	current_focus TEXT,
	resume_brief  TEXT,
	archived_at   BIGINT,
	trashed_at    BIGINT,
	created_at    BIGINT NOT NULL,
	updated_at    BIGINT NOT NULL
);
CREATE UNIQUE INDEX project_name ON project (heap, name_folded) WHERE trashed_at IS NULL;
CREATE INDEX project_heap ON project (heap);

CREATE TABLE project_log (
	id         TEXT PRIMARY KEY,
	heap       TEXT NOT NULL REFERENCES heap (id),
	project    TEXT NOT NULL REFERENCES project (id),
	kind       TEXT NOT NULL,
	source     TEXT NOT NULL,
	content    TEXT NOT NULL,
	trashed_at BIGINT,
	created_at BIGINT NOT NULL
);
CREATE INDEX project_log_project ON project_log (project, created_at);

CREATE TABLE task (
	id              TEXT PRIMARY KEY,
	heap            TEXT NOT NULL REFERENCES heap (id),
	project         TEXT REFERENCES project (id),
	name            TEXT NOT NULL,
	description     TEXT,
	source_url      TEXT,
	work_notes      TEXT,
	effort_minutes  BIGINT,
	start_date      TEXT,
	due_date        TEXT,
	focused_date    TEXT,
	starred         BIGINT NOT NULL DEFAULT 0,
	external_ref    TEXT,
	completion_date TEXT,
	completed_at    BIGINT,
	trashed_at      BIGINT,
	created_at      BIGINT NOT NULL,
	updated_at      BIGINT NOT NULL
);
CREATE UNIQUE INDEX task_ref ON task (heap, external_ref) WHERE external_ref IS NOT NULL;
CREATE INDEX task_updated ON task (heap, updated_at, id) WHERE trashed_at IS NULL;
CREATE INDEX task_open ON task (heap, updated_at, id) WHERE trashed_at IS NULL AND completed_at IS NULL;
CREATE INDEX task_starred ON task (heap, updated_at, id) WHERE trashed_at IS NULL AND starred = 1;
CREATE INDEX task_project ON task (project, updated_at) WHERE project IS NOT NULL;
CREATE INDEX task_project_open ON task (project, due_date) WHERE project IS NOT NULL AND trashed_at IS NULL AND completed_at IS NULL;

-- Calls, kept 30 days. Ids are UUIDv7, so they are in the order of time too and need no second index: db.IDAt.
CREATE TABLE usage_log (
	id       TEXT PRIMARY KEY,
	at       BIGINT NOT NULL,
	account  TEXT NOT NULL,
	actor    TEXT NOT NULL,
	tool     TEXT NOT NULL,
	micros   BIGINT NOT NULL,
	outcome  TEXT NOT NULL,
	client   TEXT NOT NULL,
	address  TEXT NOT NULL,
	via      TEXT NOT NULL,
	request  TEXT NOT NULL
);

CREATE TABLE audit_event (
	id         TEXT PRIMARY KEY,
	at         BIGINT NOT NULL,
	event      TEXT NOT NULL,
	actor      TEXT NOT NULL,
	account    TEXT NOT NULL,
	address    TEXT NOT NULL,
	user_agent TEXT NOT NULL,
	detail     TEXT NOT NULL
);
