import type * as v from "valibot";
import { isRecord } from "../fields.ts";
import { parseHeaderName } from "../key.ts";
import { timeZoneHint, windowHint } from "./calendar-hint.ts";
import { asnHint, botHint, countryHint, namedHint, namedValueHint } from "./client-hint.ts";
import { durationHint, durationText, millisecondsHint } from "./duration-hint.ts";
import { bareName, isSecret, nearestName, valueAt } from "./given-value.ts";
import { keyHint, tierKeyHint } from "./key-hint.ts";
import { conditionHint, hostHint, matchHint } from "./match-hint.ts";
import { limitHint, numberHint } from "./number-hint.ts";
import {
  algorithmHint,
  configHint,
  exemptHint,
  limitsHint,
  nativeLimiterHint,
  networkHint,
  originHint,
  responseHint,
  ruleHint,
  rulesHint,
} from "./object-hint.ts";
import { startHint, unitsIn } from "./start-hint.ts";
import { countHint, nameHint, shareHint, statusHint, urlHint } from "./text-hint.ts";

/**
 * Words of other limiters for the values of a field, in lower case and without separators. The key
 * is the value as Weir writes it.
 */
const SYNONYMS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  onError: {
    '"open"': "failopen allow allowed pass true ignore continue next fallthrough skip",
    '"closed"': "failclosed failclose deny denied block reject error throw 503 false",
    '"local"': "fallback memory inmemory isolate locally",
  },
  mode: {
    '"shadow"':
      "dryrun log logonly logging report reportonly monitor monitoring test testing simulate simulation audit off observe false disabled",
    '"mark"': "soft softlimit warn warning flag tag annotate label overage marked pass notify",
    '"enforce"': "on live block active enabled true deny production enforced",
  },
  store: {
    '"upstash"': "redis upstashredis rediscloud ioredis upstashratelimit",
    '"durable-object"':
      "do durableobject durableobjects kv d1 cloudflare sqlite counters workerskv cloudflarekv",
    '"memory"': "inmemory ram map local lru cache",
  },
  clock: {
    '"edge"': "local worker isolate cloudflare date now client",
    '"redis"': "store server upstash durableobject remote",
  },
  headers: {
    '"draft-11"':
      "true ietf standard draft draft6 draft7 draft8 draft9 draft10 draft12 rfc ratelimit on default",
    '"legacy"': "xratelimit github x old xratelimitlimit",
    '"both"': "all",
    '"none"': "false off no never null",
  },
  lease: { '"auto"': "true on yes always", false: "off never no none null 0 disabled" },
  caseSensitivePaths: { true: "yes 1 on true", false: "no 0 off false" },
  denialLog: { 0: "false off none no never null disabled", 10: "true on yes default" },
  serverTiming: { true: "yes 1 on true", false: "no 0 off false" },
  tellOrigin: { true: "yes 1 on true", false: "no 0 off false" },
  for: {
    '"all"': "http requests everything both web any",
    '"programs"': "service services code calls worker workers rpc",
  },
  start: {
    '"epoch"': "midnight utc now aligned fixed calendar",
    '"spread"': "random jitter hash staggered client",
  },
};

/**
 * Suggests one of the words that a field allows.
 *
 * @param allowed the words that the schema allows, if it lists them
 */
function wordHint(field: string, given: unknown, allowed: readonly string[]): string | undefined {
  if (typeof given === "object" && given !== null) return undefined;
  const word = bareName(String(given));
  for (const [meant, synonyms] of Object.entries(SYNONYMS[field] ?? {})) {
    if (synonyms.split(" ").includes(word)) return `write ${meant}`;
  }
  const same = allowed.find((each) => bareName(each) === word);
  if (same) return `write ${JSON.stringify(same)}`;
  const nearest = typeof given === "string" ? nearestName(given, allowed) : undefined;
  return nearest && `did you mean ${JSON.stringify(nearest)}?`;
}

