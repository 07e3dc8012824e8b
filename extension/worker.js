// Claims `extension` jobs from a Silkline, opens each page in a tab of this browser, and posts what it sees.
// The lease goes with every request; a 409 means that the job is somebody else's now, and the work stops at once.
"use strict";

const EVERY_MINUTES = 0.5;
const LOAD_LIMIT = 45000;
const ASK_EVERY = 100;
const EMPTY = "about:blank";
const SETTLE = 500; // a page that has loaded may still be drawing

importScripts("addresses.js");

let busy = false;

const settings = () => chrome.storage.local.get({ server: "http://127.0.0.1:8700", token: "", enabled: false, allowPrivate: false });

async function ask(path, body, lease) {
  const { server, token } = await settings();
  const headers = { "Content-Type": "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (lease) headers["Silkline-Lease"] = lease;
  const answer = await fetch(new URL(path, server), { method: "POST", headers, body: body ? JSON.stringify(body) : undefined });
  if (!answer.ok) {
    const problem = await answer.json().catch(() => ({}));
    throw Object.assign(new Error(problem.detail || `the server answered ${answer.status}`), { status: answer.status });
  }
  return answer.json();
}

async function look() {
  const { enabled } = await settings();
  if (!enabled || busy) return;
  busy = true;
  try {
    for (;;) {
      const { items, heartbeat_seconds: seconds } = await ask("/v1/claims", { kinds: ["extension"], name: "browser" });
      if (!items.length) break;
      await work(items[0], seconds);
    }
    await chrome.storage.local.set({ said: "" });
  } catch (error) {
    await chrome.storage.local.set({ said: String(error.message || error) });
  } finally {
    busy = false;
  }
}

async function work({ lease, job }, seconds) {
  const here = `/v1/jobs/${job.id}`;
  let desired = "run";
  let lost = false;
  const beat = setInterval(() => {
    ask(`${here}/heartbeat`, null, lease).then((answer) => { desired = answer.desired; }, (error) => { lost = error.status === 409; });
  }, Math.max(1, seconds) * 1000);
  try {
    const urls = [...(job.spec.url ? [job.spec.url] : []), ...(job.spec.urls || [])];
    for (const url of urls) {
      if (lost) return;
      if (desired !== "run") break;
      await ask(`${here}/results`, { pages: [await see(url)] }, lease);
    }
    const end = { run: "completed", pause: "paused", stop: "stopped", cancel: "cancelled" }[desired];
    await ask(`${here}/finish`, { end }, lease);
  } catch (error) {
    if (error.status !== 409) await ask(`${here}/finish`, { end: "temporary", message: String(error.message || error) }, lease).catch(() => {});
  } finally {
    clearInterval(beat);
  }
}

const blocked = () => Object.assign(new Error("a private address"), { code: "address_blocked" });

// One page, as a person would see it.
async function see(url) {
  const { allowPrivate } = await settings();
  const check = (landed) => {
    if (!allowPrivate && isPrivate(landed)) throw blocked();
    if (!/^https?:/.test(landed)) throw Object.assign(new Error(`landed on ${landed.slice(0, 100)}`), { code: "load_failed" });
  };
  let tab;
  const began = Date.now();
  try {
    check(url);
    tab = await chrome.tabs.create({ url: EMPTY, active: false }); // it gets its rules before it loads anything
    await loaded(tab.id, (where) => where === EMPTY); // else the next address may be lost
    await chrome.declarativeNetRequest.updateSessionRules({ removeRuleIds: RULE_IDS, addRules: allowPrivate ? [] : rulesFor(tab.id) });
    await chrome.tabs.update(tab.id, { url });
    check(await loaded(tab.id, (where) => where !== EMPTY));
    await pause(SETTLE);
    const [{ result }] = await chrome.scripting.executeScript({ target: { tabId: tab.id }, func: readPage }).catch(async (error) => {
      check((await chrome.tabs.get(tab.id)).url); // it may have gone to an address that its rules refuse
      throw error;
    });
    check(result.url); // the page may have gone elsewhere since it has loaded: what counts is the page that was read
    return {
      url, final_url: result.url, success: true, http_status: null,
      data: { title: result.title, text: result.text, markdown: result.markdown, links: result.links },
      metadata: { seconds: (Date.now() - began) / 1000, fetched_by: "extension" },
    };
  } catch (error) {
    return { url, success: false, error: error.code || "load_failed", data: {}, metadata: { message: String(error.message || error).slice(0, 500) } };
  } finally {
    if (tab) await chrome.tabs.remove(tab.id).catch(() => {});
  }
}

const RULE_IDS = PRIVATE_URLS.map((_, index) => index + 1);

// Rules of the browser: nothing in this tab, no page and no part of one, is loaded from a private address.
function rulesFor(tabId) {
  const resourceTypes = Object.values(chrome.declarativeNetRequest.ResourceType);
  return PRIVATE_URLS.map((regexFilter, index) => ({
    id: RULE_IDS[index], action: { type: "block" }, condition: { regexFilter, resourceTypes, tabIds: [tabId] },
  }));
}

// Asks instead of waiting to be told: an event that comes while the tab is being made would be missed.
async function loaded(tabId, isWanted) {
  for (const give_up = Date.now() + LOAD_LIMIT; Date.now() < give_up; await pause(ASK_EVERY)) {
    const tab = await chrome.tabs.get(tabId);
    if (tab.status === "complete" && tab.url && isWanted(tab.url)) return tab.url;
  }
  throw Object.assign(new Error("the page did not load in time"), { code: "timeout" });
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// Runs inside the page.
function readPage() {
  const skipped = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "SVG", "IFRAME"]);
  const parts = [];
  const walk = (node) => {
    for (const child of node.childNodes) {
      if (child.nodeType === Node.TEXT_NODE) { parts.push(child.textContent.replace(/\s+/g, " ")); continue; }
      if (child.nodeType !== Node.ELEMENT_NODE || skipped.has(child.tagName.toUpperCase())) continue;
      const heading = /^H([1-6])$/.exec(child.tagName);
      if (heading) parts.push(`\n\n${"#".repeat(Number(heading[1]))} ${child.innerText.trim()}\n\n`);
      else if (child.tagName === "A" && /^https?:/.test(child.href)) parts.push(`[${child.innerText.trim().replace(/\s+/g, " ")}](${child.href})`);
      else if (child.tagName === "LI") { parts.push("\n- "); walk(child); }
      else if (child.tagName === "PRE") parts.push(`\n\n\`\`\`\n${child.innerText}\n\`\`\`\n\n`);
      else if (child.tagName === "BR") parts.push("\n");
      else if (/^(P|DIV|SECTION|ARTICLE|MAIN|HEADER|FOOTER|UL|OL|TABLE|TR|BLOCKQUOTE)$/.test(child.tagName)) { parts.push("\n\n"); walk(child); parts.push("\n\n"); }
      else walk(child);
    }
  };
  walk(document.body);
  const limit = 1000000;
  return {
    url: location.href,
    title: document.title,
    text: document.body.innerText.slice(0, limit),
    markdown: parts.join("").replace(/[ \t]*\n[ \t]*/g, "\n").replace(/\n{3,}/g, "\n\n").trim().slice(0, limit),
    links: [...new Set([...document.links].map((link) => link.href).filter((href) => /^https?:/.test(href)))].slice(0, 2000),
  };
}

chrome.alarms.onAlarm.addListener(look);
chrome.action.onClicked.addListener(look);
chrome.storage.onChanged.addListener((changes) => { if (changes.enabled || changes.server || changes.token || changes.allowPrivate) look(); });
chrome.runtime.onInstalled.addListener(() => chrome.alarms.create("look", { periodInMinutes: EVERY_MINUTES }));
chrome.runtime.onStartup.addListener(() => chrome.alarms.create("look", { periodInMinutes: EVERY_MINUTES }));
