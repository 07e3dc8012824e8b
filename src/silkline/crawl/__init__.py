"""The engine of everything that fetches: of crawls, and of `page` and `map` jobs. How a URL travels:

1.  **Seeds** enter the ledger in the first checkpoint (leader.py). From then on every process is told only what the
    ledger says, so a first start and a start after a crash are the same thing.
2.  The **leader** is fetcher 0 and the recorder; it starts the other fetchers and the parsers (process_tree.py,
    child_process.py).
    Hosts are spread over fetchers by a hash (shards.py): a fetcher owns the queues, clocks, rules and seen-set of its
    hosts.
3.  A fetcher asks for what is queued in the ledger (`Refill`) and puts it into its **frontier** (frontier.py): a window
    of per-host queues, breadth first. What does not fit stays in the ledger until there is room.
4.  A URL is **taken** when its host's clock (politeness.py), its address and its robots.txt (host_gate.py) allow
    it, and requested (pump.py). What becomes of the **answer** is decided in one pure function (decisions.py), and done
    (answers.py): it is read, rendered, followed, put back to be tried later, or settled with a reason (endings.py).
5.  A page is **read** (guarded_reader.py, reading.py), here, in a parser (parser.py) or, if it looks risky, in a
    process of its own (isolated_reader.py), into facts, links and the JSON that is stored. Whoever reads marks first
    what it reads.
6.  Links go to the fetchers that **own** their hosts (discovery.py). An owner drops what it has seen before (seen.py),
    judges the rest by scope (scope.py) and budgets (traps.py), and reports what is new.
7.  Everything goes to the leader in **batches** (outbox.py, messages.py, connection.py): ends of URLs, results, new
    URLs, links for others. The leader issues a ticket (link_acks.py) for links to another fetcher; the pages they stood
    on count when all tickets of their batch are answered.
8.  The **recorder** (recorder.py) gives new URLs their ids, keeps the books, and every second or 500 pages writes one
    checkpoint: results, states, new URLs, who links where, and counters in one transaction, fenced by the lease.
9.  Fetchers hear which batches are durable, forget those URLs, and go on. They slow down when too much is not.
10. The crawl is over when the books have nothing pending and no ticket is open.

`page` and `map` jobs take the same steps from 3 on, in one process with a small leader (small_leader.py). The kinds
differ in the **purpose** of their fetcher (purpose.py). A crawl (site_crawl.py) adds links and redirect targets as new
URLs. A `page` job follows redirects within one row and stores one result for each URL. A `map` job stores the URLs that
sitemaps list. All messages of a leader arrive in `Fetcher.receive` (fetcher.py).

Why nothing is lost and nothing stored twice, whoever is killed:

- A URL's end is written in the transaction that stores its result, and never before its new links are written: own
  links are in the books when the page is, foreign ones when the ticket is answered. So a page whose links are not all
  durable is still `queued`, and will be fetched and read again.
- What is durable is only ever the books' own order of events: a URL may be fetched before its row is durable, but its
  end cannot become durable before its row, since both pass through the one recorder in that order.
- **The leader dies**: everyone dies with it (`PR_SET_PDEATHSIG`). The ledger stands as at the last checkpoint; what was
  fetched since is `queued` and fetched again: at most what the bounds on unsaved pages allow, about one checkpoint.
- **A fetcher dies**: what reached the books stays; its pages that wait for tickets count for nothing and are fetched
  again. The books are saved, and another fetcher starts from the ledger: seen-set, queues, and the tickets that were
  not answered. A batch arrives whole or not at all, so no half of one can be in the books.
- **A parser dies**: its fetchers still have the bodies, and give them to another.
- **A fetcher or parser is stopped, or hangs**: it does not answer the leader's `Ping`, and is killed (process_tree.py).
- **An input kills who reads it**: its mark (reading_marks.py) outlives the process. The leader reads the marks of its
  children, the supervisor that of the leader; what was marked is blamed (suspects.py) and read in isolation from then
  on. If that reader dies too, the URL is `failed` with `reader_died`, and the crawl goes on.
- One URL, one row: only the owner of a host can report a URL as new, once, and its seen-set holds all that the ledger
  has for its hosts. `UNIQUE (job_id, url_id)` and the settle that demands `queued` would turn a mistake into an error.
"""
