"""Figures for Prometheus: each server has its own registry."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest


class Metrics:
    """What a server counts."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "superarm_requests",
            "Requests answered",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "superarm_request_seconds",
            "Time to answer",
            ("route",),
            buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5),
            registry=self.registry,
        )
        self.batch = Histogram(
            "superarm_commit_requests",
            "Requests that one transaction of the store served",
            buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
            registry=self.registry,
        )
        self.watching = Gauge(
            "superarm_watching", "Live pages and programs that watch", registry=self.registry
        )
        self._children: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        key = (method, route, status)
        if key not in self._children:
            if len(self._children) > 2000:  # methods are the client's choice
                return
            self._children[key] = (
                self._requests.labels(method, route, str(status)),
                self._seconds.labels(route),
            )
        counter, histogram = self._children[key]
        counter.inc()
        histogram.observe(seconds)

    def text(self) -> bytes:
        """Return everything in the form that Prometheus reads."""
        return generate_latest(self.registry)
