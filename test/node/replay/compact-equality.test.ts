import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { openLogs } from "../../../cli/logs/open-logs.ts";
import { CompactEngine } from "../../../cli/replay/compact/compact-engine.ts";
import { ReplayTally } from "../../../cli/replay/tally.ts";
import { type ConfigInput, defineConfig } from "../../../src/config/index.ts";
import { logFolder } from "../logs/log-folder.ts";
import { CONFIGS, reportOf } from "./compact-report.ts";
import { logTime } from "./generated-log.ts";

const write = logFolder();
const BEGIN = Date.UTC(2026, 10, 22, 23, 58);

const ADDRESSES = [
  ...["192.0.2.1", "192.0.2.2", "198.51.100.7", "0.0.0.0", "255.255.255.255"],
  ...["2001:db8::1", "2001:db8::2", "2001:DB8:0::1", "2001:db8:1::1", "::ffff:192.0.2.1"],
  ...["192.0.2.1:443", "[2001:db8::1]:443", "64:ff9b::192.0.2.2", "2a06:98c0:3600::103"],
  ...["192.0.2.01", "256.0.0.1", "192.0.2", "client.example.com", "fe80::1%eth0", "-"],
];
const PATHS = [
  ...[
    "/",
    "/login",
    "/login?next=/",
    "/Login",
    "/closed/x",
    "/health",
    "/a/b;c?d#e",
    "/a/../login",
  ],
  ...[
    "/%6cogin",
    "//login",
    "/caf\u00e9",
    "http://example.com/login",
    "*",
    "login",
    "/a#?b",
    "/a b",
  ],
  ...[
    `/${"long/".repeat(30)}`,
    `/?${"q".repeat(200)}`,
    `/${"%41/".repeat(200)}`,
    '/"quoted"',
    "/\\x41",
  ],
];

/** Mostly one of the usual values. */
function mostly<Value>(usual: readonly Value[], odd: readonly Value[]): fc.Arbitrary<Value> {
  return fc.oneof(
    { weight: 15, arbitrary: fc.constantFrom(...usual) },
    { weight: 1, arbitrary: fc.constantFrom(...odd) },
  );
}

const arbitraryLine = fc
  .record({
    host: mostly([""], ["api.example.com ", "example.com:80 "]),
    ip: mostly(["192.0.2.1", "198.51.100.7", "2001:db8::1"], ADDRESSES),
    user: mostly(["-"], ["ann", "a b", "a[b", "", "\u00fc"]),
    seconds: mostly([0, 1, 2, 3, 4, 9, 21], [-70, 80, 95, 200, 7500]),
    zone: mostly(["+0000"], ["-0230", "+9999"]),
    method: mostly(["GET", "POST"], ["HEAD", "OPTIONS", "get", "M-SEARCH", "CONNECT"]),
    path: mostly(["/", "/login", "/?a=1", "/closed/x"], PATHS),
    version: mostly([" HTTP/1.1", " HTTP/2.0"], ["", " HTTP/1.1 x", " FTP"]),
    status: mostly(["200", "404", "000"], ["2000", "-"]),
    rest: mostly(
      [' "-" "curl/8.11.0"', ' "-" "-"', ' "-" "Mozilla/5.0 (\u00e9)"'],
      ["", ' "https://example.com/', ' "-" "\u00e9\\"x" more', ` "-" "${"x".repeat(30_000)}"`],
    ),
    end: mostly(["\n"], ["\r\n", "\n\n"]),
  })
  .map(({ host, ip, user, seconds, zone, method, path, version, status, rest, end }) => {
    const time = logTime(BEGIN + seconds * 1000).replace("+0000", zone);
    return `${host}${ip} - ${user} [${time}] "${method} ${path}${version}" ${status} 5${rest}${end}`;
  });

/** Replaces some bytes of a log, and splits it into parts. */
const arbitraryLog = fc
  .record({
    lines: fc.array(arbitraryLine, { minLength: 20, maxLength: 120, size: "max" }),
    changes: fc.array(
      fc.tuple(fc.nat(), fc.constantFrom(...Buffer.from('\n\r" \\[]:0-/\0\u00e9\uffff'))),
      { maxLength: 6 },
    ),
    cuts: fc.array(fc.nat(), { maxLength: 4 }),
  })
  .map(({ lines, changes, cuts }) => {
    const bytes = Buffer.from(lines.join(""));
    for (const [at, byte] of changes) bytes[at % bytes.length] = byte;
    const positions = cuts.map((cut) => cut % bytes.length).sort((a, b) => a - b);
    return [0, ...positions].map((from, index) => bytes.subarray(from, positions[index]));
  });

