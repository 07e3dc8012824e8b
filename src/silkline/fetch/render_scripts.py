"""The scripts that we run in pages: one before the scripts of the page, one that reads the DOM after them."""

from typing import Final

# Removes features that could bypass the proxy, outlive the page, or wait for a user.
PREPARE: Final = """
(() => {
  for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "RTCDataChannel", "WebTransport", "SharedWorker"])
    delete globalThis[name];
  if (globalThis.Navigator) delete Navigator.prototype.serviceWorker;
  globalThis.print = () => {};
  globalThis.open = () => null;
})()
"""

# Runs in an isolated world, where the page cannot have changed the built-in objects. A DOM above the limit is not read.
# Shadow trees replace the children of their hosts, with their slots filled, so that the text is where users see it.
SNAPSHOT: Final = """
(most => {
  const root = document.documentElement;
  if (!root) return {html: "", url: document.URL};
  let size = 0;
  const hosts = [];
  const measure = tree => {
    const walk = document.createTreeWalker(tree, NodeFilter.SHOW_ALL);
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
      if (node.nodeType === Node.ELEMENT_NODE) {
        size += 2 * node.localName.length + 5;
        for (const attribute of node.attributes) size += attribute.name.length + attribute.value.length + 4;
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
  const html = "<!doctype html>\\n" + root.outerHTML;
  return html.length > 2 * most ? {size: html.length} : {html, url: document.URL};
})
"""
