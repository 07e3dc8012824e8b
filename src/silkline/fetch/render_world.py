"""Runs our scripts in a page, in an isolated world: it has the DOM of the page, but its own built-in objects.

The page cannot change those, so it cannot choose what our scripts return. In the page's own world it could: with
another `Promise`, for example, it would answer with a list of millions.
"""

from __future__ import annotations

from typing import Any

from silkline.fetch.render_cdp import Conversation
from silkline.fetch.render_messages import SHORT


class IsolatedWorld:
    """The world of one page. It is another one after each navigation, with the same name."""

    def __init__(self, conversation: Conversation, name: str) -> None:
        self._talk = conversation
        self._name = name
        self.session = ""
        self.frame = ""

    async def run(self, script: str, seconds: float, longest: int = SHORT) -> Any:
        """The value of a script, or of the promise that it returns; None if it fails. `longest`: bytes of its JSON.

        Raises `TimeoutError` or `CommandRefused` like `Conversation.ask`.
        """
        ask, session = self._talk.ask, self.session
        world = await ask(
            "Page.createIsolatedWorld", session, seconds=seconds, frameId=self.frame, worldName=self._name
        )
        answer = await ask(
            "Runtime.evaluate",
            session,
            seconds=seconds,
            longest=longest,
            expression=script,
            contextId=world["executionContextId"],
            awaitPromise=True,
            returnByValue=True,
        )
        return answer["result"].get("value")
