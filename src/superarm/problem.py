"""The question: which k of these arms have the greatest total, how nearly, how surely."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from superarm._checks import bounded_real, real, shown, whole
from superarm.decision import Decision, TopK
from superarm.errors import ProblemError
from superarm.noise import Noise

Direction = Literal["maximize", "minimize"]

MOST_ARMS = 10_000_000
"""A larger number of arms is taken for a slip."""


@dataclass(frozen=True, init=False, repr=False)
class Problem:
    """Find k of n arms whose total is within `epsilon` of the best, with probability 1 - `delta`.

    Parameters
    ----------
    arms
        The arms' names, or their number n (then they are called "1" .. "n").
    k
        How many arms make a group (a super-arm), 1 <= k <= n; or a decision class that says which
        sets of arms may be chosen, such as `SpanningTrees(edges)`.
    noise
        What is known of the noise of a total; see `gaussian`, `bounded`, `labels`, `total`.
    epsilon
        How far from the best total an answer may be; 0 asks for a best group.
    delta
        How often the answer may be wrong, between 0 and 1.
    direction
        "maximize" (rewards) or "minimize" (costs, delays).
    decision
        The decision class; another way to give it, beside its own k.
    """

    arms: tuple[str, ...]
    k: int
    noise: Noise
    epsilon: float
    delta: float
    direction: Direction
    decision: Decision

    def __init__(
        self,
        arms: int | Iterable[str],
        k: int | Decision,
        noise: Noise,
        *,
        epsilon: float = 0.0,
        delta: float = 0.05,
        direction: Direction = "maximize",
        decision: Decision | None = None,
    ) -> None:
        names = _names(arms)
        if not (decision is None or isinstance(decision, Decision)):
            raise ProblemError(
                f"the decision class must be one as superarm.SpanningTrees(edges), "
                f"not {shown(decision)}"
            )
        if isinstance(k, Decision):
            decision = k
        elif decision is None or isinstance(decision, TopK):
            decision = _top_k(len(names), k)
        elif k != decision.k:
            raise ProblemError(f"the decision class says that k is {decision.k}, not {shown(k)}")
        fields = {
            "arms": names,
            "k": decision.k,
            "decision": decision,
            "noise": noise,
            "epsilon": bounded_real("epsilon", epsilon, ProblemError),
            "delta": real("delta", delta, ProblemError),
            "direction": direction,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        if self.decision.n != self.n:
            raise ProblemError(
                f"the decision class is about {self.decision.n} arms, and {self.n} are named"
            )
        if self.epsilon < 0:
            raise ProblemError(f"epsilon must be a finite number >= 0, not {self.epsilon!r}")
        if not 0 < self.delta < 1:
            raise ProblemError(
                f"delta must lie strictly between 0 and 1, not {self.delta!r} "
                "(0.05 means: wrong at most once in twenty)"
            )
        way: Any = self.direction
        if not isinstance(way, str) or way not in ("maximize", "minimize"):
            raise ProblemError(f"direction must be 'maximize' or 'minimize', not {shown(way)}")
        if self.direction == "maximize" and not self.decision.signed:
            raise ProblemError(
                "in a graph with cycles the cheapest path is sought: state direction='minimize'"
            )
        if not isinstance(self.noise, Noise):
            raise ProblemError(
                f"noise must be a noise model such as superarm.labels(), not {shown(self.noise)}"
            )

    @property
    def n(self) -> int:
        """Number of arms."""
        return len(self.arms)

    @property
    def sign(self) -> float:
        """+1 to maximise, -1 to minimise: every rule works on sign * means."""
        return 1.0 if self.direction == "maximize" else -1.0

    @cached_property
    def only(self) -> NDArray[np.int64] | None:
        """The only group, where there is no other."""
        first, second = self.decision.best_two(np.zeros(self.n))
        return first if second is None else None

    @property
    def topk(self) -> bool:
        """Whether any k of the n arms may be chosen."""
        return isinstance(self.decision, TopK)

    @cached_property
    def index(self) -> dict[str, int]:
        """The arms' indices by name."""
        return {name: i for i, name in enumerate(self.arms)}

    def with_noise(self, noise: Noise) -> Problem:
        """Return the same question about totals of another noise."""
        twin = copy(self)
        object.__setattr__(twin, "noise", noise)
        return twin

    def names(self, members: Iterable[int]) -> tuple[str, ...]:
        """Names of the arms with these indices (what fills up a short row is left out)."""
        return tuple(self.arms[i] for i in members if i >= 0)

    def to_dict(self) -> dict[str, Any]:
        """Return the question as plain data, without the names."""
        kind = {} if self.topk else {"class": type(self.decision).__name__}
        return {
            "n": self.n,
            "k": self.k,
            **kind,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "noise": str(self.noise),
            "direction": self.direction,
        }

    def __repr__(self) -> str:
        fields = self.to_dict()
        return f"Problem({', '.join(f'{name}={value!r}' for name, value in fields.items())})"


def _names(arms: int | Iterable[str]) -> tuple[str, ...]:
    given: Any = arms
    if isinstance(given, str):
        raise ProblemError(
            f"arms must be a list of names or their number, not the text {shown(given)}"
        )
    try:
        names = tuple(given)
    except TypeError:  # no list
        number = whole("the number of arms", given, ProblemError, most=MOST_ARMS)
        if number < 1:
            raise ProblemError(
                f"there are no arms: give at least one, not {shown(number)}"
            ) from None
        return tuple(str(i + 1) for i in range(number))
    if not names:
        _none()
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise ProblemError(f"an arm's name must be a text that is not empty, not {shown(name)}")
    _refuse_twins(names)
    return names


def _top_k(n: int, k: int) -> TopK:
    size = whole("k", k, ProblemError)
    if not 1 <= size <= n:
        raise ProblemError(f"k must be between 1 and the number of arms, {n}, not {shown(size)}")
    return TopK(n, size)


def _refuse_twins(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        twins = [name for name, count in Counter(names).items() if count > 1]
        more = f" and {len(twins) - 3} more" if len(twins) > 3 else ""
        raise ProblemError(f"arms must have different names; given twice: {twins[:3]}{more}")


def _none() -> tuple[str, ...]:
    raise ProblemError("there are no arms: give at least one name")
