-- +goose Up

ALTER TABLE account ADD COLUMN email TEXT;
ALTER TABLE account ADD COLUMN email_folded TEXT;
ALTER TABLE account ADD COLUMN email_confirmed_at BIGINT;
ALTER TABLE account ADD COLUMN admitted_at BIGINT;
ALTER TABLE account ADD COLUMN agents_paused_at BIGINT;
UPDATE account SET admitted_at = created_at;
CREATE UNIQUE INDEX account_email ON account (email_folded) WHERE email_confirmed_at IS NOT NULL;
CREATE INDEX account_waiting ON account (created_at) WHERE admitted_at IS NULL;

-- What holds for the whole server and may change while it runs.
CREATE TABLE setting (
	name  TEXT PRIMARY KEY,
	value TEXT NOT NULL
);

-- Ways to sign in. public: of a phrase the Ed25519 key in hex, of a passkey its credential id. host: the name a passkey is for.
CREATE TABLE credential (
	id           TEXT PRIMARY KEY,
	account      TEXT NOT NULL REFERENCES account (id),
	kind         TEXT NOT NULL,
	public       TEXT NOT NULL,
	host         TEXT NOT NULL,
	name         TEXT NOT NULL,
	data         TEXT NOT NULL,
	created_at   BIGINT NOT NULL,
	last_used_at BIGINT,
	UNIQUE (kind, public)
);
CREATE INDEX credential_account ON credential (account);

CREATE TABLE session (
	id         TEXT PRIMARY KEY,
	account    TEXT NOT NULL REFERENCES account (id),
	hash       TEXT NOT NULL UNIQUE,
	method     TEXT NOT NULL,
	address    TEXT NOT NULL,
	client     TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	seen_at    BIGINT NOT NULL,
	proved_at  BIGINT NOT NULL,
	expires_at BIGINT NOT NULL
);
CREATE INDEX session_account ON session (account);

-- Things that are good once and for a short time: sign-in challenges, mailed codes, set-up links. id may be a hash.
CREATE TABLE challenge (
	id         TEXT PRIMARY KEY,
	purpose    TEXT NOT NULL,
	account    TEXT,
	data       TEXT NOT NULL,
	tries      BIGINT NOT NULL DEFAULT 0,
	created_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL
);
CREATE INDEX challenge_expires ON challenge (expires_at);
CREATE INDEX challenge_account ON challenge (account) WHERE account IS NOT NULL;

CREATE TABLE invite (
	id         TEXT PRIMARY KEY,
	heap       TEXT NOT NULL REFERENCES heap (id),
	account    TEXT NOT NULL REFERENCES account (id),
	role       TEXT NOT NULL,
	inviter    TEXT NOT NULL REFERENCES account (id),
	state      TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	decided_at BIGINT
);
CREATE UNIQUE INDEX invite_pending ON invite (heap, account) WHERE state = 'pending';
CREATE INDEX invite_account ON invite (account, created_at);

-- A named identity that an account has let in. rights: as of a token. It has at most one connection that lives.
CREATE TABLE agent (
	id           TEXT PRIMARY KEY,
	account      TEXT NOT NULL REFERENCES account (id),
	name         TEXT NOT NULL,
	rights       TEXT NOT NULL,
	paused_at    BIGINT,
	ended_at     BIGINT,
	created_at   BIGINT NOT NULL,
	last_used_at BIGINT,
	calls        BIGINT NOT NULL DEFAULT 0,
	errors       BIGINT NOT NULL DEFAULT 0,
	total_us     BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX agent_account ON agent (account, created_at);

-- Programs that may ask for access. kind: registered, or metadata (its id is the address of a document about it).
-- used_at: when somebody last let it in.
CREATE TABLE oauth_client (
	id         TEXT PRIMARY KEY,
	kind       TEXT NOT NULL,
	name       TEXT NOT NULL,
	data       TEXT NOT NULL,
	digest     TEXT NOT NULL,
	address    TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	fetched_at BIGINT,
	used_at    BIGINT
);
CREATE INDEX oauth_client_unused ON oauth_client (created_at) WHERE used_at IS NULL;
CREATE INDEX oauth_client_digest ON oauth_client (digest);

-- One authorization of a client for an agent: a family of tokens, all of which end with it. access_until: when its newest
-- access token expires.
CREATE TABLE connection (
	id           TEXT PRIMARY KEY,
	agent        TEXT NOT NULL REFERENCES agent (id),
	client       TEXT NOT NULL,
	client_name  TEXT NOT NULL,
	facts        TEXT NOT NULL,
	scope        TEXT NOT NULL,
	resource     TEXT NOT NULL,
	created_at   BIGINT NOT NULL,
	access_until BIGINT NOT NULL,
	stay_until   BIGINT,
	ended_at     BIGINT,
	ended_why    TEXT
);
CREATE INDEX connection_agent ON connection (agent, created_at);
CREATE INDEX connection_client ON connection (client);

CREATE TABLE oauth_refresh (
	hash       TEXT PRIMARY KEY,
	connection TEXT NOT NULL REFERENCES connection (id),
	created_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	used_at    BIGINT
);
CREATE INDEX oauth_refresh_expires ON oauth_refresh (expires_at);

CREATE TABLE oauth_key (
	id         TEXT PRIMARY KEY,
	private    TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	retired_at BIGINT
);

-- One request of a client to be let in. state: open, rejected, approved, redeemed. cookie: hash of what the browser that
-- asked holds. pairing and code are keyed hashes.
CREATE TABLE oauth_attempt (
	id          TEXT PRIMARY KEY,
	client      TEXT NOT NULL,
	request     TEXT NOT NULL,
	print       TEXT NOT NULL,
	cookie      TEXT NOT NULL,
	pairing     TEXT NOT NULL,
	state       TEXT NOT NULL,
	address     TEXT NOT NULL,
	user_agent  TEXT NOT NULL,
	recipient   TEXT,
	decided_by  TEXT,
	decision    TEXT,
	connection  TEXT,
	code        TEXT,
	created_at  BIGINT NOT NULL,
	decided_at  BIGINT,
	redeemed_at BIGINT,
	expires_at  BIGINT NOT NULL
);
CREATE UNIQUE INDEX oauth_attempt_pairing ON oauth_attempt (pairing);
CREATE UNIQUE INDEX oauth_attempt_code ON oauth_attempt (code) WHERE code IS NOT NULL;
CREATE INDEX oauth_attempt_recipient ON oauth_attempt (recipient, created_at) WHERE recipient IS NOT NULL;
CREATE INDEX oauth_attempt_expires ON oauth_attempt (expires_at);