/** Other names for the length of the body. */
const BODY =
  /^(?:request\.?)?(?:body(?:[.:_-]?(?:bytes|length|size))?|bytes|content[-\s]?length|size)$/i;

/**
 * Suggests a number or a notation for a cost.
 *
 * @param field the name of the faulty field: `cost`, or a field of the object
 */
function costHint(field: string, given: unknown, allowed: string): string | undefined {
  if (typeof given === "function") return functionHint(field);
  const isBefore = field === "from" || field === "reserve";
  if (isRecord(given)) return objectHint(given, isBefore);
  if (typeof given !== "string") return numberHint(given, allowed);
  const [, prefix = "", rest = ""] = /^((?:[a-z.]+[\s:.=]+)?)(.*)$/is.exec(given.trim()) ?? [];
  const isResponse = field === "settle";
  if (!isResponse && BODY.test(given.trim().replace(/^headers?[\s:.=]+/i, ""))) {
    return 'write "body:bytes"';
  }
  if (/^(?:custom|function|fn|costs?|settle)[\s:.=]+$/i.test(prefix) && /^\w+$/.test(rest)) {
    return `write "custom:${rest}"`;
  }
  const number = numberHint(given, allowed);
  if (number) return number;
  return isBefore ? beforeHint(given) : costHeaderHint(given);
}

/** Suggests the field of the response that holds the cost. */
function costHeaderHint(given: string): string | undefined {
  const name = given.trim().replace(/^(?:(?:response\.)?headers?|cookie|query)[\s:.=]*/i, "");
  if (name === "") return 'write "header:x-cost" with the name of your header';
  const header = /^[A-Za-z][\w-]*$/.test(name) ? parseHeaderName(name) : undefined;
  return header && `write "header:${header}"`;
}

/** If a cost before the response names a header field, suggests `settle` or a function. */
function beforeHint(given: string): string | undefined {
  return /^headers?\b/i.test(given.trim())
    ? 'for a header field of the response, write settle; for one of the request, write "custom:NAME" with a function in custom.costs'
    : undefined;
}

/** Suggests where to move a function that was written as the cost. */
function functionHint(field: string): string {
  if (field === "settle") {
    return 'move it into custom: { settle: { usage: … } } beside rules, and write "custom:usage"';
  }
  return field === "reserve"
    ? 'move it into custom: { costs: { estimate: … } } beside rules, and write "custom:estimate"'
    : 'move it into custom: { costs: { weight: … } } beside rules, and write "custom:weight"; or write "header:NAME" for a header field of the response';
}

/** Suggests the short form for an object such as `{ header: "x-cost" }`. */
function objectHint(
  given: Readonly<Record<string, unknown>>,
  isBefore: boolean,
): string | undefined {
  const [[kind = "", name] = [], ...others] = Object.entries(given);
  if (typeof name !== "string" || others.length > 0 || !/^\w[\w-]*$/.test(name)) return undefined;
  if (/^headers?$/i.test(kind)) {
    return isBefore ? beforeHint(kind) : `write "header:${name.toLowerCase()}"`;
  }
  if (/^(custom|function)$/i.test(kind)) return `write "custom:${name}"`;
  return kind === "body" ? 'write "body:bytes"' : undefined;
}

/** Suggests a cure without the given value, because the value may be a secret. */
function secretHint(names: readonly string[], given: unknown): string | undefined {
  if (names.at(-2) === "headers" && isRecord(given)) {
    return 'write the name of a secret of the Worker, such as { secret: "INTERNAL_TOKEN" }, not the secret itself';
  }
  if (names.at(-1) === "exempt") return exemptHint(given);
  return names.at(-1) === "secret" && typeof given === "string"
    ? 'write the name of the secret, such as "JWT_SECRET", not the secret itself'
    : undefined;
}

/** Suggests the two forms of `jwt` for a text. */
function jwtHint(given: unknown): string | undefined {
  return typeof given === "string"
    ? 'write { jwks: "https://…" } for public keys, or { secret: "JWT_SECRET" } with the name of a secret'
    : undefined;
}

