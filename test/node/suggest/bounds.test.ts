import { describe, expect, it } from "vitest";
import { LoudClients } from "../../../cli/suggest/build-suggestion.ts";
import { ClientCounts, NumberCounts } from "../../../cli/suggest/counts.ts";
import { ClientHash } from "../../../cli/tally/client-ranking.ts";
import { cpuTimeMs } from "../../../fuzz/property.ts";
import { clientNamed, requestAt, suggestionFor } from "./counted.ts";

const MAX_CLIENTS = 1024;

/** Client number n sends n % 50 + 1 requests, all in one minute. */
function manyClients(count: number) {
  return Array.from({ length: count }, (_, client) =>
    Array.from({ length: (client % 50) + 1 }, () => requestAt(client, `client-${client}`)),
  ).flat();
}

describe("a suggestion for more clients than are counted exactly", () => {
  const CLIENTS = 20_000;
  const found = suggestionFor(manyClients(CLIENTS), { maxClients: MAX_CLIENTS });
  const [window] = found.windows;
  // At least 512 of the clients are in the sample, so this is more than four standard errors.
  const ERROR = 0.18;

  it("is an estimate whose error is bounded by the size of the sample", () => {
    expect(found.isEstimate).toBe(true);
    expect(Math.abs(found.clients / CLIENTS - 1)).toBeLessThan(ERROR);
    expect(Math.abs((window?.clientWindows ?? 0) / CLIENTS - 1)).toBeLessThan(ERROR);
    expect(Math.abs((window?.median ?? 0) - 25)).toBeLessThanOrEqual(5);
    expect(window?.limits[0]?.limit).toBeGreaterThanOrEqual(48);
    expect(window?.limits[0]?.limit).toBeLessThanOrEqual(50);
  });

  it("still has the exact number of requests", () => {
    expect(found.requests).toBe((CLIENTS / 50) * ((50 * 51) / 2));
  });
});

describe("a suggestion for few clients in each window, but too many in all", () => {
  it("has the exact numbers of client windows, and finds a client outside the sample", () => {
    const requests = Array.from({ length: 20_000 }, (_, client) => [
      requestAt(client * 1000, `client-${client}`),
      // Whether this client is in the sample depends on its hash.
      ...(client === 777 ? Array.from({ length: 99 }, () => requestAt(777_000, "client-777")) : []),
    ]).flat();
    const { isEstimate, clients, windows, loudest } = suggestionFor(requests, {
      maxClients: MAX_CLIENTS,
    });
    expect(isEstimate).toBe(true);
    expect(Math.abs(clients / 20_000 - 1)).toBeLessThan(0.18);
    expect(windows[0]).toMatchObject({ clientWindows: 20_000, median: 1, max: 100 });
    expect(loudest[0]).toMatchObject({ client: "client-777", requests: 100, busiest: 100 });
  });
});

describe("ClientCounts", () => {
  function filled(maxClients: number, clients: number): ClientCounts {
    const table = new ClientCounts(1, maxClients);
    const hash = new ClientHash();
    for (let client = 0; client < clients; client++) {
      hash.set(`client-${client}`);
      const entry = table.entryOf(hash.high, hash.low);
      if (entry >= 0) table.counts[entry] = client;
    }
    return table;
  }

  it.each([
    [1000, 0],
    [1024, 0],
    [1025, 1],
    [100_000, 7],
  ])("keeps at most 1024 of %d clients", (clients, level) => {
    const table = filled(1024, clients);
    expect(table.size).toBeLessThanOrEqual(1024);
    expect(Math.abs(table.level - level)).toBeLessThanOrEqual(1);
    expect(table.high.length).toBe(1024);
  });

  it("keeps the counts of clients that stay in the sample", () => {
    const table = filled(1024, 50_000);
    const hash = new ClientHash();
    let found = 0;
    for (let client = 0; client < 50_000; client++) {
      hash.set(`client-${client}`);
      const entry = table.entryOf(hash.high, hash.low);
      if (entry < 0) continue;
      expect(table.counts[entry]).toBe(client);
      found++;
    }
    expect(found).toBe(table.size);
  });

  it("begins with 0 after it was emptied, and shrinks if few clients come", () => {
    const table = filled(2 ** 16, 2 ** 16);
    for (let round = 0; round < 10; round++) table.clear();
    expect(table.size).toBe(0);
    expect(table.high.length).toBeLessThanOrEqual(8 * 1024);
    const entry = table.entryOf(1, 1);
    expect(table.counts[entry]).toBe(0);
  });

  it("stays within its bound if all hashes are in every sample", () => {
    const table = new ClientCounts(1, 64);
    const entries = Array.from({ length: 1000 }, (_, high) => table.entryOf(high, 0));
    expect(table.size).toBe(64);
    expect(entries.filter((entry) => entry === -1)).toHaveLength(1000 - 64);
  });

  it("is fast for hashes whose low bits are equal", () => {
    const table = new ClientCounts(1, 2 ** 20);
    const start = cpuTimeMs();
    for (let client = 0; client < 100_000; client++) {
      table.entryOf(Math.imul(client, 2 ** 16) >>> 0, (client >>> 16) << 20);
    }
    // With slots by the low bits, this would take minutes.
    expect(cpuTimeMs() - start).toBeLessThan(5000);
    expect(table.size).toBe(100_000);
  });
});

