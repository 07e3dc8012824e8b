// Light, dark, or as the system: set before anything is drawn.
"use strict";
(() => {
  const order = ["system", "light", "dark"];
  const stored = () => { try { return localStorage.getItem("theme") || "system"; } catch { return "system"; } };
  const apply = (theme) => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  };
  apply(stored());
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const name = () => { button.title = `Colours: ${stored()}`; };
    name();
    button.addEventListener("click", () => {
      const next = order[(order.indexOf(stored()) + 1) % order.length];
      try { localStorage.setItem("theme", next); } catch { /* a private window forgets it */ }
      apply(next);
      name();
      window.silkline.note(`Colours: ${next}`);
      document.dispatchEvent(new Event("silkline:theme"));
    });
  });
})();
