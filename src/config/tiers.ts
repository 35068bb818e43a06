import * as v from "valibot";
import { fields, mapOf, parsed } from "./fields.ts";
import { ALLOWED_KEYS, type KeyExpression, parseAlternatives } from "./key-expression.ts";
import { extrasFitLimit, oneWayToLimit, quotaFields } from "./quota.ts";

const BY = `${ALLOWED_KEYS}; "a | b" for the first one present`;
const TIERS = "an object of tiers, each { limit, window }, at least one";
const TIER_NAME = "1 to 64 of A-Z, a-z, 0-9, ., _ and -";

/** Other limits for some clients: those for whom `by` holds a tier's name. */
export const TiersSchema = fields({
  by: parsed(parseBy, BY),
  limits: mapOf(
    parsed((text) => (/^[A-Za-z0-9._-]{1,64}$/.test(text) ? text : undefined), TIER_NAME),
    v.pipe(fields(quotaFields, "{ limit, window }"), oneWayToLimit(), extrasFitLimit()),
    TIERS,
  ),
});

function parseBy(text: string): KeyExpression | undefined {
  const alternatives = parseAlternatives(text);
  return alternatives && [alternatives];
}
