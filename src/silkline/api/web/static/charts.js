// The charts of a job: drawn from what the server kept, then from every progress event.
"use strict";
(() => {
  let charts = {};
  let history = null;
  let responses = null;

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

  const axes = () => {
    const ink = resolved("ink-muted"), grid = { stroke: resolved("ink-line"), width: 1 };
    const font = "12px system-ui, sans-serif";
    return [
      { stroke: ink, grid: { show: false }, ticks: { show: false }, font, space: 70 },
      { stroke: ink, grid, ticks: { show: false }, font, size: 56, space: 36, values: (_, marks) => marks.map((mark) => mark.toLocaleString("en")) },
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
    const { at: when, done, failed } = history;
    for (let i = 1; i < when.length; i++) {
      const seconds = when[i] - when[i - 1];
      if (seconds <= 0) continue;
      at.push(when[i]);
      rate.push(Math.max(0, (done[i] + failed[i] - done[i - 1] - failed[i - 1]) / seconds));
    }
    return [at, rate];
  };

  const line = (label, name, more = {}) => ({ label, stroke: resolved(name), width: 2, points: { show: false }, ...more });

  const redraw = () => {
    if (!history) return;
    draw("history", [line("discovered", "ink-queued"), line("done", "ink-done", { fill: resolved("fill-done") }), line("failed", "ink-failed")],
      [history.at, history.discovered, history.done, history.failed]);
    draw("rate", [line("pages a second", "ink-accent")], rates());
    draw("responses", [{ label: "milliseconds", stroke: resolved("ink-accent"), paths: () => null, points: { show: true, size: 4, fill: resolved("ink-accent") } }],
      [responses.at, responses.milliseconds]);
  };

  const load = async () => {
    const job = document.body.dataset.job;
    if (!job || !document.querySelector("[data-chart]")) return;
    const answer = await fetch(`/jobs/${job}/charts`).catch(() => null);
    if (!answer || !answer.ok) return;
    ({ history, responses } = await answer.json());
    redraw();
  };

  const add = (progress) => {
    if (!history || !progress.updated_at) return;
    const at = Date.parse(progress.updated_at) / 1000;
    if (history.at.length && at <= history.at[history.at.length - 1]) return;
    history.at.push(at);
    history.discovered.push(progress.discovered);
    history.done.push(progress.done + progress.unchanged);
    history.failed.push(progress.failed);
    history.skipped.push(progress.skipped);
    if (charts.history) charts.history.setData([history.at, history.discovered, history.done, history.failed]);
    else redraw();
    if (charts.rate) charts.rate.setData(rates());
  };

  window.silkline.charts = { load, add };
  document.addEventListener("DOMContentLoaded", () => {
    load();
    document.addEventListener("silkline:theme", redraw);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    addEventListener("resize", () => {
      for (const [name, chart] of Object.entries(charts)) chart.setSize(size(document.querySelector(`[data-chart="${name}"]`)));
    });
    document.body.addEventListener("htmx:afterSettle", (event) => { if (event.detail.target.id === "tab" || event.detail.elt.id === "tab") { charts = {}; load(); } });
  });
})();
