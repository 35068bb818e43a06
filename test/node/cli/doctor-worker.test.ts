import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { examineWorker } from "../../../cli/doctor/worker.ts";
import { listen } from "../../../dev/loopback.ts";
import { type RunningWorker, startWorker } from "../support/worker.ts";
import { runWeir, temporaryFolder } from "./run-weir.ts";

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
      vars: { WEIR_ADMIN_TOKEN: TOKEN },
    });
  });
  afterAll(() => worker.stop());

  const at = (url: string | URL, token = TOKEN) =>
    examineWorker({
      at: `${url}`,
      token: { value: token, source: "the environment" },
      stop: new AbortController().signal,
    });

  test("lets the deployed Worker examine its Durable Objects", async () => {
    await using folder = await temporaryFolder();
    await folder.write("weir.config.json", JSON.stringify({ rules: RULES }));
    const args = ["doctor", "--config", "weir.config.json", "--at", `${worker.url}`, "--json"];
    const run = await runWeir(args, folder.path, { WEIR_ADMIN_TOKEN: TOKEN });
    expect(run.stderr).toBe("");
    const { ok, findings } = JSON.parse(run.stdout);
    const codes = findings.map(({ code }: { code: string }) => code);
    expect(codes).toEqual(["worker-ok", "round-trip-ok", "clock-ok"]);
    expect(findings[0].value).toContain("the store is durable-object");
    expect({ ok, code: run.code }).toEqual({ ok: true, code: 0 });
    expect(run.stdout).not.toContain(TOKEN);
  });

  test("reports a wrong token as if there were no endpoint", async () => {
    const { findings } = await at(worker.url, `${TOKEN}2`);
    expect(findings).toMatchObject([{ code: "worker-no-doctor", value: "HTTP 200" }]);
    expect(findings[0]?.advice).toContain("npx wrangler secret put WEIR_ADMIN_TOKEN");
  });

  test("reports that nothing listens at the URL", async () => {
    const { findings } = await at("http://127.0.0.1:9");
    expect(findings).toMatchObject([{ code: "worker-unreachable" }]);
    expect(findings[0]?.advice).not.toContain("Upstash");
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

  test.for<[string, number, Record<string, string>, string, readonly string[]]>([
    [
      "a report with faults",
      200,
      {},
      JSON.stringify(report),
      ["worker-ok", "worker-binding", "worker-store-failed", "round-trip-ok", "clock-skewed"],
    ],
    ["a report of another form", 200, {}, '{"weir":"doctor"}', ["worker-no-doctor"]],
    ["another run", 503, {}, '{"weir":"busy"}', ["worker-busy"]],
    ["a redirect", 302, { location: "http://127.0.0.1:9/" }, "", ["worker-no-doctor"]],
    ["a page in HTML", 404, {}, "<html>", ["worker-no-doctor"]],
    ["an answer that is too large", 200, {}, "x".repeat(70_000), ["worker-no-doctor"]],
  ])("reads the answer of any server: %s", async ([, status, headers, body, codes]) => {
    const server = createServer((_request, response) => {
      response.writeHead(status, headers);
      response.end(body);
    });
    const { host, port, stop } = await listen(server);
    const { findings } = await at(`http://${host}:${port}/a/path`);
    await stop();
    expect(findings.map(({ code }) => code)).toEqual(codes);
  });
});
