import type * as v from "valibot";
import { TIME_ZONE } from "../calendar.ts";
import { DURATION, formatDuration, MAX_WINDOW_SECONDS, parseDuration } from "../duration.ts";
import { ALLOWED_KEYS, NAMED, parseAlternatives } from "../key.ts";
import { parseHost, parseMethod, parseRoute } from "../match.ts";
import { MAX_WAIT_SECONDS, ruleFields } from "../rule.ts";
import { configFields } from "../schema.ts";
import { bareName, nearestName } from "./nearest-name.ts";
import { FIELDS_OF_OTHERS, type Place } from "./other-names.ts";

// Cures for unknown fields, for misspelt words, for a text in place of a list, and for other limiters' notations of
// keys, paths, time and rates. All other faults show only the allowed values.

/** A suggestion for a field that Weir does not have. */
interface FieldHint {
  readonly text: string;
  /** The fields of the same object that the user probably meant. */
  readonly fields: readonly string[];
}

/**
 * Suggests a replacement for an unknown field.
 *
 * @param keys the path of the unknown field
 * @param allowed the fields that the object may have
 * @param value the value of the unknown field
 */
export function unknownFieldHint(
  keys: readonly unknown[],
  allowed: readonly string[],
  value: unknown,
): FieldHint | undefined {
  const name = keys.at(-1);
  if (typeof name !== "string") return undefined;
  const place = placeOf(keys.slice(0, -1));
  const bare = bareName(name);
  const same = allowed.find((field) => bareName(field) === bare);
  if (same) return { text: `did you mean ${JSON.stringify(same)}?`, fields: [same] };
  const hint =
    place && (misplaced(place, name) ?? perUnit(place, bare, value) ?? renamed(place, bare, value));
  if (hint) return hint;
  const nearest = nearestName(name, allowed);
  if (nearest) return { text: `did you mean ${JSON.stringify(nearest)}?`, fields: [nearest] };
  // Any unknown field of `tiers` is probably a tier, whose name may be a secret and is not shown.
  return place === "tiers"
    ? {
        text: "move each tier into limits: tiers: { by, limits: { NAME: { limit, window } } }",
        fields: ["limits"],
      }
    : undefined;
}

/** Returns the kind of the object at a path; undefined if there are no hints for its unknown fields. */
function placeOf([top, , field, ...rest]: readonly unknown[]): Place | undefined {
  if (top === undefined) return "config";
  if (top !== "rules") return undefined;
  if (field === undefined) return "rule";
  if (field === "tiers") return rest.length === 0 ? "tiers" : "limits";
  return field === "limits" || field === "match" ? field : undefined;
}

/** Suggests the right place for a field of Weir. In a rule, `headers` means the headers of its denials. */
function misplaced(place: Place, name: string): FieldHint | undefined {
  const move = (target: string) => ({ text: `move ${name} ${target}`, fields: [] });
  if (place === "rule" && Object.hasOwn(configFields, name) && name !== "headers") {
    return move("to the top level, beside rules");
  }
  if (!Object.hasOwn(ruleFields, name)) return undefined;
  if (place === "config") return move(`into each rule: rules: [{ ${name}: … }]`);
  return place === "limits" ? move("into the rule, beside its limits") : undefined;
}

/** Reads Kong's notation: `minute: 5`. */
function perUnit(place: Place, bare: string, value: unknown): FieldHint | undefined {
  if ((place !== "rule" && place !== "limits") || typeof value !== "number") return undefined;
  const [, unit = ""] =
    /^(?:(?:max|requests)?per)?(second|minute|hour|day|week|month|year)$/.exec(bare) ?? [];
  const window = lengthText(unit, true);
  return window ? limitAndWindow(value, window) : undefined;
}

function limitAndWindow(limit: number, window: string): FieldHint {
  return { text: `write limit: ${limit}, window: ${window}`, fields: ["limit", "window"] };
}

function renamed(place: Place, bare: string, value: unknown): FieldHint | undefined {
  const target = meaningOf(FIELDS_OF_OTHERS[place], bare);
  const top = place === "rule" && !target ? meaningOf(FIELDS_OF_OTHERS.config, bare) : undefined;
  const meant = target ?? top;
  if (meant === undefined) return undefined;
  if (meant.includes(" ")) return { text: meant, fields: [] };
  if (top) return { text: `write ${top} at the top level, beside rules`, fields: [] };
  const rate = meant === "limit" ? rateIn(value) : undefined;
  if (rate) return limitAndWindow(rate.limit, rate.window);
  const [field = "", inner] = meant.split(".");
  const shown = inner ? `: { ${inner}: … }` : valueFor(field, bare, value);
  return { text: `write ${field}${shown} instead`, fields: [field] };
}

