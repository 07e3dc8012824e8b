"""Makes the answers of the API from rows of the store. `store.job_view` and `store.url_view` make more of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from silkline.api.answer_models import (
    HostView,
    LineView,
    ReasonView,
    TokenView,
    WaitView,
    WorkerView,
)
from silkline.log import JOB_LOGGER
from silkline.model.host_wait import Wait, in_words, moment
from silkline.model.redaction import cleaned, without_secrets
from silkline.store.logs import LogLine
from silkline.store.tokens import Token
from silkline.store.workers import Worker

MOST_REASONS = 500  # an external worker may have given each page a reason of its own


def reason_views(reasons: Sequence[tuple[str, str, int]]) -> list[ReasonView]:
    """The most frequent reasons, in their order."""
    return [
        ReasonView(state=state, reason=reason, urls=number)  # type: ignore[arg-type]
        for state, reason, number in reasons[:MOST_REASONS]
    ]


def host_view(row: Mapping[str, Any]) -> HostView:
    return HostView(**row)


def wait_view(wait: Wait, now: datetime) -> WaitView:
    fields: dict[str, Any] = {**wait._asdict(), "next_at": moment(wait), "says": in_words(wait, now)}
    return WaitView(**fields)


def line_view(line: LogLine, secrets: list[str]) -> LineView:
    return LineView(
        id=line.id,
        at=line.at,
        level=line.level,
        logger=JOB_LOGGER,
        message=without_secrets(line.message, secrets),
        worker=line.worker,
        job=line.job_id,
        attempt=line.attempt,
        shard=line.shard,
        event=line.event,
        data=cleaned(line.data, lambda text: without_secrets(text, secrets)),
    )


def worker_view(worker: Worker) -> WorkerView:
    """A live worker. The store removes dead workers from its lists."""
    return WorkerView(
        id=worker.id,
        host=worker.host,
        pid=worker.pid,
        state=worker.state,
        alive=True,
        slots=worker.slots,
        jobs_held=worker.jobs_held,
        kinds=list(worker.kinds) if worker.kinds is not None else None,
        version=worker.version,
        started_at=worker.started_at,
        last_seen=worker.last_seen,
    )


def token_view(token: Token) -> TokenView:
    return TokenView(
        id=token.id,
        name=token.name,
        scope=token.scope,  # type: ignore[arg-type]
        created_at=token.created_at,
        expires_at=token.expires_at,
    )
