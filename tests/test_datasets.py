"""The crowd quizzes against their published summary, and files that users may hand in."""

from __future__ import annotations

import csv
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner, Result

from superarm import DataError, answers
from superarm.answers import FOLDERS
from superarm.cli import main
from superarm.datasets import QUIZZES, Means, crowd, read_means

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "scripts" / "crowd_accuracies.py"
RAW = Path(os.environ.get("SUPERARM_CROWD") or ROOT.parent / "shared" / "data" / "crowd")
needs_raw = pytest.mark.skipif(
    not RAW.is_dir(),
    reason="the raw answers do not come with superarm; name their folder in SUPERARM_CROWD",
)

# quiz, questions, workers, average, best, gap between rank 10 and 11 (data/crowd/README.md)
TABLE = [
    ("IT", 25, 36, 0.537, 0.840, 0.0),
    ("Medicine", 36, 45, 0.475, 0.917, 0.0),
    ("Chinese", 24, 50, 0.374, 0.792, 0.0),
    ("Pokemon", 20, 55, 0.277, 1.000, 0.05),
    ("English", 30, 63, 0.256, 0.700, 0.0),
    ("Science", 20, 111, 0.295, 0.850, 0.0),
]


def test_the_table_covers_every_quiz() -> None:
    assert [row[0] for row in TABLE] == list(QUIZZES)


@pytest.mark.parametrize(("quiz", "questions", "workers", "average", "best", "gap"), TABLE)
def test_quiz_has_the_published_figures(
    quiz: str, questions: int, workers: int, average: float, best: float, gap: float
) -> None:
    given = crowd(quiz)
    assert given.arms == tuple(f"worker{i}" for i in range(1, workers + 1))
    assert len(given.means) == workers
    assert f"{sum(given.means) / workers:.3f}" == f"{average:.3f}"
    assert f"{max(given.means):.3f}" == f"{best:.3f}"
    ranked = sorted(given.means, reverse=True)
    assert ranked[9] - ranked[10] == pytest.approx(gap, abs=1e-12)
    # Each share is the very float that dividing whole numbers gives.
    assert all(mean == round(mean * questions) / questions for mean in given.means)


@pytest.mark.parametrize("quiz", QUIZZES)
def test_names_of_quizzes_ignore_case(quiz: str) -> None:
    assert crowd(quiz.lower()) == crowd(quiz.upper()) == crowd(quiz)


@pytest.mark.parametrize("name", ["Pokémon", "pokémon", "POKÉMON"])
def test_pokemon_may_have_its_accent(name: str) -> None:
    assert crowd(name) == crowd("Pokemon")


@pytest.mark.parametrize("name", ["", "ITMANAGE", "IT ", "../it"])
def test_unknown_quiz_is_answered_by_the_known_ones(name: str) -> None:
    with pytest.raises(DataError) as caught:
        crowd(name)
    assert repr(name) in str(caught.value)
    assert all(quiz in str(caught.value) for quiz in QUIZZES)


def write(folder: Path, content: str | bytes) -> Path:
    path = folder / "means.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


GOOD = Means(("Ann", "Bo"), (0.5, -2.0))


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("arm,mean\nAnn,0.5\nBo,-2\n", id="plain"),
        pytest.param("arm,mean\nAnn,0.5\nBo,-2", id="no newline at the end"),
        pytest.param(b"\xef\xbb\xbfarm,mean\nAnn,0.5\nBo,-2\n", id="BOM"),
        pytest.param("arm,mean\r\nAnn,0.5\r\nBo,-2\r\n", id="CRLF"),
        pytest.param("\n\narm,mean\n\nAnn,0.5\n  \n,\nBo,-2\n\n", id="blank lines"),
        pytest.param(" Arm , MEAN \n Ann , 5e-1 \nBo,-2.0\n", id="spaces, capitals, exponent"),
        pytest.param('"arm","mean"\n"Ann","0.5"\n"Bo","-2"\n', id="quoted"),
    ],
)
def test_read_means_accepts(tmp_path: Path, content: str | bytes) -> None:
    path = write(tmp_path, content)
    assert read_means(path) == GOOD
    assert read_means(str(path)) == GOOD


