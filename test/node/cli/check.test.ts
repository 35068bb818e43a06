import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  callWeir,
  check,
  checkInNewProcess,
  runWeir,
  temporaryFolder,
  WEIR_CONFIG,
} from "./run-weir.ts";

const GOOD = {
  rules: [
    {
      name: "login",
      match: { methods: ["post"], paths: ["/login", "/password-reset"] },
      limit: 5,
      window: 60,
      onError: "closed",
    },
    {
      name: "search",
      match: {
        hosts: ["api.example.com"],
        paths: ["/a", "/b", "/c", "/d", "/e"],
        except: { methods: ["OPTIONS"] },
      },
      key: ["header:x-api-key | ip", "path"],
      limits: [
        { limit: 33, window: "1m" },
        { limit: 2000, window: "1d" },
      ],
      start: "2026-01-01T09:00:00-08:00",
      mode: "shadow",
    },
    { name: "all", limit: 9, window: "90s" },
  ],
};

const FIVE_FAULTS = {
  rules: [{ name: "Log in", key: "user", limit: -1, window: "1x", lease: 5 }],
};
const FAULTY_PATHS = ["name", "key", "limit", "window", "lease"].map(
  (field) => `rules[0].${field}`,
);

describe("check of a valid configuration", () => {
  test("prints the rules as Weir reads them and exits with 0", async () => {
    const rare = {
      ...{ name: "llm", limit: 500, window: "1m", capacity: 900, maxReserved: 5 },
      ...{ start: "spread", shards: 4, cost: 2, count: { status: [200, 201], reserve: true } },
      ...{ tiers: { by: "header:plan", limits: { pro: { limit: 5000, window: "1m" } } } },
      exempt: { ips: ["10.0.0.0/8"], headers: { "x-internal": { secret: "INTERNAL" } } },
      ...{ retryJitter: "10s", response: { status: 503 }, tellOrigin: true, async: true },
    };
    const banning = { ...GOOD.rules[2], ban: 900 };
    const longerBans = { lengths: ["15m", "1h"], forgetAfter: "1d" };
    const escalating = { ...banning, name: "escalating", ban: longerBans };
    const limits = [
      { limit: 9, window: "day" },
      { limit: 99, window: "month" },
    ];
    const calendar = { name: "plan", limits, timeZone: "Europe/Berlin", start: "15 09:00" };
    const plain = { name: "plain", limit: 5, window: "month", concurrent: 4, wait: "2s" };
    const sliding = { name: "code", limit: 5, window: "1m", sliding: 6 };
    const texts: string[] = [];
    for (const rules of [GOOD.rules, [rare, escalating, banning], [calendar, plain, sliding], []]) {
      const { code, stdout, stderr } = await check("rules.json", { rules });
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      texts.push(stdout);
    }
    await expect(texts.join("\n")).toMatchFileSnapshot("check.txt");
  });

  test.for([
    [80, {}],
    [80 - "[custom build] ".length, { WRANGLER_COMMAND: "deploy" }],
  ] as const)("prints a table of at most %i columns to a pipe: %j", async ([width, env]) => {
    await using folder = await temporaryFolder();
    const long = `/${"a".repeat(90)}`;
    const rules = [...GOOD.rules, { ...GOOD.rules[0], name: "long", match: { paths: [long] } }];
    await folder.write("rules.json", JSON.stringify({ rules }));
    const { stdout } = await callWeir(["check", "--config", "rules.json"], folder.path, env);
    const [, rows = ""] = stdout.split("\n\n");
    expect(Math.max(...rows.split("\n").map((line) => line.length))).toBeLessThanOrEqual(width);
    // Nothing is cut.
    expect(rows.match(/a/g)?.length).toBeGreaterThan(90);
    for (const word of ["login", "search", "all", "shadow", "OPTIONS"])
      expect(rows).toContain(word);
  });

  test("with --json prints tiers by name, and exempt networks", async () => {
    const tiers = { by: "header:plan", limits: { pro: { limit: 50, window: "1m" } } };
    const exempt = { ips: ["10.0.0.0/8", "::1"] };
    const rules = [{ ...GOOD.rules[2], tiers, exempt }];
    const { stdout } = await check("rules.json", { rules }, "--json");
    expect(JSON.parse(stdout).rules).toMatchObject([
      {
        tiers: { windows: { pro: [{ limit: 50 }] } },
        exempt: {
          networks: [
            ["10.0.0.0", 8],
            ["::1", 128],
          ],
        },
      },
    ]);
  });

  test("with --json prints the rules with all defaults", async () => {
    const { code, stdout, stderr } = await check("rules.json", GOOD, "--json");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(JSON.parse(stdout)).toEqual({
      ok: true,
      config: "rules.json",
      rules: [
        expect.objectContaining({ name: "login", key: [[{ kind: "ip" }]], mode: "enforce" }),
        expect.objectContaining({ name: "search", mode: "shadow" }),
        expect.objectContaining({
          name: "all",
          windows: [
            {
              policy: "all",
              limit: 9,
              capacity: 9,
              maxReserved: 0,
              windowMs: 90_000,
              offsetMs: 0,
            },
          ],
        }),
      ],
      faults: [],
      warnings: [],
    });
  });

  test.for([
    [
      "weir.ts",
      'import { defineConfig } from "edge-weir/config";\nexport default defineConfig(GOOD satisfies object);',
    ],
    [
      "weir.mjs",
      'import { defineConfig } from "edge-weir/config";\nexport default defineConfig(GOOD);',
    ],
    ["plain.mjs", "export default GOOD;"],
    ["plain.js", "module.exports = GOOD;"],
  ] as const)("accepts %s", async ([file, module]) => {
    const { code, stdout } = await check(file, module.replace("GOOD", JSON.stringify(GOOD)));
    expect(stdout).toContain(`${file} is ok: 3 rules.`);
    expect(code).toBe(0);
  });

  test("reads weir.config.ts in the current folder without an option", async () => {
    const { code, stdout, stderr } = await runWeir(["check"]);
    expect(stdout).toMatch(/^weir\.config\.ts is ok: /);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  });

  test("writes all output before it exits, even if the output is long", async () => {
    const rules = Array.from({ length: 3000 }, (_, index) => ({
      ...GOOD.rules[0],
      name: `r${index}`,
    }));
    const { stdout } = await checkInNewProcess("rules.json", { rules }, "--json");
    expect(JSON.parse(stdout).rules).toHaveLength(3000);
  });
});

