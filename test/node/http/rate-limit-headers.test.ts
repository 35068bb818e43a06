import type { IncomingHttpHeaders } from "node:http";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { ConfigInput } from "../../../src/config/index.ts";
import { PATIENCE } from "../../patience.ts";
import { send } from "../support/client.ts";
import { type Origin, startOrigin } from "../support/origin.ts";
import { limitsOf, policiesOf } from "../support/quota-fields.ts";
import { awayFromWindowEdge } from "../support/window-edge.ts";
import { type RunningWorker, startWorkers } from "../support/worker.ts";

const DAY = 86_400;
const HOUR = 3600;

const RULES: ConfigInput["rules"] = [
  { name: "site", match: { except: { paths: ["/shadowed", "/free"] } }, limit: 10, window: "1d" },
  {
    name: "search",
    match: { paths: ["/search"] },
    limits: [
      { limit: 33, window: "1m" },
      { limit: 2000, window: "1h" },
    ],
  },
  { name: "none", match: { paths: ["/none"] }, limit: 0, window: "1h" },
  { name: "once", match: { paths: ["/once"] }, limit: 1, window: "1h" },
  {
    name: "shadowed",
    match: { paths: ["/shadowed", "/search"] },
    limit: 0,
    window: 1,
    mode: "shadow",
  },
];

/** The fields of an origin that has its own limits. */
const ORIGINS_OWN = {
  "ratelimit-policy": '"origin";q=7;w=1',
  ratelimit: '"origin";r=5;t=1',
  "x-ratelimit-limit": "7",
  "x-ratelimit-remaining": "5",
  "x-ratelimit-reset": "1",
};

/** The fields of origins that follow older drafts. */
const OLDER_DRAFTS = {
  "/draft-7": { "ratelimit-policy": "7;w=1", ratelimit: "limit=7, remaining=5, reset=1" },
  "/draft-6": { "ratelimit-limit": "7", "ratelimit-remaining": "5", "ratelimit-reset": "1" },
};

let origin: Origin;
let worker: RunningWorker;
let clients = 0;

const STYLES = ["draft-11", "legacy", "both", "none"] as const;

/** One Worker for each style, one with the default, and one whose log no other test writes. They run in one workerd. */
let workers: readonly RunningWorker[];

beforeAll(async () => {
  await awayFromWindowEdge(HOUR * 1000);
  origin = await startOrigin();
  origin.on("/own", (_, response) => response.writeHead(200, ORIGINS_OWN).end());
  for (const [path, fields] of Object.entries(OLDER_DRAFTS)) {
    origin.on(path, (_, response) => response.writeHead(200, fields).end());
  }
  const vars = { ORIGIN_URL: origin.url };
  workers = await startWorkers([
    ...STYLES.map((headers) => ({ config: { rules: RULES, headers }, vars })),
    { config: { rules: RULES }, vars },
    { config: { rules: RULES }, vars },
  ]);
});

afterAll(async () => {
  await workers[0]?.stop();
  await origin.stop();
});

function use(at: number): void {
  worker = workers[at] as RunningWorker;
}

/** Returns a function that sends requests of a new client. */
function newClient() {
  const headers = { "CF-Connecting-IP": `203.0.113.${++clients}` };
  return (path: string) => send(worker.url, path, { headers });
}

describe("the RateLimit fields of a response", () => {
  beforeAll(() => use(STYLES.length));

  it("show each policy with its quota and window, the quota left and the window's end", async () => {
    const get = newClient();
    for (const remaining of [9, 8]) {
      const before = Date.now() / 1000;
      const { status, headers } = await get("/a");
      expect(status).toBe(200);
      expect(policiesOf(headers)).toEqual([{ name: "site", q: 10, w: DAY }]);
      expect(limitsOf(headers)).toEqual([{ name: "site", r: remaining, t: expect.any(Number) }]);
      const t = Number(limitsOf(headers)[0]?.t);
      const end = endOfWindow(before, DAY);
      expect(t).toBeGreaterThanOrEqual(end - Date.now() / 1000);
      expect(t).toBeLessThan(end - before + 1);
    }
  });

  it("show each window of each rule, in the order of the rules", async () => {
    const { headers } = await newClient()("/search");
    expect(policiesOf(headers)).toEqual([
      { name: "site", q: 10, w: DAY },
      { name: "search/1m", q: 33, w: 60 },
      { name: "search/1h", q: 2000, w: HOUR },
    ]);
    expect(limitsOf(headers)).toMatchObject([
      { name: "site", r: 9 },
      { name: "search/1m", r: 32 },
      { name: "search/1h", r: 1999 },
    ]);
  });

  it("follow those of the origin", async () => {
    const { headers } = await newClient()("/own");
    expect(policiesOf(headers)).toMatchObject([{ name: "origin", q: 7, w: 1 }, { name: "site" }]);
    expect(limitsOf(headers)).toMatchObject([{ name: "origin", r: 5, t: 1 }, { name: "site" }]);
  });

  it.each(Object.entries(OLDER_DRAFTS))(
    "are those of an origin alone for %s",
    async (path, own) => {
      const { headers } = await newClient()(path);
      expect(namesOf(headers)).toEqual(Object.keys(own).sort());
      expect(headers).toMatchObject(own);
    },
  );

  it("show every quota if one quota denies the request, and no quota is charged", async () => {
    const get = newClient();
    expect((await get("/once")).status).toBe(200);
    for (const attempt of ["second", "third"]) {
      const { status, headers } = await get("/once");
      expect({ attempt, status }).toEqual({ attempt, status: 429 });
      expect(policiesOf(headers)).toMatchObject([
        { name: "site", q: 10 },
        { name: "once", q: 1 },
      ]);
      expect(limitsOf(headers)).toMatchObject([
        { name: "site", r: 9 },
        { name: "once", r: 0 },
      ]);
    }
  });

  it("show only the quota of a limit of 0, because such a denial needs no store", async () => {
    const { status, headers } = await newClient()("/none");
    expect(status).toBe(429);
    expect(policiesOf(headers)).toMatchObject([{ name: "none", q: 0, w: 3600 }]);
    expect(limitsOf(headers)).toMatchObject([{ name: "none", r: 0 }]);
  });

  it.each(["/shadowed", "/free"])("are only those of the origin for %s", async (path) => {
    const { status, headers } = await newClient()(path);
    expect(status).toBe(200);
    expect(namesOf(headers)).toEqual([]);
  });
});

