BEGIN TRANSACTION;
CREATE TABLE account (
	id          TEXT PRIMARY KEY,
	name        TEXT NOT NULL,
	name_folded TEXT NOT NULL UNIQUE,
	zone        TEXT NOT NULL,
	admin       BIGINT NOT NULL DEFAULT 0,
	disabled_at BIGINT,
	created_at  BIGINT NOT NULL
);
INSERT INTO "account" VALUES('01a22ce2-ed33-78d7-a327-e3774dbd6c58','owner','owner','Etc/UTC',1,NULL,1796049399091479);
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
INSERT INTO "change" VALUES('01a22ce2-ed4f-7ab3-a107-f1a946852f1b','01a22ce2-ed34-70b1-ac73-86342619a724',1,'task','01a22ce2-ed4f-7804-af5e-7efcbcde9216','create_personal_task','create','account:01a22ce2-ed33-78d7-a327-e3774dbd6c58','','cli','01a22ce2-ed4f-7dec-9634-f85f607ffee9','01a22ce2-ed4e-7978-92ed-a474ed78eb14','{}','{"completion":null,"description":null,"due_date":"2026-11-30","effort_minutes":null,"external_ref":null,"focused_date":null,"name":"from before","place":{"heap":"01a22ce2-ed34-70b1-ac73-86342619a724","project_id":null},"source_url":null,"starred":false,"start_date":null,"state":"live","work_notes":null}',NULL,'Created task "from before"',1796049399119518);
CREATE TABLE goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
INSERT INTO "goose_db_version" VALUES(1,0,1,'2026-11-30 14:36:39');
INSERT INTO "goose_db_version" VALUES(2,1,1,'2026-11-30 14:36:39');
INSERT INTO "goose_db_version" VALUES(3,2,1,'2026-11-30 14:36:39');
CREATE TABLE heap (
	id          TEXT PRIMARY KEY,
	name        TEXT NOT NULL,
	kind        TEXT NOT NULL,
	owner       TEXT NOT NULL REFERENCES account (id),
	archived_at BIGINT,
	created_at  BIGINT NOT NULL,
	updated_at  BIGINT NOT NULL
);
INSERT INTO "heap" VALUES('01a22ce2-ed34-70b1-ac73-86342619a724','Personal','personal','01a22ce2-ed33-78d7-a327-e3774dbd6c58',NULL,1796049399091479,1796049399091479);
INSERT INTO "heap" VALUES('01a22ce2-ed34-718a-ab86-c2065df03352','Work','work','01a22ce2-ed33-78d7-a327-e3774dbd6c58',NULL,1796049399091480,1796049399091480);
CREATE TABLE heap_seq (
	heap TEXT PRIMARY KEY,
	seq  BIGINT NOT NULL,
	at   BIGINT NOT NULL
);
INSERT INTO "heap_seq" VALUES('01a22ce2-ed34-70b1-ac73-86342619a724',2,1796049399119518);
CREATE TABLE member (
	heap       TEXT NOT NULL REFERENCES heap (id),
	account    TEXT NOT NULL REFERENCES account (id),
	role       TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (account, heap)
);
INSERT INTO "member" VALUES('01a22ce2-ed34-70b1-ac73-86342619a724','01a22ce2-ed33-78d7-a327-e3774dbd6c58','owner',1796049399091479);
INSERT INTO "member" VALUES('01a22ce2-ed34-718a-ab86-c2065df03352','01a22ce2-ed33-78d7-a327-e3774dbd6c58','owner',1796049399091480);
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
INSERT INTO "search_passage" VALUES('01a22ce2-ed34-70b1-ac73-86342619a724','01a22ce2-ed4f-7804-af5e-7efcbcde9216',0,2,'task',1,'from befor |',0);
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
INSERT INTO "task" VALUES('01a22ce2-ed4f-7804-af5e-7efcbcde9216','01a22ce2-ed34-70b1-ac73-86342619a724',NULL,'from before',NULL,NULL,NULL,NULL,NULL,'2026-11-30',NULL,0,NULL,NULL,NULL,NULL,1796049399119518,1796049399119518);
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
CREATE INDEX member_heap ON member (heap);
CREATE INDEX token_account ON token (account);
CREATE INDEX change_heap_at ON change (heap, at, id);
CREATE INDEX change_thing ON change (thing, at);
CREATE INDEX change_request ON change (request);
CREATE INDEX change_run ON change (run, at);
CREATE INDEX change_actor ON change (actor, at) WHERE undoes IS NULL;
CREATE INDEX change_undoes ON change (undoes) WHERE undoes IS NOT NULL;
CREATE INDEX search_passage_seq ON search_passage (heap, seq);
CREATE UNIQUE INDEX project_name ON project (heap, name_folded) WHERE trashed_at IS NULL;
CREATE INDEX project_heap ON project (heap);
CREATE INDEX project_log_project ON project_log (project, created_at);
CREATE UNIQUE INDEX task_ref ON task (heap, external_ref) WHERE external_ref IS NOT NULL;
CREATE INDEX task_updated ON task (heap, updated_at, id) WHERE trashed_at IS NULL;
CREATE INDEX task_open ON task (heap, updated_at, id) WHERE trashed_at IS NULL AND completed_at IS NULL;
CREATE INDEX task_starred ON task (heap, updated_at, id) WHERE trashed_at IS NULL AND starred = 1;
CREATE INDEX task_project ON task (project, updated_at) WHERE project IS NOT NULL;
CREATE INDEX task_project_open ON task (project, due_date) WHERE project IS NOT NULL AND trashed_at IS NULL AND completed_at IS NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('goose_db_version',3);
COMMIT;