describe("the compact engine", () => {
  it("gives the same report as the general one for random logs", async () => {
    const seen = { denied: 0, broken: 0, late: 0, ignored: 0, outside: 0, undecided: 0 };
    await fc.assert(
      fc.asyncProperty(
        arbitraryLog,
        fc.constantFrom(...CONFIGS),
        fc.constantFrom(undefined, "api.example.com"),
        fc.constantFrom({}, { from: BEGIN, to: BEGIN + 100_000 }),
        async (parts, config, host, period) => {
          // Each member of a gzip file is a chunk of its own.
          const file = await write(
            "random.log.gz",
            Buffer.concat(parts.map((part) => gzipSync(part))),
          );
          const options = {
            files: [file],
            format: "combined",
            host,
            maxDelayMs: 60_000,
            ...period,
          } as const;
          const bounds = { firstCapacity: 4 };
          const compact = await reportOf(true, config, options, bounds);
          expect(compact).toEqual(await reportOf(false, config, options));
          seen.denied += compact.total.denied;
          for (const field of ["broken", "late", "ignored", "outside"] as const) {
            seen[field] += compact.log[field];
          }
          seen.undecided += compact.notes.filter(({ code }) => code === "refused-requests").length;
        },
      ),
      { numRuns: 200, seed: 1 },
    );
    expect(Object.entries(seen).filter(([, count]) => count < 5)).toEqual([]);
  });

  it("gives the same report for clients that come and go, in several files", async () => {
    const lines = movingClients(30_000);
    const files = [
      await write("even.log", lines.filter((_, index) => index % 2 === 0).join("")),
      await write("odd.log", lines.filter((_, index) => index % 2 === 1).join("")),
    ];
    const options = { files, maxDelayMs: 60_000 };
    for (const config of CONFIGS.slice(0, 4)) {
      for (const maxClients of [2048, undefined]) {
        const bounds = { maxClients, firstCapacity: 64 };
        const compact = await reportOf(true, config, options, bounds);
        const isEstimate = maxClients !== undefined;
        expect(compact.total).toMatchObject({ requests: 30_000, isEstimate });
        expect(compact).toEqual(await reportOf(false, config, options, bounds));
      }
    }
  });

  it.each(["\ufeff", ""])(
    "reads marks of the byte order alike after a start of %j",
    async (start) => {
      const [line = ""] = movingClients(1);
      const file = await write("marks.log", `${start}${line}${line}\ufeff${line}${line}`);
      const options = { files: [file], maxDelayMs: 0 };
      const compact = await reportOf(true, CONFIGS[0] as ConfigInput, options);
      expect(compact.log).toMatchObject({ requests: 3, broken: 1 });
      expect(compact).toEqual(await reportOf(false, CONFIGS[0] as ConfigInput, options));
    },
  );

  it("keeps no request that is late or outside the given time", async () => {
    const file = await write("late.log", movingClients(3000).join(""));
    const options = { files: [file], maxDelayMs: 2000, to: BEGIN + 200_000 };
    const logs = await openLogs(options);
    const engine = new CompactEngine(defineConfig(CONFIGS[1] as ConfigInput), []);
    for await (const rows of logs.batchesIn(engine.form)) {
      engine.replay(rows, new ReplayTally({ rules: [] }));
    }
    expect(logs.progress.late).toBeGreaterThan(100);
    expect(logs.progress.outside).toBeGreaterThan(100);
    expect(engine.waiting).toBe(0);
  });
});

/** Lines out of order, of some clients that stay and of many that come and go. */
function movingClients(lines: number): string[] {
  return Array.from({ length: lines }, (_, index) => {
    const client = index % 3 === 0 ? index % 7 : (index >> 2) + ((index * 7919) % 61);
    const isIPv6 = client % 4 === 0;
    const ip = isIPv6
      ? `2001:db8:${client.toString(16)}::1`
      : `192.0.${client >> 8}.${client & 255}`;
    const time = logTime(BEGIN + (index >> 3) * 1000 - ((index * 31) % 50) * 1000);
    const request = `${index % 11 === 0 ? "POST" : "GET"} /login?i=${index} HTTP/1.1`;
    const status = index % 5 === 0 ? 401 : 200;
    return `${ip} - - [${time}] "${request}" ${status} 5 "-" "agent ${index % 40}"\n`;
  });
}
