import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ConfigInput } from "../../../src/config/index.ts";
import { send } from "../support/client.ts";
import { type Origin, startOrigin } from "../support/origin.ts";
import { limitsOf } from "../support/quota-fields.ts";
import { type RunningWorker, startWorker } from "../support/worker.ts";

const RULES: ConfigInput["rules"] = [
  { name: "none", match: { paths: ["/none"] }, limit: 0, window: "1h" },
  { name: "any", match: { paths: ["/any"] }, limit: 1, window: "1h" },
  { name: "options", match: { methods: ["OPTIONS"], paths: ["/named"] }, limit: 1, window: "1h" },
  { name: "cors", match: { paths: ["/cors"] }, limit: 10, window: "1h" },
];
/** The fields that Weir adds by default, as it lists them for pages. */
const OURS = "RateLimit-Policy, RateLimit";
const PREFLIGHT = { Origin: "https://page.example", "Access-Control-Request-Method": "GET" };

let origin: Origin;
let worker: RunningWorker;

beforeAll(async () => {
  origin = await startOrigin();
  worker = await startWorker({ config: { rules: RULES }, vars: { ORIGIN_URL: origin.url } });
});

afterAll(async () => {
  await worker.stop();
  await origin.stop();
});

function preflight(path: string) {
  return send(worker.url, path, { method: "OPTIONS", headers: PREFLIGHT });
}

describe("a page of another origin", () => {
  it.each(["https://page.example", "http://localhost:3000", "null"])(
    "may read a denial from %s",
    async (page) => {
      const { status, headers } = await send(worker.url, "/none", { headers: { Origin: page } });
      expect(status).toBe(429);
      expect(headers).toMatchObject({
        "access-control-allow-origin": page,
        vary: "Origin",
      });
      // With credentials, any site could read how much quota its visitor has left.
      expect(headers).not.toHaveProperty("access-control-allow-credentials");
      const exposed = `${headers["access-control-expose-headers"]}`.toLowerCase().split(", ");
      expect(exposed).toEqual(
        expect.arrayContaining(["retry-after", "ratelimit", "ratelimit-policy"]),
      );
    },
  );

  it.each<Record<string, string>>([
    {},
    { Origin: "" },
    { Origin: 'https://page.example", "x' },
    { Origin: "https://p\u00e4ge.example" },
  ])("is not assumed for a request with the fields %o", async (headers) => {
    const answer = await send(worker.url, "/none", { headers });
    expect(answer.status).toBe(429);
    const names = Object.keys(answer.headers);
    expect(names.filter((name) => name.startsWith("access-control"))).toEqual([]);
  });

  it("gets the origin's own CORS fields with an allowed response", async () => {
    const cors = { "access-control-allow-origin": "https://only.example", vary: "Accept" };
    origin.on("/cors", (_, response) => response.writeHead(200, cors).end());
    const page = { Origin: PREFLIGHT.Origin };
    const { headers } = await send(worker.url, "/cors", { headers: page });
    expect(headers).toMatchObject(cors);
    expect(limitsOf(headers)).toMatchObject([{ name: "cors", r: 9 }]);
  });

  it.each<{ title: string; own: Record<string, string>; exposed: string | undefined }>([
    { title: "if the origin exposes none", own: {}, exposed: OURS },
    {
      title: "after those of the origin",
      own: { "access-control-expose-headers": "X-Total, ETag" },
      exposed: `X-Total, ETag, ${OURS}`,
    },
    {
      title: "that the origin has not exposed",
      own: { "access-control-expose-headers": "ratelimit" },
      exposed: "ratelimit, RateLimit-Policy",
    },
    {
      title: "although the origin exposes *, because pages may send credentials",
      own: { "access-control-expose-headers": "*", "access-control-allow-credentials": "true" },
      exposed: `*, ${OURS}`,
    },
    {
      title: "only by * if the origin exposes * and pages cannot send credentials",
      own: { "access-control-expose-headers": "*" },
      exposed: "*",
    },
    {
      title: "not at all if the origin does not allow the page",
      own: { "access-control-allow-origin": "" },
      exposed: undefined,
    },
  ])("may read the quotas of an allowed response: $title", async ({ own, exposed }) => {
    const allow = { "access-control-allow-origin": PREFLIGHT.Origin, ...own };
    const fields = Object.entries(allow).filter(([, value]) => value !== "");
    origin.on("/cors", (_, response) => response.writeHead(200, Object.fromEntries(fields)).end());
    const page = { Origin: PREFLIGHT.Origin, "CF-Connecting-IP": "203.0.113.7" };
    const { status, headers } = await send(worker.url, "/cors", { headers: page });
    expect(status).toBe(200);
    expect(headers["access-control-expose-headers"]).toBe(exposed);
    expect(headers).not.toHaveProperty("vary");
  });

  it("gets no list of exposed fields if Weir adds no field", async () => {
    const allow = { "access-control-allow-origin": "*" };
    origin.on("/unlimited", (_, response) => response.writeHead(200, allow).end());
    const page = { Origin: PREFLIGHT.Origin };
    const { headers } = await send(worker.url, "/unlimited", { headers: page });
    expect(headers).toMatchObject(allow);
    expect(headers).not.toHaveProperty("access-control-expose-headers");
  });

  it("gets no list of exposed fields if its request has no Origin", async () => {
    const allow = { "access-control-allow-origin": "*" };
    origin.on("/cors", (_, response) => response.writeHead(200, allow).end());
    const { headers } = await send(worker.url, "/cors");
    expect(limitsOf(headers)).toHaveLength(1);
    expect(headers).not.toHaveProperty("access-control-expose-headers");
  });
});

describe("a preflight", () => {
  it("is not counted", async () => {
    for (const attempt of ["first", "second"]) {
      const { status, headers } = await preflight("/any");
      expect({ attempt, status }).toEqual({ attempt, status: 200 });
      expect(limitsOf(headers)).toEqual([]);
    }
    const { status, headers } = await send(worker.url, "/any");
    expect(status).toBe(200);
    expect(limitsOf(headers)).toMatchObject([{ name: "any", r: 0 }]);
  });

  it("is counted by a rule that names OPTIONS", async () => {
    expect(limitsOf((await preflight("/named")).headers)).toMatchObject([{ r: 0 }]);
    const { status, headers } = await preflight("/named");
    expect(status).toBe(429);
    expect(headers).toMatchObject({ "access-control-allow-origin": PREFLIGHT.Origin });
  });
});
