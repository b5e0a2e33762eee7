"""How the routes are described in the OpenAPI document, at /docs."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from rlsvi.shop.requests import ShopRequest

DESCRIPTION = """Recommendations that influence each other, by randomized least-squares value iteration.

A visit is a customer's stay. `POST /recommend` opens it and returns a product for its next slot; `POST /feedback`
tells the reward; `POST /close` ends it. What is acknowledged is stored. Feedback, close, and recommend with `slot`
may be sent again after a failure.

If the server has a token, send the header `Authorization: Bearer TOKEN`. Errors are `{"error": "why"}`."""

ERRORS = {
    400: "The body is not JSON.",
    401: "The token is missing or wrong.",
    403: "The server has no token, and the header Host or Origin is not its own.",
    404: "There is no such visit or product.",
    409: "It contradicts what happened before.",
    408: "The body was not complete within 10 seconds.",
    413: "The body has more bytes than the setting `largest_body` allows.",
    422: "A field is missing, unknown or has a wrong value.",
    503: "The database or the samples are not there, or too many ask; ask again after the seconds in Retry-After.",
}
SHAPE = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}


def described(body: type[ShopRequest] | None, answer: dict[str, Any], *errors: int) -> dict[str, Any]:
    """Return what FastAPI is told of a route: its body, an example of the answer, and the errors there are."""
    usual = (401, 403, 503) if body is None else (400, 401, 403, 408, 413, 422, 503)
    content = {"application/json": {"schema": SHAPE}}
    responses: dict[int | str, dict[str, Any]] = {
        200: {"description": "Done.", "content": {"application/json": {"example": answer}}}
    }
    responses |= {code: {"description": ERRORS[code], "content": content} for code in sorted({*usual, *errors})}
    extra: dict[str, Any] = {"security": [{"token": []}]}
    if body is not None:
        schema = body.model_json_schema(ref_template="#/components/schemas/{model}")
        schema = inlined(schema, schema.pop("$defs", {}))
        extra["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return {"responses": responses, "openapi_extra": extra, "response_model": None}


def inlined(schema: Any, definitions: dict[str, Any]) -> Any:
    """Return a JSON schema with its definitions in place."""
    if isinstance(schema, list):
        return [inlined(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return inlined(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    return {name: inlined(each, definitions) for name, each in schema.items()}


def describe_token(app: FastAPI) -> None:
    """Name the token in the OpenAPI document, so that /docs asks for it."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            about: dict[str, Any] = {"title": app.title, "version": app.version, "description": app.description}
            found = get_openapi(**about, routes=app.routes)
            schemes = found.setdefault("components", {}).setdefault("securitySchemes", {})
            schemes["token"] = {"type": "http", "scheme": "bearer"}
            app.openapi_schema = found
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
