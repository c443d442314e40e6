-- What loopd keeps about itself: which version made this schema.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- There is no index on modified_ms: it would be rewritten by every append, and sorting all
-- records when they are listed costs less.
CREATE TABLE session (
    key         INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    created_ms  INTEGER NOT NULL,
    modified_ms INTEGER NOT NULL,
    name        TEXT,
    summary     TEXT,
    cwd         TEXT,
    parent      TEXT,
    client_name TEXT,
    git_root    TEXT,
    repository  TEXT,
    branch      TEXT,
    event_count INTEGER NOT NULL
) STRICT;

-- position = session.key * 2^32 + seq. Making it the rowid keeps a session's events side by side
-- in one B-tree without a second index, and only rows above 4 kB spill into overflow pages; the
-- same table WITHOUT ROWID spills above 1 kB, and a spilled row wastes most of a page.
CREATE TABLE event (
    position INTEGER PRIMARY KEY,
    visible  INTEGER NOT NULL CHECK (visible IN (0, 1)),
    id       TEXT NOT NULL,
    kind     TEXT NOT NULL,
    json     TEXT NOT NULL
) STRICT;

CREATE TABLE fact (
    scope TEXT NOT NULL,
    key   TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;
