"""The certificate as a page that prints: what is certified, how surely, on what it rests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from superarm.noise import Bounded, Gaussian, Labels, Noise, Total
from superarm.server.pages_campaign import frame
from superarm.server.pages_frame import api_of, desk_of, page
from superarm.verdict import Verdict, digits_up, percent_down

if TYPE_CHECKING:
    from superarm.campaign import Campaign
    from superarm.problem import Problem


async def certificate(request: Request) -> Response:
    """The certificate, or why there is none; on demand it is worked out again."""
    name = request.path_params["name"]
    again = request.query_params.get("verify") == "1"

    def work(c: Campaign) -> dict[str, Any]:
        return {
            "problem": c.problem,
            "status": c.status(),
            "created": c.created,
            "verified": c.verify() if again else None,
        }

    found = await desk_of(request).read(name, work)
    status, problem, verified = found["status"], found["problem"], found["verified"]
    verdict = status.verdict
    return page(
        request,
        "certificate.html",
        **frame(request, name, found, "certificate"),
        status=status,
        c=verdict.certificate,
        claim=claim(verdict, problem),
        noise_words=noise_in_words(problem.noise),
        created=found["created"],
        file=f"{quote(name, safe='')}.json",
        export=f"{api_of(request, name)}/export",
        checked=verified,
    )


def claim(verdict: Verdict, problem: Problem) -> str:
    """Say in one sentence what is certified."""
    c = verdict.certificate
    if c is None:
        return ""
    word = "least" if problem.direction == "minimize" else "greatest"
    what = f"has the {word} mean total of all groups of {problem.k:,}"
    if c.epsilon > 0:
        near = digits_up(c.epsilon)
        what = f"has a mean total within {near:g} of the {word} of all groups of {problem.k:,}"
    more = ""
    if verdict.confidence is not None:
        more = f" Within {problem.epsilon:g}: {percent_down(verdict.confidence)} sure."
    return f"With probability at least {c.confidence}, this group {what}.{more}"


def noise_in_words(noise: Noise) -> str:
    """Say what a noise model states."""
    match noise:
        case Labels(shared=True):
            return "each member's part is 0 or 1, and all have the same task"
        case Labels():
            return "each member's part is 0 or 1, independently of the others"
        case Bounded(bound, independent):
            own = ", independently of the others" if independent else ""
            return f"each member's part is between {-bound:g} and {bound:g}{own}"
        case Total(low, high):
            return f"the total is between {low:g} and {high:g}"
        case Gaussian(scale):
            return f"the total's error is normal with standard deviation {scale:g}"
    return str(noise)
