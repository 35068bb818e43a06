import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { open, send } from "../support/client.ts";
import { limitsOf } from "../support/quota-fields.ts";
import { awayFromWindowEdge } from "../support/window-edge.ts";
import { type RunningExample, runExample } from "./run-example.ts";

const HOUR = 3_600_000;

let worker: RunningExample;

beforeAll(async () => {
  worker = await runExample(["frameworks"]);
  await awayFromWindowEdge(HOUR);
});

afterAll(async () => {
  await worker[Symbol.asyncDispose]();
});

let clients = 0;

/** Returns the header fields of a new client whose requests a framework's middleware handles. */
function clientOf(framework: string): Record<string, string> {
  clients++;
  return {
    "x-framework": framework,
    "CF-Connecting-IP": `203.0.113.${clients}`,
    origin: "https://site.example",
  };
}

describe.each(["plain handler", "sveltekit", "astro", "pages"])("Weir in a %s", (framework) => {
  it("admits requests up to the limit, and denies the next one", async () => {
    const headers = clientOf(framework);
    const answers = [];
    for (let index = 0; index < 4; index++) {
      answers.push(await send(worker.url, "/api/x", { headers }));
    }
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429]);
    const [admitted, denied] = [answers[0], answers[3]];
    expect(String(admitted?.body)).toBe("app /api/x");
    expect(denied?.headers["content-type"]).toBe("application/problem+json");
    expect(Number(denied?.headers["retry-after"])).toBeGreaterThan(0);
    // A page of another origin can read the denial.
    expect(denied?.headers["access-control-allow-origin"]).toBe("https://site.example");
  });

  it("adds the quota to the app's response, and keeps its header fields", async () => {
    const { headers } = await send(worker.url, "/api/x", { headers: clientOf(framework) });
    expect(limitsOf(headers)).toMatchObject([{ r: 2 }]);
    expect(headers["set-cookie"]).toEqual(["a=1", "b=2"]);
    expect(headers["access-control-allow-origin"]).toBe("https://site.example");
    expect(headers["access-control-expose-headers"]).toContain("RateLimit");
  });

  it("forwards a body while the app still writes it", async () => {
    const sent = open(worker.url, "/api/stream", { headers: clientOf(framework) }).end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    const [part] = await once(response, "data");
    expect(String(part)).toBe("first part");
    sent.on("error", () => {}).destroy();
  });

  it.skipIf(framework === "astro")(
    "passes on a POST without Upgrade, which would make the runtime send GET",
    async () => {
      const upgrade = { Connection: "Upgrade", Upgrade: "websocket", "Content-Length": "5" };
      const headers = { ...clientOf(framework), ...upgrade };
      const { status, body } = await send(worker.url, "/api/echo", {
        method: "POST",
        headers,
        body: Buffer.from("hello"),
      });
      expect(status).toBe(200);
      expect(JSON.parse(String(body))).toEqual(["POST", null, "hello"]);
    },
  );

  it("leaves requests alone that no rule matches", async () => {
    const { status, headers } = await send(worker.url, "/", { headers: clientOf(framework) });
    expect(status).toBe(200);
    expect(headers).not.toHaveProperty("ratelimit");
  });
});

it.each(["sveltekit, prerendering", "astro, prerendering"])(
  "passes every request to the app: %s",
  async (framework) => {
    const headers = clientOf(framework);
    for (let index = 0; index < 5; index++) {
      const answer = await send(worker.url, "/api/x", { headers });
      expect(answer.status).toBe(200);
      expect(answer.headers).not.toHaveProperty("ratelimit");
    }
  },
);
