import { describe, expect, it } from "vitest";
import { createDurableObjectStore } from "../../../../src/stores/durable-object/durable-object-store.ts";
import { counter } from "../../../suite/counters.ts";
import { verdictOf } from "../../../suite/verdict.ts";

/** Creates a store whose objects answer every call with an error. */
function storeThatFails(error: unknown) {
  const fail = () => Promise.reject(error);
  const stub = {
    run: fail,
    decide: fail,
    adjust: fail,
    reset: fail,
    hold: fail,
    returnUnused: fail,
  };
  const namespace = { getByName: () => stub } as unknown as Parameters<
    typeof createDurableObjectStore
  >[0]["namespace"];
  return createDurableObjectStore({ namespace, prefix: "test", timeoutMs: 100 });
}

const someone = counter();

describe("a Durable Object that", () => {
  it.each<[string, unknown, object]>([
    [
      "breaks",
      new Error("secret"),
      { failure: "unreachable", message: "a Durable Object did not answer" },
    ],
    [
      "is overloaded",
      Object.assign(new Error("Durable Object is overloaded."), { overloaded: true }),
      { failure: "error-reply", message: "a Durable Object is overloaded" },
    ],
    ["throws undefined", undefined, { failure: "unreachable" }],
  ])(
    "%s causes a matching failure without the message of its error",
    async (_, error, expected) => {
      const store = storeThatFails(error);
      await expect(verdictOf(store.decide([[someone]]))).rejects.toMatchObject(expected);
      await expect(verdictOf(store.decide([[someone, counter()]]))).rejects.toMatchObject(expected);
      await expect(store.adjust([someone])).rejects.toMatchObject(expected);
      await expect(store.reset([someone])).rejects.toMatchObject(expected);
    },
  );
});
