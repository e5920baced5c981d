"""Who may do what on a server: roles for every route, hosts, origins, forms, limits, secrets."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from web import API, CREW, running

import superarm as sa
from superarm.cli import main
from superarm.errors import SettingError
from superarm.server.access import Role, list_tokens, new_token, revoke_token
from superarm.server.app import ALL_RULES
from superarm.server.limits import Limit
from superarm.server.routes import Rule
from superarm.server.run import check_place
from superarm.server.settings import Settings

HTML = {"accept": "text/html"}


class Site:
    """A server with a token of each role."""

    def __init__(self, stack: ExitStack, **settings: Any) -> None:
        self.store = stack.enter_context(sa.Store.open(":memory:"))
        self.tokens = {
            role: new_token(self.store, role, role)[1] for role in ("read", "measure", "admin")
        }
        found = stack.enter_context(running(self.store, **{"rate": 1e5, **settings}))
        self.stack, self.app, self.url = stack, found.app, found.url
        self.netloc = found.url.removeprefix("http://")

    def browser(self) -> httpx.Client:
        return self.stack.enter_context(httpx.Client(base_url=self.url, timeout=30, verify=False))

    def as_role(self, role: str) -> httpx.Client:
        found = self.browser()
        found.headers["authorization"] = f"Bearer {self.tokens[role]}"
        return found


@pytest.fixture
def site() -> Iterator[Callable[..., Site]]:
    with ExitStack() as stack:
        yield lambda **settings: Site(stack, **settings)


@pytest.fixture(scope="module")
def guarded_site() -> Iterator[Site]:
    with ExitStack() as stack:
        yield Site(stack, tokens=True)


@pytest.fixture(scope="module")
def local_site() -> Iterator[Site]:
    with ExitStack() as stack:
        yield Site(stack)


def with_crew(site: Site) -> Site:
    http = site.as_role("admin")
    http.delete(f"{API}/campaigns/crew")
    http.post(f"{API}/campaigns", json=CREW).raise_for_status()
    return site


@pytest.fixture
def guarded(site: Callable[..., Site]) -> Site:
    return with_crew(site(tokens=True))


@pytest.fixture
def local(local_site: Site) -> Site:
    return with_crew(local_site)


# ---- roles ---------------------------------------------------------------------------------------


def sent_to(rule: Rule, client: httpx.Client, **headers: str) -> Any:
    """Send something to a route: it need not make sense, since roles are asked for first."""
    path = re.sub(r"\{\w+\}", "nix", rule.path)
    return client.request(rule.method, path, headers=headers)


def test_every_route_of_the_application_is_in_a_table(guarded_site: Site) -> None:
    made = {
        (method, route.path)
        for route in guarded_site.app.routes
        for method in route.methods - {"HEAD"}
    }
    assert made == {(rule.method, rule.path) for rule in ALL_RULES}
    assert len(ALL_RULES) == len({(rule.method, rule.path) for rule in ALL_RULES})


OPEN = {"/healthz", "/openapi.json", "/login", "/logout", "/docs", "/docs/start.js", "/docs/{file}"}


def test_what_is_open_is_what_must_be() -> None:
    found = {rule.path for rule in ALL_RULES if rule.role is Role.OPEN}
    assert {path for path in found if not path.startswith("/static/")} == OPEN


@pytest.mark.parametrize("role", ["nobody", "read", "measure", "admin"])
@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: f"{rule.method} {rule.path}")
def test_every_route_asks_for_its_role(guarded_site: Site, rule: Rule, role: str) -> None:
    client = guarded_site.browser() if role == "nobody" else guarded_site.as_role(role)
    have = Role.OPEN if role == "nobody" else Role[role.upper()]
    if rule.path.endswith("/events") and have >= rule.role:
        return  # a stream without an end
    answer = sent_to(rule, client)
    if have >= rule.role:
        assert answer.status_code not in (401,)
        if not rule.page:  # pages want the sign of a form, too
            assert answer.status_code != 403, answer.text
    elif role == "nobody":
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
    else:
        assert answer.status_code == 403
        assert rule.role.word in answer.json()["detail"]


def test_changes_take_more_than_reading() -> None:
    for rule in ALL_RULES:
        if rule.method != "GET" and rule.path not in ("/login", "/logout"):
            assert rule.role >= Role.MEASURE, rule.path


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: f"{rule.method} {rule.path}")
def test_every_answer_has_the_headers_of_safety(local: Site, rule: Rule) -> None:
    if rule.path.endswith("/events"):
        return
    answer = sent_to(rule, local.browser(), **HTML)
    policy = answer.headers["content-security-policy"]
    for part in (
        "default-src 'none'",
        "script-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'self'",
    ):
        assert part in policy.split("; ")
    inline = rule.path == "/docs"  # what it is made with writes styles
    assert ("style-src 'self'" in policy.split("; ")) is not inline
    assert "unsafe-eval" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"


def test_a_table_without_a_role_is_no_rule() -> None:
    with pytest.raises(TypeError):
        Rule("GET", "/secrets", endpoint=lambda request: None)  # type: ignore[call-arg]


# ---- tokens --------------------------------------------------------------------------------------


def test_wrong_and_revoked_tokens(guarded: Site) -> None:
    client = guarded.as_role("read")
    assert client.get(f"{API}/campaigns").status_code == 200
    for text in ("x", "sa_", "sa_x_y", guarded.tokens["read"][:-1], guarded.tokens["read"] + "x"):
        client.headers["authorization"] = f"Bearer {text}"
        assert client.get(f"{API}/campaigns").status_code == 401, text
    client.headers["authorization"] = f"Basic {guarded.tokens['read']}"
    assert client.get(f"{API}/campaigns").status_code == 401
    client.headers["authorization"] = f"Bearer {guarded.tokens['read']}"
    revoke_token(guarded.store, "read")
    guarded.app.state.guard.gate.FRESH = 0.0  # as if two seconds had passed
    assert client.get(f"{API}/campaigns").status_code == 401


def test_the_store_keeps_no_token(tmp_path: Path) -> None:
    with sa.Store.open(tmp_path / "store.db") as store:
        token, text = new_token(store, "Ann", "admin")
        secret = text.removeprefix(f"sa_{token.id}_")
        content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert token.id.encode() in content
    assert secret.encode() not in content
    assert len(secret) >= 40


def test_names_of_tokens() -> None:
    with sa.Store.open(":memory:") as store:
        new_token(store, "Ann", "read")
        with pytest.raises(SettingError, match="already"):
            new_token(store, "Ann", "read")
        revoke_token(store, "Ann")
        again, _ = new_token(store, "Ann", "measure")
        assert [token.revoked is None for token in list_tokens(store)] == [False, True]
        assert revoke_token(store, again.id).name == "Ann"
        with pytest.raises(SettingError, match="no token"):
            revoke_token(store, "Ann")
        for name, role in (("", "read"), ("x" * 101, "read"), ("a\nb", "read"), ("Bo", "king")):
            with pytest.raises(SettingError):
                new_token(store, name, role)


def test_after_many_wrong_tokens_no_more_are_looked_at(site: Callable[..., Site]) -> None:
    there = site(tokens=True, failures=3)
    client = there.browser()
    for _ in range(3):
        client.headers["authorization"] = "Bearer sa_0123456789ab_wrong"
        assert client.get(f"{API}/campaigns").status_code == 401
    answer = client.get(f"{API}/campaigns")
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) >= 1
    good = there.as_role("read")  # not even a right one, until some time has passed
    assert good.get(f"{API}/campaigns").status_code == 429
    there.app.state.guard.failures = Limit(1, 3)
    assert good.get(f"{API}/campaigns").status_code == 200
    there.app.state.guard.failures = Limit(1e-9, 0)  # who is known goes on
    assert good.get(f"{API}/campaigns").status_code == 200


def test_a_client_in_a_hurry_is_slowed_down(site: Callable[..., Site]) -> None:
    there = site(tokens=True, rate=2.0)
    client = there.as_role("read")
    codes = [client.get(f"{API}/campaigns").status_code for _ in range(12)]
    assert codes[:8] == [200] * 8
    assert codes[-1] == 429
    assert there.as_role("measure").get(f"{API}/campaigns").status_code == 200


def test_a_limit_fills_again() -> None:
    now = [0.0]
    limit = Limit(2.0, 3, lambda: now[0])
    for _ in range(3):
        assert limit.wait("a") == 0
        limit.count("a")
    assert limit.wait("a") == pytest.approx(0.5)
    assert limit.wait("b") == 0
    now[0] = 0.5
    assert limit.wait("a") == 0
    limit.count("a")
    assert limit.wait("a") > 0
    now[0] = 100.0
    for _ in range(3):
        assert limit.wait("a") == 0
        limit.count("a")
    assert limit.wait("a") > 0


def test_no_secret_is_logged(guarded: Site, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        for role in guarded.tokens:
            guarded.as_role(role).get(f"{API}/campaigns")
        wrong = guarded.browser()
        wrong.headers["authorization"] = f"Bearer {guarded.tokens['read']}-wrong"
        wrong.get(f"{API}/campaigns")
    for text in guarded.tokens.values():
        assert text not in caplog.text


# ---- browsers ------------------------------------------------------------------------------------


def sign_of(page: Any) -> str:
    found = re.search(r'name="csrf" value="(\w+)"', page.text)
    assert found, page.text
    return found[1]


def logged_in(site: Site, role: str) -> httpx.Client:
    browser = site.browser()
    page = browser.get("/login", headers=HTML)
    form = {"token": site.tokens[role], "csrf": sign_of(page), "next": "/"}
    answer = browser.post("/login", data=form, headers=HTML)
    assert answer.status_code == 303, answer.text
    return browser


def test_who_is_not_logged_in_is_sent_to_the_page_for_it(guarded: Site) -> None:
    answer = guarded.browser().get("/campaigns/crew", headers=HTML)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?next=/campaigns/crew"


def test_a_browser_shows_its_token_once(guarded: Site) -> None:
    browser = guarded.browser()
    page = browser.get("/login", headers=HTML)
    before = browser.cookies["superarm"]
    form = {"token": guarded.tokens["measure"], "csrf": sign_of(page), "next": "/campaigns/crew"}
    answer = browser.post("/login", data=form, headers=HTML)
    assert answer.headers["location"] == "/campaigns/crew"
    cookie = SimpleCookie(answer.headers["set-cookie"])["superarm"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Strict"
    assert cookie["path"] == "/"
    assert cookie.value != before  # no session is fixed beforehand
    assert guarded.tokens["measure"] not in answer.headers["set-cookie"]
    assert browser.get(f"{API}/campaigns").status_code == 200
    assert browser.get("/", headers=HTML).status_code == 200


def test_a_session_outlives_the_server_and_ends_with_its_token(guarded: Site) -> None:
    browser = logged_in(guarded, "read")
    with running(guarded.store, tokens=True) as other:
        cookie = {"cookie": f"superarm={browser.cookies['superarm']}"}
        again = f"{other.url}{API}/campaigns"
        assert httpx.get(again, headers=cookie).status_code == 200
        revoke_token(guarded.store, "read")
        other.app.state.guard.gate.FRESH = 0.0
        assert httpx.get(again, headers=cookie).status_code == 401


def test_logging_out_ends_the_session(guarded: Site) -> None:
    browser = logged_in(guarded, "read")
    value = browser.cookies["superarm"]
    sign = sign_of(browser.get("/", headers=HTML))
    assert browser.post("/logout", data={"csrf": sign}).status_code == 303
    other = guarded.browser()
    other.cookies["superarm"] = value
    assert other.get(f"{API}/campaigns").status_code == 401


def test_a_session_has_an_end(site: Callable[..., Site]) -> None:
    there = site(tokens=True, session=1e-3)
    browser = logged_in(there, "read")
    there.app.state.guard.gate.FRESH = 0.0
    assert browser.get(f"{API}/campaigns").status_code == 401


def test_wrong_tokens_at_the_login_page(guarded: Site) -> None:
    browser = guarded.browser()
    sign = sign_of(browser.get("/login", headers=HTML))
    answer = browser.post("/login", data={"token": "sa_x_y", "csrf": sign}, headers=HTML)
    assert answer.status_code == 401
    assert "token" in answer.text
    assert browser.get(f"{API}/campaigns").status_code == 401


@pytest.mark.parametrize(
    "there", ["//evil.example", "https://evil.example/", "/\\evil.example", "javascript:alert(1)"]
)
def test_logging_in_leads_nowhere_else(guarded: Site, there: str) -> None:
    browser = guarded.browser()
    sign = sign_of(browser.get("/login", headers=HTML))
    form = {"token": guarded.tokens["read"], "csrf": sign, "next": there}
    assert browser.post("/login", data=form).headers["location"] == "/"


def test_a_session_changes_nothing_without_the_sign_of_our_page(guarded: Site) -> None:
    browser = logged_in(guarded, "admin")
    sign = sign_of(browser.get("/", headers=HTML))
    path = f"{API}/campaigns/crew/ask"
    assert browser.post(path, json={}).status_code == 403
    assert browser.post(path, json={}, headers={"x-csrf-token": "0" * 64}).status_code == 403
    assert browser.post(path, json={}, headers={"x-csrf-token": sign}).status_code == 200
    assert browser.delete(f"{API}/campaigns/crew").status_code == 403
    other = sign_of(logged_in(guarded, "admin").get("/", headers=HTML))
    assert browser.post(path, json={}, headers={"x-csrf-token": other}).status_code == 403


FORMS = [rule for rule in ALL_RULES if rule.page and rule.method == "POST"]


@pytest.mark.parametrize("rule", FORMS, ids=lambda rule: rule.path)
def test_every_form_needs_the_sign_of_our_page(local: Site, rule: Rule) -> None:
    browser = local.browser()
    browser.get("/", headers=HTML)
    path = re.sub(r"\{name\}", "crew", rule.path).replace("{id}", "p1-0")
    for data in ({"x": "y"}, {"csrf": "0" * 64}, {"csrf": ""}):
        assert browser.post(path, data=data, headers=HTML).status_code == 403
    stranger = local.browser()  # without a cookie
    assert stranger.post(path, data={"csrf": ""}).status_code == 403


# ---- hosts and origins ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "right"),
    [
        ("127.0.0.1:8420", True),
        ("localhost:8420", True),
        ("LOCALHOST", True),
        ("[::1]:8420", True),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("192.168.1.5:8420", False),
        ("x", False),
    ],
)
def test_other_names_for_this_machine_are_refused(local: Site, host: str, right: bool) -> None:
    answer = local.browser().get(f"{API}/campaigns", headers={"host": host})
    assert answer.status_code == (200 if right else 421)


def test_with_tokens_addresses_and_named_hosts_are_right() -> None:
    settings = Settings(tokens=True, hosts=("measure.example.org",))
    for host in ("measure.example.org", "192.168.1.5:8420", "[fe80::1]:80", "localhost"):
        assert settings.right_host(host), host
    for host in ("example.org", "evil.measure.example.org", "1.2.3.4.example", "", "[", "a b"):
        assert not settings.right_host(host), host


@pytest.mark.parametrize(
    ("headers", "right"),
    [
        ({}, True),
        ({"origin": "http://{here}"}, True),
        ({"origin": "https://{here}"}, True),
        ({"origin": "http://127.0.0.1:9999"}, False),
        ({"origin": "http://evil.example"}, False),
        ({"origin": "null"}, False),
        ({"origin": "http://{here}.evil.example"}, False),
        ({"origin": "file://"}, False),
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "none"}, True),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "same-site"}, False),
    ],
)
def test_changes_are_not_taken_from_pages_of_others(
    local: Site, headers: dict[str, str], right: bool
) -> None:
    headers = {name: value.format(here=local.netloc) for name, value in headers.items()}
    answer = local.browser().post(f"{API}/campaigns/crew/ask", json={}, headers=headers)
    assert answer.status_code == (200 if right else 403)
    assert local.browser().get(f"{API}/campaigns", headers=headers).status_code == 200


def test_headers_that_count_are_sent_once(local: Site) -> None:
    twice = [("authorization", "Bearer a"), ("authorization", "Bearer b")]
    assert local.browser().get("/healthz", headers=twice).status_code == 400


# ---- limits --------------------------------------------------------------------------------------


def test_requests_that_are_too_large(site: Callable[..., Site]) -> None:
    there = site(body=2000)
    client = there.browser()
    client.post(f"{API}/campaigns", json=CREW).raise_for_status()
    long = {"id": "p1-0", "total": 1, "worker": "x" * 3000}
    path = f"{API}/campaigns/crew/tell"
    assert client.post(path, json=long).status_code == 413

    def chunks() -> Iterator[bytes]:
        for _ in range(40):
            yield b" " * 100

    headers = {"content-type": "application/json"}
    assert client.post(path, content=chunks(), headers=headers).status_code == 413


# ---- the command line ----------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "measure.example.org"])
def test_others_reach_a_server_only_with_tokens(host: str) -> None:
    with pytest.raises(SettingError, match="--tokens"):
        check_place(host, None, False)
    check_place(host, None, True)
    result = CliRunner().invoke(main, ["serve", "--host", host, "--store", ":memory:"])
    assert result.exit_code == 2
    assert "--tokens" in result.stderr


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_this_machine_needs_no_token(host: str) -> None:
    check_place(host, None, False)
    check_place("0.0.0.0", "/run/superarm.sock", False)


def test_names_of_hosts_need_tokens() -> None:
    with pytest.raises(SettingError, match="tokens"):
        Settings(hosts=("measure.example.org",))
    for host in ("", "http://a", "a:80", "a b"):
        with pytest.raises(SettingError, match="no name of a host"):
            Settings(tokens=True, hosts=(host,))


def test_tokens_on_the_command_line(tmp_path: Path) -> None:
    store = ["--store", str(tmp_path / "store.db")]

    def run(*words: str) -> Any:
        return CliRunner().invoke(main, [*words, *store])

    nobody = run("serve", "--tokens")
    assert nobody.exit_code == 2
    assert "superarm token new" in nobody.stderr
    made = run("token", "new", "Ann", "--role", "measure")
    assert re.fullmatch(r"sa_[0-9a-f]{12}_[\w-]{43}\n", made.stdout)
    listed = run("token", "list", "--format", "csv")
    assert re.search(r"^[0-9a-f]{12},Ann,measure,2\d{3}-.*Z,$", listed.stdout, re.MULTILINE)
    assert made.stdout.split("_", 2)[2].strip() not in listed.stdout
    assert run("token", "revoke", "Ann").stdout.startswith("revoked: Ann")
    again = run("token", "revoke", "Ann")
    assert again.exit_code == 2
    assert "token list" in again.stderr


def test_without_the_extra_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['uvicorn'] = None; from importlib import util; "
        "find = util.find_spec; "
        "util.find_spec = lambda name, *a: None if name == 'uvicorn' else find(name, *a); "
        "from superarm.cli import main; main(['serve'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert 'the server needs uvicorn: pip install "superarm[server]"' in done.stderr
    assert "Traceback" not in done.stderr
