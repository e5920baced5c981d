"""The dashboard without a browser: forms, pictures, who may do what, and what is never sent."""

import re
from types import SimpleNamespace
from urllib.parse import quote
from xml.etree import ElementTree

import httpx
import pytest
from dashboard import ROOT, Site

import superarm as sa
from superarm.server import pictures
from superarm.server.access import new_token
from superarm.server.pages import own_address
from superarm.server.pages_frame import HERE, STATIC, ago, number
from superarm.server.question import arms_in, cost_of, noise_in, problem_in, rule_in
from superarm.server.settings import Settings

HTML = {"accept": "text/html"}
TEMPLATES = sorted((HERE / "templates").glob("*.html"))
FILES = sorted(STATIC.iterdir())


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path)
    yield made
    made.close()


@pytest.fixture
def guarded(tmp_path):
    made = Site(tmp_path, Settings(tokens=True))
    yield made
    made.close()


@pytest.fixture
def client(site):
    with httpx.Client(base_url=site.address, headers=HTML, timeout=60) as made:
        yield made


def sign_of(text):
    return re.search(r'name="csrf" value="([0-9a-f]+)"', text)[1]


# ---- what is sent --------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*TEMPLATES, *FILES], ids=lambda path: path.name)
def test_nothing_is_inline_and_nothing_is_elsewhere(path):
    text = path.read_text(encoding="utf-8")
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)|//cdn|@import|url\(", text)
    if path.suffix == ".html":
        assert not re.findall(
            r"\sstyle=|<style|\son[a-z]+=|javascript:|<script(?! [^>]*src=)", text
        )
        assert "| safe" not in text
        forms = re.findall(r'<form method="post".*?</form>', text, re.DOTALL)
        assert all("csrf()" in form for form in forms)
    if path.suffix == ".js":
        assert not re.findall(r"innerHTML|insertAdjacentHTML|\beval\(|new Function|\.style\b", text)


def test_templates_scripts_and_styles_are_in_the_wheel(tmp_path, monkeypatch):
    from zipfile import ZipFile

    from flit_core.buildapi import build_wheel

    monkeypatch.chdir(ROOT)
    with ZipFile(tmp_path / build_wheel(str(tmp_path))) as wheel:
        names = wheel.namelist()
    for path in (*TEMPLATES, *FILES):
        assert path.relative_to(HERE.parent.parent).as_posix() in names


def test_names_of_people_are_text(client, site):
    evil = '<script>alert("x")</script>'
    problem = sa.Problem([evil, "Bo", "Cy"], 2, sa.labels(), epsilon=0.5)
    made = sa.Campaign.create(evil.replace("/", ""), problem, store=site.store, rng=1)
    made.tell(made.ask(worker=evil)[0].id, 1.0, worker=evil)
    made.void("p1-0", reason=evil)
    made.ask(2, worker=evil)
    client.cookies.set("superarm-worker", quote(evil))
    for path in ("", "/results", "/results/p1-0", "/measure", "/certificate", "/live"):
        found = client.get(f"/campaigns/{quote(made.name)}{path}")
        assert found.status_code == 200
        assert "<script>alert" not in found.text
        assert "&lt;script&gt;" in found.text


def test_every_page_has_the_policy_and_a_form_needs_its_sign(client, site):
    site.crew()
    found = client.get("/campaigns/crew")
    policy = found.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    refused = client.post("/campaigns/crew/give-back", data={"id": "p1-0", "csrf": "0"})
    assert refused.status_code == 403
    assert "too old" in refused.text
    assert "<h1>" in refused.text


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/nothing", 404, "no such page"),
        ("/campaigns/nobody", 404, "no campaign"),
        ("/campaigns/crew/results/p1-5", 404, "total of pull"),
        ("/campaigns/crew/results/five", 404, "never asked for"),
        ("/static/nothing.css", 404, "no file"),
        ("/static/..%2Fpages.py", 404, ""),
    ],
)
def test_errors_are_pages(client, site, path, status, words):
    site.crew()
    found = client.get(path)
    assert found.status_code == status
    assert words in found.text
    assert '<main id="main"' in found.text
    assert "Traceback" not in found.text


def test_files_of_ours_may_be_kept_as_long_as_they_stay(client):
    address = re.search(r'href="(/static/app.css\?v=[^"]+)"', client.get("/").text)[1]
    assert "immutable" in client.get(address).headers["cache-control"]
    assert client.get("/static/app.css").headers["cache-control"] == "no-cache"


# ---- forms ---------------------------------------------------------------------------------------


