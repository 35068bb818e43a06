import { describe, expect, it } from "vitest";
import { ClientHash, ClientTable } from "../../../cli/replay/client-ranking.ts";

const hash = new ClientHash();
const addressOf = (index: number) => `198.51.${index >> 8}.${index & 255}`;

/** Counts one request of each of so many clients. */
function tableOf(clients: number, maxClients: number, pinned: readonly string[] = []) {
  const hashes = pinned.map((client) => ({ ...new ClientHash().set(client) }));
  const table = new ClientTable(2, () => hashes, maxClients);
  for (let index = 0; index < clients; index++) table.increment(hash.set(addressOf(index)), 0);
  return table;
}

describe("ClientHash", () => {
  it("differs for a million similar names, with half of the bits set", () => {
    const seen = new Set<number>();
    let ones = 0;
    for (let index = 0; index < 1_000_000; index++) {
      const { high, low } = hash.set(addressOf(index));
      seen.add(high * 2 ** 21 + (low >>> 11));
      ones += low & 1;
    }
    expect(seen.size).toBe(1_000_000);
    expect(Math.abs(ones - 500_000)).toBeLessThan(2500);
  });

  it.each(["", "a", "\0", "\u{1f600}", "x".repeat(100_000)])(
    "has no high half of 0, which marks a free place: %#",
    (text) => {
      expect(hash.set(text).high).toBeGreaterThan(0);
    },
  );
});

describe("ClientTable", () => {
  it.each([0, 1, 511, 512, 513, 5000])("counts %d clients exactly below its bound", (clients) => {
    const table = tableOf(clients, 5000);
    expect(table.clients()).toBe(clients);
    expect(table.isEstimate).toBe(false);
  });

  it("counts exactly at its bound, and estimates from one client more", () => {
    const table = tableOf(4096, 4096);
    expect([table.clients(), table.isEstimate]).toEqual([4096, false]);
    table.increment(hash.set("one more"), 0);
    expect(table.isEstimate).toBe(true);
    expect(Math.abs(table.clients() - 4097)).toBeLessThan(4097 * 0.1);
  });

  it.each([10_000, 100_000, 1_000_000])(
    "estimates %d clients within three standard errors",
    (clients) => {
      const maxClients = 4096;
      const table = tableOf(clients, maxClients);
      const standardError = 1 / Math.sqrt(maxClients / 3);
      expect(table.isEstimate).toBe(true);
      expect(Math.abs(table.clients() / clients - 1)).toBeLessThan(3 * standardError);
    },
  );

  it("estimates the clients for which a condition holds", () => {
    const table = new ClientTable(2, undefined, 4096);
    for (let index = 0; index < 100_000; index++) {
      hash.set(addressOf(index));
      table.increment(hash, 0);
      if (index % 4 === 0) table.increment(hash, 1);
    }
    const quarter = table.clients((_requests = 0, denied = 0) => denied > 0);
    expect(Math.abs(quarter / 25_000 - 1)).toBeLessThan(3 / Math.sqrt(4096 / 3 / 4));
  });

  it("keeps the counts of clients exact when it grows", () => {
    const table = new ClientTable(2);
    for (let index = 0; index < 20_000; index++) {
      hash.set(addressOf(index % 1000));
      table.increment(hash, 0);
      if (index < 7000) table.increment(hash, 1);
    }
    const counts = [0, 1].map((column) => table.countOf(hash.set(addressOf(999)), column));
    expect(counts).toEqual([20, 7]);
    expect(table.countOf(hash.set("unknown"), 0)).toBe(0);
  });

  it("counts pinned clients from their first request on, whatever their hash is", () => {
    const pinned = Array.from({ length: 100 }, (_, index) => addressOf(index));
    const table = tableOf(50_000, 1024, pinned);
    for (const client of pinned) table.increment(hash.set(client), 0);
    const counts = pinned.map((client) => table.countOf(hash.set(client), 0));
    expect(new Set(counts)).toEqual(new Set([2]));
  });

  it("estimates without the clients that are only pinned", () => {
    const pinned = Array.from({ length: 256 }, (_, index) => addressOf(index));
    const table = tableOf(100_000, 1024, pinned);
    expect(Math.abs(table.clients() / 100_000 - 1)).toBeLessThan(3 / Math.sqrt(1024 / 3));
  });

  it("counts a client from now on that is pinned later", () => {
    const pins: ClientHash[] = [];
    const table = new ClientTable(1, () => pins, 1024);
    for (let index = 0; index < 50_000; index++) table.increment(hash.set(addressOf(index)), 0);
    for (let index = 0; index < 50; index++) {
      const pin = new ClientHash().set(`late ${index}`);
      pins.push(pin);
      table.pin(pin);
      table.increment(pin, 0);
    }
    expect(pins.every((pin) => table.countOf(pin, 0) === 1)).toBe(true);
  });

  it("forgets clients that are no longer pinned instead of growing", () => {
    let pins: ClientHash[] = [];
    const table = new ClientTable(1, () => pins, 1024);
    for (let index = 0; index < 10_000; index++) table.increment(hash.set(addressOf(index)), 0);
    for (let index = 0; index < 20_000; index++) {
      const pin = new ClientHash().set(`pinned ${index}`);
      pins = [pin];
      table.pin(pin);
    }
    // Pinned clients whose hashes belong to the sample are part of it.
    expect(Math.abs(table.clients() / 30_000 - 1)).toBeLessThan(3 / Math.sqrt(1024 / 3));
  });
});
