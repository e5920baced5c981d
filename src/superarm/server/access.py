"""Who may do what: tokens, their roles, and the sessions of browsers that have shown one.

A token is `sa_ID_SECRET`. The store keeps a salted scrypt hash of it, so that who reads the store
cannot use it. A browser shows its token once and gets a random cookie, of which the store keeps a
hash too.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from superarm._checks import shown
from superarm.errors import SettingError

if TYPE_CHECKING:
    from superarm.campaign import Store


class Role(IntEnum):
    """What somebody may do; each role includes those before it."""

    OPEN = 0
    """What needs no token."""
    READ = 1
    """See everything."""
    MEASURE = 2
    """Ask, tell, and put right what was told."""
    ADMIN = 3
    """Make, import and delete campaigns; retire arms."""

    @property
    def word(self) -> str:
        """The role as it is written."""
        return self.name.lower()


ROLES = {role.word: role for role in Role if role is not Role.OPEN}


@dataclass(frozen=True)
class Token:
    """A token as it is listed: everything but its secret."""

    id: str
    name: str
    role: Role
    created: float
    revoked: float | None = None


def new_token(store: Store, name: str, role: str) -> tuple[Token, str]:
    """Make a token; return it and the text to give away, which is nowhere kept."""
    from sqlalchemy import insert, select

    from superarm.campaign.schema import access_token

    if role not in ROLES:
        raise SettingError(f"role {shown(role)} is none of {', '.join(ROLES)}")
    if not name.strip() or len(name) > 100 or not name.isprintable():
        raise SettingError(f"a token's name must be a short text, not {shown(name)}")
    token = Token(secrets.token_hex(6), name.strip(), ROLES[role], time.time())
    text = f"sa_{token.id}_{secrets.token_urlsafe(32)}"
    salt = secrets.token_bytes(16)
    with store.write() as connection:
        taken = select(access_token.c.id).where(
            access_token.c.name == token.name, access_token.c.revoked.is_(None)
        )
        if connection.execute(taken).first() is not None:
            raise SettingError(
                f"there is a token {shown(name)} already: revoke it, or name another"
            )
        connection.execute(
            insert(access_token).values(
                id=token.id,
                name=token.name,
                role=token.role.word,
                salt=salt,
                hash=_slow_hash(text, salt),
                created=token.created,
            )
        )
    return token, text


def list_tokens(store: Store) -> list[Token]:
    """Return all tokens, the oldest first."""
    from sqlalchemy import select

    from superarm.campaign.schema import access_token as t

    query = select(t.c.id, t.c.name, t.c.role, t.c.created, t.c.revoked).order_by(t.c.created)
    with store.read() as connection:
        return [
            Token(row.id, row.name, ROLES[row.role], row.created, row.revoked)
            for row in connection.execute(query)
        ]


def revoke_token(store: Store, which: str) -> Token:
    """Make a token, named by its name or id, worth nothing; browsers that showed it are out."""
    from sqlalchemy import delete, update

    from superarm.campaign.schema import access_token, browser_session

    for token in list_tokens(store):
        if which in (token.id, token.name) and token.revoked is None:
            break
    else:
        raise SettingError(f"there is no token {shown(which)} that counts: see superarm token list")
    with store.write() as connection:
        now = time.time()
        connection.execute(
            update(access_token).where(access_token.c.id == token.id).values(revoked=now)
        )
        connection.execute(delete(browser_session).where(browser_session.c.token == token.id))
    return token


def _slow_hash(text: str, salt: bytes) -> bytes:
    return hashlib.scrypt(text.encode(), salt=salt, n=2**14, r=8, p=1, dklen=32)


@dataclass(frozen=True)
class Who:
    """Who sends a request: a role, the token's name, and the cookie that says so (or "")."""

    role: Role
    name: str = ""
    token: str = ""
    cookie: str = ""


NOBODY = Who(Role.OPEN)


