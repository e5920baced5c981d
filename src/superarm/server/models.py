"""The bodies of requests and answers, as the OpenAPI document describes them.

Requests are read strictly: a number is a number, and what is not known is refused, so that a slip
of the pen is seen. Limits on numbers are the library's, whose errors say what to do.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from superarm.config import LONGEST as LONGEST_LEASE

LONGEST = 200
"""Characters of a name, a worker or a site."""

Text = Annotated[str, Field(max_length=LONGEST)]
Reason = Annotated[str, Field(max_length=2_000)]
Id = Annotated[str, Field(max_length=40)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Lease = Annotated[float, Field(gt=0, le=LONGEST_LEASE, allow_inf_nan=False)]
MOST_RESULTS = 100_000
"""Results that one request may tell."""


class Sent(BaseModel):
    """What a client sends."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class Create(Sent):
    """A question, the rule that answers it, and a name for both.

    The question is stated by `arms`, `noise` and so on; or as a whole by `problem`, in the form
    that exports have it. Instead of `k`, `class` says which groups may be chosen, as --class of the
    command line does; its columns (from, to, group, posts) are lists as long as `arms`.
    """

    name: Text
    arms: list[Text] | int | None = Field(None, description="Names, or their number.")
    noise: Text | None = Field(
        None, description="As --noise of the command line: labels, gaussian:1.5, ..."
    )
    k: int | None = None
    family: Text | None = Field(None, alias="class")
    columns: dict[str, list[Text]] = Field(default_factory=dict)
    epsilon: Number = 0.0
    delta: Number = 0.05
    direction: Literal["maximize", "minimize"] = "maximize"
    problem: dict[str, Any] | None = Field(None, description="All of the above, as in an export.")
    algorithm: Text | dict[str, Any] | None = Field(
        None, description="Its name, or as in an export; by default the certified one."
    )
    seed: int | None = Field(None, ge=0, lt=2**63)


class Ask(Sent):
    """How many pulls, for whom, for how long, and without whom."""

    size: int = 1
    worker: Text = ""
    lease: Lease = 86_400.0
    without: list[Text] = Field(default_factory=list, max_length=100_000)


class Tell(Sent):
    """The total of one pull."""

    id: Id
    total: Number
    worker: Text = ""
    site: Text = ""


class OneResult(Sent):
    """The total of one pull, among others."""

    id: Id
    total: Number
    worker: Text | None = Field(None, description="If not that of all.")
    site: Text | None = Field(None, description="If not that of all.")


class TellMany(Sent):
    """Totals of many pulls: all are taken or none."""

    results: list[OneResult] = Field(max_length=MOST_RESULTS)
    worker: Text = ""
    site: Text = ""


class Extend(Sent):
    """Pulls that take longer, and for how many seconds from now on."""

    ids: list[Id] = Field(max_length=MOST_RESULTS)
    lease: Lease = 86_400.0
    worker: Text = ""


class GiveBack(Sent):
    """Pulls that will not be measured by who has them."""

    ids: list[Id] = Field(max_length=MOST_RESULTS)


class Record(Sent):
    """A total that was measured outside the plan."""

    members: list[Text] = Field(max_length=100_000)
    total: Number
    reason: Reason
    worker: Text = ""


class Amend(Sent):
    """Another total in the place of one that was told."""

    id: Id
    total: Number
    reason: Reason
    worker: Text = ""


class Void(Sent):
    """A total to take out; its pull is asked again."""

    id: Id
    reason: Reason
    because_of_value: bool = False
    worker: Text = ""


class Undo(Sent):
    """An amend or a void to take back: the last one, or that with a number."""

    number: int | None = None
    reason: Reason = ""
    worker: Text = ""


class Retire(Sent):
    """Arms that leave for good."""

    names: list[Text] = Field(max_length=100_000)
    reason: Reason
    worker: Text = ""


class PageQuery(Sent):
    """Which part of a long list."""

    model_config = ConfigDict(strict=False, extra="forbid")

    start: int = Field(0, ge=0, lt=2**62, description="How many to leave out at the beginning.")
    limit: int = Field(100, ge=1, le=1_000, description="How many to return at most.")


