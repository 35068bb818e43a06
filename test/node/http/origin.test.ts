import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ConfigInput } from "../../../src/config/index.ts";
import { type Outgoing, send } from "../support/client.ts";
import { closedPort, type Origin, startOrigin } from "../support/origin.ts";
import { HOST, WAYS } from "../support/ways.ts";
import { type RunningWorker, startWorkers, type WorkerOptions } from "../support/worker.ts";

const CONFIG: ConfigInput = {
  rules: [{ name: "most", match: { except: { paths: ["/free"] } }, limit: 9, window: "1h" }],
};

const ORIGIN_URLS = [
  ["", "/", "/"],
  ["/", "/a?b", "/a?b"],
  ["/base", "/", "/base/"],
  ["/base", "//a?b", "/base//a?b"],
  ["/base/", "/a?b", "/base/a?b"],
  ["/base/%2F//", "/a", "/base/%2F/a"],
] as const;

const ECHO = `export default {
  async fetch(request) {
    return Response.json([request.method, request.url, await request.text()]);
  },
}`;
const THROWS = "export default { fetch() { throw new Error('secret-detail') } }";

const BOUND: ConfigInput = { ...CONFIG, origin: { binding: "SHOP" } };
const EVERY_PATH: ConfigInput["rules"] = [{ name: "most", limit: 1_000_000, window: "1h" }];
const NONE: ConfigInput = {
  rules: [{ name: "none", match: { except: { paths: ["/free"] } }, limit: 0, window: "1h" }],
};

/** The Workers of all tests. They run in one workerd. */
function workersFor(origin: Origin, closed: string) {
  const { url } = origin;
  return {
    ...Object.fromEntries(
      ORIGIN_URLS.map(([base]) => [
        `/${base}`,
        { config: CONFIG, vars: { ORIGIN_URL: url + base } },
      ]),
    ),
    "based by a var": { config: { rules: EVERY_PATH }, vars: { ORIGIN_URL: `${url}/base` } },
    "based by the configuration": { config: { rules: EVERY_PATH, origin: { url: `${url}/base` } } },
    "both urls": {
      config: { ...CONFIG, origin: { url: "http://elsewhere.example" } },
      vars: { ORIGIN_URL: url },
    },
    "a configured url": { config: { ...CONFIG, origin: { url: `${url}/configured` } } },
    "a Worker": { config: BOUND, services: { SHOP: { script: ECHO } } },
    "at a closed port": { config: CONFIG, vars: { ORIGIN_URL: `http://${closed}` } },
    "at the closed port of a service": { config: BOUND, services: { SHOP: { address: closed } } },
    "at the closed port of the zone": { config: CONFIG, zone: closed },
    "whose Worker throws": { config: BOUND, services: { SHOP: { script: THROWS } } },
    "whose binding is missing": { config: BOUND },
    "whose ORIGIN_URL is not a URL": { config: CONFIG, vars: { ORIGIN_URL: "shop.example" } },
    "behind a route, on a machine without a zone": { config: CONFIG },
    ...Object.fromEntries(WAYS.map(({ way, options }) => [way, options(origin, NONE)])),
  } satisfies Record<string, WorkerOptions>;
}

let origin: Origin;
let workers: Map<string, RunningWorker>;

beforeAll(async () => {
  origin = await startOrigin();
  const options = workersFor(origin, await closedPort());
  const running = await startWorkers(Object.values(options));
  workers = new Map(Object.keys(options).map((name, at) => [name, running[at] as RunningWorker]));
});

afterAll(async () => {
  await [...workers.values()][0]?.stop();
  await origin.stop();
});

/** Sends a request to the Worker with this name. */
function sendTo(worker: string, path: string, outgoing: Outgoing = {}, host = HOST) {
  const { url } = workers.get(worker) as RunningWorker;
  return send(url, path, { ...outgoing, headers: { Host: host } });
}

