import { describe, expect, it } from "vitest";
import { createDurableObjectStore } from "../../../../src/stores/durable-object/durable-object-store.ts";
import { counter } from "../../../suite/counters.ts";
import { verdictOf } from "../../../suite/verdict.ts";

/** Creates a store whose objects answer every call in the same way. */
function storeThat(answer: () => Promise<unknown>) {
  const stub = {
    run: answer,
    endHold: answer,
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
      const store = storeThat(() => Promise.reject(error));
      await expect(verdictOf(store.decide([[someone]]))).rejects.toMatchObject(expected);
      await expect(verdictOf(store.decide([[someone, counter()]]))).rejects.toMatchObject(expected);
      await expect(store.adjust([someone])).rejects.toMatchObject(expected);
      await expect(store.reset([someone])).rejects.toMatchObject(expected);
    },
  );

  it.each([
    [null],
    [[]],
    [[{ admitted: true }]],
    [[{ parts: [{}], tallies: [] }]],
    [[{ tallies: [{}] }]],
    [{}],
  ])("answers %j causes the failure invalid-reply", async (answer) => {
    const store = storeThat(() => Promise.resolve(answer));
    const expected = { failure: "invalid-reply" };
    await expect(verdictOf(store.decide([[someone]]))).rejects.toMatchObject(expected);
    await expect(verdictOf(store.decide([[someone, counter()]]))).rejects.toMatchObject(expected);
    await expect(store.adjust([someone, { ...someone, key: "other" }])).rejects.toMatchObject(
      expected,
    );
  });
});