describe("check of a project with wrangler's configuration", () => {
  test("reads the file and the environment that its options name", async () => {
    await using folder = await temporaryFolder();
    await folder.write("rules.json", JSON.stringify({ rules: [GOOD.rules[2]] }));
    await folder.write("worker.js", 'export { CounterObject } from "edge-weir";');
    const date = { compatibility_date: "2026-11-01" };
    const start = { name: "a", main: "worker.js", workers_dev: false, ...date };
    const bindings = [{ name: "COUNTERS", class_name: "CounterObject" }];
    const exports = { CounterObject: { type: "durable-object", storage: "sqlite" } };
    const other = { ...start, exports, env: { good: { durable_objects: { bindings } } } };
    await folder.write("other.jsonc", JSON.stringify(other));
    const run = (...args: string[]) =>
      callWeir(["check", "--config", "rules.json", "--json", ...args], folder.path);
    const [none, all, good] = await Promise.all([
      run(),
      run("--wrangler", "other.jsonc"),
      run("--wrangler", "other.jsonc", "--env", "good"),
    ]);
    expect([none?.code, all?.code, good?.code]).toEqual([0, 1, 0]);
    expect(JSON.parse(all?.stdout ?? "")).toMatchObject({
      ok: false,
      faults: [{ code: "counters-unbound", file: "other.jsonc" }],
    });
    expect(JSON.parse(good?.stdout ?? "")).toMatchObject({ ok: true, faults: [], warnings: [] });
  });
});

test("check finds wrangler's configuration in the current folder if the rules are in a folder below", async () => {
  await using folder = await temporaryFolder();
  await mkdir(join(folder.path, "config"));
  await folder.write("config/rules.json", JSON.stringify({ rules: [GOOD.rules[2]] }));
  await folder.write("wrangler.toml", "[vars\n");
  const { stderr } = await callWeir(["check", "--config", "config/rules.json"], folder.path);
  expect(stderr).toContain("fault wrangler-unread");
});

describe("check of a configuration with faults", () => {
  const moduleOf = (weir: string) =>
    `import { defineConfig } from "${weir}";\nexport default defineConfig(${JSON.stringify(FIVE_FAULTS)});`;
  /** A module that throws the ConfigError of another copy of Weir, which has its own class. */
  const FOREIGN = `throw Object.assign(new Error(), { name: "ConfigError", faults: [${FAULTY_PATHS.map(
    (path) => `{ path: "${path}", message: "allowed: something else" }`,
  )}] });`;

  test.for([
    ["rules.json", JSON.stringify(FIVE_FAULTS)],
    ["weir.ts", moduleOf("edge-weir/config")],
    ["weir.mjs", moduleOf(WEIR_CONFIG)],
    ["plain.mjs", `export default ${JSON.stringify(FIVE_FAULTS)};`],
    ["foreign.mjs", FOREIGN],
  ] as const)(
    "in %s prints each fault on its own line and exits with 1",
    async ([file, content]) => {
      const { code, stdout, stderr } = await check(file, content);
      const [headline, , heading, ...lines] = stderr.trimEnd().split("\n");
      expect([headline, heading]).toEqual([`5 faults in ${file}:`, file]);
      expect(lines.map((line) => line.split(": ")[1])).toEqual(FAULTY_PATHS);
      for (const line of lines) expect(line).toContain("allowed: ");
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    },
  );

  test("with --json prints the faults as data and exits with 1", async () => {
    const { code, stdout, stderr } = await check("rules.json", FIVE_FAULTS, "--json");
    expect(JSON.parse(stdout)).toEqual({
      ok: false,
      config: "rules.json",
      faults: FAULTY_PATHS.map((path) => ({
        code: "config",
        file: "rules.json",
        path,
        fault: "not-allowed",
        message: expect.stringContaining("allowed: "),
      })),
      warnings: [],
    });
    expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
  });

  test("names the configuration if the fault has no path", async () => {
    const { stderr } = await check("rules.json", 5);
    expect(stderr).toContain("  fault: the configuration: got 5; allowed: ");
  });
});
