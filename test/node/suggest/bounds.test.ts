import { describe, expect, it } from "vitest";
import { NumberCounts } from "../../../cli/suggest/counts.ts";
import { requestAt, suggestionFor } from "./counted.ts";

it("counts no clients after as many as fit into memory, and says how many requests are left out", () => {
  const clients = Array.from({ length: 1000 }, (_, client) => `client-${client}`);
  const requests = [...clients, ...clients].map((client, index) => requestAt(index, client));
  const found = suggestionFor(requests, { maxClients: 600 });
  expect(found).toMatchObject({ requests: 1200, clients: 600, requestsLeftOut: 800 });
  expect(found.windows[0]).toMatchObject({ clientWindows: 600, median: 2, max: 2 });
});

describe("NumberCounts", () => {
  it("is exact for numbers of any size", () => {
    const numbers = new NumberCounts();
    const all = Array.from({ length: 30_000 }, (_, index) => 1 + index * 7);
    for (const value of all) numbers.add(value);
    for (const share of [0.01, 0.3, 0.5, 0.95, 1]) {
      expect(numbers.quantile(share)).toBe(all[Math.ceil(share * all.length) - 1]);
    }
    for (const limit of [1, 5000, 150_000]) {
      const exact = all.reduce((sum, value) => sum + Math.max(0, value - limit), 0);
      expect(numbers.excessOver(limit)).toBe(exact);
    }
    expect(numbers).toMatchObject({ total: all.length, max: all.at(-1) });
  });

  it.each([
    [0.95, 19],
    [0.5, 10],
    [0.99, 20],
    [1, 20],
  ])("takes the quantile %d of 1 to 20 by the nearest rank", (share, expected) => {
    const numbers = new NumberCounts();
    for (let value = 1; value <= 20; value++) numbers.add(value);
    expect(numbers.quantile(share)).toBe(expected);
  });
});
