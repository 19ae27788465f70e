-- +goose Up

-- Durable background work. state: ready (waits for run_at), running (until lease, then somebody else takes it), cancelling,
-- done, failed, cancelled. once: while it is set there is no second job with it. holder: the process that runs it.
CREATE TABLE job (
	id          TEXT PRIMARY KEY,
	kind        TEXT NOT NULL,
	args        TEXT NOT NULL,
	state       TEXT NOT NULL,
	account     TEXT NOT NULL,
	run_at      BIGINT NOT NULL,
	attempt     BIGINT NOT NULL DEFAULT 0,
	lease       BIGINT NOT NULL DEFAULT 0,
	once        TEXT UNIQUE,
	done        BIGINT NOT NULL DEFAULT 0,
	total       BIGINT NOT NULL DEFAULT 0,
	error       TEXT NOT NULL DEFAULT '',
	created_at  BIGINT NOT NULL,
	finished_at BIGINT
);
CREATE INDEX job_due ON job (state, run_at);
CREATE INDEX job_lease ON job (state, lease);
