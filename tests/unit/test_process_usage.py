"""The role of a process, as the log of a crawl, the fleet and `silkline top` name it."""

import os
import subprocess
import sys

import pytest

from silkline.process_usage import FETCHER, OTHER, PARSER, READER, usage_of

CHILD = "silkline.crawl.child_process"
ME = str(os.getpid())


@pytest.mark.parametrize(
    ("arguments", "role"),
    [
        ((CHILD, "fetcher", "3", "4", "5", ME), FETCHER),
        ((CHILD, "parser", "3", "4", "5", ME), PARSER),
        ((CHILD, "fetcher", "3", "4", "5", ME, "6", "fetcher-0"), FETCHER),  # with a meter
        ((CHILD, "parser", "3", "4", "5", ME, "6", "parser-12"), PARSER),
        ((CHILD, "parser", "3", "4", "5", "1", "6", "parser-12"), READER),  # forked from a parser
        ((CHILD,), READER),
        (("silkline.crawl.reader_process", "x"), READER),
        (("something",), OTHER),
    ],
)
def test_a_process_has_the_role_of_its_arguments(arguments: tuple[str, ...], role: str) -> None:
    program = [sys.executable, "-c", "print(flush=True); import time; time.sleep(600)", *arguments]
    with subprocess.Popen(program, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        (usage,) = usage_of([process.pid], os.getpid(), "root")
        process.kill()
    assert usage.role == role
