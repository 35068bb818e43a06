import { parseNetwork } from "../address.ts";
import { shortened } from "../faults.ts";
import { isRecord } from "../fields.ts";
import { durationText } from "./duration-hint.ts";
import { bareName, nearestName, withoutCredentials } from "./given-value.ts";
import { rateOf, wholeNumberOf } from "./number-hint.ts";
import { urlHint } from "./text-hint.ts";

/** Suggests how to pass a configuration to `defineConfig`. */
export function configHint(given: unknown): string | undefined {
  if (Array.isArray(given)) return "write { rules: [ … ] } around the list";
  if (typeof given === "function") return "pass an object, not a function";
  return given instanceof Promise ? "pass the result of the promise: use await" : undefined;
}

/** Suggests a list of rules for an object of rules, and for a single rule. */
export function rulesHint(given: unknown): string | undefined {
  if (!isRecord(given)) return undefined;
  const [first = ""] = Object.keys(given);
  if (isRule(given)) return "write a list: rules: [{ … }]";
  return `write a list, with the names as fields: rules: [{ name: "${ruleName(first)}", … }]`;
}

function isRule(given: object): boolean {
  return "limit" in given || "limits" in given || "match" in given;
}

function ruleName(name: string): string {
  return /^[a-z0-9][a-z0-9_-]{0,63}$/.test(name) ? name : "api";
}

/**
 * Suggests a cure for an element of `rules` that is not a rule, and for a file that has no list of
 * rules.
 *
 * @param key the index of the element, or the name of the file
 */
export function ruleHint(key: unknown, given: unknown): string | undefined {
  if (typeof key === "number") {
    return Array.isArray(given)
      ? 'join the lists: rules: [...loginRules, ...searchRules], or name their files: rules: { "rules/login.ts": loginRules }'
      : rulesHint(given);
  }
  if (given === key) {
    return /^\d{1,20}$/.test(String(key)) ? `write "rules/${key}.ts"` : undefined;
  }
  if (given instanceof Promise)
    return 'import the list: import { loginRules } from "./rules/login"';
  if (!isRecord(given)) return undefined;
  if (isRule(given) || typeof given.name === "string") return "write a list: [{ … }]";
  const [name] = Object.entries(given).find(([, value]) => Array.isArray(value)) ?? [];
  return name && `write the list that the file exports, such as .${shortened(name)}`;
}

/**
 * Suggests a list of limits, or one limit, for other notations such as `"5/minute"`.
 *
 * @param isElement whether the value is an element of the list
 */
export function limitsHint(given: unknown, isElement: boolean): string | undefined {
  const limit = limitIn(given);
  if (limit) return `write ${isElement ? limit : `[${limit}]`}`;
  return !isElement && isRecord(given) ? "write a list: limits: [{ limit, window }]" : undefined;
}

function limitIn(given: unknown): string | undefined {
  const rate = rateOf(given);
  if (rate) return `{ limit: ${rate.limit}, window: ${rate.window} }`;
  if (typeof given === "number" && Number.isInteger(given) && given >= 0) {
    return `{ limit: ${given}, window: "1m" }`;
  }
  if (!isRecord(given)) return undefined;
  const entries = Object.entries(given);
  if (entries.length === 0 || entries.length > 8) return undefined;
  const { limit, window } = given;
  const own = limitOf(limit, window);
  if (own && entries.length === 2) return own;
  const limits = entries.map(([time, count]) => limitOf(count, time));
  return limits.includes(undefined) ? undefined : limits.join(", ");
}

function limitOf(limit: unknown, window: unknown): string | undefined {
  const count = typeof limit === "number" ? limit : wholeNumberOf(limit);
  const time = durationText(window);
  return count === undefined || time === undefined
    ? undefined
    : `{ limit: ${count}, window: ${time} }`;
}

/** Suggests `{ status }` or `{ body }` for a status or a text, and the notation of a function. */
export function responseHint(given: unknown): string | undefined {
  if (typeof given === "number") return `write { status: ${given} }`;
  if (typeof given === "function") {
    return 'write "custom:NAME", and move the function to the top level: custom: { responses: { NAME: … } }';
  }
  if (typeof given !== "string") return undefined;
  const [, name] = /^(?:custom[:.\s]+)?([A-Za-z_][\w-]{0,63})$/.exec(given.trim()) ?? [];
  return name
    ? `write "custom:${name.replaceAll("-", "_")}" for a function, or { body: … } around the text`
    : "write { body: … } around the text";
}

