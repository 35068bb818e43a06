import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { hangUp, WAYS_TO_HANG_UP } from "../../../dev/hang-up.ts";
import type { ConfigInput } from "../../../src/config/index.ts";
import { PATIENCE } from "../../patience.ts";
import { runs } from "../../suite/runs.ts";
import { open, send } from "../support/client.ts";
import { REMOTE_STORES, useServers } from "../support/servers.ts";
import { type RunningWorker, startWorker, startWorkers, TIMEOUT_MS } from "../support/worker.ts";

const LIMIT = 4;
const RULE = { concurrent: LIMIT } as const;
const CUTS = runs(500);

const servers = useServers();

/** Returns a Worker that calls a service: it takes all slots of a client, and then one more. */
function programOf(config: Pick<ConfigInput, "store" | "prefix">): string {
  const rule = { name: "call", ...RULE, key: "custom:user", for: "programs" };
  const input = { timeoutMs: TIMEOUT_MS, ...config, rules: [rule] };
  return `
    import { CounterObject, defineConfig, WeirService } from "./weir.mjs";
    const config = defineConfig(${JSON.stringify(input)});
    export class Limits extends WeirService { config = config; }
    export { CounterObject };
    export default {
      async fetch(request, env, ctx) {
        const limits = ctx.exports.Limits;
        const [, path, key] = new URL(request.url).pathname.split("/");
        if (path === "free") return Response.json((await limits.getValue("call", { key }))[0].remaining);
        const taken = [];
        for (let at = 0; at < ${LIMIT}; at++) taken.push(await limits.limit("call", { key }));
        const more = await limits.limit("call", { key });
        for (const { slot } of taken) await slot.release();
        return Response.json([taken.every(({ ok }) => ok), more.ok, more.retryAfterMs]);
      },
    };
  `;
}

/** Keeps the responses to a path open until `answer` is called. `all` counts all requests. */
function holdResponses(path: string, head = true) {
  const waiting = new Set<ServerResponse>();
  const state = { open: 0, all: 0, waiting };
  servers.origin.on(path, (_, response) => {
    state.open += 1;
    state.all += 1;
    response.on("close", () => {
      state.open -= 1;
      waiting.delete(response);
    });
    if (head) response.writeHead(200).write("begin");
    waiting.add(response);
  });
  return {
    state,
    answer: () => {
      for (const response of waiting) response.end("end");
    },
  };
}

