// Keeps the page true while it is looked at: one event stream, closed while the tab is hidden, taken up where it was left.
"use strict";
(() => {
  const { visible, number, size, duration, localTimes } = window.silkline;
  const PANELS_EVERY = 1500, LINES_KEPT = 5000;
  let source = null, lastId = "", ended = 0, panelsAt = 0, panelsLater = null, lostAt = null;
  let steps = 0, headAt = 0, movedAt = 0; // requests and events in their order; those of the head and of the last move
  let told = null; // the last status that an event told
  const askedAt = new WeakMap();

  // Draws a place of the page again. The place itself stays: htmx drops an answer whose target was replaced on its way.
  // One request at a time for each place, and once more after it if that was wished for meanwhile.
  const draw = (name, address, select = "") => {
    const place = document.getElementById(`${name}-place`);
    if (place) window.htmx.ajax("GET", address, { source: place, target: place, swap: "innerHTML", select }).catch(() => {}); // said in a note
  };
  const here = () => location.pathname + location.search;

  // Answers come in any order: one that is older than what is shown, or for an address that was left, is not drawn.
  const inOrder = ({ detail }) => {
    if (!detail.shouldSwap) return;
    const { elt } = detail.requestConfig, at = askedAt.get(detail.xhr);
    const late = (shown) => { if (at < shown) detail.shouldSwap = false; return Math.max(at, shown); };
    if (detail.target.id === "head-place") headAt = late(headAt);
    else if (elt.hasAttribute("hx-push-url")) movedAt = late(movedAt);
    else if (!elt.isConnected) detail.shouldSwap = false;
    else if (elt === detail.target && !["panels-place", "waiting-place"].includes(elt.id) && detail.pathInfo.requestPath !== here()) {
      detail.shouldSwap = false;
      redraw();
    }
  };

  const say = (state, text) => {
    const place = document.getElementById("link");
    place.hidden = false;
    place.dataset.state = state;
    place.textContent = text;
  };

  const counts = (progress) => {
    for (const each of document.querySelectorAll("#head [data-count]")) each.textContent = number(progress[each.dataset.count]);
    const gauges = { rate: progress.rate ? number(progress.rate) : "–", eta: duration(progress.eta_seconds), bytes: size(progress.bytes), seconds: duration(progress.seconds) };
    for (const each of document.querySelectorAll("#head [data-gauge]")) each.textContent = gauges[each.dataset.gauge];
    let x = 0;
    const whole = progress.discovered || 1;
    for (const rect of document.querySelectorAll("#head [data-part]")) {
      const width = (100 * progress[rect.dataset.part]) / whole;
      rect.setAttribute("x", x.toFixed(3));
      rect.setAttribute("width", width.toFixed(3));
      x += width;
    }
  };

  // What only the server can count: the panels of the overview, the hosts, the shards; the other tabs when the job's status changes.
  const panels = (changed = false) => {
    const tab = document.getElementById("tab")?.dataset.tab;
    if (!tab || document.hidden) return;
    const wait = panelsAt + PANELS_EVERY - Date.now();
    if (!changed && wait > 0) {
      panelsLater ??= setTimeout(() => { panelsLater = null; panels(); }, wait);
      return;
    }
    panelsAt = Date.now();
    if (tab === "overview") draw("panels", `/jobs/${document.body.dataset.job}/overview`, "#panels");
    else if (tab === "logs") draw("waiting", `/jobs/${document.body.dataset.job}/waiting`);
    else if (tab === "hosts" || tab === "shards" || changed) draw("tab", here());
  };

  const redraw = () => {
    const list = document.body.dataset.refresh;
    if (list) draw(list, here(), `#${list}`);
    else panels(true);
  };

  const lines = (found) => {
    const log = document.getElementById("log");
    if (!log) return;
    const order = ["debug", "info", "warning", "error", "critical"];
    const wanted = order.indexOf(log.dataset.level), text = log.dataset.q.toLowerCase();
    for (const line of found) {
      if (line.id <= Number(log.dataset.last)) continue;
      log.dataset.last = line.id;
      if (order.indexOf(line.level) < wanted || (text && !line.message.toLowerCase().includes(text))) continue;
      log.append(lineElement(line));
      document.getElementById("no-lines")?.remove();
    }
    while (log.children.length > LINES_KEPT) log.firstElementChild.remove();
    localTimes(log);
    if (document.getElementById("follow")?.checked) log.scrollTop = log.scrollHeight;
  };

  const lineElement = (line) => {
    const row = document.createElement("div");
    row.className = `line ${["debug", "info", "warning", "error", "critical"].includes(line.level) ? line.level : ""}`;
    const at = document.createElement("time");
    at.setAttribute("datetime", line.at);
    at.dataset.clock = "";
    const level = document.createElement("span");
    level.className = "level";
    level.textContent = visible(line.level);
    const text = document.createElement("span");
    text.className = "text";
    text.textContent = visible(line.message);
    row.append(at, " ", level, " ", text);
    return row;
  };

  const refreshHead = (job) => {
    const head = document.getElementById("head");
    if (!head) return;
    document.title = `${visible(job.url || job.kind)} · ${job.status} · Silkline`;
    told ??= head.dataset.status;
    if (told !== job.status) { // the head may show it already, drawn for an earlier event; the panels may not
      told = job.status;
      panels(true);
    }
    if (head.dataset.status === job.status) {
      headAt = ++steps; // what was asked for before this is older
      counts(job.progress);
      return;
    }
    draw("head", `/jobs/${job.id}/head`);
  };

  const on = (name, handle) => source.addEventListener(name, (event) => {
    lastId = event.lastEventId || lastId;
    handle(JSON.parse(event.data));
  });

  const open = () => {
    const stream = document.body.dataset.stream;
    if (!stream || source || document.hidden) return;
    source = new EventSource(lastId && document.body.dataset.job ? `${stream}?last_event_id=${encodeURIComponent(lastId)}` : stream);
    source.onopen = () => { lostAt = null; say("live", "Live"); };
    source.onerror = () => {
      if (ended) return;
      lostAt = lostAt || Date.now();
      say("lost", "Connection lost, trying again…");
      if (source && source.readyState === EventSource.CLOSED) { close(); setTimeout(open, 3000); }
    };
    on("status", (job) => { refreshHead(job); window.silkline.charts.add(job.progress); });
    on("progress", (progress) => { counts(progress); window.silkline.charts.add(progress); panels(); });
    on("logs", (data) => lines(data.lines));
    on("end", () => { ended = ++steps; close(); window.silkline.charts.load(); say("ended", "Ended"); });
    on("gone", () => { ended = ++steps; close(); say("lost", "This job was removed"); });
    on("jobs", redraw);
  };

  const close = () => { if (source) source.close(); source = null; };

  document.addEventListener("DOMContentLoaded", () => {
    open();
    const every = Number(document.body.dataset.every || 0); // seconds; for a page whose numbers no event announces
    if (every) setInterval(() => { if (!document.hidden) redraw(); }, 1000 * every);
    const log = document.getElementById("log");
    if (log) log.scrollTop = log.scrollHeight;
    document.addEventListener("visibilitychange", () => {
      if (document.hidden && !ended && source) { close(); say("hidden", "Paused while hidden"); }
      else if (!document.hidden && !ended) open();
    });
    addEventListener("pagehide", close);
    document.body.addEventListener("htmx:beforeRequest", ({ detail }) => askedAt.set(detail.xhr, ++steps));
    document.body.addEventListener("htmx:beforeSwap", inOrder);
    document.body.addEventListener("htmx:afterSettle", () => {
      const head = document.getElementById("head");
      if (ended && headAt > ended && head && ["queued", "running", "pending"].includes(head.dataset.status)) { ended = 0; open(); }
      const shown = document.getElementById("log");
      if (shown && !shown.dataset.shown) { shown.dataset.shown = "yes"; shown.scrollTop = shown.scrollHeight; }
    });
  });
})();
