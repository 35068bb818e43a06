import { expect, vi } from "vitest";
import { type DeploymentMode, resolveBindings } from "../../../src/config/bindings.ts";
import { type ConfigInput, defineConfig } from "../../../src/config/index.ts";
import type { ControlLink } from "../../../src/control/control-link.ts";
import { createClientLimits } from "../../../src/entry/isolate.ts";
import { explain } from "../../../src/explain/explain.ts";
import type { DescribedRequest, Explanation } from "../../../src/explain/explanation.ts";
import { Gateway } from "../../../src/gateway/gateway.ts";
import type { Decision } from "../../../src/limiter/decision.ts";
import { Limiter } from "../../../src/limiter/limiter.ts";
import { LiveOverrides } from "../../../src/overrides/live-overrides.ts";
import type { Override } from "../../../src/overrides/override.ts";
import type { AppliedRule } from "../../../src/request/rule-applier.ts";
import type { Store } from "../../../src/stores/store.ts";
import { EVERY_STORE, withClock } from "../../suite/every-store.ts";
import { shadowResultsOf } from "../../verdicts.ts";

/** The differences between the deployments in which requests are explained. */
export interface Deployment {
  /** @default "memory" */
  readonly storeName?: string;
  readonly mode?: DeploymentMode;
  readonly overrides?: readonly Override[];
}

/** The maximum difference between the clock of the tests and that of a store, in milliseconds. */
const CLOCK_MS = 20_000;

/**
 * Returns a function that explains a request twice, sends it through the gateway, and compares the results. The
 * function returns the second explanation.
 */
export function comparing(input: ConfigInput, deployment: Deployment) {
  const { storeName = "memory" } = deployment;
  const { explained, send } = deploy(input, { ...deployment, storeName });
  return async function compare(described: DescribedRequest): Promise<Explanation> {
    const first = await explained(described);
    const explanation = await explained(described);
    expect(countsOf(explanation), "An explanation counts nothing.").toEqual(countsOf(first));
    const sent = await send(described);
    expect(explanation.outcome).toBe(sent.outcome ?? "unmatched");
    const clients = sent.applied.map(({ rule, identity }) => [rule.name, identity]);
    // The gateway may deny a request before it knows the clients of all rules.
    if (sent.isDeniedEarly) expect(clientsOf(explanation)).toEqual(expect.arrayContaining(clients));
    else expect(clientsOf(explanation)).toEqual(clients);
    // The response to a forwarded request shows the quotas after the cost of the response is charged.
    const isSettled = described.url.includes("/cost");
    // Redis ends bans by its own clock, so the time to retry differs by some milliseconds.
    const isBanned = explanation.rules.some(({ banMs = 0 }) => banMs > 0);
    const hasSameTimes = !isSettled && !(isBanned && storeName === "Redis");
    // If several rules deny a request, the response is that of the first Durable Object that denies.
    const exceeded = explanation.rules.filter(({ mode, exceeds }) => mode === "enforce" && exceeds);
    if (storeName !== "Durable Objects" || exceeded.length < 2) {
      await expectResponse(explanation, sent, hasSameTimes);
    }
    expectStored(explanation, await explained(described), isSettled);
    return explanation;
  };
}

