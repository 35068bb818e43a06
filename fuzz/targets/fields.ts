import fc from "fast-check";
import { isInnerList, parseList } from "structured-headers";
import { appendQuotaHeaders } from "../../src/http/response-headers.ts";
import { limitedResponse } from "../../src/http/responses.ts";
import type { Quota } from "../../src/limiter/decision.ts";
import { denial } from "../arbitraries/denial.ts";
import { createTarget } from "../property.ts";

/** The largest integer of a structured field. */
const MAX_SECONDS = 999_999_999_999_999;

const ORIGINS = ["null", "https://shop.example", "https://a b", "x://\u00e9", "https://a\t", ""];
const origin = fc.oneof(
  fc.constantFrom(...ORIGINS),
  fc.stringMatching(/^[\t -~\u0080-\u00ff]{0,30}$/),
);

/** The header fields that a denial may have. */
const EXPECTED =
  /^(content-type|cache-control|retry-after|vary|ratelimit(-policy)?|x-ratelimit-(limit|remaining|reset)|access-control-(allow-(origin|credentials)|expose-headers)|x-why)$/;

/**
 * The target for the quota fields that clients receive. The target parses these fields as RFC 9651
 * defines.
 */
export const fieldsTarget = createTarget(
  "fields",
  "a denial's fields show exactly the decision, and no text that a client chose",
  fc.record({ denial, origin }),
  ({ denial: { limited, quotas }, origin }) => {
    // These are not real headers, because workerd logs a warning for each value that is not ASCII.
    const headers = {
      get: (name: string) => (name === "origin" ? origin.trim() : null),
      has: (name: string) => name === "origin",
    };
    const request = { method: "HEAD", headers } as unknown as Request;
    const { status, headers: fields } = limitedResponse(request, limited, "both");
    const { response = {} } = limited.deniedBy.appliedRule.rule;
    const expected = "status" in response ? response.status : undefined;
    if (status !== (expected ?? 429)) throw new Error(`status ${status}`);
    checkFields(fields, origin.trim());
    const seconds = fields.get("retry-after");
    checkQuotas(fields, quotas, seconds);
    if ((seconds === null) !== (limited.retryAfterMs === undefined)) throw new Error("never");
    if (!/^[1-9]\d{0,14}$/.test(seconds ?? "1")) throw new Error(`Retry-After: ${seconds}`);

    const passed = new Headers();
    appendQuotaHeaders(passed, quotas, "both");
    checkQuotas(passed, quotas);
  },
);

function checkFields(fields: Headers, origin: string): void {
  for (const [name, value] of fields) {
    if (!EXPECTED.test(name)) throw new Error(`unexpected field ${name}`);
    if (!/^[\t -~]*$/.test(value)) throw new Error(`${name} is ${JSON.stringify(value)}`);
  }
  const allowed = fields.get("access-control-allow-origin");
  if (allowed !== null && allowed !== origin) throw new Error(`allows ${allowed}`);
}

/** Returns the seconds until a client should count on a quota again. */
function timeOf({
  violated,
  resetMs,
  retryAfterMs = resetMs,
}: Pick<Quota, "violated" | "resetMs" | "retryAfterMs">): number {
  return Math.min(MAX_SECONDS, Math.ceil((violated ? retryAfterMs : resetMs) / 1000));
}

/** @param retryAfter the seconds of Retry-After, which the policies that have denied the request show too */
function checkQuotas(fields: Headers, quotas: readonly Quota[], retryAfter?: string | null): void {
  const policies = itemsOf(fields.get("ratelimit-policy"));
  const items = itemsOf(fields.get("ratelimit"));
  const limits = items.map(({ name, r, t }) => ({ name, r, t }));
  const actual = JSON.stringify(policies.map((policy, index) => [policy, limits[index]]));
  const expected = JSON.stringify(
    quotas.map(({ policy: name, limit, windowMs, remaining, ...quota }) => [
      { name, q: limit, w: windowMs / 1000 },
      { name, r: remaining, t: quota.violated && retryAfter ? Number(retryAfter) : timeOf(quota) },
    ]),
  );
  if (actual !== expected) throw new Error(`${actual}, but expected ${expected}`);
  for (const name of ["Limit", "Remaining", "Reset"]) {
    const value = fields.get(`x-ratelimit-${name}`) ?? "";
    if (!/^\d{1,16}$/.test(value)) throw new Error(`X-RateLimit-${name}: ${value}`);
  }
}

type Item = Readonly<Record<string, unknown>>;

function itemsOf(field: string | null): Item[] {
  return parseList(field ?? "").map((item) => {
    if (isInnerList(item)) throw new Error("an inner list");
    const [name, parameters] = item;
    return { name, ...Object.fromEntries(parameters) };
  });
}
