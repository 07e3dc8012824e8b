"""The engine of everything that fetches: of crawls, and of `page` and `map` jobs. The path of a URL:

1.  **Seeds** enter the ledger in the first checkpoint (leader.py). After that, every process gets its work from the
    ledger. So a first start and a start after a crash are the same.
2.  The **leader** is fetcher 0 and the recorder. It starts the other fetchers and the parsers (process_tree.py,
    child_process.py). A hash assigns hosts to fetchers (host_owners.py). A fetcher owns the queues, clocks, rules and
    seen-set of its hosts.
3.  A fetcher requests queued URLs from the ledger (`Refill`) and adds them to its **frontier** (frontier.py): a window
    of per-host queues, breadth first. URLs that do not fit stay in the ledger until there is room. Foreign URLs (see 6)
    have room of their own, and are read separately (ledger_part.py).
4.  A URL is **taken** and requested (pump.py) when four things allow it: the clock of its host (politeness.py), the
    limit for its IP address (address_limit.py), its robots.txt (host_gate.py), and a **booking** of the host
    (host_bookings.py): all jobs share its time. One pure function (decisions.py) decides about the **answer**, and
    answers.py carries the decision out: the page is read, rendered, followed, retried later, or settled with a reason
    (endings.py).
5.  A page is **read** (guarded_reader.py, reading.py) into facts, links and the JSON that is stored. This happens in
    the fetcher, in a parser (parser.py) or, if the page looks risky, in a separate process (isolated_reader.py). Each
    reader marks an input before it reads it.
6.  Links go to the fetchers that **own** their hosts (discovery.py). The owner drops URLs it has seen before (seen.py),
    checks the others against the scope (scope.py) and the budgets (traps.py), and reports the new ones. A URL that
    only other hosts link to is foreign until a page of its own host links to it.
7.  Everything goes to the leader in **batches** (outbox.py, messages.py, connection.py): ends of URLs, results, new
    URLs, links for other fetchers. The leader issues a ticket (link_acks.py) for links to another fetcher. The pages
    with these links count when all tickets of their batch are answered.
8.  The **recorder** (recorder.py) assigns ids to new URLs, keeps the state of all URLs, and writes one checkpoint every
    second or every 500 pages: results, states, new URLs, link graph and counters in one transaction, fenced by the
    lease.
9.  Fetchers are told which batches are durable, forget those URLs, and continue. They slow down when too many pages
    are not durable yet.
10. The crawl is finished when the recorder has nothing pending and no ticket is open.

A shard of a crawl over many machines takes the same steps. Links to hosts of other shards go into the checkpoint, and
links of other shards become tickets like those between fetchers (shard_traffic.py). Its end is that of the whole crawl
(shard_part.py).

`page` and `map` jobs take the same steps from 3 on, in one process with a small leader (small_leader.py). The kinds
differ in the **purpose** of their fetcher (purpose.py). A crawl (site_crawl.py) adds links and redirect targets as new
URLs. A `page` job follows redirects within one row and stores one result for each URL. A `map` job stores the URLs that
sitemaps list. All messages of a leader arrive in `Fetcher.receive` (fetcher.py).

Why nothing is lost and nothing is stored twice, no matter which process is killed:

- The end of a URL is written in the transaction that stores its result, and never before its new links are written.
  Links to own hosts reach the recorder together with the page; for links to other fetchers, the page waits until the
  ticket is answered. So a page whose links are not all durable is still `queued`, and will be fetched and read again.
- Changes become durable in the order in which the recorder received them. A URL may be fetched before its row is
  durable, but its end cannot become durable before its row, because both pass through the one recorder in that order.
- **The leader dies**: all its processes die with it (`PR_SET_PDEATHSIG`). The ledger is as it was at the last
  checkpoint. URLs fetched since then are `queued` and fetched again: at most what the bounds on unsaved pages allow,
  about one checkpoint.
- **A fetcher dies**: what reached the recorder stays. Its pages that wait for tickets do not count and are fetched
  again. The recorder writes a checkpoint, and a new fetcher starts from the ledger: seen-set, queues, and the tickets
  that were not answered. A batch arrives completely or not at all, so the recorder never has a part of one.
- **A parser dies**: its fetchers still have the bodies, and send them to another parser.
- **A fetcher or parser is stopped, or hangs**: it does not answer the leader's `Ping`, and is killed (process_tree.py).
- **An input kills the process that reads it**: its mark (reading_marks.py) survives the process. The leader reads the
  marks of its children, and the supervisor reads the mark of the leader. The marked input is blamed (suspects.py) and
  read in isolation from then on. If the isolated reader dies too, the URL is `failed` with `reader_died`, and the crawl
  continues.
- One URL, one row: only the owner of a host can report a URL as new, once, and its seen-set holds every URL that the
  ledger has for its hosts. `UNIQUE (job_id, url_id)`, and settling only rows that are `queued`, would turn a mistake
  into an error.
"""
