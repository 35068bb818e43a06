import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { hangUp } from "../../../dev/hang-up.ts";
import type { ConfigInput } from "../../../src/config/index.ts";
import { PATIENCE } from "../../patience.ts";
import { send } from "../support/client.ts";
import { limitsOf } from "../support/quota-fields.ts";
import { REMOTE_STORES, useServers } from "../support/servers.ts";
import { type RunningWorker, startWorker } from "../support/worker.ts";
import { USAGE } from "./usage.ts";

const LIMIT = 1000;
const RESERVE = 100;

const rule = (name: string, fields: object) => ({
  name,
  match: { paths: [`/${name}`] },
  key: "header:x-client",
  limit: LIMIT,
  window: "52w",
  cost: { reserve: RESERVE, settle: "custom:usage" },
  ...fields,
});
const RULES = [
  rule("plain", {}),
  rule("storm", {}),
  rule("month", { window: "month" }),
  rule("banned", { limit: 150, ban: "1h" }),
  rule("tight", { limit: 150 }),
  // A rule with leases counts the same requests.
  rule("leased", {}),
  rule("leases", { match: { paths: ["/leased"] }, key: "ip", limit: 1e6, cost: 1, lease: "auto" }),
  rule("local", { onError: "local" }),
] as unknown as ConfigInput["rules"];

const main = (config: object) => `
  import { CounterObject, defineConfig, weir, WeirService } from "./weir.mjs";
  const settle = {
    ${USAGE}
  };
  const config = defineConfig({ ...${JSON.stringify(config)}, custom: { settle } });
  const limiter = weir(config);
  export class Limits extends WeirService { config = config; }
  export default {
    async fetch(request, env, ctx) {
      const mode = request.headers.get("x-mode");
      if (mode !== "left") return limiter.fetch(request, { ...env, ...(mode && { WEIR_MODE: mode }) }, ctx);
      const left = await ctx.exports.Limits.getValue(new URL(request.url).pathname.slice(1), { key: request.headers.get("x-client") });
      return Response.json(left.map(({ remaining }) => remaining));
    },
  };
  export { CounterObject };
`;

const servers = useServers();

const newClient = () => ({ "x-client": randomUUID() });

/** Lets the origin answer with this text. */
function answerWith(path: string, text: string): void {
  servers.origin.on(path, (_, response) => response.writeHead(200).end(text));
}

