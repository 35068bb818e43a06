import { clientIp } from "./client-ip.ts";
import { hostName } from "./host-name.ts";

/** How much of a line is looked at, in characters. */
const EXAMINED = 1000;
/** The maximum length of a sample, in characters. */
const MAX_LENGTH = 200;

/** The fields before the request of an access log: one or two addresses, two names, and a time in brackets. */
const FIELD = /^\S{1,100}$/;
/** Digits first, so that no other text in brackets is taken for a time. */
const TIME = /^\d{1,4}[/-][\w/:+,. -]{4,35}$/;
const REQUEST = /^"[A-Z]{3,17} (?:\/[\w/.~-]*)?/;

/** The start of an entry of a HAR file, or of a line that is only a request. */
const ENTRY = /^([A-Z]{3,17}) (?=\/|https?:\/\/)/i;
const ORIGIN = /^(https?:\/\/)(?:[^/?#]*@)?([\w.-]{1,253})(?::\d{1,5})?(?=[/?#]|$)/i;
const PATH = /^\/[\w/.~-]*/;

/** A name in an object. Names of other forms may be values, such as those of a query. */
const NAME = /^[A-Za-z@_][\w.@-]{0,49}$/;
const NAMES = /[{,]\s{0,8}"([A-Za-z@_][\w.@-]{0,49})"\s{0,8}:/g;

/**
 * Returns the parts of a broken line that are no secrets: the address, the time, the method, and the path up to its
 * first unusual character; of JSON, the names of the fields. Removing secrets from a line would not do, because in a
 * broken line, they can be anywhere and in any form.
 */
export function lineSample(line: string): string {
  const text = line.slice(0, EXAMINED).trimStart();
  const sample = sampleOf(line, text);
  return sample.length > MAX_LENGTH ? `${sample.slice(0, MAX_LENGTH - 1)}…` : sample;
}

function sampleOf(line: string, text: string): string {
  if (text.startsWith("{") || text.startsWith("[")) return fieldNames(line);
  const [start = "", method] = ENTRY.exec(text) ?? [];
  return method === undefined
    ? accessFields(text)
    : requestSample(method, text.slice(start.length));
}

function requestSample(method: string, url: string): string {
  const [origin = "", scheme, host] = ORIGIN.exec(url) ?? [];
  const rest = url.slice(origin.length);
  const path = PATH.exec(rest)?.[0] ?? "";
  const end = path.length < rest.length ? "…" : "";
  return `${method} ${host === undefined ? "" : scheme + host}${path}${end}`;
}

function accessFields(text: string): string {
  const bracket = text.indexOf("[");
  const fields = text.slice(0, Math.max(0, bracket - 1)).split(" ");
  const [first = "", second = ""] = fields;
  if (!fields.every((field) => FIELD.test(field))) return "…";
  const hasHost = clientIp(second) !== undefined && hostName(first) !== undefined;
  if (!hasHost && clientIp(first) === undefined) return "…";
  const addresses = fields.slice(0, hasHost ? 2 : 1);
  const names = fields.slice(addresses.length).map((field) => (field === "-" ? "-" : "…"));
  const close = text.indexOf("]", bracket);
  const time = text.slice(bracket + 1, close);
  const start = [...addresses, ...names].join(" ");
  if (!TIME.test(time)) return `${start} […`;
  const [request = ""] = REQUEST.exec(text.slice(close + 2)) ?? [];
  return `${start} [${time}] ${request}…`;
}

function fieldNames(line: string): string {
  const names =
    topNames(line) ?? [...line.slice(0, EXAMINED).matchAll(NAMES)].map(([, name]) => name);
  return `{${names.map((name) => `"${name}": …`).join(", ")}`;
}

/** @returns undefined if the line is no object */
function topNames(line: string): string[] | undefined {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    return Object.keys(value).map((name) => (NAME.test(name) ? name : "…"));
  } catch {
    return undefined;
  }
}
