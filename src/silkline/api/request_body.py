"""The base of every body that the API reads."""

from __future__ import annotations

from pydantic import ConfigDict

from silkline.model.spec import Spec


class RequestBody(Spec):
    """Its validator is built at once: the framework builds it anyway, and warns in the log if that comes late."""

    model_config = ConfigDict(defer_build=False)
