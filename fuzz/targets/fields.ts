import fc from "fast-check";
import { isInnerList, parseList } from "structured-headers";
import { appendQuotaFields } from "../../src/http/rate-limit-headers.ts";
import { limitedResponse } from "../../src/http/responses.ts";
import type { Quota } from "../../src/limiter/decision.ts";
import { denial } from "../arbitraries/denial.ts";
import { property } from "../property.ts";

const ORIGINS = ["null", "https://shop.example", "https://a b", "x://\u00e9", "https://a\t", ""];
const origin = fc.oneof(
  fc.constantFrom(...ORIGINS),
  fc.stringMatching(/^[\t -~\u0080-\u00ff]{0,30}$/),
);

/** All that a denial has, whoever asks and whatever rule it is. */
const EXPECTED =
  /^(content-type|cache-control|retry-after|vary|ratelimit(-policy)?|x-ratelimit-(limit|remaining|reset)|access-control-(allow-(origin|credentials)|expose-headers)|x-why)$/;

/** What clients are told of quotas, as RFC 9651 and RFC 9457 read it. */
export const fieldsTarget = property(
  "fields",
  "a denial's fields and body say just what was decided, and nothing that a client chose",
  fc.record({ denial, origin }),
  ({ denial: { limited, quotas }, origin }) => {
    // Not in real ones: workerd writes values in Unicode to its log.
    const headers = { get: (name: string) => (name === "origin" ? origin.trim() : null) };
    const request = { method: "HEAD", headers } as unknown as Request;
    const { status, headers: fields } = limitedResponse(request, limited, "both");
    if (status !== (limited.rule.response?.status ?? 429)) throw new Error(`status ${status}`);
    refuseInjection(fields, origin.trim());
    refuseOtherThan(fields, quotas);
    const seconds = fields.get("retry-after") ?? "";
    if (!/^[1-9]\d{0,14}$/.test(seconds)) throw new Error(`Retry-After: ${seconds}`);

    const passed = new Headers();
    appendQuotaFields(passed, quotas, "both");
    refuseOtherThan(passed, quotas);
  },
);

function refuseInjection(fields: Headers, origin: string): void {
  for (const [name, value] of fields) {
    if (!EXPECTED.test(name)) throw new Error(`a field ${name}`);
    if (!/^[\t -~]*$/.test(value)) throw new Error(`${name} is ${JSON.stringify(value)}`);
  }
  const allowed = fields.get("access-control-allow-origin");
  if (allowed !== null && allowed !== origin) throw new Error(`allows ${allowed}`);
}

function refuseOtherThan(fields: Headers, quotas: readonly Quota[]): void {
  const policies = itemsOf(fields.get("ratelimit-policy"));
  const limits = itemsOf(fields.get("ratelimit"));
  const said = JSON.stringify(policies.map((policy, index) => [policy, limits[index]]));
  const meant = JSON.stringify(
    quotas.map(({ policy: name, limit, windowMs, remaining, resetMs }) => [
      { name, q: limit, w: windowMs / 1000 },
      { name, r: remaining, t: Math.ceil(resetMs / 1000) },
    ]),
  );
  if (said !== meant) throw new Error(`${said}, but it is ${meant}`);
  for (const name of ["Limit", "Remaining", "Reset"]) {
    const value = fields.get(`x-ratelimit-${name}`) ?? "";
    if (!/^\d{1,16}$/.test(value)) throw new Error(`X-RateLimit-${name}: ${value}`);
  }
}

function itemsOf(field: string | null): object[] {
  return parseList(field ?? "").map((item) => {
    if (isInnerList(item)) throw new Error("a list within the list");
    const [name, parameters] = item;
    return { name, ...Object.fromEntries(parameters) };
  });
}