/** Suggests a name of a tier, without the given name, because it may be a credential. */
function tierNameHint(given: string): string | undefined {
  if (given.startsWith("*.")) {
    return "a tier is a single host. For all hosts below a name, add a rule with match.hosts";
  }
  if (/^[a-z\d.-]+\.[a-z]+:\d+$/i.test(given)) return "write the host without its port";
  return /[^ -~]/.test(given) && given.includes(".")
    ? "write a host as in URLs: in Punycode, such as xn--bcher-kva.example"
    : undefined;
}

/**
 * Suggests a ban in Weir's notation for lengths in another notation, such as `"1m, 10m"` or `{
 * durations: ["1m", "10m"] }`. For a single length, the suggestion is a length of time.
 */
function banHint(given: unknown): string | undefined {
  if (typeof given === "string")
    return lengthsHint(given.split(/\s*[,;|>→]+\s*|(?<=\d[a-z])\s+(?=\d)/)) ?? durationHint(given);
  const list = isRecord(given) ? Object.values(given).find(Array.isArray) : undefined;
  return (list && lengthsHint(list)) ?? durationHint(given);
}

/** Suggests a list for the field `lengths`. */
function lengthsHint(given: unknown): string | undefined {
  if (!Array.isArray(given)) {
    const hint = typeof given === "string" ? banHint(given) : durationHint(given);
    const length = durationText(given);
    return length && !hint?.startsWith("write [") ? `write [${length}]` : hint;
  }
  const texts = given.map((length) => durationText(length));
  return given.length > 1 && texts.every(Boolean) ? `write [${texts.join(", ")}]` : undefined;
}

/** The length of the longest text for which Weir suggests a cure. */
const LONGEST_TEXT = 300;
/** The number of items of the longest list or object for which Weir suggests a cure. */
const MAX_ITEMS = 50;

/** A faulty value, and its place in the configuration. */
interface Faulty {
  readonly issue: v.BaseIssue<unknown>;
  readonly keys: readonly unknown[];
  /** The value as the user wrote it. */
  readonly given: unknown;
  /** The configuration as the user wrote it. */
  readonly config: unknown;
}

/** Suggests a replacement for a faulty value; undefined if there is no obvious one. */
export function valueHint(faulty: Faulty): string | undefined {
  const hint = hintForValue(faulty);
  // A suggestion that is equal to the given value is no cure.
  return hint && repeats(hint, faulty.given) ? undefined : hint;
}

/** Whether a suggestion such as `write "ip"` is the value that the user has written. */
function repeats(hint: string, given: unknown): boolean {
  if (typeof given !== "string" && !Array.isArray(given)) return false;
  try {
    return JSON.stringify(JSON.parse(hint.replace(/^write /, ""))) === JSON.stringify(given);
  } catch {
    return false;
  }
}

function hintForValue({ issue, keys, given, config }: Faulty): string | undefined {
  // The message of a check between fields is a sentence that names the cure.
  if (issue.type === "raw_check") return nearestHint(issue);
  // A longer text is not a misspelt value, and a search in it would take long.
  if (!isSmall(given)) return undefined;
  if (keys[0] === "rules" && keys.length === 2) return ruleHint(keys[1], given);
  const names = keys.filter((key) => !/^\d+$/.test(String(key))).map(String);
  if (isSecret(keys)) return secretHint(names, given);
  const [field = "", parent, grandparent] = names.toReversed();
  const isCondition = names.includes("match");
  if (isCondition && (parent === "headers" || parent === "query")) return namedValueHint(given);
  if (isCondition && (field === "headers" || field === "query")) return namedHint(field, given);
  if (parent === "headers") return headerHint(given);
  if (parent === "origins") return given === field ? hostHint(given) : originHint(given);
  if (parent === "limits" && grandparent === "tiers") {
    return given === field ? tierNameHint(given) : limitsHint(given, true);
  }
  if (names[0] === "custom" && given instanceof Promise)
    return "write the function, without calling it";
  const isElement = typeof keys.at(-1) === "number";
  if (field === "start") {
    const rule = valueAt(config, keys.slice(0, -1));
    return startHint(given, unitsIn(rule)) ?? wordHint(field, given, ["epoch", "spread"]);
  }
  return hintFor({ field, parent, isElement }, given, issue);
}

