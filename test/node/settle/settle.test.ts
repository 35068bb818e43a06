import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { hangUp } from "../../../dev/hang-up.ts";
import type { ConfigInput } from "../../../src/config/index.ts";
import { PATIENCE } from "../../patience.ts";
import { open, send } from "../support/client.ts";
import { limitsOf } from "../support/quota-fields.ts";
import { REMOTE_STORES, useServers } from "../support/servers.ts";
import { type RunningWorker, startWorker } from "../support/worker.ts";
import { USAGE } from "./usage.ts";

const LIMIT = 1000;
const RESERVE = 100;
const TIMEOUT_MS = 5000;

const rule = (name: string, fields: object) => ({
  name,
  match: { paths: [`/${name}`] },
  key: "header:x-client",
  limit: LIMIT,
  window: "52w",
  ...fields,
});

/** The rules by the path of their requests. */
const RULES = [
  rule("header", { cost: { reserve: RESERVE, settle: "header:x-used" } }),
  rule("header-default", { cost: { reserve: RESERVE, settle: "header:x-used", default: 7 } }),
  rule("header-missing", { cost: { reserve: RESERVE, settle: "header:x-used" } }),
  rule("after", { cost: { settle: "header:x-used", max: 50 } }),
  rule("failed", { cost: 10, count: { status: [401], reserve: true } }),
  rule("usage", { cost: { reserve: RESERVE, settle: "custom:usage" } }),
  rule("usage-default", { cost: { reserve: RESERVE, settle: "custom:usage", default: 7 } }),
  rule("usage-after", { cost: { settle: "custom:usage", max: 500, default: 3 } }),
  rule("broken-after", { cost: { settle: "custom:usage", max: 500, default: 3 } }),
  rule("sharded", { cost: { reserve: RESERVE, settle: "custom:usage" }, shards: 4 }),
  rule("stalls", { cost: { reserve: RESERVE, settle: "custom:stalls" } }),
  rule("throws", { cost: { reserve: RESERVE, settle: "custom:throws", default: 5 } }),
  rule("odd", { cost: { reserve: RESERVE, settle: "custom:odd" } }),
  rule("odd-default", { cost: { reserve: RESERVE, settle: "custom:odd", default: 7 } }),
  rule("odd-after", { cost: { settle: "custom:odd", max: 500 } }),
  rule("low", { match: { paths: ["/two"] }, cost: { reserve: RESERVE, settle: "custom:odd" } }),
  rule("high", { match: { paths: ["/two"] }, cost: { reserve: 400, settle: "custom:odd" } }),
  rule("ignores", { cost: { reserve: RESERVE, settle: "custom:constant" } }),
  rule("rolls", { cost: { reserve: RESERVE, settle: "custom:usage" }, capacity: 2000 }),
  rule("windows", {
    cost: { reserve: RESERVE, settle: "custom:usage" },
    limits: [
      { limit: LIMIT, window: "26w" },
      { limit: LIMIT, window: "52w" },
    ],
    limit: undefined,
    window: undefined,
  }),
  rule("shadow", { cost: { reserve: RESERVE, settle: "custom:usage" }, mode: "shadow" }),
  rule("marked", { cost: { reserve: RESERVE, settle: "custom:usage" }, mode: "mark" }),
] as unknown as ConfigInput["rules"];