function deploy(input: ConfigInput, { storeName = "", mode, overrides = [] }: Deployment) {
  const config = defineConfig({ prefix: crypto.randomUUID(), store: "memory", ...input });
  const bindings = resolveBindings(config, { WEIR_MODE: mode });
  const store = EVERY_STORE[storeName]?.(config.prefix) as Store;
  const limiter = new Limiter(
    config,
    withClock(store, () => Date.now()),
  );
  const live = new LiveOverrides(mode);
  live.update({ version: 1, all: overrides });
  const link = { overrides: live, loadIfStale() {}, record() {}, recordRefused() {} };
  const rules = config.rules
    .filter(() => mode !== "off")
    .map((rule) => (mode === "shadow" ? { ...rule, mode, tellOrigin: false } : rule));
  const control = link as unknown as ControlLink;
  const limits = createClientLimits(config);
  const gateway = new Gateway({ ...config, rules }, bindings, limiter, limits, control);
  const custom = { env: {} as never, ctx: { waitUntil() {} } };
  const read = (applied: readonly AppliedRule[]) => limiter.clients.read(applied);

  function explained(described: DescribedRequest): Promise<Explanation> {
    return explain(described, { config, bindings, read, custom }, { live, byId: new Map() });
  }

  async function send({ method, url, headers, cf }: DescribedRequest) {
    const decide = vi.spyOn(limiter, "decide");
    const denialOf = vi.spyOn(limiter, "denialOf");
    let told: [string, string][] = [];
    const request = new Request(url, { method, headers, cf } as RequestInit);
    const response = await gateway.handle(request, custom, async (admitted) => {
      told = [...admitted.headers].filter(([name]) => name.startsWith("weir-"));
      return new Response(null, { headers: { "x-cost": "3" } });
    });
    const denial = denialOf.mock.results.at(-1)?.value as Decision | undefined;
    const decision = denial ?? ((await decide.mock.results[0]?.value) as Decision | undefined);
    // Some stores decide rules in shadow mode after the response.
    if (decision) await shadowResultsOf(decision);
    const decided = denial ? denialOf : decide;
    const applied = (decided.mock.lastCall?.[0] ?? []).map((each) => each.pendingRules ?? [each]);
    decide.mockRestore();
    denialOf.mockRestore();
    const { outcome } = decision ?? {};
    const isDeniedEarly = denial !== undefined;
    return { response, told, outcome, isDeniedEarly, applied: (await Promise.all(applied)).flat() };
  }

  return { explained, send };
}

type Sent = Awaited<ReturnType<ReturnType<typeof deploy>["send"]>>;

async function expectResponse(
  { outcome, response }: Explanation,
  { response: sent, told }: Sent,
  hasSameTimes: boolean,
): Promise<void> {
  expect(response.status ?? 200).toBe(sent.status);
  expect(response.originHeaders ?? []).toEqual(told);
  if (!hasSameTimes) return;
  const [all, returned] = [policiesIn(response.headers ?? []), policiesIn([...sent.headers])];
  expect(all).toEqual(expect.arrayContaining(returned));
  // A denial by one of several Durable Objects has no quotas of objects that were not asked.
  if (outcome === "limited" && returned.length < all.length) return;
  expect(response.body ?? "").toBe(await sent.text());
  expect(response.headers).toEqual([...sent.headers].filter(([name]) => name !== "x-cost"));
}

/** Returns the items of the field RateLimit-Policy. */
function policiesIn(headers: readonly (readonly [string, string])[]): string[] {
  return headers.flatMap(([name, value]) => (name === "ratelimit-policy" ? value.split(", ") : []));
}

/** Compares the explained new state with the state after the request. */
function expectStored(before: Explanation, after: Explanation, isSettled: boolean): void {
  for (const { storedKey, shard, countAfter: count } of countersIn(before)) {
    // Durable Objects may charge the other shard.
    if (count === undefined || shard !== undefined || isSettled) continue;
    expect(countersIn(after)).toContainEqual(expect.objectContaining({ storedKey, count }));
  }
  for (const { rule, newBan } of before.rules) {
    if (!newBan) continue;
    const { banMs = 0 } = after.rules.find((each) => each.rule === rule) ?? {};
    expect(banMs).toBeGreaterThan(0);
    const difference = Math.abs(newBan.until - Date.now() - banMs);
    if (!newBan.isAtLeast) expect(difference).toBeLessThan(CLOCK_MS);
  }
}

function clientsOf({ rules }: Explanation) {
  return rules.filter(({ applies }) => applies).map(({ rule, client }) => [rule, client]);
}

/** Returns the state that an explanation must not change. */
function countsOf(explanation: Explanation) {
  return {
    outcome: explanation.outcome,
    counts: countersIn(explanation).map(({ storedKey, count }) => [storedKey, count]),
    banned: explanation.rules.filter(({ banMs = 0 }) => banMs > 0).map(({ rule }) => rule),
  };
}

function countersIn({ rules }: Explanation) {
  return rules.flatMap(({ counters = [] }) => counters);
}
