import { describe, expect, it } from "vitest";
import type { LogRequest } from "../../../cli/logs/log-request.ts";
import type { ReplayedRequest } from "../../../cli/replay/engine.ts";
import type { ConfigInput } from "../../../src/config/index.ts";
import { ALL, decide, engineOf, logged } from "./requests.ts";
import { type WorkerVerdict, workerVerdicts } from "./worker-verdicts.ts";

const REQUESTS = 5000;

/** The requests of most rules. */
const match = { except: { paths: ["/assets/*"] } };

const CONFIG: ConfigInput = {
  store: "memory",
  rules: [
    {
      name: "site",
      match,
      limits: [
        { limit: 7, window: "1m" },
        { limit: 64, window: "1h" },
      ],
      exempt: { ips: ["198.51.100.0/24"], headers: { "x-internal": "let-me-pass" } },
    },
    {
      name: "login",
      match: { methods: ["POST"], paths: ["/login/*"] },
      limit: 2,
      window: "1m",
      ban: "3m",
    },
    {
      name: "escalating",
      match: { paths: ["/export"] },
      limit: 1,
      window: "10s",
      ban: ["20s", "2m"],
    },
    {
      name: "api",
      match: { paths: ["/api/:version/*"], hosts: ["api.example.com", "*.example.org"] },
      key: ["header:x-api-key | ip", "param:version"],
      limit: 1,
      window: "30s",
      tiers: { by: "header:x-plan", limits: { pro: { limit: 20, window: "1m" } } },
    },
    { name: "failures", match, limit: 3, window: "1m", count: { status: [401, 404] } },
    {
      name: "reserved",
      match: { paths: ["/reserve"] },
      limit: 1,
      window: "1m",
      count: { status: [200], reserve: true },
    },
    {
      name: "rolling",
      match: { paths: ["/roll"] },
      key: "global",
      limit: 2,
      window: "1m",
      capacity: 5,
    },
    { name: "shadow", match, mode: "shadow", limit: 6, window: "1m", key: "path" },
    {
      name: "shadow-failures",
      match,
      mode: "shadow",
      limit: 2,
      window: "1m",
      count: { status: [500] },
    },
    {
      name: "marked",
      mode: "mark",
      limit: 5,
      window: "1m",
      match: { except: { methods: ["POST", "DELETE"] } },
    },
    {
      name: "marked-failures",
      match,
      mode: "mark",
      limit: 1,
      window: "2m",
      count: { status: [404], reserve: true },
    },
    { name: "daily", match, limit: 70, window: "day", timeZone: "America/New_York" },
    {
      name: "cost",
      match: { paths: ["/cost"] },
      cost: { reserve: 4, settle: "header:x-cost", max: 20 },
      limit: 8,
      window: "1m",
    },
    { name: "after", match: { paths: ["/after"] }, cost: "header:x-cost", limit: 4, window: "1m" },
    { name: "upload", match: { methods: ["PUT"] }, cost: "body:bytes", limit: 5000, window: "1m" },
    { name: "closed", match: { paths: ["/closed"] }, limit: 0, window: "1m" },
    { name: "spread", match, start: "spread", limit: 4, window: "40s", key: ["ip", "method"] },
    {
      name: "conditions",
      match: {
        headers: { "user-agent": { prefix: "Bot" } },
        query: { page: true },
        countries: ["DE"],
        except: { ips: ["203.0.113.0/30"] },
      },
      limit: 2,
      window: "1m",
    },
    { name: "preflights", match: { methods: ["OPTIONS"] }, limit: 2, window: "1m" },
    {
      name: "cookie",
      key: ["cookie:sid | query:sid", "country", "asn"],
      match: { paths: ["/account/:id?"] },
      limit: 1,
      window: "1m",
    },
  ],
};

/** Returns a function that draws one of the given values, always the same ones. */
function drawing(seed: number) {
  let state = seed;
  return <Value>(...values: readonly Value[]): Value => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return values[Math.floor((state / 2 ** 32) * values.length)] as Value;
  };
}

const UNUSUAL = Array<undefined>(20).fill(undefined);

/** Adds a user agent to header fields. */
function withAgent(headers: ReadonlyMap<string, string>, agent: string | undefined) {
  return agent === undefined ? headers : new Map([...headers, ["user-agent", agent]]);
}