/** Whether a value has few items and no long text. Suggestions read a list in a list at most. */
function isSmall(value: unknown, depth = 0): boolean {
  if (typeof value === "string") return value.length <= LONGEST_TEXT;
  if (depth > 2 || typeof value !== "object" || value === null) return true;
  if (Array.isArray(value) && value.length > MAX_ITEMS) return false;
  const entries = Object.entries(value);
  return (
    entries.length <= MAX_ITEMS &&
    entries.every(([name, item]) => name.length <= LONGEST_TEXT && isSmall(item, depth + 1))
  );
}

/** Suggests the nearest of the names that a check between fields allows. */
function nearestHint({ expected, received }: v.BaseIssue<unknown>): string | undefined {
  const nearest = expected ? nearestName(received, expected.split(", ")) : undefined;
  return nearest && `did you mean "custom:${nearest}"?`;
}

interface Position {
  /** The name of the field; for an element of a list, the name of the list. */
  readonly field: string;
  /** The name of the object that has the field. */
  readonly parent: string | undefined;
  readonly isElement: boolean;
}

function hintFor(
  { field, parent, isElement }: Position,
  given: unknown,
  { message }: v.BaseIssue<unknown>,
): string | undefined {
  switch (field) {
    case "name":
    case "prefix":
      return nameHint(field, given);
    case "hosts":
    case "methods":
    case "paths":
      return conditionHint(field, given, isElement);
    case "countries":
      return countryHint(given, isElement);
    case "asns":
      return asnHint(given, isElement);
    case "limit":
      return limitHint(given, message);
    case "limits":
      return parent === "tiers" ? undefined : limitsHint(given, isElement);
    case "capacity":
      return numberHint(given, message) ?? "write a number, at least the limit";
    case "timeoutMs":
      return numberHint(given, message) ?? millisecondsHint(given);
    case "cost":
    case "from":
    case "reserve":
    case "settle":
      return costHint(field, given, message);
    case "status":
      return statusHint(parent, given, message);
    case "algs":
    case "alg":
      return algorithmHint(field, given);
    default:
      if (Object.hasOwn(HINTS, field)) return HINTS[field]?.(given);
      return wordHint(field, given, wordsIn(message)) ?? numberHint(given, message);
  }
}

/** The suggestions that depend only on the given value. The keys are the names of the fields. */
const HINTS: Readonly<Record<string, (given: unknown) => string | undefined>> = {
  "": configHint,
  rules: rulesHint,
  match: (given) => matchHint("match", given),
  except: (given) => matchHint("except", given),
  key: keyHint,
  by: tierKeyHint,
  window: windowHint,
  timeZone: timeZoneHint,
  ban: banHint,
  lengths: lengthsHint,
  forgetAfter: durationHint,
  retryJitter: durationHint,
  localShare: shareHint,
  count: countHint,
  response: responseHint,
  body: bodyHint,
  ips: networkHint,
  bots: botHint,
  origin: originHint,
  nativeLimiter: nativeLimiterHint,
  url: urlHint,
  jwks: urlHint,
  jwt: jwtHint,
};

function bodyHint(given: unknown): string | undefined {
  return typeof given === "function"
    ? 'write response: "custom:NAME", and move the function to the top level: custom: { responses: { NAME: … } }'
    : undefined;
}

function wordsIn(text: string): string[] {
  return [...text.matchAll(/"([^"]+)"/g)].map(([, word]) => word as string);
}

function headerHint(given: unknown): string | undefined {
  return typeof given === "number" || typeof given === "boolean"
    ? `write a text: ${JSON.stringify(String(given))}`
    : undefined;
}
