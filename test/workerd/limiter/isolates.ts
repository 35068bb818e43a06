import { vi } from "vitest";
import { defineConfig, type RuleInput } from "../../../src/config/index.ts";
import type { Decision } from "../../../src/limiter/decision.ts";
import { Limiter } from "../../../src/limiter/limiter.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import type { Answer, Store } from "../../../src/stores/store.ts";

// Isolates whose requests wait, in virtual time.

export const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

/** A store in memory that counts its calls, and the decisions among them. */
export function countedStore(store = createMemoryStore()) {
  const state = { calls: 0 };
  const decided = { calls: 0 };
  const counted: Store = {
    ...store,
    decide: (...args) => {
      state.calls += 1;
      decided.calls += 1;
      return store.decide(...args);
    },
    adjust: (...args) => {
      state.calls += 1;
      return store.adjust(...args);
    },
  };
  return { store: counted, state, decided };
}

/** A store whose decisions take some time. */
export function distantStore(store: Store, roundTripMs: number): Store {
  const half = () => new Promise((resolve) => setTimeout(resolve, roundTripMs / 2));
  return {
    ...store,
    decide: (groups, ...rest) =>
      groups.map(async (group) => {
        await half();
        const [answered] = store.decide([group], ...rest);
        await half();
        return answered as Promise<Answer>;
      }),
  };
}

/** Creates isolates that share a store. A request is of the client `client`, if no other one is given. */
export function isolatesOf(
  rules: readonly Partial<RuleInput>[],
  store: Store = createMemoryStore(),
) {
  const config = defineConfig({
    clock: "edge",
    rules: rules.map((each, at) => ({ name: `rule${at}`, ...each })),
  });
  const applied = (identity: string) =>
    config.rules.map((rule) => ({ rule, windows: rule.windows, identity }));
  /** @param roundTripMs how long a decision takes */
  const newIsolate = (roundTripMs = 0) => {
    const own = roundTripMs > 0 ? distantStore(store, roundTripMs) : store;
    const limiter = new Limiter(config, own, { background: (task) => void task.catch(() => {}) });
    const decide = (
      identity = "client",
      { signal }: { signal: AbortSignal } = new AbortController(),
    ) => limiter.decide(applied(identity), { signal });
    /** The quota that each counter has left. */
    const left = async (identity = "client") =>
      (await limiter.clients.read(applied(identity))).flatMap(({ quotas }) =>
        quotas.map(({ remaining }) => remaining),
      );
    return { limiter, decide, left };
  };
  return { ...newIsolate(), newIsolate, applied, config };
}

/** Returns an object whose `value` is set when the decision is made. */
export function resultOf(decided: Promise<Decision>): { value?: Decision } {
  const result: { value?: Decision } = {};
  decided.then((value) => {
    result.value = value;
  });
  return result;
}

export const outcomes = (results: readonly { value?: Decision }[]) =>
  results.map(({ value }) => value?.outcome ?? "waits");
