// Claims `extension` jobs from a Silkline, opens each page in a tab of this browser, and posts what it sees.
// The lease goes with every request; a 409 means that the job is somebody else's now, and the work stops at once.
"use strict";

const EVERY_MINUTES = 0.5;
const ASK_EVERY = 100;
const EMPTY = "about:blank";
const SETTLE = 500; // a page that has loaded may still be drawing
const LONGEST_URL = 8192; // the server refuses longer ones
const LIMITS = { page: 45000, close: 5000, answer: 60000 }; // milliseconds for a page, for closing its tab, and for a request
const REFUSED = [400, 413, 422]; // what the server answers to a page that it never takes, however often it is sent
const GIVEN_UP = "given_up";

importScripts("addresses.js");

let busy = false;

const settings = () => chrome.storage.local.get({ server: "http://127.0.0.1:8700", token: "", enabled: false, allowPrivate: false });

async function ask(path, body, lease) {
  const { server, token } = await settings();
  const headers = { "Content-Type": "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (lease) headers["Silkline-Lease"] = lease;
  const signal = AbortSignal.timeout(LIMITS.answer);
  const answer = await fetch(new URL(path, server), { method: "POST", headers, signal, body: body ? JSON.stringify(body) : undefined });
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
  let page = new AbortController();
  let late = Infinity;
  const heard = () => { if (lost || desired !== "run") page.abort(failure(GIVEN_UP, "the job ends here")); };
  const beat = setInterval(() => {
    if (Date.now() > late) return; // this hangs, so the server has to take the job back
    ask(`${here}/heartbeat`, null, lease)
      .then((answer) => { desired = answer.desired; }, (error) => { lost ||= error.status === 409; })
      .then(heard);
  }, Math.max(1, seconds) * 1000);
  try {
    const urls = [...(job.spec.url ? [job.spec.url] : []), ...(job.spec.urls || [])];
    for (const url of urls) {
      if (lost) return;
      if (desired !== "run") break;
      page = new AbortController();
      late = Date.now() + LIMITS.page + 2 * LIMITS.close + 2 * LIMITS.answer;
      const seen = await see(url, page);
      if (seen.error !== GIVEN_UP) await deliver(here, seen, lease);
    }
    const end = { run: "completed", pause: "paused", stop: "stopped", cancel: "cancelled" }[desired];
    await ask(`${here}/finish`, { end }, lease);
  } catch (error) {
    if (error.status !== 409) await ask(`${here}/finish`, { end: "temporary", message: String(error.message || error).slice(0, 500) }, lease).catch(() => {});
  } finally {
    clearInterval(beat);
  }
}

// A page that the server refuses must not end the job: its URL is settled as failed. If even that is refused, it is left out.
async function deliver(here, page, lease) {
  const send = (found) => ask(`${here}/results`, { pages: [found] }, lease).then(() => null, (error) => {
    if (!REFUSED.includes(error.status)) throw error;
    return error;
  });
  const error = await send(page);
  if (error) await send(failed(page.url, failure("not_deliverable", error.message)));
}

const failure = (code, message) => Object.assign(new Error(message), { code });

const failed = (url, error) => ({
  url, success: false, error: error.code || "load_failed", data: {}, metadata: { message: String(error.message || error).slice(0, 500) },
});

// One page, as a person would see it. Whatever the page does, this ends: at its time limit, or when `page` is aborted.
async function see(url, page) {
  let tab;
  const timer = setTimeout(() => page.abort(failure("timeout", "the page was not ready in time")), LIMITS.page);
  const aborted = new Promise((_, reject) => { page.signal.onabort = () => reject(page.signal.reason); });
  aborted.catch(() => {}); // nobody waits for it yet, or any more
  const began = Date.now();
  try {
    const { allowPrivate } = await settings();
    const check = (landed) => {
      if (!allowPrivate && isPrivate(landed)) throw failure("address_blocked", "a private address");
      if (!/^https?:/.test(landed)) throw failure("load_failed", `landed on ${landed.slice(0, 100)}`);
      if (landed.length > LONGEST_URL) throw failure("bad_redirect", `landed on an address with more than ${LONGEST_URL} characters`);
    };
    check(url);
    tab = await chrome.tabs.create({ url: EMPTY, active: false }); // it gets its rules before it loads anything
    const result = await Promise.race([aborted, visit(tab.id, url, allowPrivate ? [] : rulesFor(tab.id), check, page.signal)]);
    return {
      url, final_url: result.url, success: true, http_status: null,
      data: { title: result.title, text: result.text, markdown: result.markdown, links: result.links },
      metadata: { seconds: (Date.now() - began) / 1000, fetched_by: "extension" },
    };
  } catch (error) {
    return failed(url, error);
  } finally {
    clearTimeout(timer);
    if (tab) await close(tab.id);
  }
}

// A page that is busy for ever and has a beforeunload handler is still open after the first request, but not after the second.
async function close(tabId) {
  for (let times = 0; times < 2; times++) await Promise.race([chrome.tabs.remove(tabId).catch(() => {}), pause(LIMITS.close)]);
}

async function visit(tabId, url, addRules, check, signal) {
  await loaded(tabId, (where) => where === EMPTY, signal); // else the next address may be lost
  await chrome.declarativeNetRequest.updateSessionRules({ removeRuleIds: RULE_IDS, addRules });
  await chrome.tabs.update(tabId, { url });
  check(await loaded(tabId, (where) => where !== EMPTY, signal));
  await pause(SETTLE);
  const [{ result }] = await chrome.scripting.executeScript({ target: { tabId }, func: readPage }).catch(async (error) => {
    check((await chrome.tabs.get(tabId)).url); // it may have gone to an address that its rules refuse
    throw error;
  });
  check(result.url); // the page may have gone elsewhere since it has loaded: what counts is the page that was read
  return result;
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
async function loaded(tabId, isWanted, signal) {
  for (;; await pause(ASK_EVERY)) {
    signal.throwIfAborted();
    const tab = await chrome.tabs.get(tabId);
    if (tab.status === "complete" && tab.url && isWanted(tab.url)) return tab.url;
  }
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// Runs inside the page, and limits every part there: a page of any size leaves it small enough for one delivery.
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
  const links = new Set();
  let room = limit;
  for (const { href } of document.links) {
    if (href.length > 8192 || !/^https?:/.test(href) || links.has(href)) continue;
    room -= href.length;
    if (room < 0 || links.size === 2000) break;
    links.add(href);
  }
  return {
    url: location.href.slice(0, 8193), // enough to see that it is too long
    title: String(document.title).slice(0, 10000),
    text: document.body.innerText.slice(0, limit),
    markdown: parts.join("").replace(/[ \t]*\n[ \t]*/g, "\n").replace(/\n{3,}/g, "\n\n").trim().slice(0, limit),
    links: [...links],
  };
}

chrome.alarms.onAlarm.addListener(look);
chrome.action.onClicked.addListener(look);
chrome.storage.onChanged.addListener((changes) => { if (changes.enabled || changes.server || changes.token || changes.allowPrivate) look(); });
chrome.runtime.onInstalled.addListener(() => chrome.alarms.create("look", { periodInMinutes: EVERY_MINUTES }));
chrome.runtime.onStartup.addListener(() => chrome.alarms.create("look", { periodInMinutes: EVERY_MINUTES }));
