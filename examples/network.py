"""Which way through a network is the fastest, when only end-to-end delays can be measured?"""

from __future__ import annotations

import superarm as sa
from superarm.cli.output import as_table

STORY = """\
A packet goes from the sensor to the archive through routers A to H. Nobody sees how long a single
link takes: all that can be measured is how long a packet took along a whole path, and that varies
by some milliseconds from packet to packet. Which path is the fastest?

(The delays are simulated from each link's mean delay, which superarm is not told.)
"""
LINKS = {
    ("sensor", "A"): 3.1,
    ("sensor", "B"): 2.2,
    ("A", "B"): 1.0,
    ("A", "C"): 4.0,
    ("B", "D"): 5.5,
    ("B", "E"): 3.9,
    ("C", "D"): 1.2,
    ("C", "F"): 2.6,
    ("D", "E"): 0.8,
    ("D", "G"): 3.0,
    ("E", "H"): 6.4,
    ("F", "G"): 1.1,
    ("F", "archive"): 5.0,
    ("G", "H"): 0.9,
    ("G", "archive"): 4.3,
    ("H", "archive"): 1.8,
}
"""Mean delays in milliseconds; a link works both ways."""


def main() -> None:
    print(STORY, flush=True)
    paths = sa.Paths(LINKS, "sensor", "archive", directed=False)
    names = [f"{u}-{v}" for u, v in LINKS]
    noise = sa.gaussian(2.0)
    problem = sa.Problem(names, paths, noise, epsilon=1.0, direction="minimize")
    delays = sa.environment(list(LINKS.values()), noise)
    rows = []
    for rule in (sa.ICB(), sa.SAQM(), sa.Exhaustive()):
        run = sa.simulate(problem, rule, delays, rng=4)
        certified = "yes" if run.verdict.certified else run.verdict.reason
        rows.append((rule.name, f"{run.pulls:,}", f"{run.regret:.1f}", certified))
    print(as_table(("rule", "packets", "ms behind the fastest", "certified"), rows))
    print(f"\nThe path: {way(run.verdict.answer)}")
    print(
        f"It takes {sum(LINKS[link] for link in chosen(run.verdict.answer)):.1f} ms; "
        f"{len(paths.enumerate())} paths were possible, of "
        f"{paths.least_size} to {paths.enumerate().shape[1]} links."
    )


def chosen(answer: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the links of an answer."""
    return [link for link in LINKS if "-".join(link) in answer]


def way(answer: tuple[str, ...]) -> str:
    """Write a path as the nodes that it passes."""
    links, node, passed = chosen(answer), "sensor", ["sensor"]
    while node != "archive":
        link = next(link for link in links if node in link)
        links.remove(link)
        node = link[0] if link[1] == node else link[1]
        passed.append(node)
    return " > ".join(passed)


if __name__ == "__main__":
    main()
