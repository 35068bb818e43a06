import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { ConfigError, type ConfigInput, defineConfig } from "edge-weir/config";
import { describe, expect, test } from "vitest";
import { inputOf, isConfig } from "../../../src/config/define.ts";
import { faultsOf, rule } from "./fixtures.ts";

const EXAMPLE: ConfigInput = {
  rules: [
    {
      name: "login",
      match: { methods: ["POST"], paths: ["/login", "/password-reset"] },
      key: "ip",
      limit: 5,
      window: "1m",
      onError: "closed",
    },
    {
      name: "search",
      match: { paths: ["/search"] },
      key: "header:x-api-key | ip",
      limits: [
        { limit: 33, window: "1m" },
        { limit: 2000, window: "1h" },
      ],
    },
  ],
};

const ONE_MINUTE = { maxReserved: 0, windowMs: 60_000, offsetMs: 0 };
const ONE_HOUR = { ...ONE_MINUTE, windowMs: 3_600_000 };
/** The defaults of a rule. */
const DEFAULTS = {
  for: "all",
  readsLimits: false,
  spread: false,
  shards: 1,
  cost: 1,
  count: undefined,
  tiers: undefined,
  exempt: undefined,
  ban: undefined,
  waitMs: 0,
  async: false,
  retryJitterMs: 0,
};

describe("a valid configuration", () => {
  test("is returned with parsed rules and all defaults", () => {
    expect(defineConfig(EXAMPLE)).toEqual({
      rules: [
        {
          name: "login",
          match: { methods: ["POST"], paths: ["/login", "/password-reset"] },
          key: [[{ kind: "ip" }]],
          windows: [{ policy: "login", limit: 5, capacity: 5, ...ONE_MINUTE }],
          ...DEFAULTS,
          mode: "enforce",
          tellOrigin: false,
          onError: "closed",
          localShare: 0.25,
          lease: true,
        },
        {
          name: "search",
          match: { paths: ["/search"] },
          key: [[{ kind: "header", name: "x-api-key" }, { kind: "ip" }]],
          windows: [
            { policy: "search/1m", limit: 33, capacity: 33, ...ONE_MINUTE },
            { policy: "search/1h", limit: 2000, capacity: 2000, ...ONE_HOUR },
          ],
          ...DEFAULTS,
          mode: "enforce",
          tellOrigin: false,
          onError: "open",
          localShare: 0.25,
          lease: true,
        },
      ],
      forwarded: true,
      prefix: "weir",
      timeoutMs: 1000,
      headers: "draft-11",
      ipv6Prefix: 64,
      caseSensitivePaths: false,
      denialLog: 10,
    });
  });

  test("shows whether a rule tells the origin about quotas", () => {
    const rule = { name: "plan", limit: 5, window: "1m" } as const;
    const tells = (fields: object) => defineConfig({ rules: [{ ...rule, ...fields }] }).tellsOrigin;
    expect(tells({})).toBe(undefined);
    expect(tells({ mode: "shadow" })).toBe(undefined);
    expect(tells({ mode: "mark", for: "programs" })).toBe(undefined);
    expect(tells({ mode: "mark" })).toBe(true);
    expect(tells({ tellOrigin: true })).toBe(true);
  });

  test("may come from JSON, with the same result", () => {
    expect(defineConfig(JSON.parse(JSON.stringify(EXAMPLE)))).toEqual(defineConfig(EXAMPLE));
  });

  test("is not changed", () => {
    const given = structuredClone(EXAMPLE);
    defineConfig(given);
    expect(given).toEqual(EXAMPLE);
  });

  test("may have no rules", () => {
    expect(defineConfig({ rules: [] }).rules).toEqual([]);
  });

  test("may have 10,000 rules", () => {
    const rules = Array.from({ length: 10_000 }, (_, index) => rule({ name: `r${index}` }));
    expect(faultsOf({ rules })).toEqual([]);
  });

  test("is distinguished from an unchecked one", () => {
    expect(isConfig(defineConfig(EXAMPLE))).toBe(true);
    const copies = [{ ...defineConfig(EXAMPLE) }, Object.create(defineConfig(EXAMPLE))];
    expect([EXAMPLE, ...copies, null, undefined, 5].some(isConfig)).toBe(false);
  });

  test("leads to the object from which it was made, but does not print it", () => {
    const config = defineConfig(EXAMPLE);
    expect(inputOf(config)).toBe(EXAMPLE);
    expect(Object.getOwnPropertySymbols({ ...config })).toEqual([]);
  });
});

describe("a configuration with faults", () => {
  const FIVE_FAULTS = {
    rules: [
      { name: "Log in", key: "ip", limit: 5, window: "1m" },
      { name: "search", key: "user:sub", limit: -1, window: "1x" },
      { name: "export", limt: 5, window: "1h" },
    ],
  };
  const FIVE = [
    ["rules[0].name", 'got "Log in"; allowed: 1 to 64 characters of a-z, 0-9, - and _'],
    ["rules[1].key", 'got "user:sub"; allowed: ip, host, path, method'],
    ["rules[1].limit", "got -1; allowed: a whole number from 0 to 999999999999999"],
    ["rules[1].window", 'got "1x"; allowed: "10s", "1m", "1h", "1d", "1w"'],
    [
      "rules[2].limt",
      'unknown field; did you mean "limit"? Allowed: name, match, key, limit',
      "unknown-field",
    ],
  ] as const;

  test("is reported with the path and the allowed values of each fault", () => {
    expect(faultsOf(FIVE_FAULTS)).toEqual(
      FIVE.map(([path, start, code = "not-allowed"]) => ({
        path,
        code,
        message: expect.stringContaining(start),
      })),
    );
  });

  test("throws one error, whose message has a line for each fault", () => {
    expect.assertions(4 + FIVE.length);
    try {
      defineConfig(FIVE_FAULTS as unknown as ConfigInput);
    } catch (error) {
      expect(error).toBeInstanceOf(ConfigError);
      const { name, message } = error as ConfigError;
      const [headline, ...lines] = message.split("\n");
      expect(name).toBe("ConfigError");
      expect(headline).toBe("Weir's configuration has 5 faults:");
      expect(lines).toHaveLength(FIVE.length);
      for (const [index, [path, start]] of FIVE.entries()) {
        expect(lines[index]).toContain(`  ${path}: ${start}`);
      }
    }
  });

  test("writes a single fault in the singular", () => {
    expect(() => defineConfig({ rules: [], timeoutMs: 0 })).toThrow(
      "Weir's configuration has 1 fault:\n  timeoutMs: got 0; allowed: a whole number from 1 to 30000",
    );
  });
});

test("edge-weir/config loads in Node by its package name", async () => {
  const program =
    'import { defineConfig } from "edge-weir/config"; console.log(typeof defineConfig);';
  const run = promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program]);
  expect((await run).stdout).toBe("function\n");
});
