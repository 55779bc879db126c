"""The answer store: one sqlite file in which every final outcome is a row, written before anything else happens."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from types import TracebackType

from auditlib.calls import Reply, Request
from auditlib.errors import AuditError

#: outcomes that a resume does not ask again; ``failed`` is transport, asked again
FINAL = ("ok", "empty", "truncated", "filtered", "refused_request")
SCHEMA_VERSION = 1
#: seconds to wait for another writer
_PATIENCE = 30.0
_TABLES = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, item TEXT NOT NULL, model TEXT NOT NULL, condition TEXT NOT NULL, prompt_mode TEXT NOT NULL,
    sample INTEGER NOT NULL, purpose TEXT NOT NULL, prompt_version TEXT NOT NULL, text_sha256 TEXT NOT NULL,
    pictures TEXT NOT NULL, generation TEXT NOT NULL, prompt TEXT NOT NULL, outcome TEXT NOT NULL, text TEXT NOT NULL,
    reasoning TEXT, finish TEXT, letter_logprobs TEXT, tokens_in INTEGER, tokens_out INTEGER, latency REAL,
    attempts INTEGER, server_model TEXT, fingerprint TEXT, error TEXT, created REAL NOT NULL);
CREATE TABLE IF NOT EXISTS failures (
    key TEXT NOT NULL, item TEXT NOT NULL, model TEXT NOT NULL, condition TEXT NOT NULL, sample INTEGER NOT NULL,
    purpose TEXT NOT NULL, attempts INTEGER, error TEXT, created REAL NOT NULL);
CREATE INDEX IF NOT EXISTS failures_key ON failures (key);
"""
_REPLY = [f.name for f in fields(Reply) if f.name != "key"]
_REQUEST = (
    "item", "model", "condition", "prompt_mode", "sample", "purpose", "prompt_version", "text_sha256", "pictures",
    "generation", "prompt",
)  # fmt: skip
#: columns of an answer
COLUMNS = ("key", *_REQUEST, *_REPLY)


