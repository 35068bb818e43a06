import * as v from "valibot";
import { fields, mapOf, parsedText, textMatching } from "./fields.ts";
import {
  ALLOWED_KEYS,
  type KeyExpression,
  type KeyInput,
  parseAlternatives,
} from "./key-expression.ts";
import { checkLimitExtras, checkLimitFields, type LimitFields, limitFields } from "./limits.ts";

const BY = `${ALLOWED_KEYS}; "a | b" for the first one present`;
const TIERS = "an object of tiers, each { limit, window }, at least one";
const TIER_NAME = "1 to 64 characters of A-Z, a-z, 0-9, ., _ and -";

/** Different limits for some clients. */
export interface TiersInput {
  /**
   * The value that names a client's tier, written like the `key` of a rule, but not as a list. Choose a value
   * that clients cannot choose themselves, such as a verified claim.
   *
   * @example "jwt:plan"
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

export const TiersSchema = fields({
  by: parsedText(parseBy, BY),
  limits: mapOf(
    textMatching(/^[A-Za-z0-9._-]{1,64}$/, TIER_NAME),
    v.pipe(fields(limitFields, "{ limit, window }"), checkLimitFields(), checkLimitExtras()),
    TIERS,
  ),
});

function parseBy(text: string): KeyExpression | undefined {
  const alternatives = parseAlternatives(text);
  return alternatives && [alternatives];
}
