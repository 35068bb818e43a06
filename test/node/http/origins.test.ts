import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ConfigInput } from "../../../src/config/index.ts";
import { send } from "../support/client.ts";
import { type Origin, startOrigin } from "../support/origin.ts";
import { type RunningWorker, startWorker } from "../support/worker.ts";

/** The hosts with an origin of their own, each with the name of the rule for the same hosts. */
const HOSTS = {
  "api.example.com": "exact",
  "*.example.com": "below",
  "*.eu.example.com": "deeper",
  "bücher.example": "unicode",
  "Unbound.Example.": "unbound",
};

const script = (name: string) =>
  `export default { fetch: (request) => new Response("${name} " + request.url) };`;

const CONFIG: ConfigInput = {
  store: "memory",
  rules: Object.entries(HOSTS).map(([host, name]) => ({
    name,
    match: { hosts: [host] },
    limit: 1_000_000,
    window: "1h",
  })),
  origins: {
    "api.example.com": { binding: "EXACT" },
    "*.example.com": { binding: "BELOW" },
    "*.eu.example.com": { binding: "DEEPER" },
    "bücher.example": { binding: "UNICODE" },
    "Unbound.Example.": { binding: "MISSING" },
  },
};

const services = Object.fromEntries(
  ["exact", "below", "deeper", "unicode"].map((name) => [
    name.toUpperCase(),
    { script: script(name) },
  ]),
);

let origin: Origin;
let worker: RunningWorker;

beforeAll(async () => {
  origin = await startOrigin();
  origin.on("/x", (_, response) => response.end("default"));
  worker = await startWorker({ config: CONFIG, services, vars: { ORIGIN_URL: origin.url } });
});

afterAll(async () => {
  await worker.stop();
  await origin.stop();
});

/** Sends a request. Returns the origin that answered, and the rules that matched the host. */
async function originOf(host: string, target = "/x") {
  const { status, body, headers } = await send(worker.url, target, { headers: { Host: host } });
  const policies = String(headers["ratelimit-policy"] ?? "").matchAll(/"(\w+)"/g);
  const [name = ""] = body.toString().split(" ");
  return { status, name, rules: [...policies].map(([, policy]) => policy) };
}

describe("origins by host", () => {
  it.each([
    ["api.example.com", "exact"],
    ["API.Example.COM", "exact"],
    ["api.example.com.", "exact"],
    ["api.example.com:8443", "exact"],
    ["API.example.com.:80", "exact"],
    ["www.example.com", "below"],
    ["a.b.example.com", "below"],
    ["xapi.example.com", "below"],
    ["x.api.example.com", "below"],
    ["eu.example.com", "below"],
    ["fr.eu.example.com", "deeper"],
    ["a.fr.EU.example.com.", "deeper"],
    ["xn--bcher-kva.example", "unicode"],
    ["XN--BCHER-KVA.example", "unicode"],
    ["example.com", "default"],
    ["myexample.com", "default"],
    ["api.example.com.evil.example", "default"],
    ["api-example.com", "default"],
    ["xn--api-example-com.example", "default"],
    ["127.0.0.1", "default"],
    ["[::1]", "default"],
    [`${"a.".repeat(3000)}example.com`, "below"],
    [`${".".repeat(3000)}com`, "default"],
  ])("forward a request for %s to the origin %s, which the rules match too", async (host, name) => {
    const answer = await originOf(host);
    expect(answer).toMatchObject({ status: 200, name });
    if (name === "default") expect(answer.rules).toEqual([]);
    else expect(answer.rules).toContain(name);
  });

  it("ignore the host in the fields of proxies", async () => {
    const headers = {
      Host: "api.example.com",
      "X-Forwarded-Host": "fr.eu.example.com",
      Forwarded: "host=fr.eu.example.com",
      "X-Host": "fr.eu.example.com",
    };
    const { body } = await send(worker.url, "/x", { headers });
    expect(body.toString()).toContain("exact");
  });

  it("take the host from a target in absolute form, as the rules do", async () => {
    const answer = await originOf("api.example.com", "http://fr.eu.example.com/x");
    expect(answer.rules).toContain(answer.name);
  });

  it.each(["api.example.com@fr.eu.example.com", "api.example.com#", "a b"])(
    "answer a request for the unclear host %s themselves",
    async (host) => {
      expect((await originOf(host)).status).toBe(400);
    },
  );

  it.each(["*.example.com", "*.eu.example.com"])(
    "have no origin for a request with the host %s, which is a pattern",
    async (host) => {
      // The runtime sends no request to such a host.
      expect((await originOf(host)).status).toBe(502);
    },
  );

  it("answer 502 for the hosts of a binding that is missing, and log it once", async () => {
    expect((await originOf("unbound.example")).status).toBe(502);
    expect((await originOf("UNBOUND.example.")).status).toBe(502);
    expect((await originOf("api.example.com")).status).toBe(200);
    const faults = worker.logs().filter((line) => line.includes("misconfigured"));
    expect(faults).toHaveLength(1);
    expect(faults[0]).toContain("no service is bound as MISSING");
  });
});
