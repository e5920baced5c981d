"""Sheets of totals: whatever a spreadsheet program writes is read, and slips are named by line."""

from __future__ import annotations

import csv
import io
import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from superarm.campaign.sheets import Sheet, read_sheet
from superarm.errors import DataError

PLAIN = "id,members,reason,total\np1-0,Ann;Bo,first,1\np1-1,Cy;Dee,first,\np1-2,Ann;Cy,first,0.5\n"


def read(content: str | bytes, decimal_comma: bool = False) -> Sheet:
    data = content.encode() if isinstance(content, str) else content
    return read_sheet("results.csv", decimal_comma=decimal_comma, stream=io.BytesIO(data))


def check(sheet: Sheet) -> None:
    assert sheet.ids == ["p1-0", "p1-2"]
    assert list(sheet.totals) == [1.0, 0.5]
    assert sheet.empty == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_every_dialect_is_the_same_sheet(encoding: str, end: str, separator: str) -> None:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator=end)
    writer.writerows(csv.reader(PLAIN.splitlines()))
    check(read(text.getvalue().encode(encoding)))


def test_utf_16_either_way_round() -> None:
    for order in ("utf-16-le", "utf-16-be"):
        check(read(("\ufeff" + PLAIN).encode(order)))


def test_a_line_that_states_the_separator_is_passed_over() -> None:
    check(read("sep=;\r\n" + PLAIN.replace(",", "§").replace(";", " ").replace("§", ";")))


def test_the_order_of_columns_their_case_and_spaces_do_not_matter() -> None:
    sheet = read(" Total ; note ; ID \n 1 ; fine ; p1-0 \n0.5;;p1-2\n;;p1-1\n")
    check(sheet)


def test_blank_lines_and_empty_cells_at_the_end_are_passed_over() -> None:
    sheet = read("\n\nid,total,,\n\np1-0,1,,\n,,\n\np1-2,0.5\np1-1,\n")
    check(sheet)
    assert list(sheet.lines) == [5, 8]


def test_labels_are_read_where_they_are() -> None:
    sheet = read("id,total,site,worker\np1-0,1,north,Ann\np1-1,,,\np1-2,0.5,,Bo\n")
    check(sheet)
    assert sheet.labels == {"site": ["north", ""], "worker": ["Ann", "Bo"]}
    assert read(PLAIN).labels == {}


def test_a_decimal_comma_by_flag_only() -> None:
    assert list(read('id;total\na;1,5\nb;-0,25\nc;2\nd;"1e3"\n', True).totals) == [
        1.5,
        -0.25,
        2,
        1000,
    ]
    assert list(read('id,total\na,"1,5"\n', True).totals) == [1.5]
    with pytest.raises(DataError, match=r"line 2: '1,5' is not a finite number.*--decimal-comma"):
        read("id;total\na;1,5\n")
    for twofold in ("1.5", "1.234,5", "1,234,5"):
        with pytest.raises(DataError, match=r"line 2.*comma"):
            read(f"id;total\na;{twofold}\n", True)


WRONG = [
    ("", "no totals in it"),
    ("\n \n", "no totals in it"),
    ("id,total\n", "no totals in it"),
    ("p1-0,1\np1-1,2\n", "line 1: the header must name the columns id and total"),
    ("id|total\np1-0|1\n", "line 1: the header"),
    ("id,total,total\np1-0,1,2\n", "line 1: there is more than one column total"),
    ("id,total\np1-0,1\np1-1,x\n", "line 3: 'x' is not a finite number"),
    ("id,total\np1-0,nan\n", "line 2: 'nan' is not a finite number"),
    ("id,total\np1-0,inf\n", "line 2: 'inf'"),
    ("id,total\np1-0,1_0\n", "line 2: '1_0'"),
    (
        "id,total\np1-0,1,5\n",
        "line 2: expected 2 cells (id,total), found 3; a total with a decimal",
    ),
    ("id,total\np1-0\n", "line 2: expected 2 cells"),
    ("id,total\n,3\n", "line 2: there is no id"),
    ("id,total\n\n\np1-0,1\n,3\n", "line 5: there is no id"),
    ('id,total\np1-0,1\n"p1-1,2\n', "line 3: "),
    (
        "id,total\np1-0,1\np1-1,2\np1-0,2\n",
        "line 4: pull p1-0 has the total 2 here and 1 on line 2",
    ),
    (b"id,total\n\xff,1\n", "not a text file in UTF-8"),
    (b"PK\3\4....", "a file of a spreadsheet program; save it as CSV UTF-8"),
    (PLAIN.encode("utf-16")[:-1], "not a text file"),
]


@pytest.mark.parametrize(("content", "says"), WRONG, ids=lambda value: repr(value)[:40])
def test_a_slip_is_named_by_file_and_line(content: str | bytes, says: str) -> None:
    with pytest.raises(DataError, match="^results.csv.*" + re.escape(says)):
        read(content)


def test_the_same_total_twice_is_no_slip() -> None:
    assert len(read("id,total\np1-0,1\np1-0,1.0\n")) == 2


@pytest.mark.parametrize("path", ["absent.csv", ".", "a\0b"])
def test_a_file_that_cannot_be_read(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError):
        read_sheet(path)


CELL = st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"]), max_size=8)


@given(
    rows=st.lists(
        st.tuples(
            st.from_regex(r"p[1-9]-[0-9]{1,3}", fullmatch=True),
            CELL,
            st.none() | st.floats(allow_nan=False, allow_infinity=False),
        ),
        min_size=1,
        unique_by=lambda row: row[0],
    ),
    separator=st.sampled_from(",;\t"),
    end=st.sampled_from(["\n", "\r\n"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    comma=st.booleans(),
)
def test_what_a_spreadsheet_writes_comes_back(
    rows: list[tuple[str, str, float | None]], separator: str, end: str, encoding: str, comma: bool
) -> None:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator=end)
    writer.writerow(("members", "id", "total"))
    for id, note, total in rows:
        said = "" if total is None else repr(total)
        writer.writerow((note, id, said.replace(".", ",") if comma else said))
    sheet = read(text.getvalue().encode(encoding), comma)
    there = [(id, total) for id, _, total in rows if total is not None]
    assert list(zip(sheet.ids, sheet.totals, strict=True)) == there
    assert sheet.empty == len(rows) - len(there)


@given(st.binary(max_size=200))
def test_no_bytes_end_in_a_traceback(data: bytes) -> None:
    with suppress(DataError):
        read(data)


@given(st.text(max_size=100))
def test_no_text_under_a_header_ends_in_a_traceback(text: str) -> None:
    with suppress(DataError):
        read(f"id,total\n{text}".encode("utf-8", "replace"))
