// Which URLs have a private address: the addresses that fetch/guard.py refuses, and names that mean one. Other names are
// not resolved. The patterns have no lookahead, because the browser uses them for its own rules too (RE2).
"use strict";

// URL writes every IPv4 address with four numbers, and every IPv6 address in its shortest form.
const HOST_STARTS = "^[a-z]+://(?:[^/?#]*@)?";
const HOST_ENDS = "[:/]";
const PRIVATE_HOSTS = [
  "(?:0|10|127|22[4-9]|2[345]\\d)\\.\\d+\\.\\d+\\.\\d+",
  "(?:100\\.(?:6[4-9]|[7-9]\\d|1[01]\\d|12[0-7])|169\\.254|172\\.(?:1[6-9]|2\\d|3[01])|192\\.168|198\\.1[89])\\.\\d+\\.\\d+",
  "(?:192\\.(?:0\\.[02]|31\\.196|52\\.193|88\\.99|175\\.48)|198\\.51\\.100|203\\.0\\.113)\\.\\d+",
  "168\\.63\\.129\\.16",
  "(?:[^/?#@:]*\\.)?localhost\\.?",
  "(?:metadata(?:\\.google\\.internal|\\.goog)?|instance-data(?:\\.ec2\\.internal)?)\\.?",
  "\\[(?:[^23]|[23][0-9a-f]{0,2}:)[^\\]]*\\]", // not 2000::/3, also not an IPv4 address in an IPv6 address
  "\\[(?:2001:(?::|[01]?[0-9a-f]{1,2}:|db8:)|2002:|2620:4f:8000:|3ffe:|3fff:(?::|[0-9a-f]{1,3}:))[^\\]]*\\]",
  "\\[[^\\]]*:5efe:[^\\]]*\\]", // ISATAP
];
const PRIVATE_URLS = PRIVATE_HOSTS.map((host) => HOST_STARTS + host + HOST_ENDS);

function isPrivate(url) {
  const { href } = new URL(url);
  return PRIVATE_URLS.some((pattern) => new RegExp(pattern).test(href));
}
