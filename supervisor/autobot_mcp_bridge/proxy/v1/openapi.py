"""The OpenAPI 3.1 document of `/v1`, made of the table of routes and the records of answers."""

from functools import cache
from typing import Any

from pydantic.json_schema import models_json_schema

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.proxy.v1.asked import LIMIT, MAX_CURSOR, MAX_LIMIT
from autobot_mcp_bridge.proxy.v1.bodies import Error
from autobot_mcp_bridge.proxy.v1.routes import OPENAPI, ROUTES, Route

_REF = "#/components/schemas/{model}"
_QUERY: dict[str, dict[str, Any]] = {
    "limit": {
        "description": "servers of a page",
        "schema": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": LIMIT},
    },
    "cursor": {
        "description": "next_cursor of the page before",
        "schema": {"type": "string", "minLength": 1, "maxLength": MAX_CURSOR},
    },
}
_ID: dict[str, Any] = {
    "name": "id",
    "in": "path",
    "required": True,
    "description": "NAME, TENANT.NAME or TENANT.PROJECT.NAME",
    "schema": {"type": "string"},
}
_PROJECT: dict[str, Any] = {
    "name": "X-Project",
    "in": "header",
    "description": "the project that the caller comes from; a key that is bound to one needs none",
    "schema": {"type": "string"},
}
_REFUSALS = {
    "400": "A parameter is not allowed.",
    "401": "No key, or one that is not valid here.",
    "403": "The server belongs to another project, or the key lacks a role.",
    "404": "The tenant has no such server.",
    "431": "The headers are too large.",
}
_FAILURES = {
    "502": "The server gave no answer that can be used.",
    "503": "The server cannot be asked now.",
    "504": "The server did not answer in time.",
}


@cache
def document() -> bytes:
    """The document as JSON; the same on every host."""
    answers = {route.answer for route in ROUTES} | {Error}
    ordered = sorted(answers, key=lambda model: model.__name__)
    _, schemas = models_json_schema(
        [(model, "serialization") for model in ordered], ref_template=_REF
    )
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    paths[OPENAPI] = {"get": _itself()}
    return jsonrpc.dumps(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "mcp-bridge",
                "version": "1",
                "description": "The servers of one tenant, for the holders of its API keys.",
            },
            "paths": paths,
            "components": {
                "schemas": schemas["$defs"],
                "securitySchemes": {
                    "bearer": {"type": "http", "scheme": "bearer"},
                    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
                },
            },
            "security": [{"bearer": []}, {"key": []}],
        }
    )


def _operation(route: Route) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [_PROJECT]
    if route.about is not None:
        parameters.append(_ID)
    parameters += [{"name": name, "in": "query", **_QUERY[name]} for name in route.query]
    role = f" Needs the role {route.role.value}." if route.role is not None else ""
    return {
        "operationId": route.name,
        "summary": route.says + role,
        "parameters": parameters,
        "responses": {
            "200": _response(route.answer.__doc__ or route.says, route.answer.__name__),
            **{
                status: _response(text, Error.__name__)
                for status, text in {**_REFUSALS, **_FAILURES}.items()
            },
        },
    }


def _response(text: str, model: str) -> dict[str, Any]:
    schema = {"$ref": _REF.format(model=model)}
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def _itself() -> dict[str, Any]:
    content = {"application/json": {"schema": {"type": "object"}}}
    return {
        "operationId": "getDocument",
        "summary": "This document; the only page here that needs no key.",
        "security": [],
        "responses": {"200": {"description": "The document.", "content": content}},
    }