describe.each(REMOTE_STORES)("slots over the store %s", (store) => {
  let worker: RunningWorker;
  let program: RunningWorker;
  /** Isolates that share their slots, for which requests wait. Each Worker has Durable Objects of its own. */
  let patient: readonly RunningWorker[];
  let clients = 0;

  beforeAll(async () => {
    program = await startWorker({
      config: { store, rules: [] },
      main: programOf({ store, prefix: `slots-${randomUUID()}` }),
      vars: servers.varsFor(store),
    });
    worker = await startWorker({
      config: {
        store,
        rules: [{ name: "model", ...RULE }],
        prefix: `slots-${randomUUID()}`,
      },
      vars: servers.varsFor(store),
    });
    const config = {
      store,
      rules: [{ name: "model", ...RULE, wait: "60s" }],
      prefix: `slots-${randomUUID()}`,
      timeoutMs: TIMEOUT_MS,
    } as const;
    const main = `
      import { CounterObject, defineConfig, weir } from "./weir.mjs";
      export { CounterObject };
      export default weir(defineConfig(${JSON.stringify(config)}));
    `;
    const options = { config, main, vars: servers.varsFor(store) };
    patient = await startWorkers(store === "upstash" ? [options, options] : [options]);
  });

  afterAll(async () => {
    await patient[0]?.stop();
    await worker.stop();
    await program.stop();
  });

  const newClient = () => ({ "CF-Connecting-IP": `198.51.100.${++clients}` });

  /** Waits until a client has all of its slots again. */
  async function expectAllFree(headers: Record<string, string>, { url } = worker) {
    const { state, answer } = holdResponses("/free");
    await vi.waitFor(async () => {
      const requests = Array.from({ length: LIMIT }, () =>
        open(url, "/free", { headers })
          .on("error", () => {})
          .end(),
      );
      const statuses = await Promise.all(
        requests.map(async (request) => (await once(request, "response"))[0].statusCode),
      );
      answer();
      await vi.waitFor(() => expect(state.open).toBe(0), PATIENCE);
      for (const request of requests) request.destroy();
      expect(statuses).toEqual(Array(LIMIT).fill(200));
    }, PATIENCE);
  }

  it("are taken until the end of the body, and the next request is denied", async () => {
    const headers = newClient();
    const { state, answer } = holdResponses("/held");
    const held = Array.from({ length: LIMIT }, () => send(worker.url, "/held", { headers }));
    await vi.waitFor(() => expect(state.open).toBe(LIMIT), PATIENCE);
    const denied = await send(worker.url, "/held", { headers });
    expect(denied.status).toBe(429);
    expect(denied.headers).toMatchObject({
      "retry-after": "1",
      "ratelimit-policy": '"model";q=4;qu="concurrent-requests"',
      ratelimit: '"model";r=0',
    });
    expect(JSON.parse(String(denied.body))).toMatchObject({
      type: "https://iana.org/assignments/http-problem-types#quota-exceeded",
      detail: '"model" allows 4 open at once, and all are taken. Try again in 1 s.',
      "violated-policies": ["model"],
    });
    expect((await send(worker.url, "/other", { headers: newClient() })).status).toBe(200);
    answer();
    expect((await Promise.all(held)).map(({ body }) => String(body))).toEqual(
      Array(LIMIT).fill("beginend"),
    );
    await expectAllFree(headers);
  });

  it.each([
    ["a HEAD request", "HEAD", 200, {}],
    ["204", "GET", 204, {}],
    ["304", "GET", 304, {}],
    ["an empty body", "GET", 200, { "content-length": "0" }],
    ["an empty body in gzip", "GET", 200, { "content-length": "0", "content-encoding": "gzip" }],
    ["a failed origin", "GET", 500, {}],
  ])("are given back after %s", async (_, method, status, fields) => {
    const headers = newClient();
    servers.origin.on("/short", (_request, response) => response.writeHead(status, fields).end());
    for (let at = 0; at < 2 * LIMIT; at++) {
      await vi.waitFor(async () => {
        expect((await send(worker.url, "/short", { method, headers })).status).toBe(status);
      }, PATIENCE);
    }
    await expectAllFree(headers);
  });

  it("are held while a part of a compressed body is sent", async () => {
    const headers = newClient();
    const { state, answer } = holdResponses("/part", false);
    const held = Array.from({ length: LIMIT + 1 }, () => send(worker.url, "/part", { headers }));
    await vi.waitFor(() => expect(state.open).toBe(LIMIT), PATIENCE);
    for (const response of state.waiting) {
      response.writeHead(206, { "content-encoding": "gzip", "content-range": "bytes 5-9/99" });
      response.write("begin");
    }
    expect((await send(worker.url, "/part", { headers })).status).toBe(429);
    answer();
    const statuses = (await Promise.all(held)).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([206, 206, 206, 206, 429]);
    await expectAllFree(headers);
  });

  it("pass compressed bodies unchanged", async () => {
    const headers = { ...newClient(), "Accept-Encoding": "br, zstd, gzip" };
    for (const encoding of ["gzip", "br", "zstd"]) {
      servers.origin.on("/encoded", (request, response) => {
        expect(request.headers["accept-encoding"]).toBe("br, zstd, gzip");
        response.writeHead(200, { "content-encoding": encoding, "content-length": "9" });
        response.end("not valid");
      });
      const answer = await send(worker.url, "/encoded", { headers });
      expect(String(answer.body)).toBe("not valid");
      expect(answer.headers).toMatchObject({ "content-encoding": encoding, "content-length": "9" });
    }
    await expectAllFree(headers);
  });

  it("are waited for, in every isolate, and never taken above the limit", async () => {
    const headers = newClient();
    let open = 0;
    let highest = 0;
    const allTaken = Promise.withResolvers<void>();
    servers.origin.on("/queue", async (_, response) => {
      highest = Math.max(highest, ++open);
      if (open === LIMIT) allTaken.resolve();
      await allTaken.promise;
      await delay(5);
      open -= 1;
      response.end("done");
    });
    const answers = await Promise.all(
      Array.from({ length: 10 * LIMIT }, (_, at) =>
        send((patient[at % patient.length] as RunningWorker).url, "/queue", { headers }),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(highest).toBe(LIMIT);
    const waited = answers.filter(({ headers: fields }) => "server-timing" in fields);
    expect(waited.length).toBeGreaterThan(0);
    for (const { headers: fields } of waited) {
      expect(fields["server-timing"]).toMatch(/^weir-wait;dur=\d+$/);
    }
    await expectAllFree(headers, patient[0]);
  });

  describe.each(WAYS_TO_HANG_UP)("when the client hangs up by %s", (way) => {
    it("are left to others by requests that wait", async () => {
      const headers = { ...newClient(), Connection: "close" };
      const { state, answer } = holdResponses("/cut");
      const held = Array.from({ length: LIMIT }, () =>
        send((patient[0] as RunningWorker).url, "/cut", { headers }),
      );
      await vi.waitFor(() => expect(state.open).toBe(LIMIT), PATIENCE);
      const cuts = Array.from({ length: CUTS / 5 }, (_, at) =>
        hangUp(
          (patient[at % patient.length] as RunningWorker).url,
          { path: "/cut", headers },
          { way, when: (at % 50) / 2 },
        ),
      );
      await delay(10);
      answer();
      await Promise.all([...held, ...cuts]);
      answer();
      await expectAllFree(headers, patient.at(-1));
    });

    it.each([
      ["at any moment", (at: number) => (at % 20) / 4],
      ["during the body", () => ({ received: "begin" })],
    ])("are given back: %s", async (_, when) => {
      const headers = { ...newClient(), Connection: "close" };
      const { answer } = holdResponses("/cut");
      for (let at = 0; at < CUTS; at += 10) {
        await Promise.all(
          Array.from({ length: 10 }, (_each, index) =>
            hangUp(worker.url, { path: "/cut", headers }, { way, when: when(at + index) }),
          ),
        );
      }
      answer();
      await expectAllFree(headers);
    });

    it("are given back before the origin answers, once the origin does", async () => {
      const headers = newClient();
      const { state, answer } = holdResponses("/late", false);
      for (let at = 0; at < LIMIT; at++) {
        const reached = vi.waitFor(() => expect(state.all).toBeGreaterThan(at), PATIENCE);
        await hangUp(worker.url, { path: "/late", headers }, { way, when: reached });
      }
      answer();
      await vi.waitFor(() => expect(state.open).toBe(0), PATIENCE);
      await expectAllFree(headers);
    });
  });

  it("are given back although the origin never answers", async () => {
    const headers = newClient();
    const { state } = holdResponses("/silent", false);
    for (let at = 0; at < LIMIT; at++) {
      const reached = vi.waitFor(() => expect(state.open).toBe(1), PATIENCE);
      await hangUp(worker.url, { path: "/silent", headers }, { way: "reset", when: reached });
      await vi.waitFor(() => expect(state.open).toBe(0), PATIENCE);
    }
    await expectAllFree(headers);
  });

  it.runIf(store === "upstash")(
    "of an isolate that was killed expire after maxDuration",
    async () => {
      const rules = [{ name: "model", ...RULE, maxDuration: "2s" }] as const;
      const config = { store, rules, prefix: `slots-${randomUUID()}` } as const;
      const start = () => startWorker({ config, vars: servers.varsFor(store) });
      const [killed, other] = [await start(), await start()];
      const headers = newClient();
      const { state, answer } = holdResponses("/killed");
      const requests = Array.from({ length: LIMIT }, () =>
        open(killed.url, "/killed", { headers }),
      );
      for (const request of requests) request.on("error", () => {}).end();
      await vi.waitFor(() => expect(state.open).toBe(LIMIT), PATIENCE);
      expect((await send(other.url, "/", { headers })).status).toBe(429);
      await killed.stop();
      await vi.waitFor(async () => {
        expect((await send(other.url, "/", { headers })).status).toBe(200);
      }, PATIENCE);
      answer();
      await other.stop();
    },
  );

  it("are held by calls of a service until their release", async () => {
    const take = async (path: string) => JSON.parse(`${(await send(program.url, path)).body}`);
    const key = randomUUID();
    for (let at = 0; at < 2 * LIMIT; at++) {
      expect(await take(`/released/${key}`)).toEqual([true, false, 1000]);
      await vi.waitFor(async () => expect(await take(`/free/${key}`)).toBe(LIMIT), PATIENCE);
    }
  });
});
