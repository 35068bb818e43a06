import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath, URL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasRedisServer } from "../dev/redises.ts";
import { answerJson, startDatabase, type TestDatabase } from "./doctor-database.ts";
import { callWeir, REPOSITORY, temporaryFolder } from "./run-weir.ts";

const CONFIG = { rules: [{ name: "login", limit: 5, window: "1m" }] };
const NO_CREDENTIALS = {
  UPSTASH_REDIS_REST_URL: undefined,
  UPSTASH_REDIS_REST_TOKEN: undefined,
  WEIR_ADMIN_TOKEN: undefined,
  WEIR_PREFIX: undefined,
};

/** Runs `doctor` in a folder with these files. */
async function doctor(
  files: Readonly<Record<string, string>>,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
) {
  await using folder = await temporaryFolder();
  const all = { "weir.config.json": JSON.stringify(CONFIG), ...files };
  for (const [name, content] of Object.entries(all)) await folder.write(name, content);
  const command = ["doctor", "--config", "weir.config.json", ...args];
  return await callWeir(command, folder.path, { ...NO_CREDENTIALS, ...env });
}

describe("weir doctor", () => {
  test("prints its options, exit codes and sources of credentials", async () => {
    const { code, stdout } = await callWeir(["doctor", "--help"], REPOSITORY);
    for (const words of ["--env <name>", "--at <url>", "--json", "--strict", "Exit codes:"]) {
      expect(stdout).toContain(words);
    }
    expect(code).toBe(0);
  });

  test.for<[string, Record<string, unknown>, readonly string[], string]>([
    ["no store and no URL", {}, [], "in .dev.vars"],
    ["Durable Objects", { store: "durable-object" }, [], "weir doctor --at <url>"],
    ["memory", { store: "memory" }, [], "The store is memory"],
    ["no URL", { store: "upstash" }, [], "UPSTASH_REDIS_REST_URL is not set"],
    ["a faulty configuration", { store: "redis" }, [], "explains them"],
    ["an environment without wrangler.toml", {}, ["--env", "staging"], "no wrangler.toml"],
    ["--at without a token", {}, ["--at", "https://a.example"], "neither WEIR_ADMIN_TOKEN nor"],
  ])("exits with 2 if there is nothing to examine: %s", async ([, config, args, message]) => {
    const files = { "weir.config.json": JSON.stringify({ ...CONFIG, ...config }) };
    const { code, stdout, stderr } = await doctor(files, args);
    expect(stderr).toContain(message);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  });

  test("with --json prints the reason as data", async () => {
    const { code, stdout, stderr } = await doctor({}, ["--json"]);
    expect(JSON.parse(stdout)).toEqual({ ok: false, error: expect.any(String) });
    expect({ code, stderr }).toEqual({ code: 2, stderr: "" });
  });
});