const main = (config: object) => `
  import { CounterObject, defineConfig, Hono, rateLimit, weir, WeirService } from "./weir.mjs";
  const settle = {
    ${USAGE}
    stalls: () => new Promise(() => {}),
    throws() { throw new Error("secret"); },
    odd: (response) => JSON.parse(response.headers.get("x-odd")),
    constant: () => 42,
  };
  const config = defineConfig({ ...${JSON.stringify(config)}, custom: { settle } });
  const limiter = weir(config);
  const app = new Hono();
  app.use(rateLimit(config));
  app.get("/failed", (c) => { if (c.req.header("x-throw")) throw new Error("app"); return c.text("no", Number(c.req.header("x-status"))); });
  app.get("*", (c) => c.body("used " + c.req.header("x-used"), 200, { "x-used": c.req.header("x-used") ?? "" }));
  export class Limits extends WeirService { config = config; }
  export default {
    async fetch(request, env, ctx) {
      const mode = request.headers.get("x-mode");
      if (mode === "hono") return app.fetch(request, env, ctx);
      if (mode === "left") {
        const left = await ctx.exports.Limits.getValue(new URL(request.url).pathname.slice(1), { key: request.headers.get("x-client") });
        return Response.json(left.map(({ remaining }) => remaining));
      }
      if (mode === "rpc") {
        const key = request.headers.get("x-client");
        const { reserved } = await ctx.exports.Limits.limit("sharded", { key });
        return Response.json(await ctx.exports.Limits.settle("sharded", { key, reserved, used: 5 }));
      }
      if (mode === "next") return limiter.fetch(request, env, ctx, () => new Response("used " + request.headers.get("x-used"), { headers: { "x-used": request.headers.get("x-used") ?? "" } }));
      return limiter.fetch(request, env, ctx);
    },
  };
  export { CounterObject };
`;

const servers = useServers();

