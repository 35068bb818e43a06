import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, inject, it, vi } from "vitest";
import { type ConfigInput, defineConfig, type SettleContext } from "../../src/config/index.ts";
import { WeirService, weir } from "../../src/index.ts";
import { findServiceRule } from "../../src/service/rule.ts";
import { PATIENCE } from "../patience.ts";

const LIMIT = 1000;
const RESERVE = 400;

/** The stores, with the bindings of a Worker that uses them. */
const STORES = {
  memory: () => ({}),
  "durable-object": () => ({ COUNTERS: env.COUNTERS }),
  upstash: () => ({
    UPSTASH_REDIS_REST_URL: inject("redis").restUrl,
    UPSTASH_REDIS_REST_TOKEN: inject("redis").restToken,
  }),
} as const;

// No deadline ends because the machine is slow.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date", "setTimeout", "clearTimeout"] });
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe.each(Object.entries(STORES))(
  "a rule in shadow mode that reserves, on %s",
  (name, bind) => {
    /** Creates a Worker whose shadow rule counts the user "alice". */
    function worker(
      user: () => string | Promise<string>,
      settle: string,
      cost: object = { reserve: RESERVE, settle },
    ) {
      const lines: Record<string, unknown>[] = [];
      /** What the settle function was told to be reserved. */
      const told: number[] = [];
      for (const level of ["log", "error"] as const) {
        vi.spyOn(console, level).mockImplementation((line) => void lines.push(JSON.parse(line)));
      }
      const bindings = bind();
      const config = defineConfig({
        store: name,
        prefix: crypto.randomUUID(),
        timeoutMs: 30_000,
        // Other tests in this file may have used up the default within the same second.
        denialLog: 1000,
        rules: [
          { name: "enforced", limit: 100, window: "52w" },
          {
            name: "trial",
            key: "custom:user",
            limit: LIMIT,
            window: "52w",
            mode: "shadow",
            cost,
          },
        ],
        custom: {
          keys: { user },
          settle: {
            used: async (response: Response, { reserved }: SettleContext) => {
              told.push(reserved);
              return Number(await response.text());
            },
          },
        },
      } as unknown as ConfigInput);
      const { fetch } = weir(config);
      class Limits extends WeirService {
        override readonly config = config;
      }
      const service = new Limits(createExecutionContext(), bindings);
      return {
        lines,
        told,
        async send(next: () => Response | Promise<Response>) {
          const ctx = createExecutionContext();
          const request = new Request("https://api.example.com/", {
            headers: { "cf-connecting-ip": "203.0.113.7" },
          });
          const answer = fetch(request as never, bindings, ctx, async () => next());
          // Faked time advances during this wait, and not faster than real time.
          const response = await vi.waitFor(() => answer, { ...PATIENCE, interval: 5 });
          return { response, text: await response.text(), ctx };
        },
        /** Waits until one of these amounts is used. */
        expectUsed: (...amounts: number[]) =>
          vi.waitFor(async () => {
            const [quota] = await service.getValue("trial", { key: "alice" });
            expect(amounts).toContain(LIMIT - (quota?.remaining as number));
          }, PATIENCE),
        /** Waits until this amount is charged, which may be more than the limit. */
        expectCharged: (amount: number) =>
          vi.waitFor(async () => {
            const key = { key: "alice" };
            const found = await findServiceRule(config, bindings, "trial", key);
            const [state] = await found.limiter.clients.read([found.configured]);
            expect(state?.counters.map(({ tally }) => tally.count)).toEqual([amount]);
          }, PATIENCE),
      };
    }

    const answer = (used: number) => new Response(`${used}`, { headers: { "x-used": `${used}` } });

    it.each(["header:x-used", "custom:used"])(
      "settles it after a slow origin, and again for the next request: %s",
      async (settle) => {
        const { send, expectUsed } = worker(() => "alice", settle);
        let used = 0;
        for (const cost of [30, 500]) {
          const { ctx } = await send(() =>
            vi.advanceTimersByTimeAsync(100).then(() => answer(cost)),
          );
          await waitOnExecutionContext(ctx);
          used += cost;
          await expectUsed(used);
        }
      },
    );

    it.each(["header:x-used", "custom:used"])(
      "settles it although the decision follows the response: %s",
      async (settle) => {
        const identified = Promise.withResolvers<string>();
        const { send, expectUsed } = worker(() => identified.promise, settle);
        const { response, text, ctx } = await send(() => answer(30));
        expect([response.status, text]).toEqual([200, "30"]);
        await expectUsed(0);
        identified.resolve("alice");
        await waitOnExecutionContext(ctx);
        await expectUsed(30);
      },
    );

    it.each([
      [RESERVE, { reserve: RESERVE, settle: "custom:used" }],
      [0, { settle: "custom:used" }],
    ])("tells the settle function the reserve before it is decided: %i", async (reserve, cost) => {
      const identified = Promise.withResolvers<string>();
      const { send, told } = worker(() => identified.promise, "custom:used", cost);
      const { ctx } = await send(() => answer(30));
      identified.resolve("alice");
      await waitOnExecutionContext(ctx);
      expect(told).toEqual([reserve]);
    });

    it.each([
      ["header:x-used", "at once"],
      ["custom:used", "at once"],
      ["header:x-used", "later"],
      ["custom:used", "later"],
    ])(
      "charges no response to a request over its limit: %s, identified %s",
      async (settle, when) => {
        const identified: PromiseWithResolvers<string>[] = [];
        const user = () => {
          const next = Promise.withResolvers<string>();
          identified.push(next);
          if (when === "at once") next.resolve("alice");
          return next.promise;
        };
        const { send, expectCharged, lines } = worker(user, settle, { settle });
        for (const [used, charged] of [
          [600, 600],
          [700, 1300],
          [5, 1300],
          [800, 1300],
        ] as const) {
          const { response, text, ctx } = await send(() => answer(used));
          expect([response.status, text]).toEqual([200, `${used}`]);
          for (const each of identified) each.resolve("alice");
          await waitOnExecutionContext(ctx);
          await expectCharged(charged);
        }
        const denied = { mode: "shadow", policy: "trial" };
        await vi.waitFor(() => expect(lines).toMatchObject([denied, denied]), PATIENCE);
      },
    );

    it("gives nothing back for a request that the rule has not charged", async () => {
      const { send, expectUsed, lines } = worker(() => "alice", "custom:used");
      const release = Promise.withResolvers<void>();
      // Two reserves fit, and the third request passes without a charge.
      const sent = [1, 2, 3].map((used) => send(() => release.promise.then(() => answer(used))));
      await expectUsed(2 * RESERVE);
      const denied = { mode: "shadow", policy: "trial" };
      await vi.waitFor(() => expect(lines).toMatchObject([denied]), PATIENCE);
      release.resolve();
      const answers = await Promise.all(sent);
      for (const { ctx } of answers) await waitOnExecutionContext(ctx);
      // The requests may arrive in any order, so any of them can be the third.
      await expectUsed(1 + 2, 1 + 3, 2 + 3);
    });
  },
);
