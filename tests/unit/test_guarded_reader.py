"""Who is blamed when a process breaks while it uses what it has read."""

import asyncio
import errno

import pytest

from silkline.crawl.guarded_reader import GuardedReader
from silkline.crawl.plan_from_spec import plan_of
from silkline.crawl.reading import Body, Reading
from silkline.model.spec import SiteSpec
from silkline.reading_marks import LEADER, ReadingMarks

URL = "http://a.example/"
PLAN = plan_of(SiteSpec(url=URL), fetchers=1, concurrency=1)


def blamed_for(error: Exception) -> str | None:
    """The URL that is blamed if the use of its reading raises this error."""

    async def read() -> str | None:
        marks = ReadingMarks.open("")
        reader = GuardedReader(PLAN, marks)

        def fail(reading: Reading) -> None:
            raise error

        try:
            with pytest.raises(type(error)):
                reader.read(Body(1, URL, b"<p>A page", "text/html", "", ""), fail)
            mark = marks.mark_of(LEADER)
            return None if mark is None else mark.name
        finally:
            reader.close()
            marks.close()

    return asyncio.run(read())


def test_a_page_is_not_blamed_for_a_full_disk() -> None:
    assert blamed_for(OSError(errno.ENOSPC, "No space left on device")) is None


def test_a_page_is_blamed_for_an_error_that_nobody_expects() -> None:
    assert blamed_for(ValueError("what its links caused")) == URL
