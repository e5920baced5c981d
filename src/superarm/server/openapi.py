"""The OpenAPI document, from the table of routes."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from superarm.server import models
from superarm.server.access import Role
from superarm.server.failures import MEDIA_TYPE
from superarm.server.routes import CSV, Rule

_WHY = {
    400: "The request cannot be read.",
    401: "A token is needed, or this one does not count.",
    403: "This token's role does not allow it, or a page of somebody else's sent it.",
    404: "There is no such campaign, or such a pull was never asked for.",
    409: "It does not go with what is there: another total for a pull, a name that is taken.",
    413: "The request is too large.",
    415: "The body is of another kind.",
    421: "This server is not known by that name.",
    422: "What was sent makes no sense; `detail` says what to do.",
    429: "Too many requests; `Retry-After` says when to come again.",
    503: "The store cannot be used now; `Retry-After` says when to try again.",
}
_ABOUT = (
    "Campaigns over HTTP. To tell the same total of a pull again changes nothing, so that a "
    "request whose answer was lost can be sent again. Errors are documents of the kind "
    "application/problem+json."
)


def document(rules: Sequence[Rule], tokens: bool) -> dict[str, Any]:
    """Return the OpenAPI document of a server that needs tokens, or does not."""
    shown = [rule for rule in rules if rule.listed]
    sent = {rule.body for rule in shown if rule.body} | {rule.query for rule in shown if rule.query}
    given = {rule.answer for rule in shown if rule.answer} | {models.Problem}
    kinds = sorted(sent | given, key=lambda kind: kind.__name__)
    _, schemas = models_json_schema(
        [(kind, "validation") for kind in kinds], ref_template="#/components/schemas/{model}"
    )
    definitions = schemas["$defs"]
    paths: dict[str, Any] = {}
    for rule in shown:
        operation = _operation(rule, definitions, tokens)
        paths.setdefault(rule.path, {})[rule.method.lower()] = operation
    queries = {rule.query.__name__ for rule in shown if rule.query}
    for name in queries:
        del definitions[name]
    components: dict[str, Any] = {"schemas": definitions}
    if tokens:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    about = {"title": "superarm", "version": version("superarm"), "description": _ABOUT}
    return {"openapi": "3.1.0", "info": about, "paths": paths, "components": components}


def _operation(rule: Rule, definitions: dict[str, Any], tokens: bool) -> dict[str, Any]:
    needs = "" if rule.role is Role.OPEN else f" Needs the role {rule.role.word}."
    found: dict[str, Any] = {
        "operationId": rule.endpoint.__name__,
        "summary": rule.purpose,
        "description": rule.purpose + (needs if tokens else ""),
        "parameters": _parameters(rule, definitions),
        "responses": _responses(rule, tokens),
    }
    if tokens:
        found["security"] = [] if rule.role is Role.OPEN else [{"token": []}]
    if rule.method == "POST":
        schema = _reference(rule.body) if rule.body else {"type": "object"}
        if rule.sends == CSV:
            schema = {"type": "string"}
        found["requestBody"] = {"required": True, "content": {rule.sends: {"schema": schema}}}
    return found


def _parameters(rule: Rule, definitions: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if "{name}" in rule.path:
        text = {"type": "string", "minLength": 1, "maxLength": models.LONGEST}
        found.append({"name": "name", "in": "path", "required": True, "schema": text})
    if rule.query:
        for name, schema in definitions[rule.query.__name__]["properties"].items():
            found.append({"name": name, "in": "query", "required": False, "schema": schema})
    return found


def _responses(rule: Rule, tokens: bool) -> dict[str, Any]:
    schema: Any = _reference(rule.answer) if rule.answer else {"type": "string"}
    if rule.answer is None and rule.returns == "application/json":
        schema = {"type": "object"}
    good: dict[str, Any] = {"description": "Done."}
    if rule.status != 204:
        good["content"] = {rule.returns: {"schema": schema}}
    failures = {*rule.fails, 400, 421, 503}
    if tokens:
        failures |= {429} if rule.role is Role.OPEN else {401, 403, 429}
    if rule.method == "POST":
        failures |= {403, 413, 415}
    if rule.method == "DELETE":
        failures |= {403}
    if rule.method == "POST" or rule.query:
        failures |= {422}
    problem = {MEDIA_TYPE: {"schema": _reference(models.Problem)}}
    bad = {
        str(status): {"description": _WHY[status], "content": problem}
        for status in sorted(failures)
    }
    return {str(rule.status): good, **bad}


def _reference(kind: type[BaseModel]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{kind.__name__}"}
