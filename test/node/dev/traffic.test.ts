import { afterEach, describe, expect, it, vi } from "vitest";
import { createPlan, DAY_SECONDS } from "../../../dev/traffic/plan.ts";
import { startTraffic } from "../../../dev/traffic/traffic.ts";
import { startFakeApi, TOKEN } from "../cli/fake-api.ts";

describe("the plan of invented traffic", () => {
  const seconds = Array.from({ length: DAY_SECONDS }, (_, second) => second);
  const day = (seed: number) => {
    const plan = createPlan(seed);
    return seconds.map((second) => plan.requestsOf(second));
  };
  const planned = day(1);

  /** The most requests of one client to one path in any minute. */
  function mostInMinute(ip: string, path: string, method = "GET"): number {
    const counts = seconds.map(
      (second) =>
        planned[second]?.filter(
          (each) =>
            each.method === method &&
            each.path.startsWith(path) &&
            each.headers["cf-connecting-ip"] === ip,
        ).length ?? 0,
    );
    const minutes = seconds
      .filter((second) => second % 60 === 0)
      .map((start) => counts.slice(start, start + 60).reduce((sum, count) => sum + count, 0));
    return Math.max(...minutes);
  }

  it("is the same for the same seed", () => {
    expect(day(1)).toEqual(planned);
    expect(day(2)).not.toEqual(planned);
  });

  it("has more visitors by day than by night", () => {
    const hour = (at: number) =>
      planned.slice(at * 60, (at + 1) * 60).reduce((sum, { length }) => sum + length, 0);
    const hours = Array.from({ length: 24 }, (_, at) => hour(at));
    expect(Math.max(...hours)).toBeGreaterThan(2 * Math.min(...hours));
  });

  it("has clients above the limits of login, of search and of search-address in shadow mode", () => {
    expect(mostInMinute("203.0.113.66", "/login", "POST")).toBeGreaterThan(5);
    expect(mostInMinute("192.0.2.10", "/search")).toBeGreaterThan(60);
    expect(mostInMinute("203.0.113.200", "/search")).toBeGreaterThan(120);
  });

  it("has visitors within their limits", () => {
    expect(mostInMinute("198.51.100.2", "/login", "POST")).toBeLessThanOrEqual(5);
    expect(mostInMinute("198.51.100.2", "/search")).toBeLessThanOrEqual(60);
  });
});

describe("startTraffic", () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  const changes = (sent: readonly { method: string; path: string; body: unknown }[]) =>
    sent.filter(({ path, method }) => path === "overrides" && method !== "GET");

  it("sends requests, and removes its override in the end", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "setTimeout"] });
    await using api = await startFakeApi({
      "GET overrides": { overrides: [] },
      "PUT overrides": { override: {} },
      any: {},
    });
    const traffic = await startTraffic(api.url, TOKEN);
    vi.advanceTimersByTime(2000);
    await vi.waitFor(() =>
      expect(api.sent.some(({ path }) => path.includes("/search"))).toBe(true),
    );
    await traffic.stop();
    const [put, remove] = changes(api.sent);
    expect(put).toMatchObject({
      body: { rule: "search-address", effect: { mode: "shadow", factor: 0.2 } },
    });
    expect(remove).toMatchObject({ method: "DELETE", body: { id: "search-address" } });

    const { length } = api.sent;
    vi.advanceTimersByTime(5000);
    expect(api.sent).toHaveLength(length);
  });

  it("leaves an override of the user as it is", async () => {
    const overrides = [{ rule: "search-address", effect: { mode: "off" } }];
    await using api = await startFakeApi({ "GET overrides": { overrides }, any: {} });
    await (await startTraffic(api.url, TOKEN)).stop();
    expect(changes(api.sent)).toEqual([]);
  });

  it("runs against a Worker without the admin API", async () => {
    await using api = await startFakeApi({ any: { status: 404, text: "not found" } });
    await (await startTraffic(api.url, TOKEN)).stop();
    expect(changes(api.sent)).toEqual([]);
  });
});
