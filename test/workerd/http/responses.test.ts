import { describe, expect, it } from "vitest";
import { defineConfig } from "../../../src/config/index.ts";
import type { Rule } from "../../../src/config/rule.ts";
import { appendQuotaHeaders } from "../../../src/http/response-headers.ts";
import {
  badGatewayResponse,
  badRequestResponse,
  limitedResponse,
  pathTooLongResponse,
  undecidedResponse,
} from "../../../src/http/responses.ts";
import { verdictOn } from "../../verdicts.ts";

const quota = {
  policy: "api",
  limit: 5,
  windowMs: 60_000,
  remaining: 0,
  resetMs: 42_000,
  resetAt: 1_700_000_142_000,
  violated: true,
  retryAfterMs: 42_000,
  reservationDelayMs: 0,
};

function deniedBy(rule: Rule) {
  return verdictOn({ rule, windows: rule.windows, identity: "someone" }, "denied");
}

describe("the X-RateLimit fields of Weir", () => {
  const names = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"];
  const subsets = Array.from({ length: 7 }, (_, bits) =>
    names.filter((_, at) => ((bits + 1) >> at) & 1),
  );

  it.each(subsets.map((own) => ({ own })))("are not added if the origin sends $own", ({ own }) => {
    const origins = own.map((name): [string, string] => [name.toLowerCase(), "origin"]);
    for (const style of ["legacy", "both"] as const) {
      const headers = new Headers(origins);
      appendQuotaHeaders(headers, [quota], style);
      expect([...headers].filter(([name]) => name.startsWith("x-"))).toEqual(origins.sort());
    }
  });

  it("are added if the origin sends none of them", () => {
    const headers = new Headers();
    appendQuotaHeaders(headers, [quota], "legacy");
    expect([...headers.keys()]).toEqual(names.map((name) => name.toLowerCase()));
  });

  it("show the tightest quota, and of equally tight quotas the one that is reset last", () => {
    const hourly = { ...quota, limit: 50, resetAt: quota.resetAt + 1000 };
    const wider = { ...hourly, limit: 90, remaining: 1, resetAt: quota.resetAt + 2000 };
    for (const quotas of [
      [quota, hourly, wider],
      [wider, hourly, quota],
    ]) {
      const headers = new Headers();
      appendQuotaHeaders(headers, quotas, "legacy");
      expect([...headers.values()]).toEqual(["50", "0", "1700000143"]);
    }
  });
});

describe("a denial with header fields of the rule, but no body", () => {
  function denialWith(headers: Record<string, string>) {
    const { rules } = defineConfig({
      rules: [{ name: "api", limit: 5, window: "1m", response: { headers } }],
    });
    const [rule] = rules as [(typeof rules)[number]];
    const decision = {
      outcome: "limited",
      quotas: [quota],
      verdicts: [],
      retryAfterMs: 1,
      deniedBy: deniedBy(rule),
    } as const;
    return limitedResponse(new Request("https://api.example.com/"), decision, "none");
  }

  it.each(["content-type", "Content-Type", "CONTENT-TYPE"])(
    "has the rule's %s, and the problem as its body",
    async (name) => {
      const response = denialWith({ [name]: "application/json" });
      expect(response.headers.get("content-type")).toBe("application/json");
      expect(await response.json()).toMatchObject({ "violated-policies": ["api"] });
    },
  );

  it("is problem+json if the rule has no Content-Type", () => {
    const type = denialWith({ "X-Reason": "quota" }).headers.get("content-type");
    expect(type).toBe("application/problem+json");
  });
});

describe("each header field that Weir sets in its own responses", () => {
  const request = new Request("https://api.example.com/", {
    headers: { origin: "https://page.example" },
  });
  const rule = { name: "api", limit: 5, window: "1m" } as const;
  const [checked] = defineConfig({ rules: [rule] }).rules as [Rule];
  const responses = [
    limitedResponse(
      request,
      {
        outcome: "limited",
        quotas: [quota],
        verdicts: [],
        retryAfterMs: 1,
        deniedBy: deniedBy(checked),
      },
      "both",
    ),
    undecidedResponse(request),
    badRequestResponse(request),
    pathTooLongResponse(request),
    badGatewayResponse(request, ""),
  ];
  const names = [...new Set(responses.flatMap(({ headers }) => [...headers.keys()]))].filter(
    (name) => name !== "content-type",
  );

  it.each(names)("cannot be set by a rule's response: %s", (name) => {
    const response = { headers: { [name]: "1" } };
    expect(() => defineConfig({ rules: [{ ...rule, response }] })).toThrow(
      "any header except those that Weir or the transport controls",
    );
  });

  // The Fetch standard (section 2.2.2) lets pages read Cache-Control and Content-Type even if
  // Access-Control-Expose-Headers does not list them. Vary and the CORS fields are for caches and
  // browsers.
  const isForPages = (name: string) =>
    !/^(access-control-.*|vary|cache-control|content-type)$/.test(name);

  it.each(names.filter(isForPages))("can be read by a page of another origin: %s", (name) => {
    const exposed = responses.map(({ headers }) => headers.get("access-control-expose-headers"));
    for (const list of exposed) expect(list?.toLowerCase().split(", ")).toContain(name);
  });
});
