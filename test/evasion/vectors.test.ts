import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ConfigInput } from "../../src/config/index.ts";
import { limitsOf, policiesOf } from "../node/support/quota-fields.ts";
import { type RunningWorker, startWorker } from "../node/support/worker.ts";
import { LIMIT, RULES, SECRETS } from "./rules.ts";
import { sendRaw, startTarget } from "./target.ts";
import type { Vector, VectorClass } from "./vector.ts";
import { addresses } from "./vectors/addresses.ts";
import { choices } from "./vectors/choices.ts";
import { conditions } from "./vectors/conditions.ts";
import { hosts } from "./vectors/hosts.ts";
import { keys } from "./vectors/keys.ts";
import { methods } from "./vectors/methods.ts";
import { paths } from "./vectors/paths.ts";
import { issuedTokens, sharedTokens } from "./vectors/tokens.ts";
import { wire } from "./vectors/wire.ts";

const CLASSES = [addresses, paths, methods, hosts, keys, choices, conditions, wire];

let target: Awaited<ReturnType<typeof startTarget>>;
let worker: RunningWorker;
/** The number of requests so far, by rule and client. */
let sent: Map<string, number>;

beforeAll(async () => {
  target = await startTarget();
});

afterAll(async () => {
  await target.stop();
});

function running(config: Partial<ConfigInput>, options: object = {}) {
  beforeAll(async () => {
    sent = new Map();
    worker = await startWorker({
      config: { rules: RULES, store: "memory", ...config },
      vars: { ORIGIN_URL: `http://${target.host}:${target.port}`, ...SECRETS },
      ...(typeof options === "function" ? options() : options),
    });
  });

  afterAll(async () => {
    await worker.stop();
  });
}

/** Counts the vector, and returns the policies and quotas that the RateLimit fields must have. */
function expected({ counted = {}, preflight, status, quotas = {} }: Vector) {
  const refused = status !== undefined;
  const clients = Object.entries(preflight || refused ? counted : { all: "everyone", ...counted });
  return clients.map(([rule, client]) => {
    const place = JSON.stringify([rule, client]);
    const used = (sent.get(place) ?? 0) + 1;
    sent.set(place, used);
    const quota = quotas[rule] ?? LIMIT;
    return { rule, quota, left: quota - used };
  });
}

async function check(vector: Vector): Promise<void> {
  const before = target.received.length;
  const { status, headers } = await sendRaw(worker.url, vector);
  const policies = new Map(policiesOf(headers).map(({ name, q }) => [name, q]));
  const found = limitsOf(headers).map(({ name, r }) => ({
    rule: name,
    quota: policies.get(name),
    left: r,
  }));
  const byRule = (a: { rule: unknown }, b: { rule: unknown }) =>
    String(a.rule).localeCompare(String(b.rule));
  expect({ status, counted: found.toSorted(byRule) }).toEqual({
    status: vector.status ?? 200,
    counted: expected(vector).toSorted(byRule),
  });
  // The origin gets exactly one request with the method that the client sent, or none after a refusal.
  // So no vector hides a second request, and rules match the method that is sent.
  const sentMethod = /^[A-Z]+/m.exec(vector.lines.join("\n"))?.[0];
  const methods = target.received.slice(before).map((request) => request.split(" ")[0]);
  expect(methods).toEqual(vector.status === undefined ? [sentMethod] : []);
}

function each({ vectors }: VectorClass): [string, Vector][] {
  return vectors.map((vector) => [vector.name, vector]);
}

describe("no vector gets around a limit", () => {
  running({ jwt: { secret: "JWT_SECRET" } });

  describe.each(CLASSES.map((one) => [one.about, one] as const))("%s", (_, one) => {
    it.each(each(one))("%s", async (_, vector) => check(vector));
  });

  describe(sharedTokens.about, () => {
    it.each(each(sharedTokens))("%s", async (_, vector) => check(vector));
  });
});

describe(`no vector gets around a limit: ${issuedTokens.about}`, () => {
  running({ jwt: { jwks: "https://issuer.example/jwks.json" } }, () => ({
    zone: `${target.host}:${target.port}`,
    vars: SECRETS,
  }));

  it.each(each(issuedTokens))("%s", async (_, vector) => check(vector));
});

describe("the vectors", () => {
  const all = [...CLASSES, sharedTokens, issuedTokens].flatMap(({ vectors }) => vectors);

  it("include no request that passes uncounted, except preflights", () => {
    const uncounted = all.filter(({ counted, status }) => !counted && status === undefined);
    expect(uncounted.length).toBeGreaterThan(0);
    expect(uncounted.filter(({ preflight }) => !preflight)).toEqual([]);
  });

  it("are as many as docs/security.md says", () => {
    const page = readFileSync("docs/security.md", "utf8");
    expect(page).toContain(
      `\`test/evasion/vectors/\` has ${all.length.toLocaleString("en")} requests`,
    );
  });

  it("have unique names in each class", () => {
    for (const { vectors } of [...CLASSES, sharedTokens, issuedTokens]) {
      const names = vectors.map(({ name }) => name);
      expect(new Set(names).size).toBe(names.length);
    }
  });
});
