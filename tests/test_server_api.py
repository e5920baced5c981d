"""The whole OpenAPI document under fire, files of totals of all kinds, and the reference."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance, unsupported_method
from web import API, CREW, Running, running

from superarm.errors import DataError, SuperarmError
from superarm.server.changing import sheet_of
from superarm.server.openapi import document
from superarm.server.routes import RULES, Rule

ROOT = Path(__file__).resolve().parents[1]
FEW = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
NOT_HERE = [
    positive_data_acceptance,  # a name that no campaign has is of the right kind, and refused
    unsupported_method,  # TRACE does not get as far as a route
]


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as found, found.http() as http:
        http.post("/campaigns", json=CREW).raise_for_status()
        yield found


DESCRIBED = schemathesis.openapi.from_dict(document(RULES, False))
OPERATIONS = {
    found.ok().label: found.ok()
    for found in DESCRIBED.get_all_operations()
    if not found.ok().path.endswith("/events")  # a stream without an end
}


CASES = [
    pytest.param(name, mode, id=f"{name} {mode.value}")
    for name, operation in OPERATIONS.items()
    for mode in GenerationMode
    if mode is GenerationMode.POSITIVE or list(operation.iter_parameters()) or operation.body
]


@pytest.mark.parametrize(("name", "mode"), CASES)
@given(data=st.data())
@FEW
def test_every_route_keeps_to_its_description(
    server: Running, name: str, mode: GenerationMode, data: Any
) -> None:
    try:
        case = data.draw(OPERATIONS[name].as_strategy(generation_mode=mode))
    except Unsatisfiable:
        return  # there is nothing wrong to send
    if "name" in case.path_parameters and case.method != "DELETE":
        case.path_parameters["name"] = "crew"  # else there would only be 404s
        case._meta = None  # what was wrong with the name is right now
    case.call_and_validate(base_url=server.url, excluded_checks=NOT_HERE, timeout=30)


def test_the_document_has_every_listed_route(server: Running) -> None:
    found = httpx.get(f"{server.url}/openapi.json").json()
    there = {
        (method.upper(), path) for path, methods in found["paths"].items() for method in methods
    }
    assert there == {(rule.method, rule.path) for rule in RULES if rule.listed}
    assert "securitySchemes" not in found["components"]


def test_with_tokens_it_says_what_each_needs() -> None:
    found = document(RULES, True)
    for rule in RULES:
        if rule.listed:
            operation = found["paths"][rule.path][rule.method.lower()]
            open_to_all = rule.role.word == "open"
            assert operation["security"] == ([] if open_to_all else [{"token": []}])
            assert open_to_all or f"role {rule.role.word}" in operation["description"]


def test_names_of_operations_differ() -> None:
    names = [rule.endpoint.__name__ for rule in RULES]
    assert len(names) == len(set(names))
    assert all(rule.purpose.endswith((".", ";")) or ":" in rule.purpose for rule in RULES)


# ---- totals as CSV -------------------------------------------------------------------------------


@given(st.binary(max_size=300))
@FEW
def test_any_bytes_are_a_table_or_an_error_of_ours(content: bytes) -> None:
    for sent in (content, b"id,total\n" + content):
        said = ""
        try:
            sheet = sheet_of(sent)
        except SuperarmError as error:
            said = str(error)
        else:
            assert len(sheet.ids) == len(sheet.totals)
        assert "/tmp" not in said


@given(
    st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), max_size=6),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1"]),
)
@FEW
def test_files_of_all_kinds_are_answered(
    server: Running, rows: list[tuple[str, str]], sign: str, end: str, encoding: str
) -> None:
    text = io.StringIO()
    text.write(f"id{sign}total{end}")
    for id, total in rows:
        text.write(f'"{id}"{sign}{total}{end}')
    content = text.getvalue().encode(encoding, "replace")
    answer = httpx.post(
        f"{server.url}{API}/campaigns/crew/tell.csv",
        content=content,
        headers={"content-type": "text/csv"},
        verify=False,
        timeout=30,
    )
    assert answer.status_code in (404, 409, 422), answer.text
    assert answer.headers["content-type"] == "application/problem+json"


def test_files_that_spreadsheets_write() -> None:
    expected = [("p1-0", 1.0), ("p1-1", 2.5)]
    for text in (
        "id,total\np1-0,1\np1-1,2.5\n",
        "\ufeffid,total\r\np1-0,1\r\np1-1,2.5\r\n",
        'ID,Total\n"p1-0","1"\n\n" p1-1 ", 2.5 \n',
        "id,total,note\np1-0,1,fine\np1-1,2.5,\n",
        "id;total\np1-0;1\np1-1;2.5\n",
    ):
        sheet = sheet_of(text.encode())
        assert list(zip(sheet.ids, sheet.totals, strict=True)) == expected, text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no totals"),
        ("id,total\n", "no totals"),
        ("pull,total\np1-0,1\n", "header"),
        ("id,total\np1-0,1,2\n", "line 2: expected"),
        ("id,total\np1-0,nan\n", "line 2: 'nan' is not a finite number"),
        ("id,total\np1-0,1_000\n", "line 2"),
        ('id,total\n"p1-0,1\n', "line 2"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_line(text: str, words: str) -> None:
    with pytest.raises(DataError, match=re.escape(words)):
        sheet_of(text.encode())


# ---- documentation -------------------------------------------------------------------------------

REFERENCE = ROOT / "docs" / "reference" / "http.md"


def line_of(rule: Rule) -> str:
    return f"| `{rule.method} {rule.path}` | {rule.role.word} | {rule.purpose} |"


def test_the_reference_has_every_route_as_it_is() -> None:
    lines = REFERENCE.read_text(encoding="utf-8").splitlines()
    routes = [line for line in lines if re.match(r"\| `(GET|POST|DELETE|PUT|PATCH) /", line)]
    assert sorted(routes) == sorted(line_of(rule) for rule in RULES if rule.listed)


def test_the_reference_has_every_part_of_what_is_sent() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    for rule in RULES:
        for model in (rule.body, rule.query):
            for name, part in (model.model_fields if model else {}).items():
                assert f"`{part.alias or name}`" in text, (rule.path, name)


def test_a_server_of_its_own_for_each_test_is_closed() -> None:
    with ExitStack() as stack:
        first = stack.enter_context(running())
        assert httpx.get(f"{first.url}/healthz").json() == {"status": "ok"}
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{first.url}/healthz")