class Gate:
    """Tells who somebody is. Calls may take a while (hashing, the store): not for the event loop.

    What was verified is remembered under a hash that means nothing outside this process; every
    `FRESH` seconds it is looked up again which tokens still count.
    """

    FRESH = 2.0

    def __init__(self, store: Store, session: float) -> None:
        self._store, self._session = store, session
        self._key = secrets.token_bytes(32)
        self._known: dict[bytes, str] = {}  # token id by hash of a token or cookie
        self._live: dict[str, Token] = {}
        self._looked = -1e9

    @property
    def stale(self) -> bool:
        """Whether it must be looked up again which tokens count."""
        return time.monotonic() - self._looked > self.FRESH

    def refresh(self) -> None:
        """Look up which tokens count; sessions are looked up when they next appear."""
        self._live = {token.id: token for token in list_tokens(self._store) if not token.revoked}
        self._known = {key: id for key, id in self._known.items() if key[:1] == b"t"}
        self._looked = time.monotonic()

    def remembered(self, kind: str, text: str) -> Who | None:
        """Return who showed a token ("t") or cookie ("c") that was verified before."""
        found = self._live.get(self._known.get(self._quick(kind, text), ""))
        return None if found is None else self._who(found, text if kind == "c" else "")

    def verify(self, text: str) -> Who | None:
        """Return who shows a token, by its hash in the store."""
        from sqlalchemy import select

        from superarm.campaign.schema import access_token

        head, _, rest = text.partition("_")
        id = rest.partition("_")[0]
        if head != "sa" or not (id.isascii() and id.isalnum() and len(text) < 200):
            return None
        with self._store.read() as connection:
            row = connection.execute(select(access_token).where(access_token.c.id == id)).first()
        if row is None or row.revoked is not None:
            return None
        if not hmac.compare_digest(_slow_hash(text, row.salt), row.hash):
            return None
        if id not in self._live:
            self.refresh()
        return self._remember("t", text, id)

    def log_in(self, who: Who) -> str:
        """Begin the session of a browser that has shown a token; return its cookie."""
        from sqlalchemy import delete, insert

        from superarm.campaign.schema import browser_session as b

        cookie, now = secrets.token_urlsafe(32), time.time()
        with self._store.write() as connection:
            connection.execute(delete(b).where(b.c.until < now))
            values = {
                "hash": _cookie_hash(cookie),
                "token": who.token,
                "until": now + self._session,
            }
            connection.execute(insert(b).values(**values))
        self._remember("c", cookie, who.token)
        return cookie

    def resume(self, cookie: str) -> Who | None:
        """Return whose session a cookie is."""
        from sqlalchemy import select

        from superarm.campaign.schema import browser_session as b

        if len(cookie) > 100:
            return None
        query = select(b.c.token).where(b.c.hash == _cookie_hash(cookie), b.c.until > time.time())
        with self._store.read() as connection:
            id = connection.execute(query).scalar()
        return None if id is None else self._remember("c", cookie, id)

    def log_out(self, cookie: str) -> None:
        """End a session."""
        from sqlalchemy import delete

        from superarm.campaign.schema import browser_session as b

        self._known.pop(self._quick("c", cookie), None)
        with self._store.write() as connection:
            connection.execute(delete(b).where(b.c.hash == _cookie_hash(cookie)))

    def _remember(self, kind: str, text: str, id: str) -> Who | None:
        if id not in self._live:
            return None
        if len(self._known) > 10_000:
            self._known.clear()
        self._known[self._quick(kind, text)] = id
        return self._who(self._live[id], text if kind == "c" else "")

    def _who(self, token: Token, cookie: str) -> Who:
        return Who(token.role, token.name, token.id, cookie)

    def _quick(self, kind: str, text: str) -> bytes:
        """Return a hash that only this process can make."""
        quick = hashlib.blake2b(text.encode(), key=self._key, digest_size=16).digest()
        return kind.encode() + quick


def _cookie_hash(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()  # of 256 random bits: no guessing


def server_key(store: Store) -> bytes:
    """Return the store's secret, which binds forms to sessions; it is made when first needed."""
    from sqlalchemy import insert, select

    from superarm.campaign.schema import server_secret as s

    query = select(s.c.value).where(s.c.name == "forms")
    with store.read() as connection:
        found: Any = connection.execute(query).scalar()
    if found is None:
        with store.write() as connection:
            found = connection.execute(query).scalar()
            if found is None:
                found = secrets.token_bytes(32)
                connection.execute(insert(s).values(name="forms", value=found))
    return bytes(found)


def form_token(key: bytes, cookie: str) -> str:
    """Return what a form must carry that belongs to a session."""
    return hmac.new(key, cookie.encode(), "sha256").hexdigest()