class Store:
    """Answers by content key.

    Several processes may write at a time, and several threads may share one store. A row that :meth:`put` has returned
    from survives a kill of the process (write-ahead log, ``synchronous=NORMAL``). Keep the file on a local disk:
    network file systems do not lock.

    Parameters
    ----------
    path : the file, made when it is not there.

    Raises
    ------
    AuditError
        The file is no store, or one of a later version, or cannot be written.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        # opened by the notebook's thread, written by that of the event loop: one at a time
        self._lock = threading.RLock()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA synchronous=NORMAL")
            tables = {name for (name,) in self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if tables and "meta" not in tables:
                raise sqlite3.DatabaseError(f"it holds the tables {', '.join(sorted(tables))}")
            self._to_wal()
            with self._writing():
                for statement in _TABLES.split(";\n"):
                    self._db.execute(statement)
                self._db.execute("INSERT OR IGNORE INTO meta VALUES ('schema', ?)", (str(SCHEMA_VERSION),))
            (version,) = self._db.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
        except (sqlite3.Error, OSError) as e:
            raise AuditError(
                f"this is no answer store, or it cannot be written ({e})",
                file=self.path,
                mend="name another file; an answer store is made by the first run",
            ) from None
        if version != str(SCHEMA_VERSION):
            raise AuditError(
                f"an answer store of version {version}; this program writes version {SCHEMA_VERSION}",
                file=self.path,
                mend="use the program's version that wrote it, or another file",
            )

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        self.close()

    def close(self) -> None:
        self._db.close()

    def _to_wal(self) -> None:
        """Switch the journal. Two processes that make a file together meet a lock that sqlite does not wait for."""
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                self._db.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as e:
                if "locked" not in str(e) or time.monotonic() > until:
                    raise
                time.sleep(0.02)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                # a failed statement may have ended the transaction already
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def _said(self) -> Iterator[None]:
        """A full disk or a damaged file, in one line."""
        try:
            yield
        except sqlite3.Error as e:
            raise AuditError(
                f"the answer store cannot be read or written ({e})",
                file=self.path,
                mend="free the disk, or keep this file aside and name another; what it holds is not touched",
            ) from None

    def put(self, request: Request, reply: Reply) -> None:
        """Write the outcome of one request; the first final outcome of a key stays.

        A transport failure goes to the table of failures, so that a resume asks again.
        """
        if reply.key != request.key:
            raise ValueError("the reply belongs to another request")
        created = reply.created or time.time()
        if reply.outcome not in FINAL:
            row = _clean((request.key, request.item, request.model, request.condition, request.sample, request.purpose,
                          reply.attempts, reply.error, created))  # fmt: skip
            with self._said(), self._writing():
                self._db.execute(f"INSERT INTO failures VALUES ({', '.join('?' * len(row))})", row)
            return
        asked = (request.item, request.model, request.condition, request.prompt_mode, request.sample, request.purpose,
                 request.prompt_version, request.text_sha256, json.dumps([p.sha256 for p in request.pictures]),
                 _generation(request), request.text)  # fmt: skip
        logprobs = None if reply.letter_logprobs is None else json.dumps(reply.letter_logprobs, sort_keys=True)
        said = [
            logprobs if n == "letter_logprobs" else created if n == "created" else getattr(reply, n) for n in _REPLY
        ]
        columns, marks = ", ".join(COLUMNS), ", ".join("?" * len(COLUMNS))
        values = _clean((request.key, *asked, *said))
        with self._said(), self._writing():
            self._db.execute(f"INSERT OR IGNORE INTO answers ({columns}) VALUES ({marks})", values)

    @contextmanager
    def together(self) -> Iterator[Callable[[tuple], str]]:
        """Take whole rows of another store in, all or none: a function of a row in the order of :data:`COLUMNS`.

        It says what became of the row: ``new``, ``same`` as the answer that is here, or another (``other``), which
        changes nothing.
        """
        marks, place = ", ".join("?" * len(COLUMNS)), [COLUMNS.index(n) for n in ("outcome", "text")]

        def take(row: tuple) -> str:
            here = self._db.execute("SELECT outcome, text FROM answers WHERE key = ?", (row[0],)).fetchone()
            if here is not None:
                return "same" if here == tuple(row[i] for i in place) else "other"
            self._db.execute(f"INSERT INTO answers ({', '.join(COLUMNS)}) VALUES ({marks})", row)
            return "new"

        with self._said(), self._writing():
            yield take

    def get(self, key: str) -> Reply | None:
        """The final outcome under a key."""
        with self._said(), self._lock:
            row = self._db.execute(f"SELECT {', '.join(_REPLY)} FROM answers WHERE key = ?", (key,)).fetchone()
        return None if row is None else _reply(key, row)

    def known(self, keys: Iterable[str]) -> set[str]:
        """Those of the keys that have a final outcome."""
        keys, found = list(keys), set()
        for start in range(0, len(keys), 500):
            part = keys[start : start + 500]
            marks = ", ".join("?" * len(part))
            with self._said(), self._lock:
                found |= {k for (k,) in self._db.execute(f"SELECT key FROM answers WHERE key IN ({marks})", part)}
        return found

    def __contains__(self, key: object) -> bool:
        with self._said(), self._lock:
            return self._db.execute("SELECT 1 FROM answers WHERE key = ?", (key,)).fetchone() is not None

    def __len__(self) -> int:
        with self._said(), self._lock:
            return int(self._db.execute("SELECT count(*) FROM answers").fetchone()[0])

    def rows(self, purpose: str = "answer") -> Iterator[dict]:
        """All answers of one purpose as mappings, in a fixed order; memory stays flat."""
        order = "model, condition, prompt_mode, item, sample, key"
        with self._said():
            cursor = self._db.execute(f"SELECT * FROM answers WHERE purpose = ? ORDER BY {order}", (purpose,))
            names = [c[0] for c in cursor.description]
            for row in cursor:
                yield dict(zip(names, row))

    def failures(self, purpose: str = "answer") -> list[dict]:
        """Requests whose transport failed and that have no answer since: the last failure of each."""
        cursor = self._db.execute(
            "SELECT f.* FROM failures f LEFT JOIN answers a ON a.key = f.key WHERE a.key IS NULL AND f.purpose = ? "
            "AND f.rowid = (SELECT max(rowid) FROM failures g WHERE g.key = f.key) ORDER BY f.rowid",
            (purpose,),
        )
        names = [c[0] for c in cursor.description]
        return [dict(zip(names, row)) for row in cursor]


def _clean(row: tuple) -> list:
    """Lone surrogates, which sqlite does not take, as question marks."""
    return [v.encode("utf-8", "replace").decode() if isinstance(v, str) else v for v in row]


def _generation(request: Request) -> str:
    return json.dumps(request.generation.settings, sort_keys=True, ensure_ascii=False)


def _reply(key: str, row: tuple) -> Reply:
    values = dict(zip(_REPLY, row))
    if values["letter_logprobs"] is not None:
        values["letter_logprobs"] = {k: (v[0], v[1]) for k, v in json.loads(values["letter_logprobs"]).items()}
    return Reply(key=key, **values)
