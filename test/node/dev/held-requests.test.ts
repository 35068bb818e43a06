import { rm, writeFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { configProblem } from "../../../dev/config-problem.ts";
import { type DevProxy, startDevProxy } from "../../../dev/dev-proxy.ts";
import { PATIENCE } from "../../patience.ts";
import { startWranglerProject, type WranglerProject } from "./wrangler-project.ts";

const CONFIG = "weir.config.ts";
const GOOD = `
  import { defineConfig } from "edge-weir/config";
  export default defineConfig({ rules: [{ name: "all", limit: 1000, window: "1h" }] });
`;

let project: WranglerProject;
let proxy: DevProxy;

beforeAll(async () => {
  project = await startWranglerProject({
    [CONFIG]: GOOD,
    ".dev.vars": "ORIGIN_URL=http://127.0.0.1:9",
  });
  const { hostname: host, port } = new URL(project.url);
  const whyHeld = () => configProblem(project.path);
  proxy = await startDevProxy({ host, port: Number(port) }, { whyHeld });
});

afterAll(async () => {
  await proxy?.stop();
  await project?.[Symbol.asyncDispose]();
});

/** Sends a request through the proxy. */
async function answer() {
  const response = await fetch(proxy.url, { signal: AbortSignal.timeout(15_000) });
  return { policy: response.headers.get("ratelimit-policy"), body: await response.text() };
}

async function untilDecided(): Promise<void> {
  await vi.waitFor(
    async () => expect((await answer()).policy).toBe('"all";q=1000;w=3600'),
    PATIENCE,
  );
}

async function untilRefused(reason: string): Promise<void> {
  await vi.waitFor(async () => {
    const { body } = await answer();
    expect(JSON.parse(body)).toMatchObject({
      status: 503,
      detail: expect.stringContaining(reason),
    });
  }, PATIENCE);
}

it("answers 503 with the reason while weir.config.ts has a wrong syntax or is gone", async () => {
  await untilDecided();
  await writeFile(project.file(CONFIG), "export default { rules: [ }");
  await untilRefused("SyntaxError");
  await writeFile(project.file(CONFIG), GOOD);
  await untilDecided();
  await rm(project.file(CONFIG));
  await untilRefused("weir.config.ts is missing");
  await writeFile(project.file(CONFIG), GOOD);
  await untilDecided();
});
