import { describe, expect, it, vi } from "vitest";
import { OperationError } from "../../../../src/admin/operations.ts";
import type { Explanation } from "../../../../src/explain/explanation.ts";
import { createDashboard, NOW } from "./dashboard.ts";
import { fakeExplanation } from "./fake-explanation.ts";

const FIELDS = {
  method: "post",
  url: "/login?next=/",
  headers: "X-Api-Key: abc\r\n\r\naccept: a\nAccept:b\ncookie: a=1\ncookie: b=2",
  ip: "203.0.113.7",
  country: "de",
  asn: "AS64500",
};

/** Sends the form, and returns the page and the description that was explained. */
async function explained(fields: Record<string, string>, role: "admin" | "read" = "admin") {
  const explain = vi.fn(async () => fakeExplanation(NOW));
  const dashboard = createDashboard({ role, operations: { explain } });
  const response = await dashboard.post("/explain", fields);
  return { status: response.status, text: await response.text(), calls: explain.mock.calls };
}

describe.each(["admin", "read"] as const)(
  "the page Explain of an operator with the role %s",
  (role) => {
    it("explains the request that the form describes", async () => {
      const { status, calls } = await explained(FIELDS, role);
      expect({ status, calls }).toEqual({
        status: 200,
        calls: [
          [
            {
              method: "POST",
              url: "https://api.example.com/login?next=/",
              headers: {
                "x-api-key": "abc",
                accept: "a, b",
                cookie: "a=1; b=2",
                "cf-connecting-ip": "203.0.113.7",
              },
              cf: { country: "DE", asn: 64_500 },
            },
          ],
        ],
      });
    });

    it("has no form that changes something", async () => {
      const { text } = await explained(FIELDS, role);
      const actions = [...text.matchAll(/<form[^>]* action="([^"]+)"/g)].map(
        ([, action]) => action,
      );
      expect(new Set(actions)).toEqual(new Set(["/_weir/explain", "/_weir/logout"]));
    });
  },
);

it("shows the verdict, the conditions, the key, the counters and the response", async () => {
  const { text } = await explained(FIELDS);
  for (const part of [
    "The request would be denied.",
    "Weir would answer it with 429.",
    "Other readings of the path",
    "over its limit",
    "match.query.export",
    "? unknown",
    "is absent, because the header is missing",
    "<bdi>203.0.113.7</bdi>",
    "from the header cf-connecting-ip",
    "Costs 2 (cost: 2).",
    "Waits up to 2s for its turn.",
    "A request may pass before the store has decided: over the limit, once for each isolate and window.",
    "tier is pro",
    "all limits × 2",
    "7 → 9",
    "(5 in each window)",
    "weir:login:1m:AAAA:ban",
    "of at least this length",
    "× fails",
    "application/problem+json",
    "weir-over",
  ]) {
    expect(text).toContain(part);
  }
});

it.each<[Partial<Explanation>, string]>([
  [
    { waitMs: 30_000 },
    "The request would wait for its turn, for up to 30s.</b> Weir would answer it with 429 only after that.",
  ],
  [
    { outcome: "unmatched", response: { status: 200, headers: [] } },
    "No rule applies to the request.</b> Weir would answer it with 200.",
  ],
])("shows what happens before the answer, and why no rule applies: %j", async (fields, verdict) => {
  const explain = async () => ({ ...fakeExplanation(NOW), ...fields });
  const response = await createDashboard({ operations: { explain } }).post("/explain", FIELDS);
  expect(await response.text()).toContain(verdict);
});

it("keeps what the operator has entered", async () => {
  const { text } = await explained(FIELDS);
  expect(text).toContain('value="/login?next=/"');
  expect(text).toContain('name="ip" value="203.0.113.7"');
  expect(text).toMatch(/<textarea[^>]*>X-Api-Key: abc/);
});

it("keeps a description out of addresses: a link fills in only the method and the URL", async () => {
  const explain = vi.fn(async () => fakeExplanation(NOW));
  const dashboard = createDashboard({ operations: { explain } });
  const text = await dashboard.text("/explain?method=POST&url=/a%22b&headers=x:1&ip=192.0.2.1");
  expect(explain).not.toHaveBeenCalled();
  expect(text).toContain('name="url" value="/a&quot;b"');
  expect(text).toContain('name="method" value="POST"');
  expect(text).toContain('name="ip" value=""');
});

describe("a fault", () => {
  it.each([
    [{ headers: "a: b\nno colon" }, "Line 2 has none"],
    [{ headers: ": b" }, "Line 1 has none"],
    [{ asn: "many" }, "ASN must be a number"],
    [{ country: "Germany" }, "Country must be a code of two letters"],
    [{ url: "ftp://a" }, "url must be an absolute URL"],
    [{ url: "//a" }, "url must be an absolute URL"],
    [{ url: "" }, "url must be an absolute URL"],
    [{ ip: "999" }, "IP address must be an address"],
    [{ url: `/${"a".repeat(17_000)}` }, "url must have at most 16384 characters"],
    [{ method: "G".repeat(33) }, "method must be an HTTP method"],
    [
      { headers: Array.from({ length: 129 }, (_, i) => `x-${i}: a`).join("\n") },
      "at most 128 fields",
    ],
  ])("in the form is shown, and nothing is explained: %j", async (fields, message) => {
    const { text, calls } = await explained({ ...FIELDS, ...fields });
    expect(text).toContain(message);
    expect(text).toContain('role="alert"');
    expect(calls).toEqual([]);
  });

  it("of the store is shown with the form", async () => {
    const explain = async () => {
      throw new OperationError("unavailable", "The store failed: timeout.");
    };
    const response = await createDashboard({ operations: { explain } }).post("/explain", FIELDS);
    const text = await response.text();
    expect(text).toContain("The store failed: timeout.");
    expect(text).toContain('value="/login?next=/"');
  });
});

it("shows where the client's own limit came from", async () => {
  const explanation = fakeExplanation(NOW);
  const [first, ...rest] = explanation.rules;
  const limitSource = "100, the default of custom:quota, because the function threw an error";
  const explain = async () =>
    ({ ...explanation, rules: [{ ...first, limitSource }, ...rest] }) as Explanation;
  const response = await createDashboard({ operations: { explain } }).post("/explain", FIELDS);
  expect(await response.text()).toContain(`The client&#39;s own limit: ${limitSource}.`);
});
