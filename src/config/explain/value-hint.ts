import type * as v from "valibot";
import { banHint, lengthsHint } from "./ban-hint.ts";
import { timeZoneHint, windowHint } from "./calendar-hint.ts";
import { asnHint, botHint, countryHint, namedHint, namedValueHint } from "./client-hint.ts";
import { costHint } from "./cost-hint.ts";
import { durationHint, millisecondsHint } from "./duration-hint.ts";
import { isSecret, valueAt } from "./given-value.ts";
import { keyHint, tierKeyHint } from "./key-hint.ts";
import { conditionHint, hostHint, matchHint } from "./match-hint.ts";
import { nearestName } from "./nearest-name.ts";
import { limitHint, numberHint } from "./number-hint.ts";
import {
  algorithmHint,
  configHint,
  limitsHint,
  nativeLimiterHint,
  networkHint,
  originHint,
  responseHint,
  ruleHint,
  rulesHint,
} from "./object-hint.ts";
import { jwtHint, secretHint, tierNameHint } from "./secret-hint.ts";
import { startHint, unitsIn } from "./start-hint.ts";
import { countHint, nameHint, shareHint, statusHint, urlHint } from "./text-hint.ts";
import { wordHint } from "./word-hint.ts";

/** The length of the longest text for which Weir suggests a cure. */
const LONGEST_TEXT = 300;
/** The number of items of the longest list or object for which Weir suggests a cure. */
const MAX_ITEMS = 50;

/** A faulty value, and its place in the configuration. */
export interface Faulty {
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