class TellQuery(Sent):
    """Who told the totals of a CSV, and how its numbers are written."""

    model_config = ConfigDict(strict=False, extra="forbid")

    worker: Text = ""
    site: Text = ""
    decimal_comma: bool = False


class LoadQuery(Sent):
    """Under which name a campaign is taken in, if not its own."""

    model_config = ConfigDict(strict=False, extra="forbid")

    name: Text | None = None


class HistoryQuery(PageQuery):
    """Which part of the history, and from which end."""

    newest_first: bool = False


# ---- answers -------------------------------------------------------------------------------------


class Problem(BaseModel):
    """An error (RFC 9457). `type` is urn:superarm: and the name of the error in superarm.errors."""

    type: str
    title: str
    status: int
    detail: str


class Pull(BaseModel):
    """A measurement to make."""

    id: str
    members: list[str]
    reason: str
    worker: str
    until: datetime


class Asked(BaseModel):
    """Pulls; where they are fewer than asked for, why."""

    pulls: list[Pull]
    waiting: str


class Told(BaseModel):
    """How many totals were new, and how many had been told before."""

    new: int
    repeated: int


class Count(BaseModel):
    """How many it were."""

    count: int


class Summary(BaseModel):
    """A campaign in a list."""

    model_config = ConfigDict(extra="allow")

    name: str
    told: int
    state: str


class Arm(BaseModel):
    """What is known of an arm."""

    name: str
    estimate: float | None
    low: float | None
    high: float | None
    chosen: bool
    state: str


class Verdict(BaseModel):
    """What the last look found."""

    model_config = ConfigDict(extra="allow")

    answer: list[str]
    done: bool
    certificate: dict[str, Any] | None
    reason: str
    text: str


class Status(BaseModel):
    """Where a campaign stands."""

    model_config = ConfigDict(extra="allow")

    name: str
    verdict: Verdict
    told: int
    open: int
    margin: float | None
    arms: list[Arm]


class Certificate(BaseModel):
    """The certificate, or why there is none."""

    certified: bool
    certificate: dict[str, Any] | None
    answer: list[str]
    reason: str
    text: str
    conditions: list[str]


class Diagnostics(BaseModel):
    """What all totals say against the assumptions of a certificate."""

    diagnostics: dict[str, Any] | None


class Question(BaseModel):
    """All that decides what is measured; the client makes its objects from it."""

    name: str
    problem: dict[str, Any]
    algorithm: dict[str, Any]
    seed: int
    created: datetime


class OpenPull(BaseModel):
    """A pull without a total."""

    id: str
    members: list[str]
    worker: str
    given_at: datetime | None
    until: datetime | None
    lapsed: bool
    reason: str


class Result(BaseModel):
    """A total that was told."""

    id: str
    members: list[str]
    total: float | None
    first_total: float
    told_at: datetime
    worker: str
    site: str
    state: str


class Change(BaseModel):
    """Something else that was done."""

    number: int
    at: datetime
    kind: str
    id: str | None
    total: float | None
    reason: str
    worker: str
    undone: bool
    text: str


class LookTaken(BaseModel):
    """Both sides of the stop at one look."""

    phase: int
    number: int
    pulls: int
    gap: float | None
    epsilon: float
    radius: float | None
    at: datetime


class Made(BaseModel):
    """A campaign that was made."""

    name: str
    seed: int


class Page(BaseModel):
    """A part of a list; `next` is where the following part is, if there is one."""

    next: str | None


class Campaigns(Page):
    """Campaigns by name."""

    items: list[Summary]


class History(Page):
    """Results as they were told."""

    items: list[Result]


class Changes(Page):
    """Changes in their order."""

    items: list[Change]


class Looks(Page):
    """Looks in their order."""

    items: list[LookTaken]


class Open(Page):
    """Pulls without a total."""

    items: list[OpenPull]


class Arms(Page):
    """The arms in the order of the question."""

    items: list[Arm]


class Health(BaseModel):
    """Whether the store answers."""

    status: Literal["ok"]
