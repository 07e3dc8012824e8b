// Values as people read them, the same as format.py makes them. Everything becomes text, never markup.
"use strict";
window.silkline = (() => {
  const UNSEEN = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;
  const sign = (found) => {
    const code = found.codePointAt(0);
    if (code < 32) return String.fromCharCode(0x2400 + code);
    return code === 127 ? "␡" : "\\u" + code.toString(16).padStart(4, "0");
  };
  const visible = (text) => String(text).replace(UNSEEN, sign);
  const number = (value) => (value === null || value === undefined ? "–" : Number(value).toLocaleString("en", { maximumFractionDigits: value < 1 ? 2 : 1 }));
  const size = (count) => {
    let value = count || 0;
    for (const unit of ["B", "kB", "MB", "GB"]) {
      if (value < 1000) return unit === "B" || value >= 100 ? `${value.toFixed(0)} ${unit}` : `${value.toFixed(1)} ${unit}`;
      value /= 1000;
    }
    return `${value.toFixed(1)} TB`;
  };
  const duration = (seconds) => {
    if (seconds === null || seconds === undefined) return "–";
    let rest = Math.max(0, Math.round(seconds));
    const parts = [];
    for (const [length, unit] of [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]]) {
      const count = Math.floor(rest / length);
      rest -= count * length;
      if (count) parts.push(`${count} ${unit}`);
    }
    return parts.slice(0, 2).join(" ") || "0 s";
  };
  const ago = (seconds) => {
    const whole = Math.max(0, Math.round(seconds));
    const [length, unit] = [[86400, "d"], [3600, "h"], [60, "min"]].find(([length]) => whole >= length) ?? [1, "s"];
    return `${Math.floor(whole / length)} ${unit} ago`;
  };
  const localTimes = (root) => {
    for (const each of root.querySelectorAll("time[datetime]")) {
      const at = new Date(each.getAttribute("datetime"));
      if (Number.isNaN(at.getTime())) continue;
      each.title = at.toLocaleString();
      if ("ago" in each.dataset) each.textContent = ago((Date.now() - at) / 1000);
      else if ("clock" in each.dataset) each.textContent = at.toLocaleTimeString("en-GB");
      else each.textContent = at.toLocaleString();
    }
  };
  // Counts down from what the server said was left, by our own clock: the two clocks need not agree.
  const span = (seconds) => (seconds < 120 ? `${Math.round(seconds)} s` : seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`);
  const countDown = () => {
    for (const each of document.querySelectorAll("[data-left]")) {
      each.dataset.due ??= performance.now() + 1000 * Number(each.dataset.left);
      const left = (Number(each.dataset.due) - performance.now()) / 1000;
      each.textContent = `${each.dataset.event} ${left >= 0.5 ? `in ${span(left)}` : "any moment"}`;
    }
  };
  const note = (text) => {
    const place = document.getElementById("notes");
    const box = document.createElement("div");
    box.className = "toast";
    box.textContent = visible(text);
    place.append(box);
    setTimeout(() => box.remove(), 5000);
  };
  // On a narrow screen the tabs scroll; the current one is brought into view.
  const showTab = () => document.querySelector(".tabs [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });
  document.addEventListener("DOMContentLoaded", () => {
    localTimes(document);
    showTab();
    setInterval(() => { if (!document.hidden) localTimes(document); }, 10000);
    setInterval(() => { if (!document.hidden) countDown(); }, 1000);
    document.body.addEventListener("htmx:afterSwap", (event) => localTimes(event.detail.target.parentElement || document));
    document.body.addEventListener("htmx:afterSettle", (event) => { localTimes(document); if (event.detail.elt.id === "tab-place") showTab(); });
    document.body.addEventListener("htmx:responseError", (event) => {
      let text = `The server answered ${event.detail.xhr.status}.`;
      try { text = JSON.parse(event.detail.xhr.responseText).detail || text; } catch { /* not a problem document */ }
      note(text);
    });
    document.body.addEventListener("htmx:sendError", () => note("The server cannot be reached."));
  });
  return { visible, number, size, duration, localTimes, note };
})();
