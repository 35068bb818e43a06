import { rename, rm, writeFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { PATIENCE } from "../../patience.ts";
import { startWranglerProject, type WranglerProject, withBinding } from "./wrangler-project.ts";

const CONFIG = "weir.config.ts";

/** A configuration whose limit can be recognised in the responses. */
const configWith = (limit: number | string) => `
  import { defineConfig } from "edge-weir/config";
  export default defineConfig({
    origin: { binding: "API" },
    rules: [{ name: "all", key: "ip", limit: ${JSON.stringify(limit)}, window: "1h" }],
  });
`;

/** This Worker has a route for each way in which an app can use Weir. */
const WORKER = `
  import { Hono } from "hono";
  import config from "../weir.config.ts";
  import { rateLimit, weir, WeirService } from "./index.ts";
  export { ControlObject, CounterObject } from "./index.ts";

  const limits = weir(config);
  const app = new Hono()
    .use(rateLimit(config, { rule: "all" as never }))
    .get("/hono", (c) => c.text("the app"));

  export default {
    fetch(request, env, ctx) {
      const { pathname } = new URL(request.url);
      if (pathname === "/hono") return app.fetch(request, env, ctx);
      if (pathname === "/next") return limits.fetch(request, env, ctx, () => new Response("next"));
      return limits.fetch(request, env, ctx);
    },
  } satisfies ExportedHandler;

  export class Limits extends WeirService<typeof config> {
    readonly config = config;
  }
`;

/** The origin behind Weir. It also calls Weir's service. */
const API = `
  export default {
    async fetch(request, env) {
      const { pathname } = new URL(request.url);
      if (pathname !== "/call") return new Response("the API");
      return Response.json(await env.LIMITS.limit("all", { key: "203.0.113.1" }));
    },
  };
`;

const API_TOML = `
  name = "api"
  main = "worker.ts"
  compatibility_date = "2026-11-01"
  services = [{ binding = "LIMITS", service = "weir", entrypoint = "Limits" }]
`;

/** Sends its requests to the API directly, so that the test reaches both Workers. */
const FRONT = `
  export default {
    fetch(request, env) {
      const { pathname } = new URL(request.url);
      return pathname === "/call" ? env.API.fetch(request) : env.WEIR.fetch(request);
    },
  };
`;

const FRONT_TOML = `
  name = "front"
  main = "worker.ts"
  compatibility_date = "2026-11-01"
  services = [{ binding = "API", service = "api" }, { binding = "WEIR", service = "weir" }]
`;

let project: WranglerProject;

beforeAll(async () => {
  const files = {
    [CONFIG]: configWith(100),
    "src/worker.ts": WORKER,
    "wrangler.toml": await withBinding('[[services]]\nbinding = "API"\nservice = "api"\n'),
    "api/worker.ts": API,
    "api/wrangler.toml": API_TOML,
    "front/worker.ts": FRONT,
    "front/wrangler.toml": FRONT_TOML,
  };
  const configs = ["front/wrangler.toml", "wrangler.toml", "api/wrangler.toml"];
  project = await startWranglerProject(files, configs);
  await untilLimitIs(100);
});

afterAll(async () => {
  await project?.[Symbol.asyncDispose]();
});

/** Sends a request. While wrangler builds the Worker, it delays the request. */
async function send(path: string) {
  const response = await fetch(project.url + path, { signal: AbortSignal.timeout(15_000) });
  const { status, headers } = response;
  return { status, headers, body: await response.text() };
}

async function untilLimitIs(limit: number): Promise<void> {
  await vi.waitFor(async () => {
    const { headers, body } = await send("/");
    const policy = headers.get("ratelimit-policy");
    expect({ policy, body }).toEqual({ policy: `"all";q=${limit};w=3600`, body: "the API" });
  }, PATIENCE);
}

/** Returns the number of builds after the first. */
const builds = () => project.output().split("restarting build").length - 1;

const config = () => project.file(CONFIG);

describe("wrangler dev loads weir.config.ts again after an editor", () => {
  const saves: [string, (content: string) => Promise<void>][] = [
    ["writes to the same file", (content) => writeFile(config(), content)],
    [
      "moves another file to its place",
      async (content) => {
        await writeFile(`${config()}.new`, content);
        await rename(`${config()}.new`, config());
      },
    ],
    [
      "keeps the old file as a backup, and creates a new one",
      async (content) => {
        await rename(config(), `${config()}~`);
        await writeFile(config(), content);
        await rm(`${config()}~`);
      },
    ],
    [
      "removes it and creates it at once",
      async (content) => {
        await rm(config());
        await writeFile(config(), content);
      },
    ],
    [
      "removes it, and creates it again after wrangler has built the Worker without it",
      async (content) => {
        const before = builds();
        await rm(config());
        await vi.waitFor(() => expect(builds()).toBeGreaterThan(before), PATIENCE);
        await writeFile(config(), content);
      },
    ],
  ];

  // Each save must leave a watcher that notices the next one.
  it.each(saves.map(([title, save], index) => ({ title, save, limit: 101 + index })))(
    "$title",
    async ({ save, limit }) => {
      const before = builds();
      await save(configWith(limit));
      await untilLimitIs(limit);
      // A save may be noticed as two changes. More builds would be a loop.
      expect(builds() - before).toBeLessThanOrEqual(3);
    },
  );
});

describe("while weir.config.ts has faults", () => {
  let printedBefore: number;

  beforeAll(async () => {
    printedBefore = project.output().length;
    await writeFile(config(), configWith("many"));
    await vi.waitFor(async () => expect((await send("/")).status).toBe(503), PATIENCE);
  });

  it.each(["/", "/next", "/hono"])("answers %s with 503 and the faults", async (path) => {
    const { status, headers, body } = await send(path);
    expect(status).toBe(503);
    expect(headers.get("content-type")).toBe("application/problem+json");
    expect(headers.get("cache-control")).toBe("no-store");
    const { faults } = JSON.parse(body);
    expect(faults).toEqual([
      { path: "rules[0].limit", code: "not-allowed", message: expect.stringContaining('"many"') },
    ]);
  });

  it("throws an error with the faults for a call of the service", async () => {
    const { status, body } = await send("/call");
    expect(status).toBe(500);
    expect(body).toContain("rules[0].limit");
  });

  it("prints the faults once, in a few lines", () => {
    const lines = project.output().slice(printedBefore).split("\n");
    const printed = lines.filter((line) => /^\[custom build\] +\S/.test(line));
    expect(printed.length).toBeLessThanOrEqual(5);
    expect(printed.filter((line) => line.includes("rules[0].limit"))).toHaveLength(1);
  });

  it("answers requests again when the file is correct, without a restart", async () => {
    await writeFile(config(), configWith(200));
    await untilLimitIs(200);
    expect(JSON.parse((await send("/call")).body)).toMatchObject({ ok: true });
  });
});

it("answers requests again after a syntax error has been corrected", async () => {
  const before = builds();
  await writeFile(config(), "export default { rules: [ }");
  await vi.waitFor(() => {
    expect(builds()).toBeGreaterThan(before);
    expect(project.output()).toContain("Build failed");
  }, PATIENCE);
  await writeFile(config(), configWith(300));
  await untilLimitIs(300);
});

it("answers requests again after an error that the file throws has been corrected", async () => {
  await writeFile(config(), `throw new Error("the file throws");\n${configWith(301)}`);
  // If the command of [build] succeeded, the Worker would be started, and wrangler would end.
  await vi.waitFor(() => expect(project.output()).toMatch(/custom build .* failed/), PATIENCE);
  await writeFile(config(), configWith(302));
  await untilLimitIs(302);
});