/** Returns the key of the entry whose words include the given word. */
function meaningOf(words: Readonly<Record<string, string>>, bare: string): string | undefined {
  return Object.entries(words).find(([, all]) => all.split(" ").includes(bare))?.[0];
}

/** Writes the value of another limiter's field: a number, or a length of time. */
function valueFor(field: string, bare: string, value: unknown): string {
  if (field === "window" || field === "ban") {
    const isMs = typeof value === "number" && (bare.endsWith("ms") || value >= 10_000);
    const length = lengthText(isMs ? value / 1000 : value, field === "window");
    return length ? `: ${length}` : "";
  }
  const number = typeof value === "string" ? wholeNumberIn(value) : value;
  const isTaken = /^(limit|concurrent|cost|shards|maxReserved|timeoutMs)$/.test(field);
  return isTaken && Number.isInteger(number) ? `: ${number}` : "";
}

/** Writes the source of a client's number, for a function as in other limiters, or for the name of a source. */
function sourceFor(field: string, given: unknown): string | undefined {
  if (!/^(limit|capacity|concurrent)$/.test(field)) return undefined;
  const rest = "max: 1000, default: 100 }";
  if (typeof given === "function") {
    return `{ from: "custom:NAME", ${rest}, and the function as custom.limits.NAME`;
  }
  const isName = typeof given === "string" && /^(custom|jwt):\S+$/.test(given);
  return isName && parseAlternatives(given) ? `{ from: "${given}", ${rest}` : undefined;
}

/** The maximum length of a text for which Weir suggests a cure. */
const LONGEST_TEXT = 300;

/** Suggests a replacement for a faulty value that is no secret; undefined if no replacement is obvious. */
export function valueHint(
  issue: v.BaseIssue<unknown>,
  keys: readonly unknown[],
  given: unknown,
): string | undefined {
  // The message of a check between fields is a sentence that names the cure.
  if (issue.type === "raw_check") return undefined;
  if (typeof given === "string" && given.length > LONGEST_TEXT) return undefined;
  const field = String(keys.findLast((key) => typeof key !== "number") ?? "");
  const allowed = issue.message;
  if (allowed.startsWith(DURATION)) return durationHint(given, allowed.includes("calendar"));
  if (field === "clock" && given === "redis") return 'write "store", the clock of the store';
  if (field === "wait") return durationHint(given, false, MAX_WAIT_SECONDS);
  const source = sourceFor(field, given);
  if (source) return `write ${source}`;
  if (typeof given === "number") return wholeNumberHint(given, allowed);
  if (typeof given !== "string") return undefined;
  if (allowed.startsWith(ALLOWED_KEYS)) return keyHint(given);
  const isList = keys.at(-1) === field;
  const parts = isList ? given.split(/[,;|\s]+/).filter(Boolean) : [given];
  const elements = parts.map((part) => ELEMENTS.get(field)?.(part));
  if (elements.length > 0 && !elements.includes(undefined) && (isList || elements[0] !== given)) {
    return `write ${JSON.stringify(isList ? elements : elements[0])}`;
  }
  return wordHint(given, allowed) ?? numberHint(field, given, allowed);
}

/**
 * Suggests one of the words that a field allows.
 *
 * @param allowed the message of the schema, which is a list of the words
 */
function wordHint(given: string, allowed: string): string | undefined {
  const choices = allowed === TIME_ZONE ? timeZones() : wordsIn(allowed);
  const same = choices.find((each) => bareName(each) === bareName(given));
  if (same) return `write ${JSON.stringify(same)}`;
  // Names that differ in a digit, such as `HS256` and `RS256`, have different meanings.
  const nearest = /\d/.test(given) ? undefined : nearestName(given, choices);
  return nearest && `did you mean ${JSON.stringify(nearest)}?`;
}

/** Returns the words of a message such as `"open", "closed"`; none if the message has other text. */
function wordsIn(allowed: string): string[] {
  return /^("[^"]*"|\w+)(, ("[^"]*"|\w+))*$/.test(allowed)
    ? [...allowed.matchAll(/"([^"]+)"/g)].map(([, word]) => word as string)
    : [];
}

function timeZones(): readonly string[] {
  return Intl.supportedValuesOf?.("timeZone") ?? [];
}

/** For each list of texts in `match`: returns an element of the list for a text; undefined if there is none. */
const ELEMENTS: ReadonlyMap<string, (text: string) => string | undefined> = new Map([
  ["hosts", parseHost],
  ["methods", parseMethod],
  ["paths", pathFor],
]);

