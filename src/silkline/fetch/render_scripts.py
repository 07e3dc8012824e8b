"""The scripts that we run in pages: one before the scripts of the page, and two in an isolated world (render_world.py),
which ask whether the page is quiet and read its DOM."""

from typing import Final

# Removes features that could bypass the proxy, outlive the page, or wait for a user. Then it counts the tasks that are
# no timers, and notes work that runs outside of the clock of the page. It tells `PROBE` about both by events with a
# name that the page does not know. `performance` is the same object in both worlds, and keeps its listeners when the
# page opens its document again.
PREPARE: Final = """
(name => {
  for (const each of ["RTCPeerConnection", "webkitRTCPeerConnection", "RTCDataChannel", "WebTransport", "SharedWorker"])
    delete globalThis[each];
  if (globalThis.Navigator) delete Navigator.prototype.serviceWorker;
  globalThis.print = () => {};
  globalThis.open = () => null;

  let tasks = 0, certain = true;
  const wrap = (owner, name, note) => {
    const original = owner?.[name];
    if (typeof original !== "function") return;
    const noted = { apply: (call, self, given) => { note(); return Reflect.apply(call, self, given) },
                    construct: (make, given, target) => { note(); return Reflect.construct(make, given, target) } };
    Object.defineProperty(owner, name,
                          {...Object.getOwnPropertyDescriptor(owner, name), value: new Proxy(original, noted)});
  };
  const count = () => { tasks++ }, unsure = () => { certain = false };
  const tell = EventTarget.prototype.dispatchEvent.bind(performance), Message = Event;
  let told = 0;
  performance.addEventListener(name, () => {
    const word = !certain ? ":unsure" : tasks === told ? ":quiet" : ":busy";
    told = tasks;
    tell(new Message(name + word));
  });
  for (const name of ["requestAnimationFrame", "requestIdleCallback", "postMessage"]) wrap(globalThis, name, count);
  wrap(globalThis.MessagePort?.prototype, "postMessage", count);
  for (const name of ["Worker", "WebSocket", "EventSource", "BroadcastChannel", "FileReader", "createImageBitmap"])
    wrap(globalThis, name, unsure);
  for (const [kind, names] of [["IDBFactory", ["open", "databases"]], ["CacheStorage", ["open", "match", "has"]],
                               ["LockManager", ["request"]], ["Blob", ["text", "arrayBuffer"]],
                               ["SubtleCrypto", Object.getOwnPropertyNames(globalThis.SubtleCrypto?.prototype ?? {})]])
    for (const name of names)
      if (name !== "constructor") wrap(globalThis[kind]?.prototype, name, unsure);
  for (const name of ["compile", "compileStreaming", "instantiate", "instantiateStreaming"])
    wrap(globalThis.WebAssembly, name, unsure);
})
"""

# Whether nothing happens in the page for two frames; false: that is not certain.
PROBE: Final = """
(name => new Promise(done => {
  let said = "", quiet = 0, left = 20;
  const words = [":quiet", ":busy", ":unsure"].map(word => name + word);
  const hear = ({type}) => { said = type; if (type !== words[0]) quiet = 0 };
  const ask = () => { said = ""; performance.dispatchEvent(new Event(name)); return said };
  const watcher = new MutationObserver(() => { quiet = 0 });
  const end = answer => {
    watcher.disconnect();
    for (const word of words) performance.removeEventListener(word, hear);
    done(answer);
  };
  const look = () => {
    const now = ask();
    if (now === words[0]) quiet++;
    if (!now || now === words[2] || left-- < 0) end(false);
    else if (quiet > 2) end(true);
    else wait();
  };
  // A frame in which the browser has looked at what is in view: lists that grow wait for that.
  const wait = () => {
    const view = new IntersectionObserver(() => { view.disconnect(); requestAnimationFrame(look) });
    view.observe(document.documentElement);
  };
  for (const word of words) performance.addEventListener(word, hear);
  if (!document.documentElement || ![words[0], words[1]].includes(ask())) return end(false);
  watcher.observe(document, {subtree: true, childList: true, characterData: true});
  wait();
}))
"""

# The DOM of the page, and its URL. A DOM above the limit is not read. Both are strings for certain: an element with the
# name of a property may hide it, and could have millions of parts. Shadow trees replace the children of their hosts,
# with their slots filled, so that the text is where users see it.
SNAPSHOT: Final = """
(most => {
  const root = document.documentElement, url = typeof document.URL === "string" ? document.URL : "";
  if (!root) return {html: "", url};
  // A form with a field called "attributes" hides its own.
  const attributesOf = Object.getOwnPropertyDescriptor(Element.prototype, "attributes").get;
  let size = 0;
  const hosts = [];
  const measure = tree => {
    const walk = document.createTreeWalker(tree, NodeFilter.SHOW_ALL);
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
      if (node.nodeType === Node.ELEMENT_NODE) {
        size += 2 * node.localName.length + 5;
        for (const attribute of attributesOf.call(node)) size += attribute.name.length + attribute.value.length + 4;
        if (node.shadowRoot) {
          hosts.push(node);
          if (!measure(node.shadowRoot)) return false;
        }
      } else if (node.data) size += node.data.length;
      if (size > most) return false;
    }
    return true;
  };
  if (!measure(document)) return {size};
  for (const host of hosts.reverse()) {
    const inside = host.shadowRoot;
    for (const slot of inside.querySelectorAll("slot")) slot.replaceWith(...slot.assignedNodes({flatten: true}));
    inside.querySelectorAll("style").forEach(style => style.remove());
    host.replaceChildren(...inside.childNodes);
  }
  document.querySelectorAll("noscript").forEach(element => element.remove());
  const text = "<!doctype html>\\n" + root.outerHTML;
  const html = text.toWellFormed?.() ?? text;  // halves of surrogates are no text for others
  return html.length > 2 * most ? {size: html.length} : {html, url};
})
"""