/** Suggests `{ ips }` for a list of addresses. Values are not shown, because they may be secrets. */
export function exemptHint(given: unknown): string | undefined {
  const texts = [given].flat();
  const areNetworks = texts.every((text) => typeof text === "string" && parseNetwork(text));
  return texts.length > 0 && areNetworks ? "write { ips: [ … ] } around the addresses" : undefined;
}

/**
 * The shortest prefix of a suggested network, in bits. A shorter prefix would exempt a large part of the
 * Internet, and is probably a mistake.
 */
const MIN_BITS = 8;

/** Suggests a network in the notation that Weir reads. */
export function networkHint(given: unknown): string | undefined {
  if (typeof given !== "string") return undefined;
  const text = given.trim();
  if (text.toLowerCase() === "localhost") return 'write "127.0.0.1" and "::1"';
  if (parseNetwork(text)) return `write [${JSON.stringify(text)}]`;
  const parts = text.split(/\s*,\s*/);
  if (parts.length > 1 && parts.every((part) => parseNetwork(part))) {
    return `write ${JSON.stringify(parts)}`;
  }
  const network = ipv4Network(text);
  const [, bits] = (network && parseNetwork(network)) || [0, 0];
  return bits < MIN_BITS ? undefined : `write ${JSON.stringify(network)}`;
}

/** Reads `10.0.0.*`, `10.0.0.0/255.255.255.0`, and an IPv4 address that is written as IPv6. */
function ipv4Network(text: string): string | undefined {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)(?:\/(\d+))?$/i.exec(text);
  if (mapped) {
    const [, address, bits] = mapped;
    return bits === undefined ? address : `${address}/${Number(bits) - 96}`;
  }
  const [, base = "", mask] = /^(\d+\.\d+\.\d+\.\d+)\/(\d+\.\d+\.\d+\.\d+)$/.exec(text) ?? [];
  const bits = mask
    ?.split(".")
    .map((part) => Number(part).toString(2).padStart(8, "0"))
    .join("");
  if (bits && /^1*0*$/.test(bits)) return `${base}/${bits.replace(/0/g, "").length}`;
  const numbers = text
    .replace(/(\.(\*|x))+$/i, "")
    .replace(/\.$/, "")
    .split(".");
  const isPart = numbers.length < 4 && numbers.every((part) => /^\d{1,3}$/.test(part));
  return isPart
    ? `${[...numbers, 0, 0, 0].slice(0, 4).join(".")}/${numbers.length * 8}`
    : undefined;
}

/** Suggests `{ url }` or `{ binding }` for a text. */
export function originHint(given: unknown): string | undefined {
  if (typeof given !== "string") return undefined;
  const url = urlHint(given)?.replace(/^write /, "");
  if (url?.startsWith('"')) {
    const isHttp = /^http:/i.test(given);
    return `write { url: ${isHttp ? url.replace("https:", "http:") : url} }`;
  }
  return bindingHint(given);
}

/** Suggests `{ binding }` for the name of a binding. */
export function nativeLimiterHint(given: unknown): string | undefined {
  return typeof given === "string" ? bindingHint(given) : undefined;
}

function bindingHint(given: string): string | undefined {
  return /^[A-Za-z_]\w{0,63}$/.test(given)
    ? `write { binding: ${JSON.stringify(withoutCredentials(given))} }`
    : undefined;
}

const ALGORITHMS = ["RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "EdDSA"];

/** Suggests algorithms of JSON Web Tokens. */
export function algorithmHint(field: string, given: unknown): string | undefined {
  if (typeof given !== "string") return undefined;
  const allowed = field === "alg" ? ["HS256", "HS384", "HS512"] : ALGORITHMS;
  const exact = allowed.find((each) => bareName(each) === bareName(given));
  if (exact) return `write ${field === "algs" && exact === given ? `["${exact}"]` : `"${exact}"`}`;
  if (field === "alg" && ALGORITHMS.includes(given.toUpperCase())) {
    return `write algs: ["${given.toUpperCase()}"], which needs jwks`;
  }
  if (field === "algs" && /^hs/i.test(given)) {
    return `write alg: "${given.toUpperCase()}", which needs secret`;
  }
  const nearest = nearestName(given, allowed);
  return nearest && nearest.length === given.length ? `did you mean "${nearest}"?` : undefined;
}
