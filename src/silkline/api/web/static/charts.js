// The charts of a job: drawn from what the server kept, then from every progress event.
"use strict";
(() => {
  const PAUSE = 5; // seconds, as in charts.py
  let charts = {};
  let history = null;
  let responses = null;
  let eta = null;

  const size = (place) => ({ width: Math.max(200, place.clientWidth), height: 190 });
  const resolved = (name) => {
    // The variables hold light-dark(); an element tells which of the two applies.
    const probe = document.createElement("span");
    probe.className = `probe ${name}`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };

  // Whole seconds while it is young; over hours the seconds, and over days the clock alone, would say too little.
  const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
  const clock = (seconds, step) => {
    const at = new Date(seconds * 1000), parts = { hour: "2-digit", minute: "2-digit" };
    if (step < 60) return at.toLocaleTimeString("en-GB");
    if (at.toDateString() === new Date().toDateString()) return at.toLocaleTimeString("en-GB", parts);
    return at.toLocaleString("en-GB", { day: "numeric", month: "short", ...(step < 86400 ? parts : {}) });
  };

  const axes = () => {
    const ink = resolved("ink-muted"), grid = { stroke: resolved("ink-line"), width: 1 };
    const font = "12px system-ui, sans-serif";
    return [
      { stroke: ink, grid: { show: false }, ticks: { show: false }, font, space: 90, size: 30, incrs: STEPS, values: (_, marks, _axis, _space, step) => marks.map((mark) => clock(mark, step)) },
      { stroke: ink, grid, ticks: { show: false }, font, size: 56, space: 30, values: (_, marks) => marks.map((mark) => mark.toLocaleString("en")) },
    ];
  };

  const draw = (name, series, data, more = {}) => {
    const place = document.querySelector(`[data-chart="${name}"]`);
    if (!place || !window.uPlot) return;
    if (charts[name]) charts[name].destroy();
    place.replaceChildren();
    if (!data[0].length) {
      const nothing = document.createElement("p");
      nothing.className = "muted small";
      nothing.textContent = "Nothing to draw yet.";
      place.append(nothing);
      delete charts[name];
      return;
    }
    charts[name] = new window.uPlot(
      { ...size(place), series: [{}, ...series], axes: axes(), legend: { live: false }, cursor: { points: { size: 6 }, y: false }, scales: { y: { range: (_, low, high) => [0, Math.max(1, high * 1.05)] } }, ...more },
      data, place,
    );
  };

  const rates = () => {
    const at = [], rate = [];
    const { at: when, done } = history;
    for (let i = 1, before = 0; i < when.length; i++) {
      if (done[i] === null) { at.push(when[i]); rate.push(null); before = i + 1; continue; } // a pause: a gap
      if (before === i) continue;
      const seconds = when[i] - when[before];
      if (seconds < 0.9) continue; // two counts within a moment say nothing about the pace
      at.push(when[i]);
      rate.push(Math.max(0, (done[i] - done[before]) / seconds));
      before = i;
    }
    return [at, rate];
  };

  const line = (label, name, more = {}) => ({ label, stroke: resolved(name), width: 2, points: { show: false }, ...more });

  // The last column is where the crawl will be when it has done what it knows of: a dashed line leads there.
  const columns = () => {
    const { at, discovered, done, failed } = history;
    const now = at.length - 1;
    if (!eta || now < 0) return [at, discovered, done, failed];
    const expected = [...at.map((_, i) => (i === now ? done[now] : null)), discovered[now]];
    return [[...at, at[now] + eta], [...discovered, discovered[now]], [...done, null], [...failed, null], expected];
  };

  const redraw = () => {
    if (!history) return;
    const data = columns();
    const lines = [line("discovered", "ink-queued"), line("done", "ink-done", { fill: resolved("fill-done") }), line("failed", "ink-failed"),
      line("expected", "ink-muted", { dash: [4, 5], width: 1.5, spanGaps: true })];
    draw("history", lines.slice(0, data.length - 1), data);
    draw("rate", [line("pages a second", "ink-accent")], rates());
    draw("responses", [{ label: "milliseconds", stroke: resolved("ink-accent"), paths: () => null, points: { show: true, size: 4, fill: resolved("ink-accent") } }],
      [responses.at, responses.milliseconds]);
  };

  const load = async () => {
    const job = document.body.dataset.job;
    if (!job || !document.querySelector("[data-chart]")) return;
    const answer = await fetch(`/jobs/${job}/charts`).catch(() => null);
    if (!answer || !answer.ok) return;
    ({ history, responses, eta } = await answer.json());
    redraw();
  };

  const add = (progress) => {
    if (!history || !progress.updated_at) return;
    const at = Date.parse(progress.updated_at) / 1000;
    if (history.at.length && at <= history.at[history.at.length - 1]) return;
    // Nobody crawled for a while: the line has a gap there, as in charts.py.
    const last = history.at.length - 1, counted = history.seconds[last];
    if (last >= 0 && counted && at - history.at[last] - (progress.seconds - counted) > PAUSE) {
      history.at.push((history.at[last] + at) / 2);
      for (const name of ["discovered", "done", "failed", "skipped", "seconds"]) history[name].push(null);
    }
    history.at.push(at);
    history.seconds.push(progress.seconds);
    history.discovered.push(progress.discovered);
    history.done.push(progress.done + progress.unchanged);
    history.failed.push(progress.failed);
    history.skipped.push(progress.skipped);
    eta = progress.eta_seconds;
    const data = columns();
    if (charts.history?.series.length === data.length) charts.history.setData(data);
    else redraw(); // there is no chart yet, or the line of what is expected came or went
    if (charts.rate) charts.rate.setData(rates());
  };

  window.silkline.charts = { load, add, shown: () => history };
  document.addEventListener("DOMContentLoaded", () => {
    load();
    document.addEventListener("silkline:theme", redraw);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    addEventListener("resize", () => {
      for (const [name, chart] of Object.entries(charts)) chart.setSize(size(document.querySelector(`[data-chart="${name}"]`)));
    });
    document.body.addEventListener("htmx:afterSettle", (event) => { if (event.detail.elt.id === "tab-place") { charts = {}; load(); } });
  });
})();
