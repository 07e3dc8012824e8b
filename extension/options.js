"use strict";
const form = document.getElementById("form");
const said = document.getElementById("said");
const DEFAULTS = { server: "http://127.0.0.1:8700", token: "", enabled: false, allowPrivate: false, said: "" };

chrome.storage.local.get(DEFAULTS).then((found) => {
  form.server.value = found.server;
  form.token.value = found.token;
  form.enabled.checked = found.enabled;
  form.allowPrivate.checked = found.allowPrivate;
  said.textContent = found.said;
});
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  await chrome.storage.local.set({
    server: form.server.value, token: form.token.value, enabled: form.enabled.checked, allowPrivate: form.allowPrivate.checked,
  });
  said.textContent = "Saved.";
});
chrome.storage.onChanged.addListener((changes) => { if (changes.said) said.textContent = changes.said.newValue || "Nothing to do."; });
