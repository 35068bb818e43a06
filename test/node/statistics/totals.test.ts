import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { hangUp } from "../../../dev/hang-up.ts";
import type { ConfigInput } from "../../../src/config/index.ts";
import { PATIENCE } from "../../patience.ts";
import { send } from "../support/client.ts";
import { type Fault, type Isolates, startIsolates } from "./isolates.ts";

const LIMIT = 20;

// The windows are so long that no window ends during a test.
const CONFIG: ConfigInput = {
  store: "durable-object",
  timeoutMs: 10_000,
  rules: [
    { name: "api", match: { paths: ["/api/*"] }, limit: LIMIT, window: "52w", lease: false },
    {
      name: "plan",
      match: { paths: ["/plan"] },
      limit: 5,
      window: "52w",
      mode: "mark",
      lease: false,
    },
    {
      name: "trial",
      match: { paths: ["/trial"] },
      limit: 5,
      window: "52w",
      mode: "shadow",
      lease: false,
    },
    { name: "called", key: "custom:none", for: "programs", limit: 5, window: "52w", lease: false },
  ],
};

const BROKEN: ConfigInput = {
  store: "upstash",
  timeoutMs: 10_000,
  rules: [
    { name: "open", match: { paths: ["/broken/open"] }, limit: 5, window: "52w", lease: false },
    {
      name: "closed",
      match: { paths: ["/broken/closed"] },
      limit: 5,
      window: "52w",
      onError: "closed",
    },
    {
      name: "local",
      match: { paths: ["/broken/local"] },
      limit: 1000,
      window: "52w",
      onError: "local",
    },
  ],
};

/** Weir computes no variants of a path that has escapes and so many characters. */
const TOO_LONG = `/%61${"a".repeat(5000)}`;
/** Requests of each kind to all isolates together. */
const TOTAL = 48;
const HANG_UPS = 3;

/** Sends requests of all kinds to each isolate. Returns the number of each kind and status. */
async function sendLoad({ urls }: Isolates, each: number): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  const add = (name: string) => (counts[name] = (counts[name] ?? 0) + 1);
  const paths = ["/api/1", "/plan", "/trial", "/free", "/broken/open", "/broken/closed"];
  for (const url of urls) {
    const headers = { "CF-Connecting-IP": "203.0.113.1" };
    for (let sent = 0; sent < each; sent++) {
      const statuses = await Promise.all(
        [...paths, "/broken/local", TOO_LONG, "/call", "/check"].map(async (path) => {
          const { status } = await send(url, path, { headers });
          return [path, status] as const;
        }),
      );
      for (const [path, status] of statuses) {
        add(`${path === TOO_LONG ? "too-long" : path} ${status}`);
      }
    }
  }
  return counts;
}

/** Sends requests that the app does not answer, and hangs up after they have reached the app. */
async function sendHangUps({ urls }: Isolates): Promise<void> {
  for (const [index, url] of urls.entries()) {
    const arrived = async () => Number((await send(url, "/arrived")).body);
    const before = await arrived();
    const { promise: when, resolve } = Promise.withResolvers<void>();
    const headers = { "CF-Connecting-IP": `203.0.113.${10 + index}` };
    const hungUp = Array.from({ length: HANG_UPS }, () =>
      hangUp(url, { path: "/api/slow", headers }, { way: "reset", when }),
    );
    while ((await arrived()) < before + HANG_UPS) await delay(5);
    resolve();
    await Promise.all(hungUp);
  }
}

describe.each([1, 8])("with %d isolates, the totals", (count) => {
  const each = TOTAL / count;
  let isolates: Isolates;

  beforeAll(async () => {
    isolates = await startIsolates(count, CONFIG, BROKEN);
  });

  afterAll(() => isolates.stop());

  it("are equal to what was sent", async () => {
    const sent = await sendLoad(isolates, each);
    await sendHangUps(isolates);
    const hangUps = count * HANG_UPS;
    const total = TOTAL;
    expect(sent["/broken/closed 503"]).toBe(total);
    const { "/api/1 200": admitted = 0, "/api/1 429": denied = 0 } = sent;
    expect([admitted, denied]).toEqual([LIMIT, total - LIMIT]);
    expect(sent["too-long 414"]).toBe(total);

    const requests = 9 * total + hangUps;
    await vi.waitFor(async () => {
      expect((await isolates.totals()).requests.requests).toBe(requests);
    }, PATIENCE);
    const totals = await isolates.totals();
    expect(totals.requests).toMatchObject({
      requests,
      unmatched: total,
      refused: total,
      // /plan, /trial and /broken/local pass. Programs have a limit of 5.
      allowed: admitted + hangUps + 3 * total + 5,
      limited: denied + total - 5,
      undecidedPassed: total,
      undecidedDenied: total,
      countedLocally: total,
    });
    const nothing = { allowed: 0, limited: 0, marked: 0, ahead: 0, over: 0, undecided: 0 };
    const none = { ...nothing, shadowLimited: 0, peak: 0 };
    expect(totals.rules).toEqual({
      api: {
        ...none,
        requests: total + hangUps,
        allowed: admitted + hangUps,
        limited: denied,
        peak: 1,
      },
      plan: { ...none, requests: total, allowed: 5, marked: total - 5, peak: 1 },
      trial: { ...none, requests: total, shadowLimited: total - 5, peak: 1 },
      called: { ...none, requests: total, allowed: 5, limited: total - 5, peak: 1 },
      open: { ...none, requests: total, undecided: total },
      closed: { ...none, requests: total, undecided: total },
      local: { ...none, requests: total, allowed: total },
    });
    expect(totals.store.calls).toBeGreaterThan(0);
    expect(totals.store.failures).toBeGreaterThan(0);
    expect(totals.store.latency.reduce((sum, bucket) => sum + bucket)).toBe(totals.store.calls);
    expect(totals.isolates).toBeGreaterThanOrEqual(1);
  });
});

describe("a control object that fails", () => {
  let isolates: Isolates;
  let sent = 0;

  beforeAll(async () => {
    isolates = await startIsolates(2, CONFIG);
  });

  afterAll(() => isolates.stop());

  it.each<Fault>(["refuse", "lose-answer", "kill", "kill-first", "slow"])(
    "adds every request once (%s)",
    async (fault) => {
      await isolates.setFaults([fault, fault]);
      await vi.waitFor(async () => {
        for (const url of isolates.urls) {
          expect((await send(url, "/free")).status).toBe(200);
          sent += 1;
        }
        expect(await isolates.faultsLeft()).toBe(0);
      }, PATIENCE);
      await vi.waitFor(async () => {
        expect((await isolates.totals()).requests.requests).toBe(sent);
      }, PATIENCE);
    },
  );
});