describe("the RateLimit fields of a response to which a rule in shadow mode applies", () => {
  // This test has a separate Worker, because log lines of earlier tests could still arrive.
  beforeAll(() => use(STYLES.length + 1));

  it("do not show the rule; only the log does", async () => {
    const { headers } = await newClient()("/shadowed");
    expect(namesOf(headers)).toEqual([]);
    await vi.waitFor(() => expect(worker.logs()).toHaveLength(1), PATIENCE);
    expect(worker.logs()).toEqual([expect.stringMatching(/^log: .*"policy":"shadowed"/)]);
  });
});

describe.each([
  { style: "draft-11", draft: true, legacy: false },
  { style: "legacy", draft: false, legacy: true },
  { style: "both", draft: true, legacy: true },
  { style: "none", draft: false, legacy: false },
] as const)("headers: $style", ({ style, draft, legacy }) => {
  beforeAll(() => use(STYLES.indexOf(style)));

  const ours = [
    ...(draft ? ["ratelimit", "ratelimit-policy"] : []),
    ...(legacy ? ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"] : []),
  ];

  it.each([
    ["/once", 200],
    ["/once", 429],
    ["/none", 429],
  ])(
    `adds ${ours.length} fields to the response for %s with the status %i`,
    async (path, expected) => {
      const get = newClient();
      if (path === "/once" && expected === 429) await get(path);
      const { status, headers } = await get(path);
      expect({ status, names: namesOf(headers) }).toEqual({ status: expected, names: ours });
      // Nobody can return to a limit of 0.
      expect("retry-after" in headers).toBe(path === "/once" && expected === 429);
    },
  );

  it("leaves the origin's own fields as they are", async () => {
    const { headers } = await newClient()("/own");
    expect(headers).toMatchObject({
      ...ORIGINS_OWN,
      "ratelimit-policy": expect.stringMatching(/^"origin";q=7;w=1(, "site";q=10;w=86400)?$/),
      ratelimit: expect.stringMatching(/^"origin";r=5;t=1(, "site";r=9;t=\d+(;weir-.*)?)?$/),
    });
    expect(policiesOf(headers)).toHaveLength(draft ? 2 : 1);
    expect(limitsOf(headers)).toHaveLength(draft ? 2 : 1);
  });
});

describe.each(["legacy", "both"] as const)("X-RateLimit fields of headers: %s", (style) => {
  beforeAll(() => use(STYLES.indexOf(style)));

  it.each([
    ["/search", 10, 9, DAY],
    ["/none", 0, 0, HOUR],
  ])("show the quota with the least left for %s", async (path, limit, remaining, length) => {
    const reset = endOfWindow(Date.now() / 1000, length);
    const { headers } = await newClient()(path);
    expect(headers).toMatchObject({
      "x-ratelimit-limit": `${limit}`,
      "x-ratelimit-remaining": `${remaining}`,
      "x-ratelimit-reset": `${reset}`,
    });
  });
});

/** Returns the names of the RateLimit and X-RateLimit fields. */
function namesOf(headers: IncomingHttpHeaders): string[] {
  return Object.keys(headers)
    .filter((name) => /^(x-)?ratelimit/.test(name))
    .sort();
}

/** Returns the end of the window that contains `now`. Both times are Unix times in seconds. */
function endOfWindow(now: number, length: number): number {
  return (Math.floor(now / length) + 1) * length;
}
