import { randomUUID } from "node:crypto";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ConfigInput } from "../../../src/config/index.ts";
import { randomOf } from "../../suite/random.ts";
import { send } from "../support/client.ts";
import { limitsOf } from "../support/quota-fields.ts";
import { REMOTE_STORES, useServers } from "../support/servers.ts";
import { type RunningWorker, startWorker } from "../support/worker.ts";

const LIMIT = 1000;

const rule = (name: string, fields: object) => ({
  name,
  match: { paths: [`/${name}`] },
  key: "header:x-client",
  limit: LIMIT,
  window: "52w",
  cost: "custom:stated",
  ...fields,
});

/** The rules by the path of their requests. */
const RULES = [
  rule("leased", {}),
  rule("exact", { lease: false }),
  rule("sharded", { shards: 2 }),
  rule("rolls", { limit: 100, capacity: LIMIT }),
  rule("windows", {
    limit: undefined,
    window: undefined,
    limits: [
      { limit: LIMIT, window: "26w" },
      { limit: 2 * LIMIT, window: "52w" },
    ],
  }),
  rule("bytes", { cost: { from: "body:bytes", max: 500 } }),
  rule("marked", { mode: "mark" }),
] as unknown as ConfigInput["rules"];

const main = (config: object) => `
  import { CounterObject, defineConfig, weir } from "./weir.mjs";
  const stated = (request) => Number(request.headers.get("x-cost"));
  const config = defineConfig({ ...${JSON.stringify(config)}, custom: { costs: { stated } } });
  export default weir(config);
  export { CounterObject };
`;

const servers = useServers();

describe.each(REMOTE_STORES)("costs from the request over the store %s", (store) => {
  let worker: RunningWorker;

  beforeAll(async () => {
    const config = { store, rules: RULES, prefix: `costs-${randomUUID()}`, timeoutMs: 5000 };
    worker = await startWorker({
      config: config as ConfigInput,
      main: main(config),
      vars: servers.varsFor(store),
    });
  });

  afterAll(() => worker.stop());

  const spend = async (path: string, client: string, cost: number) => {
    const headers = { "x-client": client, "x-cost": String(cost) };
    return (await send(worker.url, path, { headers })).status;
  };

  it.each(["/leased", "/exact", "/windows"])(
    "admits exactly the requests whose cost fits, with costs that vary: %s",
    async (path) => {
      const random = randomOf(path.length);
      const client = randomUUID();
      let used = 0;
      for (let request = 0; request < 120; request++) {
        const cost = request % 7 === 0 ? 0 : 1 + random(40);
        const fits = used + cost <= LIMIT;
        expect(await spend(path, client, cost)).toBe(fits ? 200 : 429);
        if (fits) used += cost;
      }
      expect(await spend(path, client, LIMIT - used)).toBe(200);
      expect(await spend(path, client, 1)).toBe(429);
    },
  );

  it.each(["/leased", "/exact", "/sharded"])(
    "never admits more than the limit of concurrent requests: %s",
    async (path) => {
      const client = randomUUID();
      const costs = Array.from({ length: 60 }, (_, index) => (index % 6) * 10 + 5);
      const statuses = await Promise.all(costs.map((cost) => spend(path, client, cost)));
      const used = costs.filter((_, index) => statuses[index] === 200).reduce((a, b) => a + b, 0);
      expect(used).toBeLessThanOrEqual(LIMIT);
      expect(used).toBeGreaterThan(LIMIT / 2);
    },
  );

  it.each(["/leased", "/rolls"])(
    "grants a low cost after it has denied a high one: %s",
    async (path) => {
      const client = randomUUID();
      expect(await spend(path, client, LIMIT - 1)).toBe(200);
      expect(await spend(path, client, 5)).toBe(429);
      expect(await spend(path, client, 5)).toBe(429);
      expect(await spend(path, client, 1)).toBe(200);
      expect(await spend(path, client, 1)).toBe(429);
      expect(await spend(path, client, 0)).toBe(200);
    },
  );

  it("marks a request whose cost does not fit, and does not charge it", async () => {
    const client = randomUUID();
    const seen: unknown[] = [];
    servers.origin.on("/marked", (request, response) => {
      seen.push(request.headers["weir-over"]);
      response.end();
    });
    for (const cost of [900, 200, 100]) expect(await spend("/marked", client, cost)).toBe(200);
    expect(seen).toEqual([undefined, "marked", undefined]);
  });

  describe("a body whose length is stated as", () => {
    /** Sends a request as it is, and returns the bytes that the origin got, and the quota left. */
    async function post(fields: string[], sent: string) {
      servers.origin.on("/bytes", (_, response) => void response.end());
      const before = servers.origin.received.length;
      const { hostname, port } = worker.url;
      const socket = connect(Number(port), hostname);
      const client = randomUUID();
      const head = ["POST /bytes HTTP/1.1", "host: a", `x-client: ${client}`, "connection: close"];
      socket.write(`${[...head, ...fields].join("\r\n")}\r\n\r\n${sent}`);
      const answer = await text(socket).catch(() => "");
      const ratelimit = /^ratelimit: (.*)\r$/im.exec(answer)?.[1];
      const left = ratelimit && limitsOf({ ratelimit })[0]?.r;
      const body = await servers.origin.received[before]?.body.catch(() => undefined);
      return { status: Number(answer.slice(9, 12)), left, got: body?.toString() };
    }

    it("a number costs this number", async () => {
      const answer = await post(["content-length: 5"], "hello");
      expect(answer).toEqual({ status: 200, left: LIMIT - 5, got: "hello" });
    });

    it("a number that is too small costs this number, and the origin gets no more bytes", async () => {
      const answer = await post(["content-length: 2"], "hello");
      expect(answer).toEqual({ status: 200, left: LIMIT - 2, got: "he" });
    });

    it("nothing, because the body is chunked, costs the maximum", async () => {
      const answer = await post(["transfer-encoding: chunked"], "5\r\nhello\r\n0\r\n\r\n");
      expect(answer).toEqual({ status: 200, left: LIMIT - 500, got: "hello" });
    });

    it("nothing, because there is no body, costs 0", async () => {
      expect(await post([], "")).toEqual({ status: 200, left: LIMIT, got: "" });
    });

    it.each([
      ["a small number beside chunks", ["content-length: 1", "transfer-encoding: chunked"]],
      ["a small number after chunks", ["transfer-encoding: chunked", "content-length: 1"]],
      ["two numbers", ["content-length: 1", "content-length: 20"]],
      ["a list", ["content-length: 1, 20"]],
      ["an exponent", ["content-length: 1e1"]],
      ["a negative number", ["content-length: -20"]],
      ["a hexadecimal number", ["content-length: 0x5"]],
      ["a huge number", ["content-length: 99999999999999999999"]],
      ["another coding", ["transfer-encoding: identity", "content-length: 1"]],
    ])("%s is refused, or costs no less than the bytes that the origin gets", async (_, fields) => {
      const { status, left, got = "" } = await post(fields, "5\r\nhello\r\n0\r\n\r\n");
      if (status === 200) expect(LIMIT - Number(left)).toBeGreaterThanOrEqual(got.length);
      else expect([0, 400, 501]).toContain(status);
    });
  });
});