def test_a_wrong_form_comes_back_with_what_was_typed(client, site):
    form = {
        "csrf": sign_of(client.get("/new").text),
        "name": "crew",
        "arms": "Ann\nBo\nCy",
        "k": "7",
        "noise": "labels",
        "near": "exact",
        "delta": "0.05",
        "do": "create",
    }
    found = client.post("/new", data=form)
    assert found.status_code == 422
    assert "K must be between 1 and the number of arms, 3, not 7." in found.text
    assert "Ann\nBo\nCy" in found.text
    made = client.post("/new", data={**form, "k": "2"})
    assert made.headers["location"] == "/campaigns/crew"
    again = client.post("/new", data={**form, "k": "2"})
    assert again.status_code == 409
    assert 'role="alert"' in again.text


def test_a_file_stands_for_the_names(client, site):
    form = {
        "csrf": sign_of(client.get("/new").text),
        "name": "lab",
        "k": "2",
        "noise": "gaussian",
        "sigma": "0,5",
        "near": "near",
        "epsilon": "0.5",
        "delta": "0.1",
    }
    content = b"\xef\xbb\xbfarm,site\nAnn,A\nBo,B\nCy,C\n"
    made = client.post("/new", data=form, files={"file": ("arms.csv", content, "text/csv")})
    assert made.status_code == 303
    problem = site.campaign("lab").problem
    assert problem.arms == ("Ann", "Bo", "Cy")
    assert problem.noise == sa.gaussian(0.5)
    wrong = client.post("/new", data=form, files={"file": ("arms.csv", b"\xff\xfe", "text/csv")})
    assert wrong.status_code == 422
    assert "not a text file" in wrong.text


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Ann\nBo\n\n Cy ", ["Ann", "Bo", "Cy"]),
        ("arm\nAnn\nBo", ["Ann", "Bo"]),
        ("arm,mean\nAnn,1\nBo,2", ["Ann", "Bo"]),
        ("site;arm", ["site;arm"]),
        ("site\tname\nA\tAnn\nB\tBo", ["Ann", "Bo"]),
        ('"Ann, the tall",1\nBo,2', ["Ann, the tall", "Bo"]),
    ],
)
def test_arms_are_read_as_people_paste_them(text, names):
    assert arms_in(text) == names


@pytest.mark.parametrize("text", ["", " \n ", "arm,mean\n"])
def test_no_arms_are_an_error(text):
    with pytest.raises(sa.ProblemError, match="arm"):
        arms_in(text)


@pytest.mark.parametrize(
    ("fields", "noise"),
    [
        ({"noise": "labels"}, sa.labels()),
        ({"noise": "labels", "shared": "yes"}, sa.labels(shared=True)),
        ({"noise": "parts", "part_low": "0", "part_high": "10"}, sa.total(0, 30)),
        (
            {"noise": "parts", "part_low": "-2", "part_high": "2", "independent": "yes"},
            sa.bounded(2, independent=True),
        ),
        ({"noise": "total", "total_low": "1", "total_high": "2"}, sa.total(1, 2)),
        ({"noise": "gaussian", "sigma": "1,5"}, sa.gaussian(1.5)),
    ],
)
def test_answers_become_a_noise_model(fields, noise):
    assert noise_in(fields, 3) == noise


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "one of the four"),
        ({"noise": "gaussian"}, "standard deviation of a total must be a number, and is empty"),
        ({"noise": "gaussian", "sigma": "wide"}, "not 'wide'"),
        ({"noise": "parts", "part_low": "2", "part_high": "1"}, "lower end first"),
        (
            {"noise": "parts", "part_low": "0", "part_high": "4", "independent": "yes"},
            "subtract 2 for each member",
        ),
    ],
)
def test_answers_that_do_not_make_sense(fields, words):
    with pytest.raises(sa.SuperarmError, match=words):
        noise_in(fields, 3)


def test_a_forecast_says_what_it_rests_on():
    fields = {"noise": "gaussian", "sigma": "1", "k": "3", "epsilon": "0.5", "delta": "0.05"}
    problem = problem_in(fields, [f"arm {i}" for i in range(12)])
    rule = rule_in({})
    rough = cost_of(problem, rule, fields)
    guess = cost_of(problem, rule, {**fields, "gap": "2", "pace": "10"})
    assert rough.pulls > guess.pulls > 0
    assert "if each of the best 3 is better by 2" in guess.text
    assert f"{-(-guess.pulls // 10):,} days at 10 a day" in guess.text
    exact = problem_in({**fields, "near": "exact"}, list(problem.arms))
    assert cost_of(exact, rule, fields).pulls is None
    assert rule_in({"rule": "calibrated"}).radius == "calibrated"
    with pytest.raises(sa.SettingError, match="none of"):
        rule_in({"rule": "best"})


