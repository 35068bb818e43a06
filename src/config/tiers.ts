import * as v from "valibot";
import { parseHost } from "./conditions.ts";
import { faultText } from "./fault-text.ts";
import { fields, isRecord, mapOf, parsedText, pathTo, textMatching } from "./fields.ts";
import {
  ALLOWED_KEYS,
  type KeyExpression,
  type KeyInput,
  parseAlternatives,
} from "./key-expression.ts";
import { checkLimitExtras, checkLimitFields, type LimitFields, limitFields } from "./limits.ts";
import { partsOf } from "./rule-checks.ts";

const BY = faultText(() => `${ALLOWED_KEYS}; "a | b" for the first one present`);
const TIERS = faultText("an object of tiers, each { limit, window }, at least one");
const TIER_NAME_PATTERN = /^[A-Za-z0-9._-]{1,64}$/;
const TIER_NAME = faultText("1 to 64 characters of A-Z, a-z, 0-9, ., _ and -");

/** Different limits for some clients. */
export interface TiersInput {
  /**
   * The value that names a client's tier, written like the `key` of a rule, but not as a list. Choose a value
   * that clients cannot choose themselves, such as a verified claim. If a claim is a list, such as a list of
   * roles, the client is in the first tier of `limits` whose name is in the list.
   *
   * @example "jwt:plan"
   * @example "jwt:/app_metadata/roles"
   */
  readonly by: KeyInput;
  /**
   * The tiers, at least one. The name of a tier has 1 to 64 characters of `A-Z a-z 0-9 . _ -`. Its
   * limits are written like those of a rule. A client that is in none of these tiers has the rule's
   * own limits.
   *
   * @example { pro: { limit: 5000, window: "1m" } }
   */
  readonly limits: Readonly<Record<string, LimitFields>>;
}

export const TiersSchema = v.pipe(
  fields({
    by: parsedText(parseBy, BY),
    limits: mapOf(
      textMatching(TIER_NAME_PATTERN, TIER_NAME),
      v.pipe(
        fields(limitFields, faultText("{ limit, window }")),
        checkLimitFields(),
        checkLimitExtras(),
      ),
      TIERS,
    ),
  }),
  checkHosts(),
);
function parseBy(text: string): KeyExpression | undefined {
  const alternatives = parseAlternatives(text);
  return alternatives && [alternatives];
}

/**
 * If hosts select the tiers, checks that the name of each tier is a host in its canonical form. No
 * client would belong to a tier with another name.
 */
function checkHosts<Output>() {
  return v.rawCheck<Output>(({ dataset, addIssue }) => {
    const tiers: unknown = dataset.value;
    if (!isRecord(tiers) || !(tiers.limits instanceof Map)) return;
    const parts = partsOf(tiers.by);
    if (parts.length === 0 || parts.some(({ kind }) => kind !== "host")) return;
    for (const [name, value] of tiers.limits as Map<string, unknown>) {
      const host = parseHost(name);
      if (host === name || !TIER_NAME_PATTERN.test(name)) continue;
      addIssue({
        path: [
          pathTo(tiers, "limits"),
          { type: "map", origin: "key", input: tiers.limits, key: name, value },
        ],
        input: name,
        message: faultText(() => {
          const cure = host ? JSON.stringify(host) : "a host name";
          return `no request has this host, so no client belongs to the tier; write ${cure}`;
        }),
      });
    }
  });
}
