"""The templates. All values are escaped, and an undefined name is an error."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

import silkline
from silkline.api.web import format, words
from silkline.api.web.format import ago

FOLDER = Path(__file__).parent / "templates"


class Templates:
    def __init__(self) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(FOLDER),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update({**format.FILTERS, **words.FILTERS})
        self._environment.tests.update(format.TESTS)
        self._environment.globals.update(version=silkline.__version__, ago=ago, signed_in=False)

    def page(self, name: str, *, status: int = 200, now: datetime | None = None, **values: Any) -> HTMLResponse:
        text = self._environment.get_template(name).render(now=now, **values)
        return HTMLResponse(text, status)
