"""Tokens for the API. An administrator creates, lists and revokes them."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

from fastapi import APIRouter, Response
from pydantic import Field

from silkline.api.answer_models import Answer, NewTokenView, Scope, TokenList, add_route, problems
from silkline.api.bodies import JsonBodyRoute
from silkline.api.request_body import RequestBody
from silkline.api.token_making import new_token
from silkline.api.views import token_view
from silkline.errors import NotFound
from silkline.model.database import Database
from silkline.store import tokens


class TokenBody(RequestBody):
    name: str = Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")
    scope: Scope = "read"
    days: float | None = Field(None, gt=0, le=36_500)


class TokenRoutes:
    def __init__(self, database: Database) -> None:
        self._database = database
        self.router = APIRouter(prefix="/v1/tokens", tags=["tokens"], route_class=JsonBodyRoute)
        body = ("cross-site", "too-large", "unsupported-media-type")
        add_route(self.router, "POST", "", self.post, "Create a token", *body, s201="The token and its secret.")
        add_route(self.router, "GET", "", self.list, "List tokens")
        self.router.add_api_route(
            "/{id}",
            self.delete,
            methods=["DELETE"],
            status_code=204,
            summary="Revoke a token",
            responses={204: {"description": "The token is no longer valid."}, **problems("not-found", "cross-site")},
        )

    def post(self, body: TokenBody) -> Answer[NewTokenView]:
        """Only this answer contains the token; the database stores a hash of it."""
        until = self._database.now() + timedelta(days=body.days) if body.days else None
        id, token = new_token(self._database, body.name, body.scope, until)
        made = next(each for each in tokens.everyone(self._database) if each.id == id)
        return Answer(NewTokenView(**dataclasses.asdict(token_view(made)), token=token), 201)

    def list(self) -> Answer[TokenList]:
        """The list does not contain the secrets."""
        return Answer(TokenList([token_view(token) for token in tokens.everyone(self._database)]))

    def delete(self, id: str) -> Response:
        """The server refuses every later request with this token."""
        if "\x00" in id:
            raise NotFound(f"no token {id!r}")
        tokens.forget(self._database, id)
        return Response(status_code=204)