describe.runIf(hasRedisServer)("weir doctor with a database", () => {
  let database: TestDatabase;
  let credentials: Record<string, string>;
  beforeAll(async () => {
    database = await startDatabase();
    credentials = {
      UPSTASH_REDIS_REST_URL: database.url,
      UPSTASH_REDIS_REST_TOKEN: database.token,
    };
  });
  afterAll(() => database[Symbol.asyncDispose]());

  test("finds a clean database ok, exits with 0, and changes no key", async () => {
    await database.run("SET", "other:data", "1");
    await database.run("LPUSH", "a-list", "1");
    const before = await database.keys();
    const { code, stdout, stderr } = await doctor({}, ["--strict"], credentials);
    expect(stdout).toContain("URL from the environment");
    expect(stdout).toContain("The database is ok.");
    expect(stdout).not.toContain(database.token);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(await database.keys()).toEqual(before);
  });

  test("with --json prints the findings and their measured values", async () => {
    const { code, stdout } = await doctor({}, ["--json"], credentials);
    const { ok, prefix, urlSource, findings } = JSON.parse(stdout);
    expect({ code, ok, prefix, urlSource }).toEqual({
      code: 0,
      ok: true,
      prefix: "weir",
      urlSource: "the environment",
    });
    expect(findings).toContainEqual({
      code: "round-trip-ok",
      severity: "ok",
      message: expect.any(String),
      measured: expect.objectContaining({ timeoutMs: 1000, medianMs: expect.any(Number) }),
    });
  });

  test("exits with 1 and gives advice for a wrong token, and prints no token", async () => {
    const token = "wrong-token-7a9f";
    const { code, stdout } = await doctor({}, [], {
      ...credentials,
      UPSTASH_REDIS_REST_TOKEN: token,
    });
    expect(stdout).toMatch(/fault +token-wrong +HTTP 401: WRONGPASS/);
    expect(stdout).toContain("→ Copy UPSTASH_REDIS_REST_TOKEN from the same database");
    expect(stdout).not.toContain(token);
    expect(code).toBe(1);
  });

  test("reads vars of wrangler's environment, and the prefix of that environment", async () => {
    const wrangler = `name = "a"\nmain = "a.ts"\n[env.staging.vars]\n
      WEIR_PREFIX = "weir-staging"\nUPSTASH_REDIS_REST_URL = "${database.url}"`;
    const { UPSTASH_REDIS_REST_TOKEN = "" } = credentials;
    const files = {
      "wrangler.toml": wrangler,
      ".dev.vars": `UPSTASH_REDIS_REST_TOKEN="${UPSTASH_REDIS_REST_TOKEN}"`,
    };
    const { code, stdout } = await doctor(files, ["--env", "staging"]);
    expect(stdout).toContain("URL from wrangler.toml, env.staging: vars, token from .dev.vars");
    expect(stdout).toContain("prefix weir-staging (from wrangler.toml, env.staging: vars)");
    expect(stdout).toMatch(/no key is left under "weir-staging:doctor-/);
    expect(code).toBe(0);
  });

  test.for<[string, readonly string[], Record<string, string>]>([
    ["--env", ["--env", "staging"], {}],
    ["CLOUDFLARE_ENV", [], { CLOUDFLARE_ENV: "staging" }],
    ["--wrangler", ["--env", "staging", "--wrangler", "wrangler.toml"], {}],
  ])(
    "reads wrangler's configuration in the current folder, as weir check does: %s",
    async ([, args, env]) => {
      const wrangler = `name = "a"\n[vars]\nWEIR_PREFIX = "top"\n
      [env.staging.vars]\nWEIR_PREFIX = "weir-other"\nUPSTASH_REDIS_REST_URL = "${database.url}"`;
      await using folder = await temporaryFolder();
      await mkdir(join(folder.path, "src"));
      await folder.write("src/weir.config.json", JSON.stringify(CONFIG));
      await folder.write("wrangler.toml", wrangler);
      await folder.write(".dev.vars", "UPSTASH_REDIS_REST_TOKEN=other");
      await folder.write(".dev.vars.staging", `UPSTASH_REDIS_REST_TOKEN=${database.token}`);
      const command = ["doctor", "--config", "src/weir.config.json", "--json", ...args];
      const run = await callWeir(command, folder.path, { ...NO_CREDENTIALS, ...env });
      expect(JSON.parse(run.stdout)).toMatchObject({
        ok: true,
        urlSource: "wrangler.toml, env.staging: vars",
        tokenSource: ".dev.vars.staging",
        prefix: "weir-other",
        prefixSource: "wrangler.toml, env.staging: vars",
      });
    },
  );

  test("exits with 2 if the Worker would refuse the prefix", async () => {
    const wrangler = JSON.stringify({ name: "a", vars: { WEIR_PREFIX: 5 } });
    const { code, stderr } = await doctor({ "wrangler.jsonc": wrangler }, [], credentials);
    expect(stderr).toContain("WEIR_PREFIX is not a text of 1 to 64 characters");
    expect(stderr).toContain("(wrangler.jsonc: vars)");
    expect(code).toBe(2);
  });

  test("exits with 1 for warnings only with --strict", async () => {
    database.intercept((name, response) => {
      const seconds = `${Math.floor(Date.now() / 1000) + 5}`;
      return name === "TIME" && answerJson(response, 200, { result: [seconds, "0"] });
    });
    const lax = await doctor({}, [], credentials);
    expect(lax.stdout).toContain("0 faults, 1 warning.");
    const strict = await doctor({}, ["--strict"], credentials);
    database.intercept();
    expect([lax.code, strict.code]).toEqual([0, 1]);
  });

  test.concurrent.for([
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const)(
    "removes its keys at %s, and exits with %i",
    async ([signal, exitCode], { expect }) => {
      await using database = await startDatabase();
      await using folder = await temporaryFolder();
      await folder.write("weir.config.json", JSON.stringify(CONFIG));
      const command = fileURLToPath(new URL("../../../cli/weir.ts", import.meta.url));
      const args = [command, "doctor", "--config", "weir.config.json"];
      // The signal arrives in the middle of the vectors. The database runs the call in flight.
      const { promise: reached, resolve } = Promise.withResolvers<void>();
      const { promise: released, resolve: release } = Promise.withResolvers<void>();
      let isReached = false;
      database.intercept(async (name, _response, call) => {
        if (isReached || call < 14 || name !== "EVALSHA") return false;
        isReached = true;
        resolve();
        await released;
        return false;
      });
      const child = spawn(process.execPath, args, {
        cwd: folder.path,
        env: {
          ...process.env,
          ...NO_CREDENTIALS,
          UPSTASH_REDIS_REST_URL: database.url,
          UPSTASH_REDIS_REST_TOKEN: database.token,
        },
      });
      const output = text(child.stdout);
      await reached;
      child.kill(signal);
      // npm and npx send a second signal.
      child.kill(signal);
      setTimeout(release, 100);
      const [code] = await once(child, "exit");
      expect(await output).toMatch(/fault +not-finished[\s\S]*ok +cleaned-up/);
      expect(code).toBe(exitCode);
      expect(await database.keys()).toEqual([]);
    },
  );
});
