import { describe, expect, it } from "vitest";
import { decide, engineOf, logged } from "./requests.ts";

const MINUTE = 60_000;

describe("the exact engine", () => {
  it("denies as many requests as a count per address and minute", async () => {
    const requests = Array.from({ length: 3000 }, (_, index) =>
      logged(index / 7, { ip: `203.0.113.${(index * index) % 23}`, target: `/${index % 5}?q` }),
    );
    const counts = new Map<string, number>();
    let expected = 0;
    for (const { ip, at } of requests) {
      const key = `${ip} ${Math.floor(at / MINUTE)}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
      if ((counts.get(key) ?? 0) > 10) expected++;
    }
    const engine = engineOf({ rules: [{ name: "all", limit: 10, window: "1m" }] });
    const decided = decide(engine, requests);
    expect(expected).toBeGreaterThan(500);
    expect(decided.filter(({ outcome }) => outcome === "limited")).toHaveLength(expected);
    expect(decided.filter(({ verdicts }) => verdicts[0]?.denied)).toHaveLength(expected);
  });

  it("names the client of each verdict", () => {
    const limits = [
      { limit: 5, window: "1m" },
      { limit: 1, window: "1h" },
    ] as const;
    const engine = engineOf({ rules: [{ name: "a", key: ["ip", "path"], limits }] });
    const requests = [logged(90, { target: "/x" }), logged(91, { target: "/x" })];
    const verdict = { rule: 0, client: "203.0.113.7, /x" };
    expect(decide(engine, requests).map(({ verdicts }) => verdicts)).toMatchObject([
      [{ ...verdict, denied: false }],
      [{ ...verdict, denied: true }],
    ]);
  });

  it("charges no rule for a request that another rule denies, and decides shadow rules apart", async () => {
    const engine = engineOf({
      rules: [
        { name: "a", limit: 1, window: "1m" },
        { name: "b", limit: 2, window: "1m", key: "global" },
        { name: "c", limit: 2, window: "1m", mode: "shadow" },
      ],
    });
    const ips = ["203.0.113.1", "203.0.113.1", "203.0.113.1", "203.0.113.2", "203.0.113.3"];
    const decided = decide(
      engine,
      ips.map((ip, index) => logged(index, { ip })),
    );
    expect(decided.map(({ outcome }) => outcome)).toEqual([
      "allowed",
      "limited",
      "limited",
      "allowed",
      "limited",
    ]);
    expect(decided.map(({ verdicts }) => verdicts.map(({ denied }) => denied))).toEqual([
      [false, false, false],
      [true, false, false],
      [true, false, true],
      [false, false, false],
      [false, true, false],
    ]);
  });

  it("lets reads of the client's own quotas pass uncounted", () => {
    const rules = [{ name: "api", limit: 1, window: "1m" }] as const;
    const engine = engineOf({ quotaPath: "/rate-limit", rules });
    const read = { target: "/Rate-Limit?a=b" };
    const requests = [read, { ...read, method: "HEAD" }, { ...read, method: "POST" }, read, {}];
    const decided = decide(
      engine,
      requests.map((fields, at) => logged(at, fields)),
    );
    expect(decided.map(({ outcome }) => outcome)).toEqual([
      ...["unmatched", "unmatched", "allowed", "unmatched", "limited"],
    ]);
  });

  it("counts a request that the Worker refuses as undecided, and says so", async () => {
    const engine = engineOf({ rules: [{ name: "all", limit: 1, window: "1m" }] });
    const target = `/${"%61".repeat(2000)}`;
    const [decided] = decide(engine, [logged(0, { target })]);
    expect(decided).toMatchObject({ outcome: "undecided", verdicts: [] });
    expect(engine.notes.map(({ code }) => code)).toContain("refused-requests");
  });
});
