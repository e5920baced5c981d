"""The server's verbs over real HTTP: answers, errors, pages of lists, files in and out."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from web import API, CREW, Running, measured, running

import superarm as sa
from superarm import errors
from superarm.campaign import Campaign

PROBLEM = "application/problem+json"


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as found:
        yield found


@pytest.fixture
def http(server: Running) -> Iterator[httpx.Client]:
    with server.http() as found:
        found.post("/campaigns", json=CREW).raise_for_status()
        yield found
        for item in found.get("/campaigns").json()["items"]:
            found.delete(f"/campaigns/{quote(item['name'])}").raise_for_status()


def problem(answer: httpx.Response, status: int, kind: str) -> str:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == PROBLEM
    said = answer.json()
    assert said["status"] == status
    assert said["type"] == f"urn:superarm:{kind}"
    assert said["title"]
    return str(said["detail"])


# ---- measuring -----------------------------------------------------------------------------------


def test_ask_and_tell(http: httpx.Client) -> None:
    asked = http.post("/campaigns/crew/ask", json={"size": 2, "worker": "Ann"}).json()
    assert asked["waiting"] == ""
    assert [len(pull["members"]) for pull in asked["pulls"]] == [2, 2]
    assert {pull["worker"] for pull in asked["pulls"]} == {"Ann"}
    first = asked["pulls"][0]["id"]
    assert http.post("/campaigns/crew/tell", json={"id": first, "total": 1}).json() == {
        "new": 1,
        "repeated": 0,
    }
    status = http.get("/campaigns/crew").json()
    assert (status["told"], status["open"]) == (1, 1)
    assert status["holders"] == {"Ann": 1}


def test_telling_again_changes_nothing_and_another_total_is_a_conflict(http: httpx.Client) -> None:
    (id,) = measured(http, pulls=1)
    again = http.post("/campaigns/crew/tell", json={"id": id, "total": 1.0})
    assert again.json() == {"new": 0, "repeated": 1}
    other = http.post("/campaigns/crew/tell", json={"id": id, "total": 2})
    assert "already" in problem(other, 409, "ConflictError")
    assert http.get("/campaigns/crew").json()["told"] == 1


def test_a_named_worker_gets_its_open_pulls_again(http: httpx.Client) -> None:
    first = http.post("/campaigns/crew/ask", json={"size": 3, "worker": "Ann"}).json()["pulls"]
    again = http.post("/campaigns/crew/ask", json={"size": 3, "worker": "Ann"}).json()["pulls"]
    assert [pull["id"] for pull in again] == [pull["id"] for pull in first]
    assert all(b["until"] > a["until"] for a, b in zip(first, again, strict=True))


def test_without_some_arms(http: httpx.Client) -> None:
    asked = http.post("/campaigns/crew/ask", json={"size": 4, "without": ["1"]}).json()
    assert len(asked["pulls"]) == 4
    assert all("1" not in pull["members"] for pull in asked["pulls"])


def test_many_are_told_all_or_none(http: httpx.Client) -> None:
    ids = [p["id"] for p in http.post("/campaigns/crew/ask", json={"size": 3}).json()["pulls"]]
    results = [{"id": id, "total": 1} for id in ids]
    wrong = [*results[:2], {"id": ids[2], "total": 7}]
    problem(http.post("/campaigns/crew/tell-many", json={"results": wrong}), 422, "TotalError")
    assert http.get("/campaigns/crew").json()["told"] == 0
    told = http.post("/campaigns/crew/tell-many", json={"results": results, "worker": "Bo"})
    assert told.json() == {"new": 3, "repeated": 0}
    rows = http.get("/campaigns/crew/history").json()["items"]
    assert {row["worker"] for row in rows} == {"Bo"}


def test_a_whole_campaign_to_its_certificate(http: httpx.Client) -> None:
    http.post("/campaigns", json={**CREW, "name": "quick", "epsilon": 1.9}).raise_for_status()
    while True:
        asked = http.post("/campaigns/quick/ask", json={"size": 50}).json()
        if not asked["pulls"] and "no more are needed" in asked["waiting"]:
            break
        for pull in asked["pulls"]:
            total = len({"1", "2"} & set(pull["members"]))
            http.post("/campaigns/quick/tell", json={"id": pull["id"], "total": total})
    found = http.get("/campaigns/quick/certificate").json()
    assert found["certified"]
    assert sorted(found["answer"]) == ["1", "2"]
    assert found["certificate"]["epsilon"] == 1.9
    looks = http.get("/campaigns/quick/looks").json()["items"]
    assert looks[-1]["gap"] + looks[-1]["epsilon"] >= looks[-1]["radius"]


# ---- putting right -------------------------------------------------------------------------------


def test_amend_void_undo_and_the_list_of_changes(http: httpx.Client) -> None:
    first, second, *_ = measured(http)
    amended = http.post(
        "/campaigns/crew/amend", json={"id": first, "total": 2, "reason": "a slip of the pen"}
    ).json()
    assert (amended["kind"], amended["total"], amended["undone"]) == ("amend", 2.0, False)
    voided = http.post("/campaigns/crew/void", json={"id": second, "reason": "wrong day"}).json()
    assert voided["kind"] == "void"
    undone = http.post("/campaigns/crew/undo", json={"reason": "it was the right day"}).json()
    assert (undone["kind"], undone["target"]) == ("undo", voided["number"])
    kinds = [item["kind"] for item in http.get("/campaigns/crew/changes").json()["items"]]
    assert kinds == ["amend", "void", "undo"]
    rows = {row["id"]: row for row in http.get("/campaigns/crew/history").json()["items"]}
    assert (rows[first]["total"], rows[first]["first_total"]) == (2.0, 1.0)
    assert rows[second]["total"] == 1.0


def test_what_is_put_right_needs_a_reason(http: httpx.Client) -> None:
    (id,) = measured(http, pulls=1)
    sent = {"id": id, "total": 2, "reason": " "}
    assert "say why" in problem(http.post("/campaigns/crew/amend", json=sent), 422, "SettingError")


def test_give_back_and_extend(http: httpx.Client) -> None:
    asked = http.post("/campaigns/crew/ask", json={"size": 2, "worker": "Ann"}).json()["pulls"]
    ids = [pull["id"] for pull in asked]
    longer = http.post("/campaigns/crew/extend", json={"ids": ids[:1], "lease": 1e6})
    assert longer.json() == {"count": 1}
    back = http.post("/campaigns/crew/give-back", json={"ids": ids[1:]})
    assert back.json() == {"count": 1}
    out = {pull["id"]: pull for pull in http.get("/campaigns/crew/open").json()["items"]}
    assert out[ids[0]]["until"] > asked[0]["until"]
    assert out[ids[1]]["until"] is None
    other = http.post("/campaigns/crew/ask", json={"worker": "Bo"}).json()["pulls"]
    assert other[0]["id"] == ids[1]


def test_record_and_retire(http: httpx.Client) -> None:
    made = http.post(
        "/campaigns/crew/record",
        json={"members": ["1", "2"], "total": 2, "reason": "was measured before"},
    )
    assert made.json()["kind"] == "outside"
    gone = http.post("/campaigns/crew/retire", json={"names": ["3"], "reason": "left the firm"})
    assert gone.json()["kind"] == "retire"
    arms = http.get("/campaigns/crew/arms").json()["items"]
    assert {arm["name"]: arm["state"] for arm in arms}["3"] == "retired"


# ---- making, listing, files ----------------------------------------------------------------------


def test_campaigns_are_listed_a_page_at_a_time(http: httpx.Client) -> None:
    for name in ("b", "c", "d"):
        http.post("/campaigns", json={**CREW, "name": name}).raise_for_status()
    first = http.get("/campaigns", params={"limit": 3})
    assert [item["name"] for item in first.json()["items"]] == ["b", "c", "crew"]
    following = first.json()["next"]
    assert first.headers["link"] == f'<{following}>; rel="next"'
    assert following.startswith(f"{API}/campaigns?")
    rest = http.get(following.removeprefix(API)).json()
    assert [item["name"] for item in rest["items"]] == ["d"]
    assert rest["next"] is None


def test_history_is_paged_from_either_end(http: httpx.Client) -> None:
    ids = measured(http, pulls=5)
    pages: list[str] = []
    path = "/campaigns/crew/history?limit=2"
    while path:
        page = http.get(path).json()
        assert len(page["items"]) <= 2
        pages += [item["id"] for item in page["items"]]
        path = (page["next"] or "").removeprefix(API)
    assert pages == ids
    newest = http.get("/campaigns/crew/history", params={"newest_first": True, "limit": 1}).json()
    assert newest["items"][0]["id"] == ids[-1]


def test_names_with_signs_of_all_kinds(http: httpx.Client) -> None:
    name = "Küche & Keller 100% #1?"
    http.post("/campaigns", json={**CREW, "name": name}).raise_for_status()
    there = f"/campaigns/{quote(name)}"
    measured(http, quote(name))
    page = http.get(f"{there}/history?limit=1").json()
    assert http.get(page["next"].removeprefix(API)).json()["items"]
    assert http.get(there).json()["name"] == name


def test_classes_of_groups_by_columns(http: httpx.Client) -> None:
    columns = {"from": ["a", "a", "b"], "to": ["b", "c", "c"]}
    sent = {
        "name": "net",
        "arms": ["ab", "ac", "bc"],
        "class": "spanning-trees",
        "columns": columns,
    }
    made = http.post("/campaigns", json={**sent, "noise": "gaussian:1", "algorithm": "icb"})
    assert made.status_code == 201, made.text
    question = http.get("/campaigns/net/question").json()
    assert question["problem"]["decision"]["class"] == "SpanningTrees"
    assert question["algorithm"]["class"] == "ICB"


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"k": 9}, "ProblemError", "k must be between"),
        ({"noise": "loud"}, "NoiseError", "loud"),
        ({"arms": None}, "ProblemError", "arms"),
        ({"arms": ["a", "a"]}, "ProblemError", "different names"),
        ({"algorithm": "best"}, "SettingError", "none of the algorithms"),
        ({"name": "a/b"}, "SettingError", "name"),
        ({"delta": "0.1"}, "SettingError", "delta"),
        ({"colour": "red"}, "SettingError", "colour"),
        ({"k": None}, "ProblemError", "which groups"),
        ({"problem": {}}, "ProblemError", "not by both"),
    ],
)
def test_what_cannot_be_asked(
    http: httpx.Client, change: dict[str, Any], kind: str, words: str
) -> None:
    sent = {**CREW, "name": "other", **change}
    assert words in problem(http.post("/campaigns", json=sent), 422, kind)


def test_a_name_is_given_once(http: httpx.Client) -> None:
    problem(http.post("/campaigns", json=CREW), 409, "CampaignError")


def test_export_and_import(http: httpx.Client) -> None:
    ids = measured(http)
    exported = http.get("/campaigns/crew/export")
    assert "filename*=UTF-8''crew.json" in exported.headers["content-disposition"]
    sent = {"content": exported.content, "headers": {"content-type": "application/json"}}
    problem(http.post("/import", **sent), 409, "CampaignError")
    made = http.post("/import", params={"name": "again"}, **sent)
    assert made.status_code == 201, made.text
    rows = http.get("/campaigns/again/history").json()["items"]
    assert [row["id"] for row in rows] == ids
    broken = {**sent, "content": exported.content[:-20]}
    answer = http.post("/import", params={"name": "third"}, **broken)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == PROBLEM


def test_history_as_csv(http: httpx.Client) -> None:
    ids = measured(http)
    asked = http.post("/campaigns/crew/ask", json={"worker": "=cmd()"}).json()["pulls"]
    told = {"id": asked[0]["id"], "total": 1, "worker": "=cmd()"}
    http.post("/campaigns/crew/tell", json=told).raise_for_status()
    answer = http.get("/campaigns/crew/history.csv")
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["id"] for row in rows] == [*ids, asked[0]["id"]]
    assert all(len(row["members"].split(";")) == 2 for row in rows)
    assert rows[-1]["worker"] == "'=cmd()"  # no formula for a spreadsheet


def test_totals_as_csv(http: httpx.Client) -> None:
    ids = [p["id"] for p in http.post("/campaigns/crew/ask", json={"size": 3}).json()["pulls"]]
    sent = "id,total\n" + "".join(f"{id},1\n" for id in ids[:2]) + f"{ids[2]},\n"
    headers = {"content-type": "text/csv"}
    told = http.post("/campaigns/crew/tell.csv?worker=Ann&site=east", content=sent, headers=headers)
    assert told.json() == {"new": 2, "repeated": 0}
    rows = http.get("/campaigns/crew/history").json()["items"]
    assert {(row["worker"], row["site"]) for row in rows} == {("Ann", "east")}
    assert "line 2" in problem(
        http.post("/campaigns/crew/tell.csv", content="id,total\nx,one\n", headers=headers),
        422,
        "DataError",
    )


def test_delete(http: httpx.Client) -> None:
    http.post("/campaigns", json={**CREW, "name": "gone"}).raise_for_status()
    measured(http, "gone")
    assert http.delete("/campaigns/gone").status_code == 204
    problem(http.get("/campaigns/gone"), 404, "CampaignError")
    problem(http.post("/campaigns/gone/ask", json={}), 404, "CampaignError")
    http.post("/campaigns", json={**CREW, "name": "gone"}).raise_for_status()
    assert http.get("/campaigns/gone").json()["told"] == 0
    measured(http, "gone", 1)
    assert http.get("/campaigns/gone").json()["told"] == 1


@pytest.mark.parametrize(
    ("verb", "sent"),
    [
        ("ask", {}),
        ("ask", {"without": ["1"]}),
        ("give-back", {"ids": ["p1-0"]}),
        ("record", {"members": ["1", "2"], "total": 1, "reason": "by the way"}),
    ],
)
def test_a_campaign_that_others_made_anew(
    http: httpx.Client, server: Running, verb: str, sent: dict[str, Any]
) -> None:
    """Everything is done to the campaign that has the name now."""
    http.post("/campaigns/crew/ask", json={"size": 4}).raise_for_status()
    http.post("/campaigns/crew/record", json={**RECORD, "reason": "before"}).raise_for_status()
    old = Campaign.open("crew", store=server.store)
    problem = old.problem
    old.delete()
    made = Campaign.create("crew", problem, store=server.store, rng=2)
    made.ask(1)
    answer = http.post(f"/campaigns/crew/{verb}", json=sent)
    assert answer.status_code == 200, answer.text
    assert http.get("/campaigns/crew/question").json()["seed"] == 2
    changes = http.get("/campaigns/crew/changes").json()["items"]
    assert [change["reason"] for change in changes] == [change.reason for change in made.changes()]
    if verb == "give-back":
        assert answer.json() == {"count": 1}
    assert http.delete("/campaigns/crew").status_code == 204
    assert http.get("/campaigns").json()["items"] == []


RECORD = {"members": ["1", "2"], "total": 1}


# ---- errors --------------------------------------------------------------------------------------


def test_every_error_of_ours_crosses_the_wire_as_itself() -> None:
    from superarm.server.failures import body_of, error_from, refused

    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, errors.SuperarmError):
            sent = json.loads(body_of(refused(kind("because"))))
            back = error_from(sent["type"], sent["detail"])
            assert type(back) is kind
            assert str(back) == "because"
    assert error_from("about:blank", "") is None
    assert error_from("urn:superarm:ValueError", "") is None


@pytest.mark.parametrize("body", ["", "{", "[]", "null", '{"id": "p1-0"}', '{"id": 1, "total": 1}'])
def test_a_body_that_cannot_be_read(http: httpx.Client, body: str) -> None:
    headers = {"content-type": "application/json"}
    answer = http.post("/campaigns/crew/tell", content=body, headers=headers)
    problem(answer, 422, "SettingError")


@pytest.mark.parametrize("total", ["1", True, None, "NaN", 1e300, 0.5, -1, 7])
def test_totals_that_cannot_be(http: httpx.Client, total: Any) -> None:
    asked = http.post("/campaigns/crew/ask", json={}).json()["pulls"]
    answer = http.post("/campaigns/crew/tell", json={"id": asked[0]["id"], "total": total})
    assert answer.status_code == 422, answer.text


def test_no_number_is_no_total_in_json_either(http: httpx.Client) -> None:
    asked = http.post("/campaigns/crew/ask", json={}).json()["pulls"]
    for word in ("NaN", "Infinity", "-Infinity", "1e999"):
        content = f'{{"id": "{asked[0]["id"]}", "total": {word}}}'
        headers = {"content-type": "application/json"}
        answer = http.post("/campaigns/crew/tell", content=content, headers=headers)
        assert answer.status_code == 422, (word, answer.text)


def test_unknown_pulls_campaigns_and_routes(http: httpx.Client, server: Running) -> None:
    sent = {"id": "p1-99999", "total": 1}
    problem(http.post("/campaigns/crew/tell", json=sent), 404, "PullError")
    problem(http.post("/campaigns/nix/tell", json=sent), 404, "CampaignError")
    nowhere = http.get("/nowhere")
    assert nowhere.status_code == 404
    assert nowhere.json()["type"] == "about:blank"
    other = http.put("/campaigns/crew")
    assert other.status_code == 405
    assert other.headers["content-type"] == PROBLEM
    assert other.headers["allow"]


def test_another_kind_of_body_is_refused(http: httpx.Client) -> None:
    sent = {"id": "p1-0", "total": "1"}
    assert http.post("/campaigns/crew/tell", data=sent).status_code == 415
    assert http.post("/campaigns/crew/tell.csv", json=sent).status_code == 415
    assert http.post("/import", data=sent).status_code == 415


def test_queries_that_make_no_sense(http: httpx.Client) -> None:
    for query in ("limit=0", "limit=1001", "start=-1", "limit=x", "size=3", "limit=1&limit=2"):
        problem(http.get(f"/campaigns/crew/history?{query}"), 422, "SettingError")


def test_trouble_with_the_store_is_503_with_when_to_come_again(tmp_path: Any) -> None:
    store = sa.Store.open(tmp_path / "store.db")
    with running(store) as server, server.http() as http:
        http.post("/campaigns", json=CREW).raise_for_status()
        with store.engine.connect() as connection:
            connection.exec_driver_sql("ALTER TABLE open_pull RENAME TO elsewhere")
            connection.commit()
        answer = http.post("/campaigns/crew/ask", json={})
        problem(answer, 503, "StoreError")
        assert answer.headers["retry-after"] == "1"
        with store.engine.connect() as connection:
            connection.exec_driver_sql("ALTER TABLE elsewhere RENAME TO open_pull")
            connection.commit()
        assert http.post("/campaigns/crew/ask", json={}).json()["pulls"]
    store.close()


# ---- the server itself ---------------------------------------------------------------------------


def test_health_and_metrics(http: httpx.Client, server: Running) -> None:
    measured(http)
    assert httpx.get(f"{server.url}/healthz").json() == {"status": "ok"}
    text = httpx.get(f"{server.url}/metrics").text
    line = 'superarm_requests_total{method="POST",route="/api/v1/campaigns/{name}/tell"'
    assert line in text
    assert "superarm_commit_requests_bucket" in text
    assert "crew" not in text  # no names of campaigns


def test_the_documentation_page_needs_nothing_from_elsewhere(server: Running) -> None:
    page = httpx.get(f"{server.url}/docs").text
    assert "//" not in page.replace("<!doctype html>", "")
    for file in ("swagger-ui.css", "swagger-ui-bundle.js", "start.js", "favicon.png"):
        assert f'"docs/{file}"' in page
        assert httpx.get(f"{server.url}/docs/{file}").status_code == 200
    assert httpx.get(f"{server.url}/docs/other.js").status_code == 404
    found = httpx.get(f"{server.url}/openapi.json").json()
    assert found["openapi"].startswith("3.1")