# ---- who may do what -----------------------------------------------------------------------------


def logged_in(client, token, there="/"):
    form = client.get("/login", params={"next": there})
    return client.post("/login", data={"token": token, "next": there, "csrf": sign_of(form.text)})


def test_who_has_a_token_logs_in(guarded):
    token = new_token(guarded.store, "Dee", "admin")[1]
    with httpx.Client(base_url=guarded.address, headers=HTML, timeout=60) as client:
        sent = client.get("/new")
        assert sent.status_code == 303
        assert sent.headers["location"] == "/login?next=/new"
        wrong = logged_in(client, "sa_nobody_x")
        assert wrong.status_code == 401
        assert 'aria-invalid="true"' in wrong.text
        right = logged_in(client, token, "/new")
        assert right.headers["location"] == "/new"
        page = client.get("/new")
        assert page.status_code == 200
        assert "Log out" in page.text
        out = client.post("/logout", data={"csrf": sign_of(page.text)})
        assert out.status_code == 303
        assert client.get("/").status_code == 303


def test_who_may_only_read_sees_no_forms(guarded):
    guarded.crew(told=20).ask(2, worker="Ona")
    token = new_token(guarded.store, "guest", "read")[1]
    with httpx.Client(base_url=guarded.address, headers=HTML, timeout=60) as client:
        logged_in(client, token)
        page = client.get("/campaigns/crew")
        assert page.status_code == 200
        posts = re.findall(r'<form method="post" action="([^"]+)"', page.text)
        assert posts == ["/logout"]
        assert "/measure" not in page.text
        assert client.get("/campaigns/crew/measure").status_code == 403
        form = {"csrf": sign_of(page.text), "id": "p1-20"}
        assert client.post("/campaigns/crew/give-back", data=form).status_code == 403


@pytest.mark.parametrize(
    "there", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:1", "", "x"]
)
def test_after_logging_in_nobody_is_sent_elsewhere(there):
    assert own_address(there) == "/"
    assert own_address("/campaigns/a%20b?q=1") == "/campaigns/a%20b?q=1"


# ---- pictures and numbers ------------------------------------------------------------------------


def looks(number, radius=lambda t: 10 / t**0.5, gap=0.4):
    return [
        SimpleNamespace(pulls=100 * i, gap=gap, epsilon=0.1, radius=radius(i), number=i, phase=1)
        for i in range(1, number + 1)
    ]


@pytest.mark.parametrize("number", [1, 2, 30, 5000])
@pytest.mark.parametrize("forecast", [None, 0, 10**9])
@pytest.mark.parametrize("gap", [0.4, -3.0, 0.0, 1e12])
def test_the_margin_is_drawn_within_its_frame(number, forecast, gap):
    shown = pictures.thinned(looks(number, gap=gap))
    assert len(shown) == min(number, pictures.MOST_POINTS)
    drawn = ElementTree.fromstring(str(pictures.margin(shown, forecast)))
    assert drawn.find("title") is not None
    assert f"{100 * number:,}" in drawn.find("desc").text
    for line in drawn.iter("path"):
        assert "nan" not in line.get("d")
        assert "inf" not in line.get("d")
    assert len(str(pictures.margin(shown, forecast))) < 12_000


def test_looks_without_an_estimate_are_not_drawn():
    none = SimpleNamespace(pulls=5, gap=None, epsilon=0.1, radius=None, number=1, phase=1)
    assert [one.pulls for one in pictures.thinned([none, *looks(2)])] == [100, 200]


def test_an_interval_ends_at_the_scale():
    drawn = ElementTree.fromstring(str(pictures.interval(-9, 9, 0.5, (0, 1), 0.25, "in")))
    span = next(line for line in drawn.iter("line") if line.get("class") == "span")
    assert (span.get("x1"), span.get("x2")) == ("0.0", "100.0")


def test_numbers_are_written_for_people():
    assert number(None) == number(float("inf")) == "–"
    assert number(1234567.8) == "1,234,568"
    assert number(-0.12345) == "−0.1235"
    assert number(3.0, 12) == "3"


def test_times_are_written_for_people():
    from datetime import UTC, datetime, timedelta

    now = datetime.now(UTC)
    assert ago(now) == "now"
    assert ago(now - timedelta(minutes=5)) == "5 min ago"
    assert ago(now - timedelta(days=1, hours=20)) == "2 days ago"
    assert ago(now + timedelta(hours=24)) == "in 24 h"
