-- +goose Up

-- Rate windows that replicas share. UNLOGGED: a crash of PostgreSQL empties it and everybody starts fresh.
CREATE UNLOGGED TABLE rate_window (
	key     TEXT PRIMARY KEY,
	minute  BIGINT NOT NULL,
	cur     BIGINT NOT NULL,
	prev    BIGINT NOT NULL,
	refused BIGINT NOT NULL,
	ok      BOOLEAN NOT NULL
) WITH (fillfactor = 50);