def test_names_may_hold_commas_quotes_and_any_letters(tmp_path: Path) -> None:
    path = write(tmp_path, 'arm,mean\n"Lee, ""Al""",1\nZoë 李,0\n')
    assert read_means(path) == Means(('Lee, "Al"', "Zoë 李"), (1.0, 0.0))


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        pytest.param("name,score\nAnn,1\n", 1, "header must be arm,mean", id="wrong header"),
        pytest.param("Ann,1\nBo,2\n", 1, "header must be arm,mean", id="no header"),
        pytest.param("arm;mean\nAnn;1\n", 1, "header must be arm,mean", id="semicolons"),
        pytest.param("\n\nmean,arm\n1,Ann\n", 3, "header must be arm,mean", id="columns swapped"),
        pytest.param("arm,mean\nAnn,1\nBo,2\n Ann,3\n", 4, "'Ann' is on line 2 too", id="twice"),
        pytest.param("arm,mean\nAnn,1\nBo,high\n", 3, "'high' is not a finite number", id="word"),
        pytest.param("arm,mean\nAnn,\n", 2, "'' is not a finite number", id="no number"),
        pytest.param("arm,mean\nAnn,50%\n", 2, "'50%' is not a finite number", id="percent"),
        pytest.param("arm,mean\nAnn,NaN\n", 2, "'NaN' is not a finite number", id="NaN"),
        pytest.param("arm,mean\nAnn,inf\n", 2, "'inf' is not a finite number", id="inf"),
        pytest.param("arm,mean\nAnn,-inf\n", 2, "'-inf' is not a finite number", id="-inf"),
        pytest.param("arm,mean\nAnn,1e999\n", 2, "'1e999' is not a finite number", id="overflow"),
        pytest.param("arm,mean\nAnn,1\n\nBo,0,5\n", 4, "found 3 cells", id="too many cells"),
        pytest.param("arm,mean\r\nAnn\r\n", 2, "found 1 cells", id="too few cells"),
        pytest.param("arm,mean\n ,1\n", 2, "the arm has no name", id="empty name"),
        pytest.param('arm,mean\nAnn,1\n"Bo,2\n', 3, "", id="quote not closed"),
        pytest.param('arm,mean\n"An"n,1\nBo,2\n', 2, "", id="text after a quote"),
    ],
)
def test_read_means_names_file_and_line(tmp_path: Path, content: str, line: int, says: str) -> None:
    path = write(tmp_path, content)
    with pytest.raises(DataError) as caught:
        read_means(path)
    message = str(caught.value)
    assert message.startswith(f"{path}, line {line}: ")
    assert says in message


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param("", "no arms in it", id="empty"),
        pytest.param(b"\xef\xbb\xbf", "no arms in it", id="BOM only"),
        pytest.param("\n \n,\n", "no arms in it", id="blank"),
        pytest.param("arm,mean\n", "no arms in it", id="header only"),
        pytest.param(b"arm,mean\nJos\xe9,1\n", "UTF-8", id="Latin-1"),
        pytest.param("arm,mean\nAnn,1\n".encode("utf-16"), "UTF-8", id="UTF-16"),
    ],
)
def test_read_means_names_the_file_where_no_line_is_to_blame(
    tmp_path: Path, content: str | bytes, says: str
) -> None:
    path = write(tmp_path, content)
    with pytest.raises(DataError) as caught:
        read_means(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert says in str(caught.value)


@pytest.mark.parametrize("where", ["missing.csv", "missing/means.csv", "."])
def test_read_means_says_why_a_file_cannot_be_read(tmp_path: Path, where: str) -> None:
    path = tmp_path / where
    with pytest.raises(DataError) as caught:
        read_means(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert len(message) > len(f"{path}: ")


def test_an_error_about_data_is_a_value_error_without_a_chain(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="line 2") as caught:
        read_means(write(tmp_path, 'arm,mean\n"An"n,1\n'))
    assert caught.value.__suppress_context__


def run_script(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def raw_folder(folder: Path, wrong: int = 0) -> Path:
    """Write raw answers that give the shares that are shipped, but for some of IT's worker1."""
    for quiz, questions, *_ in TABLE:
        given = crowd(quiz)
        right = [round(mean * questions) for mean in given.means]
        right[0] -= wrong if quiz == "IT" else 0
        place = folder / {"IT": "ITMANAGE"}.get(quiz, quiz.upper())
        place.mkdir()
        with open(place / "answer.csv", "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["question_id", *given.arms])
            for q in reversed(range(questions)):  # questions are matched by name, not by place
                rows.writerow([q, *("A" if q < share else "B" for share in right)])
        truth = "".join(f"{q},A\n" for q in range(questions))
        (place / "truth.csv").write_text(f"question_id,truth\n{truth}")
    return folder


def test_the_script_recomputes_the_shipped_shares(tmp_path: Path) -> None:
    result = run_script(raw_folder(tmp_path), "--check")
    assert (result.returncode, result.stderr) == (0, "")


def test_the_script_names_the_first_difference(tmp_path: Path) -> None:
    result = run_script(raw_folder(tmp_path, wrong=1), "--check")
    assert result.returncode == 1
    assert "it.csv, line 2: 'worker1,0.84', computed 'worker1,0.8'" in result.stderr


@needs_raw
def test_shipped_shares_are_those_of_the_raw_answers() -> None:
    result = run_script(RAW, "--check")
    assert (result.returncode, result.stderr) == (0, "")


@needs_raw
def test_the_published_numbers_of_questions_are_those_of_the_raw_answers() -> None:
    for quiz, questions, *_ in TABLE:
        folder = RAW / {"IT": "ITMANAGE"}.get(quiz, quiz.upper())
        assert len((folder / "truth.csv").read_text().split()) == questions + 1


# ---- fetching raw answers, from a server on this machine ----------------------------------------


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Published]:
    """A server with made-up answers under the published paths, and their hashes as the known."""
    (tmp_path / "site").mkdir()
    site = raw_folder(tmp_path / "site")
    files = [f"{name}/{file}.csv" for name in FOLDERS.values() for file in ("answer", "truth")]
    hashes = {file: hashlib.sha256((site / file).read_bytes()).hexdigest() for file in files}
    monkeypatch.setattr(answers, "HASHES", hashes)
    monkeypatch.setattr(answers, "RENAMED", {})
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            asked.append(self.path)

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(site)))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setattr(answers, "SOURCE", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield Published(site, asked)
    server.shutdown()
    server.server_close()
    thread.join()


@dataclass(frozen=True)
class Published:
    """Where the server's files are, and what was asked of it."""

    site: Path
    asked: list[str]


def fetch(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["datasets", "fetch", *map(str, words)])


def test_answers_are_fetched_once_and_listed_as_here(
    tmp_path: Path, published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "kept"
    monkeypatch.setenv("SUPERARM_CROWD", str(place))
    for _ in range(2):
        result = fetch("it", "Pokémon")
        assert (result.exit_code, result.stderr) == (0, "")
        assert result.stdout == f"IT: {place / 'ITMANAGE'}\nPokemon: {place / 'POKEMON'}\n"
    quizzes = ("ITMANAGE", "POKEMON")
    assert published.asked == [f"/{q}/{f}.csv" for q in quizzes for f in ("answer", "truth")]
    listed = CliRunner().invoke(main, ["datasets", "list", "--format", "csv"]).stdout
    there = {row["quiz"]: row["answers"] for row in csv.DictReader(listed.splitlines())}
    assert {quiz for quiz, here in there.items() if here == "True"} == {"IT", "Pokemon"}
    found = answers.quiz_answers("IT")
    assert found.workers == crowd("IT").arms
    assert found.right.mean(axis=0) == pytest.approx(crowd("IT").means)


def test_all_quizzes_are_fetched_if_none_is_named(tmp_path: Path, published: Published) -> None:
    result = fetch("--to", tmp_path / "kept")
    assert result.exit_code == 0, result.stderr
    assert [line.partition(":")[0] for line in result.stdout.splitlines()] == list(QUIZZES)
    assert len(published.asked) == 12


def test_answers_are_copied_from_a_folder_without_asking_the_network(
    tmp_path: Path, published: Published
) -> None:
    result = fetch("IT", "--from", published.site, "--to", tmp_path / "kept")
    assert result.exit_code == 0, result.stderr
    assert published.asked == []
    for file in ("answer.csv", "truth.csv"):
        copy = tmp_path / "kept" / "ITMANAGE" / file
        assert copy.read_bytes() == (published.site / "ITMANAGE" / file).read_bytes()


def test_what_is_not_the_published_file_is_refused_and_not_kept(
    tmp_path: Path, published: Published
) -> None:
    with open(published.site / "ITMANAGE" / "answer.csv", "a") as file:
        file.write("\n")
    result = fetch("IT", "--to", tmp_path / "kept")
    assert result.exit_code == 2
    assert "ITMANAGE/answer.csv is not the file that was published" in result.stderr
    assert "Traceback" not in result.output
    assert list((tmp_path / "kept" / "ITMANAGE").iterdir()) == []


def test_what_a_server_does_not_have_is_one_clear_error(
    tmp_path: Path, published: Published
) -> None:
    (published.site / "SCIENCE" / "truth.csv").unlink()
    result = fetch("Science", "--to", tmp_path / "kept")
    assert result.exit_code == 2
    assert "SCIENCE/truth.csv cannot be fetched (HTTPError)" in result.stderr
    assert "--from" in result.stderr


@pytest.mark.parametrize("copied", [False, True])
def test_a_place_that_cannot_keep_answers_is_named(
    tmp_path: Path, published: Published, copied: bool
) -> None:
    (tmp_path / "kept").write_text("a file")
    source = ("--from", published.site) if copied else ()
    result = fetch("IT", "--to", tmp_path / "kept", *source)
    assert result.exit_code == 2
    assert f"{tmp_path / 'kept'}: answers cannot be kept there" in result.stderr
    assert published.asked == []


def test_an_unknown_quiz_is_refused_before_any_is_fetched(
    tmp_path: Path, published: Published
) -> None:
    result = fetch("IT", "chess", "--to", tmp_path / "kept")
    assert result.exit_code == 2
    assert "quiz 'chess' is not one of IT" in result.stderr
    assert published.asked == []


def test_without_pooch_the_way_to_get_it_is_said(
    tmp_path: Path, published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    result = fetch("IT", "--to", tmp_path / "kept")
    assert result.exit_code == 2
    assert 'pip install "superarm[study]"' in result.stderr
    assert fetch("IT", "--from", published.site, "--to", tmp_path / "kept").exit_code == 0


def test_shares_are_there_without_any_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUPERARM_CROWD", str(tmp_path / "nothing"))
    result = CliRunner().invoke(main, ["datasets", "show", "IT", "--format", "csv"])
    assert result.exit_code == 0
    path = tmp_path / "it.csv"
    path.write_text(result.stdout)
    assert read_means(path) == crowd("IT")