function requestsOf(seed: number): LogRequest[] {
  const draw = drawing(seed);
  const ips = [
    ...Array.from({ length: 12 }, (_, index) => `203.0.113.${index}`),
    ...["2001:db8::1", "2001:DB8::2", "2001:db8:0:1::", "::ffff:203.0.113.1", "198.51.100.7"],
  ];
  const paths = [
    ...["/", "/login/x", "/LOGIN/", "/login//x", "/a/../login/b", "/login%2fx", "/lo%67in/y;z=1"],
    ...["/export", "/export/", "/api/v1/users", "/api/v2/a%2f..%2fb", "//api/v1/users", "/api"],
    ...["/reserve", "/roll", "/cost", "/after", "/closed", "/account/7", "/account", "/%e4%bd%a0"],
    ...[
      "/a\\\\b",
      "/a%00b",
      "/a;b=c",
      "/assets/x.png",
      "/login/%3Fpage=1",
      `/${"%61".repeat(1500)}`,
    ],
  ];
  // Half an hour before midnight in New York.
  let second = 4.5 * 3600;
  return Array.from({ length: REQUESTS }, () => {
    second += draw(0, 0, 0.1, 0.4, 0.4, 1, 2);
    const method = draw("GET", "GET", "GET", "HEAD", "POST", "POST", "PUT", "OPTIONS", "DELETE");
    const headers = new Map<string, string>(
      [
        draw(undefined, ["x-api-key", draw("a", "b", "c,d")] as const),
        draw(undefined, undefined, ["x-plan", draw("pro", "free")] as const),
        draw(undefined, ["cookie", draw("sid=1", "sid=%32; a=b", "sid=1; sid=2")] as const),
        draw(...UNUSUAL, ["x-internal", "let-me-pass"] as const),
        ...(method === "OPTIONS" && draw(true, false)
          ? ([
              ["origin", "https://example.com"],
              ["access-control-request-method", "PUT"],
              // These requests are no preflights.
              ...draw([], [["upgrade", "websocket"] as const], [["x_http-method", "PUT"] as const]),
            ] as const)
          : []),
        ...(method === "PUT"
          ? ([["content-length", draw("0", "100", "3000", "9000")]] as const)
          : []),
      ].filter((entry) => entry !== undefined),
    );
    const asn = draw(undefined, 64_496, 64_497);
    return logged(second, {
      method,
      host: draw("api.example.com", "www.example.com", "A.EXAMPLE.ORG", "example.org."),
      target: draw(...paths, ...paths, "/") + draw("", "", "?page=2", "?sid=4&a[b]=c"),
      ip: draw(...ips, ...ips, undefined),
      status: draw(200, 200, 200, 401, 404, 500),
      headers: withAgent(headers, draw("Browser", "Bot/1.0", undefined)),
      responseHeaders: new Map<string, string>(
        draw([], [["x-cost", draw("0", "3", "12", "x")] as const]),
      ),
      cf: draw(undefined, { country: draw("DE", "US"), ...(asn !== undefined && { asn }) }),
    });
  });
}

const names = (CONFIG.rules as readonly { name: string }[]).map(({ name }) => name);

/** The rules that a decision of a Worker names, without their windows. */
const rulesOf = ({ outcome, exceeded }: WorkerVerdict) => ({
  outcome: outcome === "refused" ? "undecided" : outcome,
  exceeded: [...new Set(exceeded.map((policy) => policy.split("/")[0]))].sort(),
});

const replayedRules = ({ outcome, verdicts }: ReplayedRequest) => ({
  outcome,
  exceeded: verdicts
    .filter(({ denied }) => denied)
    .map(({ rule }) => names[rule])
    .sort(),
});

describe("the exact engine", () => {
  it("decides 5,000 requests like the Worker", async () => {
    // In the Worker, a request without an address counts under `unknown`. A replay leaves it out, because
    // the log does not state the address that the request had.
    const requests = requestsOf(1).map((request) => ({
      ...request,
      ip: request.ip ?? "192.0.2.9",
    }));
    const engine = engineOf(CONFIG, ALL);
    expect(engine.leftOut).toEqual([]);
    const replayed = decide(engine, requests).map(replayedRules);
    const worker = (await workerVerdicts(CONFIG, requests)).map(rulesOf);
    const outcomes = new Set(worker.map(({ outcome }) => outcome));
    expect(outcomes).toEqual(new Set(["allowed", "limited", "undecided", "unmatched"]));
    const exceeded = new Set(worker.flatMap((each) => each.exceeded));
    expect([...exceeded].sort()).toEqual([...names].sort());
    for (const [index, request] of requests.entries()) {
      expect({ index, request, ...replayed[index] }).toEqual({ index, request, ...worker[index] });
    }
  });
});