describe("NumberCounts", () => {
  it("is exact up to 10,000, and within 0.8 % above it", () => {
    const numbers = new NumberCounts();
    for (let value = 1; value <= 200_000; value += 7) numbers.add(value, 1);
    const all = Array.from({ length: Math.ceil(200_000 / 7) }, (_, index) => 1 + index * 7);
    for (const share of [0.01, 0.04]) {
      expect(numbers.quantile(share)).toBe(all[Math.ceil(share * all.length) - 1]);
    }
    for (const share of [0.3, 0.5, 0.95, 0.99]) {
      const exact = all[Math.ceil(share * all.length) - 1] as number;
      expect(Math.abs(numbers.quantile(share) / exact - 1)).toBeLessThan(0.008);
    }
    for (const limit of [1, 5000, 10_000, 150_000]) {
      const exact = all.reduce((sum, value) => sum + Math.max(0, value - limit), 0);
      expect(Math.abs(numbers.excessOver(limit) / exact - 1)).toBeLessThan(0.001);
    }
    expect(numbers.max).toBe(all.at(-1));
  });

  it.each([1, 10_000, 10_001, 16_384, 2 ** 31, 2 ** 32 - 1])("takes the number %d", (value) => {
    const numbers = new NumberCounts();
    numbers.add(value, 3);
    expect(numbers).toMatchObject({ total: 3, max: value });
    expect(numbers.quantile(1)).toBe(value);
    expect(numbers.excessOver(value - 1)).toBe(3);
  });

  it.each([
    [0.95, 19],
    [0.5, 10],
    [0.99, 20],
    [1, 20],
  ])("takes the quantile %d of 1 to 20 by the nearest rank", (share, expected) => {
    const numbers = new NumberCounts();
    for (let value = 1; value <= 20; value++) numbers.add(value, 1);
    expect(numbers.quantile(share)).toBe(expected);
  });
});

describe("LoudClients", () => {
  it("finds the loudest of many clients, and keeps no more than needed of their texts", () => {
    const loud = new LoudClients();
    const long = "x".repeat(100_000);
    for (let client = 0; client < 5000; client++) {
      // The loudest client comes in the middle.
      const requests = client === 2500 ? 50 : 1 + (client % 7);
      for (let count = 1; count <= requests; count++) {
        const request = requestAt(client, "", { userAgent: long, target: `/${long}?secret` });
        loud.add(request, clientNamed(`${client}`, `${client} ${long}`), count, 0);
      }
    }
    const [first, second] = loud.top(2);
    expect(first?.client.slice(0, 5)).toBe("2500 ");
    // The first 6 requests had not been enough to be among the loudest.
    expect(first).toMatchObject({ busiest: 50, requests: 44 });
    expect(second?.busiest).toBe(7);
    expect(first?.client).toHaveLength(200);
    expect(first?.userAgents.top(9)).toEqual([{ text: "x".repeat(200), count: 44 }]);
    expect(JSON.stringify(first?.paths.top(9))).not.toContain("secret");
  });
});