/** Returns a path for a text such as `/api/**`, `/api*`, `*` and `login`. */
function pathFor(text: string): string | undefined {
  if (!/^(\/(?!\/)|[\w-]+(\/|$)|\*+$)/.test(text)) return undefined;
  return parseRoute(text.replace(/^(?!\/)/, "/").replace(/\/?\*+$/, "/*"));
}

/** Suggests a key in Weir's notation, such as `"header:x-api-key | ip"`. */
function keyHint(given: string): string | undefined {
  const key = given
    .split(/\s*\|+\s*/)
    .filter(Boolean)
    .map(keyFor)
    .join(" | ");
  if (parseAlternatives(key)) return `write ${JSON.stringify(key)}`;
  if (!/^\w{1,40}$/.test(given) || NAMED.some((kind) => kind === given)) return undefined;
  const keys = NAMED.map((kind) => `"${kind}:${kind === "header" ? given.toLowerCase() : given}"`);
  return `write ${keys.slice(0, -1).join(", ")} or ${keys.at(-1)}, by the place of the value`;
}

/** The keys that users mean by one word, in lower case and without separators. */
const KEYS_BY_WORD: ReadonlyMap<string, string> = new Map([
  ["apikey", "header:x-api-key"],
  ["authorization", "header:authorization"],
  ["useragent", "header:user-agent"],
  ["ipaddress", "ip"],
  ["ipv4", "ip"],
  ["clientip", "ip"],
  ["remoteaddr", "ip"],
  ["address", "ip"],
  ["xforwardedfor", "ip"],
  ["xrealip", "ip"],
  ["cfconnectingip", "ip"],
]);

/** Returns a valid key for a text such as `IP`, `:id` and `X-Api-Key`; an empty text if there is none. */
function keyFor(text: string): string {
  if (parseAlternatives(text)) return text;
  const [, parameter] = /^\/?:(\w+)$/.exec(text) ?? [];
  if (parameter) return `param:${parameter}`;
  const known = /^[\w-]+$/.test(text) && KEYS_BY_WORD.get(bareName(text));
  if (known) return known;
  // A text with a hyphen is the name of a header.
  if (/^[a-z][a-z0-9]*(-[a-z0-9]+)+$/i.test(text) && text.length <= 40) {
    return `header:${text.toLowerCase()}`;
  }
  // The text after the name may be a secret: header:NAME:SECRET.
  const [kind = "", name] = text.split(/\s*[:=]\s*/);
  const kinds = [...ALLOWED_KEYS.matchAll(/(?<=^|, )\w+/g)].map(([each]) => each);
  const nearest = nearestName(kind, kinds) ?? "";
  return name === undefined || /\//.test(name) ? nearest : `${nearest}:${name}`;
}

/** A unit of time: its names, its length in seconds, and its name as a unit of the calendar. */
const UNITS: readonly (readonly [names: RegExp, seconds: number, calendar?: "month" | "year"])[] = [
  [/^(ms|msecs?|millis|milliseconds?)$/i, 0.001],
  [/^(s|secs?|seconds?)$/i, 1],
  [/^(m|mins?|minutes?)$/i, 60],
  [/^(h|hrs?|hours?|hourly)$/i, 3600],
  [/^(d|days?|daily)$/i, 86_400],
  [/^(w|wks?|weeks?|weekly)$/i, 604_800],
  [/^(mo|months?|monthly)$/i, 30 * 86_400, "month"],
  [/^(y|yrs?|years?|yearly|annual(ly)?)$/i, 52 * 604_800, "year"],
];

function unitOf(word: string) {
  return UNITS.find(([names]) => names.test(word));
}

/**
 * Suggests a length of time in Weir's notation for a value in the notation of another program: `"1 minute"`, `"1M"`,
 * `"60"`, `"1h30m"`, `"PT1M"`, `"60000ms"`, or a number of milliseconds.
 *
 * @param takesCalendar whether a unit of the calendar is also allowed
 */
function durationHint(
  given: unknown,
  takesCalendar: boolean,
  maxSeconds = MAX_WINDOW_SECONDS,
): string | undefined {
  if (given === "1M" && takesCalendar) {
    return 'write "1m" for a minute, or "month" for a month of the calendar';
  }
  const seconds = secondsIn(given);
  if (seconds === undefined) return undefined;
  if (seconds < 1) return 'the shortest length is "1s"';
  if (seconds > maxSeconds) return `the longest length is "${formatDuration(maxSeconds)}"`;
  const text = lengthText(given, takesCalendar);
  if (text === undefined) return undefined;
  return typeof given === "number"
    ? `write ${text} if you mean milliseconds: a number is in seconds`
    : `write ${text}`;
}