describe("an ORIGIN_URL", () => {
  it.each(ORIGIN_URLS)("that ends in %o forwards %s to %s", async (base, target, arriving) => {
    expect((await sendTo(`/${base}`, target)).status).toBe(200);
    expect(origin.received.at(-1)?.url).toBe(arriving);
  });

  // The origin gets the base path, followed by the path that Weir matched. The origin decodes the
  // remaining escapes itself.
  it.each([
    ["/../x", "/x"],
    ["/../../../x", "/x"],
    ["/a/../../x?y", "/x?y"],
    ["/..", "/"],
    ["/../", "/"],
    ["/.", "/"],
    ["/./", "/"],
    ["/%2e%2e/x", "/x"],
    ["/%2E./x", "/x"],
    ["/.%2e/%2e%2E/x", "/x"],
    ["/..\\x", "/x"],
    ["/\\..\\..\\x", "/x"],
    ["/a\\..\\..\\x", "/x"],
    ["//../x", "/x"],
    ["///../../x", "/x"],
    ["/..//x", "//x"],
    ["/../base/x", "/base/x"],
    ["/../bases", "/bases"],
    ["//elsewhere.example/x", "//elsewhere.example/x"],
    ["http://elsewhere.example/../x", "/x"],
    ["/..;/x", "/..;/x"],
    ["/..;a=b/x", "/..;a=b/x"],
    ["/%2e%2e%2fx", "/%2e%2e%2fx"],
    ["/..%2fx", "/..%2fx"],
    ["/..%5cx", "/..%5cx"],
    ["/%252e%252e/x", "/%252e%252e/x"],
    ["/...", "/..."],
    ["/x?/../y", "/x?/../y"],
    ["/?", "/?"],
    ["/x#/../y", "/x"],
    ["/x?y#/../z", "/x?y"],
  ])("keeps its base path for the target %s", async (target, arriving) => {
    for (const way of ["based by a var", "based by the configuration"]) {
      const before = origin.received.length;
      expect((await sendTo(way, target)).status).toBe(200);
      expect(origin.received.slice(before).map(({ url }) => url)).toEqual([`/base${arriving}`]);
    }
  });

  it("takes precedence over the url of the configuration", async () => {
    expect((await sendTo("both urls", "/")).status).toBe(200);
  });

  it("is not needed if the configuration has a url", async () => {
    expect((await sendTo("a configured url", "/a")).status).toBe(200);
    expect(origin.received.at(-1)?.url).toBe("/configured/a");
  });
});

describe("a service binding", () => {
  it("forwards requests to another Worker, with the URL as the client sent it", async () => {
    const answer = await sendTo("a Worker", "/a%2Fb?c", { method: "POST", body: "body" });
    expect(JSON.parse(answer.body.toString())).toEqual(["POST", `http://${HOST}/a%2Fb?c`, "body"]);
    expect(answer.headers["ratelimit-policy"]).toBe('"most";q=9;w=3600');
  });
});

describe("an unavailable origin", () => {
  const unreachable = "The origin could not be reached.";
  const unconfigured = "The origin is not configured.";

  it.each([
    ["at a closed port", unreachable],
    ["at the closed port of a service", unreachable],
    ["at the closed port of the zone", unreachable],
    ["whose Worker throws", unreachable],
    ["whose binding is missing", unconfigured],
    ["whose ORIGIN_URL is not a URL", unconfigured],
    [
      "behind a route, on a machine without a zone",
      "A local Worker has no origin. Set ORIGIN_URL, or start with npm run dev.",
      "localhost:8787",
    ],
  ])("%s causes a 502 without details", async (name, detail, host = HOST) => {
    for (const path of ["/limited", "/free"]) {
      const answer = await sendTo(name, path, {}, host);
      expect(answer).toMatchObject({
        status: 502,
        headers: { "content-type": "application/problem+json", "cache-control": "no-store" },
      });
      const problem = { type: "about:blank", title: "Bad Gateway", status: 502, detail };
      expect(JSON.parse(answer.body.toString())).toEqual(problem);
    }
  });
});

describe.each(WAYS)("a rule's exception through $way", ({ way }) => {
  it("forwards no path that an origin could read as another path", async () => {
    for (const target of ["/limited/%2e%2e/free", "/limited\\..\\free", "/limited/..%2ffree"]) {
      expect((await sendTo(way, target)).status).toBeOneOf([200, 429]);
      expect(origin.received.map(({ url }) => url)).not.toContain(target);
    }
  });
});
