import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { examineWorker } from "../../../cli/doctor/worker.ts";
import { listen } from "../../../dev/loopback.ts";
import { type RunningWorker, startWorker } from "../support/worker.ts";
import { callWeir, temporaryFolder } from "./run-weir.ts";

const READ_TOKEN = "read-token-of-more-than-32-characters!";
const TOKEN = "admin-token-of-more-than-32-characters";
const RULES = [{ name: "login", limit: 5, window: "1m" }];

describe("weir doctor --at", () => {
  let worker: RunningWorker;
  beforeAll(async () => {
    const main = `
      import { CounterObject, defineConfig, weir } from "./weir.mjs";
      const limiter = weir(defineConfig(${JSON.stringify({ rules: RULES, timeoutMs: 10_000 })}));
      export default {
        fetch: (request, env, ctx) => limiter.fetch(request, env, ctx, () => new Response("app")),
      };
      export { CounterObject };
    `;
    worker = await startWorker({
      config: { rules: RULES },
      main,
      vars: { WEIR_ADMIN_TOKEN: TOKEN, WEIR_ADMIN_READ_TOKEN: READ_TOKEN },
    });
  });
  afterAll(() => worker.stop());

  const at = (url: string | URL, token = TOKEN) =>
    examineWorker(
      new URL(url),
      { value: token, source: "the environment" },
      new AbortController().signal,
    );

  test.for([
    { WEIR_ADMIN_TOKEN: TOKEN },
    { WEIR_ADMIN_TOKEN: undefined, WEIR_ADMIN_READ_TOKEN: READ_TOKEN },
  ])("lets the deployed Worker examine its Durable Objects: %j", async (env) => {
    await using folder = await temporaryFolder();
    await folder.write("weir.config.json", JSON.stringify({ rules: RULES }));
    const args = ["doctor", "--config", "weir.config.json", "--at", `${worker.url}`, "--json"];
    const run = await callWeir(args, folder.path, env);
    expect(run.stderr).toBe("");
    const { ok, findings } = JSON.parse(run.stdout);
    const codes = findings.map(({ code }: { code: string }) => code);
    expect(codes).toEqual(["worker-ok", "round-trip-ok", "clock-ok"]);
    expect(findings[0].message).toContain("the store is durable-object");
    expect({ ok, code: run.code }).toEqual({ ok: true, code: 0 });
    expect(run.stdout).not.toMatch(/token-of-more/);
  });

  test("reports a wrong token as if there were no endpoint", async () => {
    const { findings } = await at(worker.url, `${TOKEN}2`);
    expect(findings).toMatchObject([{ code: "worker-no-doctor", message: "HTTP 200" }]);
    expect(findings[0]?.cure).toContain("npx wrangler secret put WEIR_ADMIN_TOKEN");
  });

  test("reports that nothing listens at the URL", async () => {
    const { findings } = await at("http://127.0.0.1:9");
    expect(findings).toMatchObject([{ code: "worker-unreachable" }]);
    expect(findings[0]?.cure).not.toContain("Upstash");
  });

  test.for([
    ["https://bob:hunter2secret@api.example.com/", 1, TOKEN],
    ["https://hunter2secret@api.example.com/", 1, TOKEN],
    ["api.example.com/hunter2secret", 1, TOKEN],
    ["ftp://api.example.com/hunter2secret", 1, undefined],
    ["http://api.example.com/hunter2secret", 2, TOKEN],
    ["http://127.0.0.1.example.com/hunter2secret", 2, TOKEN],
    ["https://api.example.com", 2, `${TOKEN}\n€ hunter2secret`],
  ] as const)("makes no call to a wrong URL, and does not print it: %s", async (row) => {
    const [url, code, token] = row;
    const fetching = vi.spyOn(globalThis, "fetch");
    await using folder = await temporaryFolder();
    const run = await callWeir(["doctor", "--at", url], folder.path, { WEIR_ADMIN_TOKEN: token });
    expect(fetching).not.toHaveBeenCalled();
    fetching.mockRestore();
    expect(run).toMatchObject({ code, stdout: "" });
    expect(run.stderr).toMatch(/--at|token/i);
    expect(run.stderr).not.toContain("hunter2secret");
  });

  test("reports that the run was stopped while the Worker does not answer", async () => {
    const stopping = new AbortController();
    const server = createServer(() => stopping.abort("ended by SIGINT"));
    const { host, port, stop } = await listen(server);
    const { findings } = await examineWorker(
      new URL(`http://${host}:${port}`),
      { value: TOKEN, source: "the environment" },
      stopping.signal,
    );
    await stop();
    expect(findings).toMatchObject([{ code: "not-finished", message: "ended by SIGINT" }]);
  });

  const report = {
    weir: "doctor",
    store: "upstash",
    colo: "FRA",
    timeoutMs: 1000,
    decisionsMs: [40, 50, 60],
    skewMs: 5000,
    faults: ["ORIGIN_URL is not a URL"],
    error: "StoreError: no answer in time",
  };

  test.for<[string, number, object, string, readonly string[]]>([
    [
      "a report with faults",
      200,
      {},
      JSON.stringify(report),
      ["worker-ok", "worker-binding", "worker-store-failed", "round-trip-ok", "clock-skewed"],
    ],
    ...(["shadow", "off"] as const).map(
      (mode): [string, number, object, string, readonly string[]] => [
        `a report with the mode ${mode}`,
        200,
        {},
        JSON.stringify({ ...report, mode, faults: [], error: undefined, skewMs: undefined }),
        ["worker-ok", "worker-mode", "round-trip-ok"],
      ],
    ),
    ["a report of another form", 200, {}, '{"weir":"doctor"}', ["worker-no-doctor"]],
    ...[{ decisionsMs: ["5"] }, { skewMs: "5" }, { timeoutMs: null }].map(
      (odd): [string, number, object, string, readonly string[]] => [
        `a report with a field of another type ${JSON.stringify(odd).slice(0, 40)}`,
        200,
        {},
        JSON.stringify({ ...report, ...odd }),
        ["worker-no-doctor"],
      ],
    ),
    [
      "a report without decisions",
      200,
      {},
      JSON.stringify({ ...report, faults: [], error: undefined, decisionsMs: [] }),
      ["worker-ok", "worker-store-failed"],
    ],
    ["another run", 503, {}, '{"weir":"busy"}', ["worker-busy"]],
    ["a redirect", 302, { location: "http://127.0.0.1:9/" }, "", ["worker-no-doctor"]],
    ["a page in HTML", 404, {}, "<html>", ["worker-no-doctor"]],
    ["an answer that is too large", 200, {}, "x".repeat(70_000), ["worker-no-doctor"]],
  ])("reads the answer of any server: %s", async ([, status, headers, body, codes]) => {
    const server = createServer((_request, response) => {
      response.writeHead(status, { ...headers });
      response.end(body);
    });
    const { host, port, stop } = await listen(server);
    const { findings } = await at(`http://${host}:${port}/a/path`);
    await stop();
    expect(findings.map(({ code }) => code)).toEqual(codes);
  });
});