/** Writes a length of time in Weir's notation: `"1m"`, or `"month"` if a unit of the calendar is allowed. */
function lengthText(given: unknown, takesCalendar: boolean): string | undefined {
  const [, word = ""] = /^(?:1\s*)?([a-z]+)$/i.exec(plainLength(given)) ?? [];
  const calendar = takesCalendar ? unitOf(word)?.[2] : undefined;
  if (calendar) return JSON.stringify(calendar);
  const duration = parseDuration(secondsIn(given));
  return duration === undefined ? undefined : JSON.stringify(formatDuration(duration));
}

/** Returns a length of time without the words and the letters around it: `1 hour` for `per hour`. */
function plainLength(given: unknown): string {
  return typeof given === "string" && given.length <= 60
    ? given
        .trim()
        .replace(/^PT(?=\d)/i, "")
        .replace(/^(an?|one|per|every|each)\s+/i, "1 ")
    : "";
}

/** Reads a length of time. A number that is too large for seconds is in milliseconds. */
function secondsIn(given: unknown): number | undefined {
  if (typeof given === "number") return given > MAX_WINDOW_SECONDS ? given / 1000 : given;
  const text = plainLength(given);
  if (/^\d+(\.0+)?$/.test(text)) return Number(text);
  const [word] = /^[a-z]+$/i.exec(text) ?? [];
  if (word) return unitOf(word)?.[1];
  if (!/^(\d+(\.\d+)?\s*[a-z]+[\s,]*)+$/i.test(text)) return undefined;
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]+)/gi)];
  const units = parts.map(([, , unit = ""]) => unitOf(unit)?.[1] ?? 0);
  // Units that do not become smaller are probably several lengths, as in `1m 10m 1h`.
  if (units.includes(0) || units.some((unit, index) => unit >= (units[index - 1] ?? Infinity))) {
    return undefined;
  }
  const seconds = parts.map(([, count], index) => Number(count) * (units[index] as number));
  return Math.round(seconds.reduce((sum, each) => sum + each, 0) * 1000) / 1000;
}

/** Matches a limit together with its window, as in nginx's `10r/s` and in `100/hour`. */
const RATE = /^\s*([\d_.,]+k?)\s*(?:r|req|reqs|requests?)?\s*(?:\/|per)\s*([\d\s]*[a-z]+)\s*$/i;

/** Returns a limit and a window for a text such as `10r/s`; undefined for any other value. */
function rateIn(given: unknown): { readonly limit: number; readonly window: string } | undefined {
  const [, count = "", time = ""] = (typeof given === "string" && RATE.exec(given)) || [];
  const limit = wholeNumberIn(count);
  const window = lengthText(time, true);
  return limit === undefined || window === undefined ? undefined : { limit, window };
}

/** Returns the whole number in a text: 1000 for `"1,000"`, `"1_000"` and `"1k"`. */
function wholeNumberIn(text: string): number | undefined {
  const [, digits, thousand] = /^\s*\/?(\d+(?:[_,' ]\d{3})*)(?:\.0+)?\s*(k)?\s*$/i.exec(text) ?? [];
  return digits === undefined
    ? undefined
    : Number(digits.replace(/[_,' ]/g, "")) * (thousand ? 1000 : 1);
}

/**
 * Suggests a limit and a window for a rate, and a whole number for a text.
 *
 * @param allowed the message of the schema, which has the lowest and the highest number
 */
function numberHint(field: string, given: string, allowed: string): string | undefined {
  const rate = rateIn(given);
  if (rate && /^limits?$/.test(field)) {
    const text = `limit: ${rate.limit}, window: ${rate.window}`;
    return field === "limit" ? `write ${text}` : `write { ${text} }`;
  }
  const whole = wholeNumberIn(given);
  if (whole !== undefined) return wholeNumberHint(whole, allowed);
  const seconds = field.endsWith("Ms") ? secondsIn(given) : undefined;
  return seconds === undefined ? undefined : `write ${seconds * 1000}, a number of milliseconds`;
}

/** Suggests the allowed whole numbers that are nearest to a number. */
function wholeNumberHint(given: number, allowed: string): string | undefined {
  const [, min, max] = /^a whole number from (\d+) to (\d+)/.exec(allowed) ?? [];
  const choices = [...new Set([Math.floor(given), Math.ceil(given)])].filter(
    (number) => number >= Number(min) && number <= Number(max),
  );
  return choices.length > 0 ? `write ${choices.join(" or ")}` : undefined;
}
