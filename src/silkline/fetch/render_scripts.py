"""The scripts that we run in pages: one before the page's own, one to read what came of them."""

from typing import Final

# What could pass by the proxy, outlive the page, or wait for somebody to look at it.
PREPARE: Final = """
(() => {
  for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "RTCDataChannel", "WebTransport", "SharedWorker"])
    delete globalThis[name];
  if (globalThis.Navigator) delete Navigator.prototype.serviceWorker;
  globalThis.print = () => {};
  globalThis.open = () => null;
})()
"""

# Runs in an isolated world, where the page cannot have changed what the names mean. What it would be too long to read
# is not read. Shadow trees are put where they are seen: in place of the children of their hosts, slots filled.
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