describe.each(REMOTE_STORES)("over the store %s", (store) => {
  let worker: RunningWorker;

  beforeAll(async () => {
    const config: ConfigInput = {
      store,
      rules: RULES,
      prefix: `pairs-${randomUUID()}`,
      timeoutMs: 10_000,
    };
    worker = await startWorker({ config, main: main(config), vars: servers.varsFor(store) });
  });

  afterAll(() => worker.stop());

  async function left(path: string, headers: Record<string, string>): Promise<number> {
    const answer = await send(worker.url, path, { headers: { ...headers, "x-mode": "left" } });
    return JSON.parse(`${answer.body}`)[0];
  }

  const expectLeft = (path: string, headers: Record<string, string>, rest: number) =>
    vi.waitFor(async () => expect(await left(path, headers)).toBe(rest), PATIENCE);

  const statusOf = async (path: string, headers: Record<string, string>) =>
    (await send(worker.url, path, { headers })).status;

  it.each(["/month", "/leased"])(
    "settles reserves in calendar windows and beside rules with leases: %s",
    async (path) => {
      const headers = newClient();
      answerWith(path, "used 30");
      for (let count = 1; count <= 5; count++) {
        expect(await statusOf(path, headers)).toBe(200);
        await expectLeft(path, headers, LIMIT - 30 * count);
      }
    },
  );

  it("denies from memory only until the cached denial ends, and admits after the refund", async () => {
    const headers = newClient();
    const release = Promise.withResolvers<void>();
    servers.origin.on("/tight", async (_, response) => {
      response.writeHead(200).write("start ");
      await release.promise;
      response.end("used 0");
    });
    const first = send(worker.url, "/tight", { headers });
    await expectLeft("/tight", headers, 50);
    for (let count = 0; count < 5; count++) expect(await statusOf("/tight", headers)).toBe(429);
    release.resolve();
    expect((await first).status).toBe(200);
    await expectLeft("/tight", headers, 150);
    // The isolate that settles drops its own cached denial.
    answerWith("/tight", "used 0");
    await vi.waitFor(async () => expect(await statusOf("/tight", headers)).toBe(200), PATIENCE);
  });

  it("keeps a ban that a reserve has begun, although the quota is given back", async () => {
    const headers = newClient();
    const release = Promise.withResolvers<void>();
    servers.origin.on("/banned", async (_, response) => {
      response.writeHead(200).write("start ");
      await release.promise;
      response.end("used 0");
    });
    const first = send(worker.url, "/banned", { headers });
    await expectLeft("/banned", headers, 50);
    expect(await statusOf("/banned", headers)).toBe(429);
    release.resolve();
    await first;
    answerWith("/banned", "used 0");
    // A banned client sees no quota. The quota is given back during these requests.
    for (let count = 0; count < 50; count++) expect(await statusOf("/banned", headers)).toBe(429);
  });

  it("settles each of 50 concurrent streams once, also those that break off", async () => {
    const headers = newClient();
    let arrived = 0;
    const ends: (() => void)[] = [];
    servers.origin.on("/storm", (request, response) => {
      arrived += 1;
      // Of the ten admitted streams, three end, three break off after a number, and four break off before.
      const kind = arrived % 10;
      response.writeHead(200).write(kind < 6 ? "used 60 " : "nothing ");
      ends.push(() => (kind < 3 ? response.end("used 20 ") : response.destroy()));
      request.on("error", () => {});
    });
    let denied = 0;
    const requests = Array.from({ length: 50 }, async () => {
      const status = await statusOf("/storm", headers).catch(() => "broken");
      if (status === 429) denied += 1;
    });
    // Ten streams stay open until all other requests are denied.
    await vi.waitFor(() => expect([arrived, denied]).toEqual([10, 40]), PATIENCE);
    for (const end of ends) end();
    await Promise.all(requests);
    expect([arrived, denied]).toEqual([10, 40]);
    await expectLeft("/storm", headers, LIMIT - 3 * 20 - 3 * 60 - 4 * RESERVE);
  });

  it("charges whole requests only, if clients reset at any moment", async () => {
    const headers = newClient();
    answerWith("/plain", "used 30");
    // Before the decision has answered, while the origin works, and during the settlement. An
    // admitted request is settled to 30, or keeps its reserve if its body did not arrive.
    for (const when of [0, 1, 2, 3, 5, 8, 12]) {
      await hangUp(worker.url, { path: "/plain", headers }, { way: "reset", when });
    }
    const settled = Array.from({ length: 8 }, (_, kept) => kept).flatMap((kept) =>
      Array.from({ length: 8 - kept }, (_, known) => kept * RESERVE + known * 30),
    );
    answerWith("/plain", "used 0");
    // While settlements of earlier requests are missing, the quota still changes.
    await vi.waitFor(async () => {
      const rest = await left("/plain", headers);
      expect(settled).toContain(LIMIT - rest);
      expect(await statusOf("/plain", headers)).toBe(200);
      await vi.waitFor(async () => expect(await left("/plain", headers)).toBe(rest), 5000);
    }, PATIENCE);
  });

  it.runIf(store === "upstash")(
    "settles once if the client resets before the decision has answered, or during the settlement",
    async () => {
      // The second call comes first, because its settlement ends before the next request.
      for (const heldCall of [2, 1]) {
        const headers = newClient();
        answerWith("/plain", "used 30");
        const [reached, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
        let calls = 0;
        await servers.rest.inject({
          async answer(_request, _response, pass) {
            if (++calls === heldCall) {
              reached.resolve();
              await release.promise;
            }
            pass();
          },
        });
        const before = servers.origin.received.length;
        const when = reached.promise;
        await hangUp(worker.url, { path: "/plain", headers }, { way: "reset", when });
        release.resolve();
        if (heldCall === 2) {
          await expectLeft("/plain", headers, LIMIT - 30);
          continue;
        }
        // The request was charged. Its reserve is settled by the body, or stays, whether or not Weir forwards it.
        await vi.waitFor(async () => {
          const rest = await left("/plain", headers);
          expect([LIMIT - 30, LIMIT - RESERVE]).toContain(rest);
          if (servers.origin.received.length === before) expect(rest).toBe(LIMIT - RESERVE);
        }, PATIENCE);
        await servers.rest.inject();
      }
    },
  );

  it.runIf(store === "upstash")("settles in memory while the store fails", async () => {
    const headers = newClient();
    answerWith("/local", "used 0");
    await servers.rest.inject({ answer: (_, response) => response.writeHead(500).end() });
    // The isolate has a quarter of the limit. Without refunds, the third request would always be
    // denied. A refund comes after the response, so the next request may be too early.
    for (let count = 0; count < 20; count++) {
      await vi.waitFor(async () => expect(await statusOf("/local", headers)).toBe(200), PATIENCE);
    }
    await servers.rest.inject();
  });

  it.each(["shadow", "off"])("WEIR_MODE %s: lets all pass", async (mode) => {
    const logged = worker.logs().length;
    const headers = newClient();
    answerWith("/tight", "used 30");
    for (let count = 1; count <= 8; count++) {
      const answer = await send(worker.url, "/tight", { headers: { ...headers, "x-mode": mode } });
      expect(answer.status).toBe(200);
      expect(`${answer.body}`).toBe("used 30");
      expect(limitsOf(answer.headers)).toEqual([]);
      // A request that does not fit is not charged in shadow mode: 30, then 60 are used.
      const rest = mode === "off" ? 150 : Math.max(150 - 30 * count, 90);
      await expectLeft("/tight", headers, rest);
    }
    const lines = worker.logs().slice(logged);
    expect(lines.filter((line) => line.includes("undecided"))).toEqual([]);
  });
});
