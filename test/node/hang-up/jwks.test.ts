import { generateKeyPairSync, sign } from "node:crypto";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { hangUp } from "../../../dev/hang-up.ts";
import type { ConfigInput } from "../../../src/config/index.ts";
import { PATIENCE } from "../../patience.ts";
import { send } from "../support/client.ts";
import { type Origin, startOrigin } from "../support/origin.ts";
import { limitsOf } from "../support/quota-fields.ts";
import { type RunningWorker, startWorker, TIMEOUT_MS } from "../support/worker.ts";

/** How long the issuer takes to answer, in milliseconds. The clients hang up earlier. */
const ISSUER_MS = 60;
const LIMIT = 1000;

/** This server is the issuer and the origin, because every `fetch` of the Worker goes to it. */
let zone: Origin;
let worker: RunningWorker;
const [old, rotated] = [issued("old"), issued("rotated")];
let published = [old.jwk];

const CONFIG: ConfigInput = {
  timeoutMs: TIMEOUT_MS,
  jwt: { jwks: "https://issuer.example/jwks.json" },
  rules: [{ name: "user", key: "jwt:sub", limit: LIMIT, window: "52w", lease: false }],
};

/**
 * A Worker with Weir. Each request to /a-minute-later advances the Worker's clock by a minute,
 * because the test cannot wait that long.
 */
const MAIN = `
  import { CounterObject, defineConfig, weir } from "./weir.mjs";
  const { fetch } = weir(defineConfig(${JSON.stringify(CONFIG)}));
  const now = Date.now;
  let aheadMs = 0;
  Date.now = () => now() + aheadMs;
  export default {
    fetch(request, env, ctx) {
      if (!request.url.endsWith("/a-minute-later")) return fetch(request, env, ctx);
      aheadMs += 60_000;
      return new Response();
    },
  };
  export { CounterObject };
`;

beforeAll(async () => {
  zone = await startOrigin();
  zone.on("/jwks.json", (_, response) => {
    setTimeout(() => response.end(JSON.stringify({ keys: published })), ISSUER_MS);
  });
  worker = await startWorker({ config: CONFIG, main: MAIN, zone: zone.address });
});

afterAll(async () => {
  await worker.stop();
  await zone.stop();
});

const fetches = () => zone.received.filter(({ url }) => url === "/jwks.json").length;

function issued(kid: string) {
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const text = `${part({ alg: "RS256", kid, typ: "JWT" })}.${part({ sub: kid })}`;
  const signature = sign("sha256", Buffer.from(text), privateKey).toString("base64url");
  return { jwk: { ...publicKey.export({ format: "jwk" }), kid }, token: `${text}.${signature}` };
}

let clients = 0;

/**
 * Returns the header fields of a request with a token. Each request has its own address, so that
 * the quota left shows whether Weir counted the request by its token or by its address.
 */
function headersWith({ token }: { token: string }): Record<string, string> {
  clients += 1;
  return {
    Host: "shop.example",
    Authorization: `Bearer ${token}`,
    "CF-Connecting-IP": `198.51.100.${clients}`,
  };
}

async function remaining(key: { token: string }): Promise<number> {
  const { headers } = await send(worker.url, "/", { headers: headersWith(key) });
  return Number(limitsOf(headers)[0]?.r);
}

it("An issuer's keys are cached even if each client that causes a fetch hangs up", async () => {
  for (let cut = 0; cut < 5; cut++) {
    await hangUp(worker.url, { path: "/", headers: headersWith(old) }, { way: "reset", when: 10 });
  }
  const first = await remaining(old);
  expect(await remaining(old)).toBe(first - 1);
  expect(fetches()).toBe(1);
});

it("A rotated key is cached after a minute, even if clients hang up during every fetch", async () => {
  await remaining(old);
  const before = fetches();
  published = [rotated.jwk];
  const requestAndHangUp = () =>
    hangUp(worker.url, { path: "/", headers: headersWith(rotated) }, { way: "reset", when: 10 });
  await requestAndHangUp();
  expect(fetches()).toBe(before);
  await send(worker.url, "/a-minute-later");
  for (let times = 0; times < 5; times++) await requestAndHangUp();
  await vi.waitFor(async () => {
    const first = await remaining(rotated);
    expect(first - (await remaining(rotated))).toBe(1);
  }, PATIENCE);
  expect(fetches()).toBe(before + 1);
});
