// The keyboard: / search, j and k move, Enter opens, p pauses or resumes, n new crawl, ? help.
"use strict";
(() => {
  let chosen = null; // the address of the chosen row, so that it stays chosen when the list is drawn again

  const rows = () => [...document.querySelectorAll("[data-row]")];
  const address = (row) => row.querySelector("[data-open]")?.getAttribute("href") ?? null;
  const current = () => (chosen ? rows().find((row) => address(row) === chosen) : undefined);

  const choose = (row) => {
    for (const each of rows()) each.classList.remove("chosen");
    if (!row) return;
    row.classList.add("chosen");
    if (chosen !== address(row)) row.scrollIntoView({ block: "nearest" });
    chosen = address(row);
  };

  const move = (step) => {
    const all = rows();
    if (!all.length) return;
    const now = all.indexOf(current());
    choose(all[now < 0 ? 0 : Math.min(all.length - 1, Math.max(0, now + step))]);
  };

  const press = () => {
    const place = document.getElementById("head") || current();
    const button = place?.querySelector('[data-verb="pause"]') || place?.querySelector('[data-verb="resume"]');
    if (button) button.click();
    else window.silkline.note("There is no job to pause here.");
  };

  const acts = {
    "/": () => document.getElementById("search")?.focus(),
    j: () => move(1),
    k: () => move(-1),
    p: press,
    n: () => { const field = document.getElementById("new-url"); if (field) field.focus(); else location.href = "/"; },
    "?": () => document.getElementById("help").showModal(),
    Enter: () => { const row = current(); if (row && address(row)) location.href = address(row); },
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const field = event.target.closest?.("input, select, textarea, [contenteditable]");
    if (field) { if (event.key === "Escape") field.blur(); return; }
    if (document.getElementById("help").open) return;
    // A dialog that was just closed still holds the focus until the next frame is drawn: its button is not meant.
    const held = event.target.closest("a, button, summary");
    if (event.key === "Enter" && held?.checkVisibility()) return;
    const act = acts[event.key];
    if (act) { event.preventDefault(); act(); }
  });

  document.addEventListener("DOMContentLoaded", () => {
    document.getElementById("help-button").addEventListener("click", acts["?"]);
    document.body.addEventListener("htmx:afterSettle", () => {
      if (current()) choose(current());
    });
  });
})();
