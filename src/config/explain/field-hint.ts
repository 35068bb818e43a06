import { shortened } from "../faults.ts";
import { isRecord } from "../fields.ts";
import { windowText } from "./calendar-hint.ts";
import { NO_FIELD, type Place, RENAMED } from "./field-names.ts";
import { fieldWithValue, takesUnchanged } from "./field-value.ts";
import { isSecret, printable, valueAt } from "./given-value.ts";
import { bareName, nearestName } from "./nearest-name.ts";
import { rateOf } from "./number-hint.ts";

/** A suggestion for a field that Weir does not have. */
export interface FieldHint {
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
