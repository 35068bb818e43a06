import fc from "fast-check";
import { isInnerList, parseList, Token } from "structured-headers";
import { describe, expect, it } from "vitest";
import { appendQuotaHeaders, type HeaderStyle } from "../../../src/http/response-headers.ts";
import type { Quota } from "../../../src/limiter/decision.ts";

const QUOTA: Quota = {
  policy: "site",
  limit: 10,
  windowMs: 60_000,
  remaining: 9,
  resetMs: 42_000,
  resetAt: 1_700_000_142_000,
  violated: false,
  retryAfterMs: 0,
  reservationDelayMs: 0,
};
const OURS = { ratelimit: '"site";r=9;t=42', "ratelimit-policy": '"site";q=10;w=60' };

function withOurs(origins: HeadersInit, style: HeaderStyle = "draft-11") {
  const headers = new Headers(origins);
  const added = appendQuotaHeaders(headers, [QUOTA], style);
  return { fields: Object.fromEntries(headers), added };
}

/** Whether a parser that is independent of Weir reads a list of Strings or Tokens. */
function isListOfNames(field: string): boolean {
  try {
    return parseList(field).every(
      (item) => !isInnerList(item) && (typeof item[0] === "string" || item[0] instanceof Token),
    );
  } catch {
    return false;
  }
}

describe("the fields of an origin in the form of draft 11", () => {
  it.each([
    '"origin";r=5;t=1',
    'origin;r=5;t=1, "other";r=7',
    '"100-in-1min"; r=99; t=60; pk=:MTI=:',
    '"a \\" b, c";r=5;x="limit=1, 2";y=?1;z=1.5;e=%"f";d=@17',
    '"a";r=5\t ,\t"b";r=6',
    '"unnamed"',
  ])("are followed by those of Weir: %s", (own) => {
    expect(isListOfNames(own)).toBe(true);
    expect(withOurs({ ratelimit: own, "ratelimit-policy": own }).fields).toEqual({
      ratelimit: `${own}, ${OURS.ratelimit}`,
      "ratelimit-policy": `${own}, ${OURS["ratelimit-policy"]}`,
    });
  });

  it("are completed if one is missing or empty", () => {
    const own = '"origin";q=7;w=1';
    expect(withOurs({ "ratelimit-policy": own, ratelimit: "" }).fields).toEqual({
      ratelimit: OURS.ratelimit,
      "ratelimit-policy": `${own}, ${OURS["ratelimit-policy"]}`,
    });
  });
});

describe("the fields of an origin in another form", () => {
  const DRAFT_7 = { ratelimit: "limit=10, remaining=5, reset=3", "ratelimit-policy": "10;w=60" };
  const DRAFT_6 = { "ratelimit-limit": "10", "ratelimit-remaining": "5", "ratelimit-reset": "3" };

  it.each<Record<string, string>>([
    DRAFT_7,
    { ratelimit: DRAFT_7.ratelimit },
    { "ratelimit-policy": DRAFT_7["ratelimit-policy"] },
    { ...DRAFT_7, ratelimit: '"origin";r=5;t=1' },
    { ...DRAFT_7, "ratelimit-policy": '"origin";q=5;w=1' },
    DRAFT_6,
    { "ratelimit-reset": "3" },
    { ...DRAFT_6, "ratelimit-policy": "10;w=60" },
    { ...DRAFT_6, ratelimit: '"origin";r=5;t=1' },
    { ratelimit: "10" },
    { ratelimit: '"open' },
    { ratelimit: '"a";r=5,' },
    { ratelimit: '("a" "b")' },
    { ratelimit: "f\u00fcnf" },
    { ratelimit: 'a;x=%"%zz"' },
    { ratelimit: 'a;x=%"%C3"' },
    { ratelimit: 'a;x=%"%ff"' },
    { ratelimit: "a;pk=:_:" },
    { ratelimit: "a;pk=:Y=Q:" },
  ])("are sent alone: %j", (own) => {
    expect(withOurs(own)).toEqual({ fields: own, added: [] });
    const { fields, added } = withOurs(own, "both");
    expect(fields).toMatchObject({ ...own, "x-ratelimit-remaining": "9" });
    expect(Object.keys(fields)).toHaveLength(Object.keys(own).length + 3);
    expect(added).toEqual(["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"]);
  });
});

it("tells a list of names from all other texts like a parser of RFC 9651", () => {
  const part = fc.constantFrom(
    ...[
      '"a"',
      "b",
      "*",
      "1",
      "-1.5",
      "?1",
      ":YQ==:",
      "@1",
      "(",
      ")",
      "=",
      ";",
      ",",
      " ",
      "\t",
      "\\",
    ],
    ...['"', ";r=1", ";t", "; q=2", ", ", '"a\\"b"', "limit=1", "A:/!", "é", "K", ".", ";a=:"],
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
      const own = parts.join("").trim();
      const headers = new Map([["RateLimit", own]]);
      const fake = { has: () => false, get: (name: string) => headers.get(name) ?? null, set() {} };
      const isAdded = appendQuotaHeaders(fake as never, [QUOTA], "draft-11").length > 0;
      expect({ own, isAdded }).toEqual({ own, isAdded: isListOfNames(own) });
    }),
    { numRuns: 3000 },
  );
});

it.each([
  ["spaces", `"a"${" ".repeat(100_000)}x`],
  ["a long string", `"${"a".repeat(100_000)}`],
  ["escapes", `"${"\\\\".repeat(50_000)}`],
  ["many items", `${'"a";r=1, '.repeat(20_000)}=`],
  ["many parameters", `a${";b=1.5".repeat(20_000)}=`],
  ["a long number", `a;b=${"1".repeat(100_000)}`],
  ["commas", ",".repeat(100_000)],
])("reads a field of an origin in linear time: %s", (_, ratelimit) => {
  const startedAt = performance.now();
  withOurs({ ratelimit });
  expect(performance.now() - startedAt).toBeLessThan(500);
});
