import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { ConfigInput } from "../../../src/config/index.ts";
import { type Answer, type Outgoing, send } from "../support/client.ts";
import { closedPort, type Origin, startOrigin } from "../support/origin.ts";
import { HOST, WAYS } from "../support/ways.ts";
import { startWorker, type WorkerOptions } from "../support/worker.ts";

const CONFIG: ConfigInput = {
  rules: [{ name: "most", match: { except: { paths: ["/free"] } }, limit: 9, window: "1h" }],
};

let origin: Origin;

beforeAll(async () => {
  origin = await startOrigin();
});

afterAll(async () => {
  await origin.stop();
});

/** Starts a Worker for one test. Returns a function that sends requests for one host. */
async function startFor(options: WorkerOptions, host = HOST) {
  const worker = await startWorker(options);
  onTestFinished(worker.stop);
  return (path: string, outgoing: Outgoing = {}) =>
    send(worker.url, path, { ...outgoing, headers: { Host: host } });
}

describe("an ORIGIN_URL", () => {
  /**
   * Two functions that send a request to a Worker whose origin has a base path. The first Worker
   * has this origin in a var, and the second in its configuration.
   */
  let basedSenders: ((target: string) => Promise<Answer>)[];
  const stops: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    const url = `${origin.url}/base`;
    const rules = [{ name: "most", limit: 1_000_000, window: "1h" } as const];
    const workers = await Promise.all([
      startWorker({ config: { rules }, vars: { ORIGIN_URL: url } }),
      startWorker({ config: { rules, origin: { url } } }),
    ]);
    stops.push(...workers.map(({ stop }) => stop));
    basedSenders = workers.map(
      (worker) => (target) => send(worker.url, target, { headers: { Host: HOST } }),
    );
  });

  afterAll(() => Promise.all(stops.map((stop) => stop())));

  it.each([
    ["", "/", "/"],
    ["/", "/a?b", "/a?b"],
    ["/base", "/", "/base/"],
    ["/base", "//a?b", "/base//a?b"],
    ["/base/", "/a?b", "/base/a?b"],
    ["/base/%2F//", "/a", "/base/%2F/a"],
  ])("that ends in %o forwards %s to %s", async (base, target, arriving) => {
    const vars = { ORIGIN_URL: origin.url + base };
    const sendTo = await startFor({ config: CONFIG, vars });
    expect((await sendTo(target)).status).toBe(200);
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
    const before = origin.received.length;
    for (const send of basedSenders) {
      expect((await send(target)).status).toBe(200);
      expect(origin.received.at(-1)?.url).toBe(`/base${arriving}`);
    }
    expect(origin.received).toHaveLength(before + basedSenders.length);
  });

  it("takes precedence over the url of the configuration", async () => {
    const config = { ...CONFIG, origin: { url: "http://elsewhere.example" } };
    const sendTo = await startFor({ config, vars: { ORIGIN_URL: origin.url } });
    expect((await sendTo("/")).status).toBe(200);
  });

  it("is not needed if the configuration has a url", async () => {
    const config = { ...CONFIG, origin: { url: `${origin.url}/configured` } };
    const sendTo = await startFor({ config });
    expect((await sendTo("/a")).status).toBe(200);
    expect(origin.received.at(-1)?.url).toBe("/configured/a");
  });
});

describe("a service binding", () => {
  it("forwards requests to another Worker, with the URL as the client sent it", async () => {
    const script = `export default {
      async fetch(request) {
        return Response.json([request.method, request.url, await request.text()]);
      },
    }`;
    const sendTo = await startFor({
      config: { ...CONFIG, origin: { binding: "SHOP" } },
      services: { SHOP: { script } },
    });
    const answer = await sendTo("/a%2Fb?c", { method: "POST", body: "body" });
    expect(JSON.parse(answer.body.toString())).toEqual(["POST", `http://${HOST}/a%2Fb?c`, "body"]);
    expect(answer.headers["ratelimit-policy"]).toBe('"most";q=9;w=3600');
  });
});

describe("an unavailable origin", () => {
  const bound = { ...CONFIG, origin: { binding: "SHOP" } };
  const throws = "export default { fetch() { throw new Error('secret-detail') } }";
  const unreachable = "The origin could not be reached.";
  const unconfigured = "The origin is not configured.";

  it.each<[string, () => Promise<WorkerOptions>, detail: string, host?: string]>([
    [
      "at a closed port",
      async () => ({ config: CONFIG, vars: { ORIGIN_URL: `http://${await closedPort()}` } }),
      unreachable,
    ],
    [
      "at the closed port of a service",
      async () => ({ config: bound, services: { SHOP: { address: await closedPort() } } }),
      unreachable,
    ],
    [
      "at the closed port of the zone",
      async () => ({ config: CONFIG, zone: await closedPort() }),
      unreachable,
    ],
    [
      "whose Worker throws",
      async () => ({ config: bound, services: { SHOP: { script: throws } } }),
      unreachable,
    ],
    ["whose binding is missing", async () => ({ config: bound }), unconfigured],
    [
      "whose ORIGIN_URL is not a URL",
      async () => ({ config: CONFIG, vars: { ORIGIN_URL: "shop.example" } }),
      unconfigured,
    ],
    [
      "behind a route, on a machine without a zone",
      async () => ({ config: CONFIG }),
      "A local Worker has no origin. Set ORIGIN_URL, or start with npm run dev.",
      "localhost:8787",
    ],
  ])("%s causes a 502 without details", async (_, options, detail, host) => {
    const sendTo = await startFor(await options(), host);
    for (const path of ["/limited", "/free"]) {
      const answer = await sendTo(path);
      expect(answer).toMatchObject({
        status: 502,
        headers: { "content-type": "application/problem+json", "cache-control": "no-store" },
      });
      const problem = { type: "about:blank", title: "Bad Gateway", status: 502, detail };
      expect(JSON.parse(answer.body.toString())).toEqual(problem);
    }
  });
});

describe.each(WAYS)("a rule's exception through $way", ({ options }) => {
  it("forwards no path that an origin could read as another path", async () => {
    const rule = { name: "none", match: { except: { paths: ["/free"] } }, limit: 0 };
    const sendTo = await startFor(options(origin, { rules: [{ ...rule, window: "1h" }] }));
    for (const target of ["/limited/%2e%2e/free", "/limited\\..\\free", "/limited/..%2ffree"]) {
      expect((await sendTo(target)).status).toBeOneOf([200, 429]);
      expect(origin.received.map(({ url }) => url)).not.toContain(target);
    }
  });
});
