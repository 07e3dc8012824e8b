"""A kind of job that counts the words of every page of another job."""

import json

from silkline.errors import NotFound, Permanent
from silkline.model.job import End
from silkline.model.kind import Context
from silkline.model.ledger import DONE, Checkpoint, NewResult, NewUrl
from silkline.model.spec import Spec
from silkline.store import jobs, results
from silkline.store.urls import last_id


class WordCount(Spec):
    job: str  # the id of the other job


def run(context: Context[WordCount]) -> End | None:
    progress = context.progress
    try:
        jobs.outline(progress.database, context.spec.job)
    except NotFound as error:
        raise Permanent(f"no job {context.spec.job}") from error
    stored = last_id(progress.database, progress.job.id)  # the last id of an earlier attempt
    for page in results.every(progress.database, context.spec.job):
        if page.url_id <= stored:
            continue
        if context.control.order:  # pause, stop or cancel; recorded results are kept
            return context.control.order
        data = json.dumps({"words": len(str(page.data.get("markdown", "")).split())})
        url = NewUrl(page.url_id, 0, page.final_url, "", 0, DONE)
        result = NewResult(page.url_id, page.original_url, None, page.final_url, 0, data, True, "{}")
        progress.record(Checkpoint(found=[url], results=[result]))
    context.log.info("counted the pages of job %s", context.spec.job)
    return None


run.spec = WordCount
