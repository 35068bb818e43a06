import { shortened } from "../faults.ts";
import { isRecord } from "../fields.ts";
import { parseAlternatives } from "../key.ts";
import { windowText } from "./calendar-hint.ts";
import { asnHint, botHint, countryHint } from "./client-hint.ts";
import { durationText } from "./duration-hint.ts";
import { NO_FIELD, type Place, RENAMED } from "./field-names.ts";
import { bareName, isSecret, nearestName, printable, valueAt } from "./given-value.ts";
import { keyHint } from "./key-hint.ts";
import { conditionList } from "./match-hint.ts";
import { rateOf, wholeNumberOf } from "./number-hint.ts";

/** Whether a field takes this value unchanged. */
function takesUnchanged(field: string, value: unknown): boolean {
  if (field === "cost" || field === "shards" || field === "maxReserved" || field === "capacity") {
    return typeof value === "number";
  }
  return field === "limit" && typeof value === "number";
}

/** Writes a field with the value that corresponds to the value of another program's field. */
function fieldWithValue(field: string, bare: string, value: unknown): string | undefined {
  const [object, condition = ""] = field.split(".");
  if (object === "match" && condition !== "" && condition !== "except") {
    const list = clientCondition(condition, value) ?? conditionList(condition, value);
    return list && `match: { ${list} }`;
  }
  switch (field) {
    case "match.except": {
      const paths = conditionList("paths", value);
      return `match: { except: { ${paths ?? "…"} } }`;
    }
    case "exempt":
      return "exempt or match.except";
    case "countries":
    case "asns":
    case "bots":
      return clientCondition(field, value);
    case "hosts":
    case "methods":
    case "paths":
      return conditionList(field, value);
    case "window":
    case "ban": {
      const isMs = bare.endsWith("ms") || (typeof value === "number" && value >= 10_000);
      const text = (field === "window" ? windowText : durationText)(value, isMs ? 0.001 : 1);
      return text && `${field}: ${text}`;
    }
    case "limit": {
      const whole = wholeNumberOf(value);
      return whole === undefined ? undefined : `limit: ${whole}`;
    }
    case "from":
    case "settle":
      return typeof value === "string" && /^\w[\w-]*$/.test(value) && /^(header|custom)$/.test(bare)
        ? `${field}: "${bare}:${value.toLowerCase() === value || bare === "custom" ? value : value.toLowerCase()}"`
        : undefined;
    case "timeoutMs":
      return typeof value === "number" ? `timeoutMs: ${value}` : undefined;
    case "key": {
      if (typeof value === "string" && parseAlternatives(value))
        return `key: ${JSON.stringify(value)}`;
      return keyHint(value)
        ?.replace(/^write (?=")/, "key: ")
        .replace(/^write /, "key: ");
    }
    case "onError":
    case "mode":
      return field === "onError" ? onErrorFor(bare, value) : modeFor(bare, value);
    case "count":
      return countFor(bare);
    case "response":
      return responseFor(bare, value);
    default:
      return undefined;
  }
}

/** Writes a condition on the client. */
function clientCondition(field: string, value: unknown): string | undefined {
  const list = [value].flat();
  if (field === "bots")
    return `bots: ${value === true ? '"verified"' : (botsIn(list) ?? '"verified"')}`;
  if (field !== "countries" && field !== "asns") return undefined;
  const isValid = field === "asns" ? Number.isInteger : isCountry;
  const hint = field === "asns" ? asnHint(list, false) : countryHint(list, false);
  if (list.length > 0 && list.every(isValid)) return `${field}: ${JSON.stringify(list)}`;
  return hint?.startsWith("write [") ? hint.replace("write", `${field}:`) : undefined;
}

function isCountry(text: unknown): boolean {
  return typeof text === "string" && /^(?!UK)[A-Z]{2}$/.test(text);
}

function botsIn(list: readonly unknown[]): string | undefined {
  return botHint(list)?.replace(/^write /, "");
}

function onErrorFor(bare: string, value: unknown): string | undefined {
  if (typeof value !== "boolean") return undefined;
  const opens = !/close|deny/.test(bare);
  return `onError: ${opens === value ? '"open"' : '"closed"'}`;
}

function modeFor(bare: string, value: unknown): string | undefined {
  if (typeof value !== "boolean") return undefined;
  if (/^(soft|softlimit|warn|flag|mark)$/.test(bare)) {
    return `mode: ${value ? '"mark"' : '"enforce"'}`;
  }
  const enforces = /^(enforce|enforcement|enabled?|active)$/.test(bare);
  return `mode: ${enforces === value ? '"enforce"' : '"shadow"'}`;
}

function countFor(bare: string): string | undefined {
  if (bare === "skipfailedrequests") return "count: { status: [200, 201, 204] }";
  return bare.startsWith("skip") || bare.startsWith("request")
    ? "count: { status: […] }, with the statuses to count,"
    : undefined;
}

function responseFor(bare: string, value: unknown): string | undefined {
  if (typeof value === "function") {
    return 'response: "custom:NAME", with custom: { responses: { NAME: … } } at the top level,';
  }
  if (bare.includes("status") || bare.includes("code")) {
    return typeof value === "number"
      ? `response: { status: ${value} }`
      : "response: { status: 429 }";
  }
  return /body|message/.test(bare)
    ? "response: { body: … }"
    : "response: { status, body, headers }";
}

/** A suggestion for a field that Weir does not have. */
interface FieldHint {
  readonly text: string;
  /** The fields of the same object that the user probably meant. */
  readonly fields: readonly string[];
}

/** Fields of the whole configuration that users also write in a rule. */
const TOP_LEVEL =
  /^(store|clock|prefix|timeoutMs|headers|ipv6Prefix|caseSensitivePaths|denialLog|serverTiming|origins?|jwt|nativeLimiter|custom)$/;
/** Fields of a rule that users also write beside `rules`. */
const OF_A_RULE =
  /^(name|match|key|limit|window|limits|capacity|maxReserved|start|timeZone|shards|cost|count|tiers|exempt|ban|mode|tellOrigin|onError|localShare|lease|retryJitter|response|for)$/;

/**
 * Suggests a replacement for an unknown field.
 *
 * @param keys the path of the unknown field
 * @param allowed the fields that the object has
 * @param config the configuration as the user wrote it
 */
export function unknownFieldHint(
  keys: readonly unknown[],
  allowed: readonly string[],
  config: unknown,
): FieldHint | undefined {
  const name = keys.at(-1);
  if (typeof name !== "string") return undefined;
  const value = valueAt(config, keys);
  const place = placeOf(keys.slice(0, -1));
  const bare = bareName(name);
  const same = allowed.find((field) => bareName(field) === bare);
  if (same) return { text: `did you mean ${JSON.stringify(same)}?`, fields: [same] };
  if (keys[0] === "custom" && typeof value === "function") {
    return { text: `move it into keys: custom: { keys: { ${name}: … } }`, fields: [] };
  }
  if (place) {
    const hint =
      misplaced(place, name, value, valueAt(config, keys.slice(0, -1))) ??
      perUnit(place, bare, value) ??
      renamed(place, bare, value, keys, config) ??
      ofTheTop(place, bare) ??
      withoutField(place, bare);
    if (hint) return hint;
  }
  const nearest = nearestName(name, allowed);
  return nearest
    ? { text: `did you mean ${JSON.stringify(nearest)}?`, fields: [nearest] }
    : tierOutside(place);
}

function placeOf(parent: readonly unknown[]): Place | undefined {
  const [top, , field, ...rest] = parent;
  if (parent.length === 0) return "config";
  if (top === "origin" || top === "jwt") return top;
  if (top === "origins") return parent.length === 2 ? "origin" : undefined;
  if (top !== "rules") return undefined;
  if (field === undefined) return "rule";
  if (field === "tiers") return rest.length === 0 ? "tiers" : "limits";
  if (field === "cost") return field;
  if (field === "match" || field === "limits" || field === "exempt" || field === "response")
    return field;
  return undefined;
}

/**
 * Whether an unknown field of a rule probably belongs into `cost`. A `reserve` that is a number may
 * also mean `maxReserved`.
 */
function isPartOfCost(name: string, value: unknown, siblings: unknown): boolean {
  if (name === "settle") return true;
  return (
    name === "reserve" &&
    (typeof value === "string" || (isRecord(siblings) && "settle" in siblings))
  );
}

function misplaced(
  place: Place,
  name: string,
  value: unknown,
  siblings: unknown,
): FieldHint | undefined {
  if (place === "response" && /^(custom|handler|function|fn)$/.test(name)) {
    return { text: 'write response: "custom:NAME", without an object', fields: [] };
  }
  if (place === "origin" && /^[^/]+\.[^/]+$/.test(name)) {
    const host = JSON.stringify(shortened(name));
    return { text: `move the host into origins: { ${host}: { url: … } }`, fields: ["url"] };
  }
  if (place === "rule" && isPartOfCost(name, value, siblings)) {
    return { text: `write cost: { reserve: …, settle: "header:NAME" } instead`, fields: [] };
  }
  if (place === "rule" && value === true && /^(deny|block|blocked|deny_?all)$/i.test(name)) {
    return {
      text: "write limit: 0 instead, which denies all requests that match names",
      fields: [],
    };
  }
  if (place === "rule" && TOP_LEVEL.test(name) && name !== "headers") {
    return { text: `move ${name} to the top level, beside rules`, fields: [] };
  }
  if (place === "config" && OF_A_RULE.test(name)) {
    return { text: `move ${name} into each rule: rules: [{ ${name}: … }]`, fields: [] };
  }
  if (place === "limits" && OF_A_RULE.test(name)) {
    return { text: `move ${name} into the rule, beside its limits`, fields: [] };
  }
  return undefined;
}

/** A field of a rule that stands for a field of the whole configuration. */
function ofTheTop(place: Place, bare: string): FieldHint | undefined {
  const field = place === "rule" ? fieldFor("config", bare) : undefined;
  return field ? { text: `write ${field} at the top level, beside rules`, fields: [] } : undefined;
}

function fieldFor(place: Place, bare: string): string | undefined {
  const [field] =
    Object.entries(RENAMED[place]).find(([, names]) => names.split(" ").includes(bare)) ?? [];
  return field;
}

/** Kong's notation: `minute: 5`. */
function perUnit(place: Place, bare: string, value: unknown): FieldHint | undefined {
  if (place !== "rule" && place !== "limits") return undefined;
  const [, unit] =
    /^(?:(?:max|requests)?per)?(second|minute|hour|day|week|month|year)$/.exec(bare) ?? [];
  if (!unit || typeof value !== "number") return undefined;
  return {
    text: `write limit: ${value}, window: ${windowText(`1 ${unit}`)}`,
    fields: ["limit", "window"],
  };
}

function renamed(
  place: Place,
  bare: string,
  value: unknown,
  keys: readonly unknown[],
  config: unknown,
): FieldHint | undefined {
  const field = fieldFor(place, bare);
  if (!field) return undefined;
  const fields = [field.split(".")[0] ?? field];
  const rate = rateOf(value);
  if (rate && field === "limit") {
    return {
      text: `write limit: ${rate.limit}, window: ${rate.window}`,
      fields: ["limit", "window"],
    };
  }
  const burst = field === "capacity" ? burstHint(value, valueAt(config, keys.slice(0, -1))) : "";
  if (burst) return { text: burst, fields };
  const full = isSecret(keys) ? undefined : fieldWithValue(field, bare, value);
  const shown =
    full ?? `${field}${takesUnchanged(field, value) ? `: ${printable(keys, value, config)}` : ""}`;
  const zero = /deny|block|black/.test(bare) && field === "match.ips" ? ", and limit: 0," : "";
  return { text: `write ${shown}${zero} instead`, fields };
}

/**
 * Suggests a capacity for nginx's `burst`, which is the number of requests above the limit. Weir's
 * capacity includes the limit.
 */
function burstHint(burst: unknown, limited: unknown): string | undefined {
  const fields = Object.entries(isRecord(limited) ? limited : {});
  const [, limit] =
    fields.find(([name]) => name === "limit" || fieldFor("limits", bareName(name)) === "limit") ??
    [];
  if (typeof burst !== "number" || typeof limit !== "number" || burst >= limit) return undefined;
  return `write capacity: ${limit + burst} to admit ${burst} requests more than the limit after a quiet time, or remove it`;
}

function withoutField(place: Place, bare: string): FieldHint | undefined {
  const [text] =
    Object.entries(NO_FIELD[place]).find(([, names]) => names.split(" ").includes(bare)) ?? [];
  return text === undefined ? undefined : { text, fields: [] };
}

/** A field of `tiers` with another name is probably a tier. The name may be a secret, so it is not shown. */
function tierOutside(place: Place | undefined): FieldHint | undefined {
  return place === "tiers"
    ? {
        text: "move each tier into limits: tiers: { by, limits: { NAME: { limit, window } } }",
        fields: ["limits"],
      }
    : undefined;
}
