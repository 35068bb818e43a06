import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AccessLineParser } from "../../../cli/logs/access-line.ts";
import { clientIp } from "../../../cli/logs/log-request.ts";
import { AccessLineScanner } from "../../../cli/replay/compact/access-line-scanner.ts";
import { ByteCache } from "../../../cli/replay/compact/byte-cache.ts";
import { Chunk } from "../../../cli/replay/compact/chunk.ts";
import { CompactClients, ipv4Text } from "../../../cli/replay/compact/compact-clients.ts";
import { RequestRows } from "../../../cli/replay/compact/request-rows.ts";

const LINE =
  '192.0.2.1 - - [22/Nov/2026:23:58:07 +0000] "GET /a?b=1 HTTP/1.1" 200 5 "-" "curl/8.11.0"';

describe("the scanner of lines", () => {
  it("reads what the parser reads, or nothing", () => {
    const [scanner, parser] = [new AccessLineScanner(), new AccessLineParser(undefined)];
    let scanned = 0;
    const byte = fc.constantFrom(...Buffer.from(' "-[]/?:.\\+019aZ\r\0\x7f\xe9\n'));
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(LINE.length - 1), byte, fc.constantFrom("set", "add", "cut")), {
          maxLength: 3,
        }),
        (changes) => {
          const bytes = [...Buffer.from(LINE)];
          for (const [at, value, change] of changes) {
            if (change === "cut") bytes.splice(at, 1);
            else bytes.splice(at, change === "set" ? 1 : 0, value);
          }
          const [line = Buffer.alloc(0)] = splitAt(Buffer.from(bytes));
          if (!scanner.read(Buffer.concat([line, Buffer.from("\n")]), 0, line.length)) return;
          const read = parser.parse(line.toString());
          const text = (from: number, to: number) => line.toString("latin1", from, to);
          const address = text(0, scanner.addressEnd);
          const ip = scanner.isIPv4 ? ipv4Text(scanner.ipv4) : clientIp(address);
          // Other texts than addresses are left to the parser.
          if (ip === undefined) return;
          scanned++;
          expect(read).toMatchObject({
            at: scanner.at,
            ip,
            method: text(scanner.methodAt, scanner.methodEnd),
            target: text(scanner.methodEnd + 1, scanner.targetEnd),
            status: scanner.status === 0 ? undefined : scanner.status,
          });
        },
      ),
      { numRuns: 20_000, seed: 2 },
    );
    expect(scanned).toBeGreaterThan(5000);
  });
});

/** Returns the lines of bytes. */
function splitAt(bytes: Buffer): Buffer[] {
  const end = bytes.indexOf(10);
  return end === -1 ? [bytes] : [bytes.subarray(0, end), ...splitAt(bytes.subarray(end + 1))];
}

describe("a chunk", () => {
  it("finds each newline, wherever it is", () => {
    const content = Buffer.from("\n\na\nab\nabc\nabcd\n\u00e9\u008a\u000b\ufffd\n".repeat(9));
    const chunk = new Chunk(Math.ceil(content.length / 4) * 4);
    chunk.set(content);
    for (let from = 0; from < content.length; from++) {
      const next = content.indexOf("\n", from);
      expect(chunk.newlineFrom(from)).toBe(next === -1 ? content.length : next);
    }
  });
});

describe("a cache of bytes", () => {
  it("knows only texts that were set, and not those that are too long", () => {
    const cache = new ByteCache(2, 4);
    const bytes = Buffer.from("abcdefgh");
    const lookUp = (from: number, to: number) => {
      const known = cache.get(bytes, from, to);
      if (known === -1) cache.set(bytes, from, to, from * 10 + to);
      return known;
    };
    for (let round = 0; round < 3; round++) {
      for (let from = 0; from < 8; from++) {
        for (let to = from; to <= 8; to++) {
          expect(lookUp(from, to)).toBe(-1);
          expect(lookUp(from, to)).toBe(to - from > 4 ? -1 : from * 10 + to);
          cache.clear();
        }
      }
    }
  });
});

describe("rows of requests", () => {
  it("keep few chunks, although one line of each waits", () => {
    const rows = new RequestRows();
    const waiting: number[] = [];
    for (let chunk = 0; chunk < 1000; chunk++) {
      const number = rows.addChunk(Buffer.from(`line ${chunk}\r\nother\n`));
      const length = `line ${chunk}\r`.length;
      waiting.push(rows.add(number, 0, length));
      rows.remove(rows.add(number, length + 1, 5));
      rows.endChunk(number);
    }
    expect(rows.chunks).toBeLessThan(200);
    expect(rows.size).toBe(1000);
    expect(waiting.map((row) => rows.line(row))).toEqual(
      waiting.map((_, index) => `line ${index}`),
    );
    for (const row of waiting) rows.remove(row);
    expect([rows.size, rows.chunks]).toEqual([0, 0]);
  });
});

describe("the clients of the compact engine", () => {
  const createClients = (isLive: (window: number) => boolean, removed: number[] = []) =>
    new CompactClients({
      size: { rules: 1, windows: 1 },
      isLive: (_, window) => isLive(window),
      onRemoval: (client) => removed.push(client),
      ipv6Prefix: 64,
      firstCapacity: 256,
    });

  it("are removed when their windows are over, so memory follows from the live ones", () => {
    const removed: number[] = [];
    let current = 0;
    const clients = createClients((window) => window >= current, removed);
    let most = 0;
    for (let address = 1; address <= 20_000; address++) {
      current = Math.floor(address / 100);
      if (clients.isFull) clients.makeSpace([]);
      clients.records.setCount(clients.ofIPv4(address), 0, current, 1);
      most = Math.max(most, clients.size);
    }
    expect(most).toBeLessThan(256);
    expect(removed.length).toBeGreaterThan(19_000);
  });

  it("all fit while they are live, and keep their counts, hashes and texts", () => {
    const clients = createClients((window) => window === 7);
    const texts = Array.from({ length: 60_000 }, (_, index) =>
      index % 2 === 0 ? ipv4Text(index) : `2001:db8:0:${index.toString(16)}::1`,
    );
    for (const [index, text] of texts.entries()) {
      if (clients.isFull) clients.makeSpace([]);
      const { records } = clients;
      records.setCount(records.underRules(clients.ofAddress(text)), 0, 7, index);
    }
    for (const [index, text] of texts.entries()) {
      if (clients.isFull) clients.makeSpace([]);
      const address = clients.ofAddress(text);
      expect(clients.text(address)).toBe(text);
      const client = clients.records.underRules(address);
      expect(clients.records.count(client, 0, 7)).toBe(index);
    }
    expect(clients.records.count(1, 0, 8)).toBe(0);
  });

  it("keep the addresses of requests that wait, with their networks", () => {
    const clients = createClients(() => false);
    const address = clients.ofAddress("2001:db8::5");
    const network = clients.records.underRules(address);
    expect(clients.text(network)).toBe("2001:db8::/64");
    clients.ofAddress("192.0.2.1");
    const renumbered = clients.makeSpace([address]);
    const moved = renumbered[address] as number;
    expect(clients.size).toBe(2);
    expect(clients.text(moved)).toBe("2001:db8::5");
    expect(clients.records.underRules(moved)).toBe(renumbered[network]);
    expect(clients.ofAddress("2001:db8::5")).toBe(moved);
  });
});
