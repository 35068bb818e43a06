import { describe, expect, it } from "vitest";
import { FrequentTexts } from "../../../cli/logs/frequent-texts.ts";
import { hasSucceeded } from "../../../cli/logs/log-request.ts";
import { ClientHash, ClientRanking } from "../../../cli/replay/client-ranking.ts";
import { logged, START } from "../replay/requests.ts";

const hash = new ClientHash();

function add(ranking: ClientRanking, client: string, second = 0, fields = {}) {
  ranking.add(client, hash.set(client), logged(second, { ip: client, ...fields }));
}

describe("ClientRanking", () => {
  it("ranks clients by their requests, with times, successes, user agents and paths", () => {
    const ranking = new ClientRanking(10);
    for (const second of [3, 1, 2]) {
      add(ranking, "busy", second, { target: "/a?token=x", userAgent: "curl", status: 200 });
    }
    add(ranking, "quiet", 9, { status: 404, method: "POST", target: "/login#x" });
    const [first, second] = ranking.top(10);
    expect(first).toMatchObject({
      ...{ client: "busy", count: 3, error: 0, succeeded: 3 },
      ...{ first: START + 1000, last: START + 3000 },
    });
    expect(first?.userAgents.top(3)).toEqual([{ text: "curl", count: 3 }]);
    expect(first?.paths.top(3)).toEqual([{ text: "GET /a", count: 3 }]);
    expect(second).toMatchObject({ client: "quiet", count: 1, succeeded: 0 });
    expect(second?.paths.top(3)).toEqual([{ text: "POST /login", count: 1 }]);
  });

  it("orders clients with equal counts by their names", () => {
    const ranking = new ClientRanking(10);
    for (const client of ["b", "c", "a"]) add(ranking, client);
    expect(ranking.top(2).map(({ client }) => client)).toEqual(["a", "b"]);
  });

  it("finds the busiest of very many clients, within the stated error", () => {
    const size = 16;
    const ranking = new ClientRanking(size);
    const counts = new Map<string, number>();
    let requests = 0;
    for (let round = 0; round < 200; round++) {
      const clients = Array.from({ length: 20 }, (_, busy) => `busy ${busy % 5}`);
      for (let other = 0; other < 20; other++) clients.push(`other ${round}-${other}`);
      for (const client of clients) {
        add(ranking, client);
        requests++;
        counts.set(client, (counts.get(client) ?? 0) + 1);
      }
    }
    const busy = [0, 1, 2, 3, 4].map((each) => `busy ${each}`);
    expect(ranking.top(5).map(({ client }) => client)).toEqual(busy);
    expect([...ranking.entries()].length).toBeLessThanOrEqual(2 * size);
    for (const { client, count, error } of ranking.entries()) {
      const real = counts.get(client) ?? 0;
      expect(count).toBeGreaterThanOrEqual(real);
      expect(count - error).toBeLessThanOrEqual(real);
      expect(error).toBeLessThanOrEqual(requests / size);
    }
  });

  it("ranks a client with many known requests above a new one, whose count may be an error", () => {
    const ranking = new ClientRanking(2);
    for (let request = 0; request < 9; request++) add(ranking, "busy");
    for (const client of ["a", "a", "b", "b", "c", "c", "d", "d", "e", "e", "f"])
      add(ranking, client);
    expect(ranking.top(1)).toMatchObject([{ client: "busy", count: 9, error: 0 }]);
  });

  it("counts a client that had no entry before from its cell of the filter, so never too low", () => {
    const ranking = new ClientRanking(4);
    const real = new Map<string, number>();
    for (let round = 0; round < 40; round++) {
      for (let client = 0; client < 60; client++) {
        const name = `client ${client}`;
        const times = client < 3 ? 5 : 1;
        for (let request = 0; request < times; request++) add(ranking, name);
        real.set(name, (real.get(name) ?? 0) + times);
      }
    }
    expect(ranking.top(3).map(({ client }) => client)).toEqual([
      "client 0",
      "client 1",
      "client 2",
    ]);
    for (const { client, count, error } of ranking.entries()) {
      expect(count).toBeGreaterThanOrEqual(real.get(client) ?? 0);
      expect(count - error).toBeLessThanOrEqual(real.get(client) ?? 0);
    }
  });

  it("says whether a client has an entry", () => {
    const ranking = new ClientRanking(1);
    const results = ["a", "a", "b", "b", "c", "d"].map((client) =>
      ranking.add(client, hash.set(client), logged(0)),
    );
    expect(results).toEqual([true, true, true, true, true, false]);
  });

  it("shortens long names and methods, and keeps names with the same start apart", () => {
    const ranking = new ClientRanking(10);
    add(ranking, `${"x".repeat(5000)}a`, 0, {
      method: "M".repeat(5000),
      target: `/${"p".repeat(5000)}`,
    });
    add(ranking, `${"x".repeat(5000)}b`);
    const top = ranking.top(10);
    expect(top).toHaveLength(2);
    expect(Math.max(...top.map(({ client }) => client.length))).toBeLessThanOrEqual(200);
    const paths = top.flatMap((client) => client.paths.top(1));
    expect(Math.max(...paths.map(({ text }) => text.length))).toBe(200);
  });
});

describe("FrequentTexts", () => {
  it("counts up to eight texts exactly", () => {
    const texts = new FrequentTexts();
    for (let index = 0; index < 36; index++) texts.add(`text ${index % 8}`);
    expect(texts.top(5).map(({ count }) => count)).toEqual([5, 5, 5, 5, 4]);
  });

  it("never counts a text more often than it was seen", () => {
    const texts = new FrequentTexts();
    const seen = new Map<string, number>();
    for (let index = 0; index < 3000; index++) {
      const text = index % 3 === 0 ? "frequent" : `rare ${index}`;
      texts.add(text);
      seen.set(text, (seen.get(text) ?? 0) + 1);
    }
    const top = texts.top(8);
    expect(top[0]).toEqual({ text: "frequent", count: 1000 });
    expect(top.filter(({ text, count }) => count > (seen.get(text) ?? 0))).toEqual([]);
  });
});

describe("hasSucceeded", () => {
  it.each([
    [200, true],
    [304, true],
    [399, true],
    [400, false],
    [429, false],
    [0, false],
    [undefined, false],
  ])("of status %s is %s", (status, expected) => {
    expect(hasSucceeded(logged(0, { status }))).toBe(expected);
  });
});