describe.each(REMOTE_STORES)("over the store %s", (store) => {
  let worker: RunningWorker;

  beforeAll(async () => {
    const config = { store, rules: RULES, prefix: `settle-${randomUUID()}`, timeoutMs: TIMEOUT_MS };
    worker = await startWorker({
      config: config as ConfigInput,
      main: main(config),
      vars: servers.varsFor(store),
    });
  });

  afterAll(() => worker.stop());

  const newClient = () => ({ "x-client": randomUUID() });

  async function left(path: string, headers: Record<string, string>): Promise<number[]> {
    const answer = await send(worker.url, path, { headers: { ...headers, "x-mode": "left" } });
    return JSON.parse(`${answer.body}`);
  }

  const settledAt = (path: string, headers: Record<string, string>, used: number) =>
    vi.waitFor(async () => {
      for (const rest of await left(path, headers)) expect(rest).toBe(LIMIT - used);
    }, PATIENCE);

  /** Waits for a line of the log, because lines arrive shortly after the answers. */
  const expectLogged = (line: object) =>
    vi.waitFor(() => expect(worker.logs()).toContain(`error: ${JSON.stringify(line)}`), PATIENCE);

  /** Lets the origin send a text, and break off when the client has received the text. */
  async function breakOffAfter(path: string, text: string, headers: object, fields = {}) {
    const received = Promise.withResolvers<void>();
    servers.origin.on(path, async (_, response) => {
      response.writeHead(200, fields).write(text);
      await received.promise;
      response.destroy();
    });
    const sent = open(worker.url, path, { headers: { ...headers } }).end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    const closed = Promise.withResolvers<void>();
    response.on("data", () => received.resolve()).on("error", () => {});
    response.on("close", () => closed.resolve());
    await closed.promise;
  }

  const body =
    (text: string, fields: Record<string, string> = {}) =>
    (_: unknown, response: ServerResponse) => {
      response.writeHead(200, fields).end(text);
    };

  describe.each(["origin", "next", "hono"])("with the responses of: %s", (mode) => {
    it("settles a reserve by a header field, and shows the settled quota", async () => {
      for (const used of ["40", "100", "250", "0"]) {
        const headers = { ...newClient(), "x-mode": mode, "x-used": used };
        servers.origin.on("/header", body("ok", { "x-used": used }));
        const answer = await send(worker.url, "/header", { headers });
        expect(answer.status).toBe(200);
        expect(limitsOf(answer.headers)[0]?.r).toBe(LIMIT - Number(used));
        await settledAt("/header", headers, Number(used));
      }
    });

    it("settles a reserve by the body, after the body has ended", async () => {
      for (const used of [40, 250]) {
        const headers = { ...newClient(), "x-mode": mode, "x-used": String(used) };
        servers.origin.on("/usage", body(`used ${used}`));
        const answer = await send(worker.url, "/usage", { headers });
        expect(`${answer.body}`).toBe(`used ${used}`);
        // The fields are sent before the settlement.
        expect(limitsOf(answer.headers)[0]?.r).toBe(LIMIT - RESERVE);
        await settledAt("/usage", headers, used);
      }
    });
  });

  it.each([
    ["header", { "x-used": "4000.5" }, RESERVE, "invalid"],
    ["header-missing", {}, RESERVE, "missing"],
    ["header-default", { "x-used": "-1" }, 7, "invalid"],
    ["after", {}, 1, "missing"],
  ])(
    "charges the reserve, the default or 1 if the field is invalid or missing: %s %j",
    async (path, fields, used, cause) => {
      const headers = newClient();
      servers.origin.on(`/${path}`, body("ok", fields as Record<string, string>));
      await send(worker.url, `/${path}`, { headers });
      await settledAt(`/${path}`, headers, used);
      await expectLogged({ weir: "cost-unreadable", rule: path, source: "header:x-used", cause });
    },
  );

  it("caps a cost by max, and charges it after the response without a reserve", async () => {
    const headers = newClient();
    servers.origin.on("/after", body("ok", { "x-used": "4000" }));
    await send(worker.url, "/after", { headers });
    await settledAt("/after", headers, 50);
    servers.origin.on("/usage-after", body("used 30"));
    await send(worker.url, "/usage-after", { headers });
    await settledAt("/usage-after", headers, 30);
    servers.origin.on("/usage-after", body("nothing"));
    await send(worker.url, "/usage-after", { headers });
    await settledAt("/usage-after", headers, 33);
  });

  it.each([
    ["stalls", {}, RESERVE],
    ["throws", {}, 5],
    ["odd", { "x-odd": "4000.5" }, RESERVE],
    ["odd", { "x-odd": "-4" }, RESERVE],
    ["odd", { "x-odd": '"5"' }, RESERVE],
    ["odd", { "x-odd": "1e400" }, RESERVE],
    ["odd", { "x-odd": '{"atLeast":250}' }, 250],
    ["odd", { "x-odd": '{"atLeast":30}' }, RESERVE],
    ["odd", { "x-odd": '{"atLeast":-30}' }, RESERVE],
    ["odd", { "x-odd": '{"atLeast":"250"}' }, RESERVE],
    ["odd-default", { "x-odd": '{"atLeast":30}' }, 30],
    ["odd-default", { "x-odd": '{"atLeast":3}' }, 7],
    ["odd-after", { "x-odd": '{"atLeast":30}' }, 30],
    ["odd-after", { "x-odd": '{"atLeast":600}' }, 500],
    ["odd-after", { "x-odd": '{"atLeast":0}' }, 1],
    ["ignores", {}, 42],
    ["rolls", {}, 30 - LIMIT],
    ["windows", {}, 30],
    ["shadow", {}, 30],
    ["marked", {}, 30],
  ])("settles by the result of a function: %s %j", async (path, fields, used) => {
    const headers = newClient();
    servers.origin.on(`/${path}`, body("used 30", fields as Record<string, string>));
    const answer = await send(worker.url, `/${path}`, { headers });
    expect(`${answer.body}`).toBe("used 30");
    await settledAt(`/${path}`, headers, used);
    expect(worker.logs().join()).not.toContain("secret");
  });

  it("charges each of two rules with one function its own reserve, or a higher minimum", async () => {
    const headers = newClient();
    servers.origin.on("/two", body("", { "x-odd": '{"atLeast":250}' }));
    await send(worker.url, "/two", { headers });
    await settledAt("/low", headers, 250);
    await settledAt("/high", headers, 400);
    const source = "custom:odd";
    await expectLogged({ weir: "cost-unreadable", rule: "high", source, cause: "missing" });
  });

  it("gives a reserve back if the status does not count", async () => {
    for (const [status, used] of [
      [401, 10],
      [200, 0],
    ] as const) {
      const headers = newClient();
      servers.origin.on("/failed", (_, response) => response.writeHead(status).end());
      const answer = await send(worker.url, "/failed", { headers });
      expect(limitsOf(answer.headers)[0]?.r).toBe(LIMIT - used);
      await settledAt("/failed", headers, used);
    }
    const headers = { ...newClient(), "x-mode": "hono", "x-throw": "1" };
    const { status } = await send(worker.url, "/failed", { headers });
    expect(status).toBe(500);
    await settledAt("/failed", headers, 0);
  });

  it("admits only reserves that fit, and sums up what was used, under concurrency", async () => {
    const headers = newClient();
    const ends: (() => void)[] = [];
    servers.origin.on("/usage", (_, response) => {
      response.writeHead(200).write("start ");
      ends.push(() => response.end("used 60"));
    });
    const answered: number[] = [];
    const requests = Array.from({ length: 50 }, async () => {
      const { status } = await send(worker.url, "/usage", { headers });
      answered.push(status);
      return status;
    });
    // Ten requests fit, and stay open until all other requests are denied.
    await vi.waitFor(() => expect(ends).toHaveLength(LIMIT / RESERVE), PATIENCE);
    await vi.waitFor(() => expect(answered).toEqual(Array(40).fill(429)), PATIENCE);
    for (const end of ends) end();
    const statuses = await Promise.all(requests);
    expect(statuses.filter((status) => status === 200)).toHaveLength(10);
    await settledAt("/usage", headers, 10 * 60);
  });

  it.each(["reset", "end"] as const)(
    "charges the result of a function that read part of the body if the client hangs up: %s",
    async (way) => {
      const [known, unknown] = [newClient(), newClient()];
      for (const [headers, first, used] of [
        [known, "used 70 ", 70],
        [unknown, "nothing ", RESERVE],
      ] as const) {
        const closed = Promise.withResolvers<void>();
        servers.origin.on("/usage", (_, response) => {
          response.writeHead(200).write(first);
          const timer = setInterval(() => response.write("x"), 10);
          response.on("close", () => {
            clearInterval(timer);
            closed.resolve();
          });
        });
        const when = { received: first };
        await hangUp(worker.url, { path: "/usage", headers }, { way, when });
        await closed.promise;
        await settledAt("/usage", headers, used);
      }
    },
  );

  it.each(["reset", "end"] as const)(
    "ends if the client hangs up before the head of an endless response, or a silent origin: %s",
    async (way) => {
      // workerd does not notice a FIN while the origin sends nothing.
      for (const isSilent of way === "reset" ? [false, true] : [false]) {
        const headers = newClient();
        const [reached, hungUp, closed] = [
          Promise.withResolvers<void>(),
          Promise.withResolvers<void>(),
          Promise.withResolvers<void>(),
        ];
        servers.origin.on("/usage", async (_, response) => {
          response.on("close", () => closed.resolve());
          if (isSilent) {
            response.writeHead(200).write("used 70 ");
            return;
          }
          reached.resolve();
          await hungUp.promise;
          response.writeHead(200);
          const timer = setInterval(() => response.write("used 70 "), 10);
          response.on("close", () => clearInterval(timer));
        });
        const when = isSilent ? { received: "used 70 " } : reached.promise;
        await hangUp(worker.url, { path: "/usage", headers }, { way, when });
        hungUp.resolve();
        await closed.promise;
        await vi.waitFor(async () => {
          const [rest] = await left("/usage", headers);
          expect([LIMIT - 70, LIMIT - RESERVE]).toContain(rest);
        }, PATIENCE);
      }
    },
  );

  it("gives quota of shards back to the shard that was charged", async () => {
    const headers = newClient();
    servers.origin.on("/sharded", body("used 0"));
    const status = async () => (await send(worker.url, "/sharded", { headers })).status;
    // Each shard has a share of 250, so it admits two reserves until one is given back. A reserve is given back after
    // the response, so the next request may be too early.
    for (let request = 0; request < 40; request++) {
      await vi.waitFor(async () => expect(await status()).toBe(200), PATIENCE);
    }
  });

  it("settles the reserves of programs over RPC, in another call", async () => {
    const headers = { ...newClient(), "x-mode": "rpc" };
    const oks: boolean[] = [];
    // Each of the four shards has 250, so unsettled reserves would soon be missing.
    for (let call = 0; call < 20; call++) {
      const { body: text } = await send(worker.url, "/", { headers });
      oks.push(JSON.parse(`${text}`).ok);
    }
    expect(oks).toEqual(Array(20).fill(true));
  });

  it.skipIf(store !== "upstash")(
    "makes two calls over REST, or one if nothing differs",
    async () => {
      for (const path of ["/header", "/usage"]) {
        for (const used of [RESERVE - 1, RESERVE]) {
          const client = newClient();
          servers.origin.on(path, body(`used ${used}`, { "x-used": `${used}` }));
          await send(worker.url, path, { headers: client });
          await settledAt(path, client, used);
          const before = servers.rest.calls();
          const expected = used === RESERVE ? 1 : 2;
          await send(worker.url, path, { headers: client });
          const calls = () => servers.rest.calls() - before;
          await vi.waitFor(() => expect(calls()).toBeGreaterThanOrEqual(expected), PATIENCE);
          // A surplus call would come within this time.
          await delayed(100);
          expect(calls()).toBe(expected);
        }
      }
    },
  );

  it.each([
    ["usage-default", RESERVE],
    // Without a reserve, the maximum is charged.
    ["broken-after", 500],
  ])(
    "charges no lower default for a response that breaks off without a cost: %s",
    async (path, used) => {
      const [byOrigin, byClient, whole, silent] = [
        newClient(),
        newClient(),
        newClient(),
        newClient(),
      ];
      await breakOffAfter(`/${path}`, "nothing", byOrigin);
      await settledAt(`/${path}`, byOrigin, used);
      const source = "custom:usage";
      await expectLogged({ weir: "cost-unreadable", rule: path, source, cause: "broken-off" });
      servers.origin.on(`/${path}`, (_, response) => void response.writeHead(200).write("nothing"));
      await hangUp(
        worker.url,
        { path: `/${path}`, headers: byClient },
        { way: "reset", when: { received: "nothing" } },
      );
      await settledAt(`/${path}`, byClient, used);
      servers.origin.on(`/${path}`, (_, response) => response.destroy());
      const { status } = await send(worker.url, `/${path}`, { headers: silent });
      expect(status).toBe(502);
      // The only number in the body of Weir's own 502 is the status. The rule "broken-after" has a maximum of 500.
      await settledAt(`/${path}`, silent, path === "broken-after" ? 500 : 502);
      servers.origin.on(`/${path}`, body("nothing"));
      await send(worker.url, `/${path}`, { headers: whole });
      await settledAt(`/${path}`, whole, path === "broken-after" ? 3 : 7);
    },
  );

  it("keeps the reserve, and not the default, if the origin sends no head", async () => {
    const headers = newClient();
    servers.origin.on("/header-default", (_, response) => response.destroy());
    const { status } = await send(worker.url, "/header-default", { headers });
    expect(status).toBe(502);
    await settledAt("/header-default", headers, RESERVE);
  });

  it("charges the result of a function that read part of the body if the origin breaks off", async () => {
    const headers = newClient();
    await breakOffAfter("/usage", "used 70 ", headers, { "Content-Length": "1000" });
    await settledAt("/usage", headers, 70);
  });
});

function delayed(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
