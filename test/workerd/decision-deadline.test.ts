import { createExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type ConfigInput, defineConfig, type RuleInput } from "../../src/config/index.ts";
import { WeirService, weir } from "../../src/index.ts";

const TIMEOUT_MS = 1000;
const never = () => new Promise<never>(() => {});

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date", "setTimeout", "clearTimeout"] });
  vi.spyOn(console, "log").mockImplementation(() => {});
  vi.spyOn(console, "error").mockImplementation(() => {});
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** A token with an unknown key, so that the issuer's keys are fetched. */
const encode = (part: object) => btoa(JSON.stringify(part)).replace(/=+$/, "");
const TOKEN = `${encode({ alg: "RS256", kid: "unknown" })}.${encode({ sub: "a" })}.c2ln`;

/** The sources that never answer, each with the rules that wait for it. */
const SLOW = {
  control: [],
  custom: [{ name: "custom", key: ["custom:slow", "jwt:sub"], limit: 9, window: "1h" }],
  cost: [{ name: "cost", cost: "custom:slow", limit: 9, window: "1h" }],
  token: [{ name: "token", key: "jwt:sub", limit: 9, window: "1h" }],
  mark: [{ name: "mark", key: ["custom:slow", "jwt:sub"], limit: 9, window: "1h", mode: "mark" }],
  tier: [
    {
      name: "tier",
      key: "custom:slow",
      limit: 9,
      window: "1h",
      tiers: { by: "jwt:plan", limits: { pro: { limit: 99, window: "1h" } } },
    },
  ],
} satisfies Record<string, RuleInput[]>;
type Slow = keyof typeof SLOW;
const SOURCES = Object.keys(SLOW) as Slow[];
/** Every set of these sources. */
const SETS = Array.from({ length: 2 ** SOURCES.length }, (_, bits) =>
  SOURCES.filter((_, index) => bits & (2 ** index)),
);

/** Sends a request while no source answers. @returns the status, and the time of the response */
async function send(
  slow: readonly Slow[],
  onError: "open" | "closed",
  others: readonly RuleInput[] = [],
) {
  vi.spyOn(globalThis, "fetch").mockImplementation(never);
  const rules: RuleInput[] = [
    { name: "own", limit: 9, window: "1h", onError },
    ...slow.flatMap((each): RuleInput[] => SLOW[each]),
    ...others,
  ];
  const { fetch } = weir({
    store: "upstash",
    timeoutMs: TIMEOUT_MS,
    jwt: { jwks: "https://issuer.example.com/keys" },
    custom: { keys: { slow: never }, costs: { slow: never } },
    rules: rules as ConfigInput["rules"],
  });
  const bindings = {
    UPSTASH_REDIS_REST_URL: "https://redis.example.com",
    UPSTASH_REDIS_REST_TOKEN: "token",
    ...(slow.includes("control") && { WEIR_CONTROL: { getByName: () => ({ upload: never }) } }),
  };
  const headers = { authorization: `Bearer ${TOKEN}`, "cf-connecting-ip": "203.0.113.7" };
  const request = new Request("https://api.example.com/", { headers });
  const startedAt = Date.now();
  let endedAt: number | undefined;
  const ended = fetch(request as never, bindings, createExecutionContext(), () => new Response());
  const status = ended.then((response) => {
    endedAt = Date.now();
    return response.status;
  });
  while (endedAt === undefined && Date.now() < startedAt + 4 * TIMEOUT_MS) {
    await vi.advanceTimersToNextTimerAsync();
  }
  return { status: await status, tookMs: (endedAt as number) - startedAt };
}

describe("while nothing answers, a decision takes at most twice timeoutMs", () => {
  it.each(SETS)("with slow: %s", { timeout: 60_000 }, async (...slow) => {
    const { status, tookMs } = await send(slow, "closed");
    expect(status).toBe(503);
    expect(tookMs).toBeLessThanOrEqual(2 * TIMEOUT_MS);
    // The store has at least half of its time, whatever the client sends.
    expect(tookMs).toBeGreaterThanOrEqual(TIMEOUT_MS / 2);
  });
});

it("leaves the store its whole time after a wait for a rule with the mode mark", async () => {
  const mark: RuleInput = { name: "mark", key: "jwt:sub", limit: 9, window: "1h", mode: "mark" };
  const { tookMs } = await send([], "closed", [mark]);
  // The rule waits for the issuer's keys for half of the time.
  expect(tookMs).toBeGreaterThanOrEqual(1.5 * TIMEOUT_MS);
});

describe("WEIR_MODE=off", () => {
  it("neither waits for the control object nor calls it for overrides", async () => {
    const upload = vi.fn((_: unknown) => never());
    const bindings = {
      COUNTERS: env.COUNTERS,
      WEIR_MODE: "off",
      WEIR_CONTROL: { getByName: () => ({ upload }) },
    };
    const config = defineConfig({
      store: "durable-object",
      rules: [{ name: "own", limit: 1, window: "1h" }],
    });
    const { fetch } = weir(config);
    class Limits extends WeirService {
      readonly config = config;
    }
    for (let sent = 0; sent < 5; sent++) {
      const request = new Request("https://api.example.com/");
      const response = await fetch(
        request as never,
        bindings,
        createExecutionContext(),
        () => new Response("app"),
      );
      expect(response.status).toBe(200);
      const service = new Limits(createExecutionContext(), bindings);
      expect(await service.limit("own", { key: "203.0.113.7" })).toMatchObject({ ok: true });
      vi.setSystemTime(Date.now() + 11_000);
    }
    // Only the sums of the statistics are uploaded, in the background.
    expect(upload.mock.calls.every(([batch]) => (batch as { sequence: number }).sequence > 0)).toBe(
      true,
    );
  });
});
