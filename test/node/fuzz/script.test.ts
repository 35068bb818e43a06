import { expect, inject, it } from "vitest";
import type {} from "../../../dev/provided.ts";
import { createPipelinedStore } from "../../../fuzz/pipelined-store.ts";
import { checkScript, scriptTarget } from "../../../fuzz/targets/script.ts";
import { counter } from "../../suite/counters.ts";
import { verdictOf } from "../../suite/verdict.ts";

it(`with arbitrary calls: ${scriptTarget.about}`, async () => {
  const { cases, finding } = await checkScript(inject("redis"), { cases: 4000, seed: 20_260_101 });
  expect(finding).toBeUndefined();
  expect(cases).toBeGreaterThanOrEqual(4000);
});

it("returns no quota for an unused quota of 0", async () => {
  const { store, close } = await createPipelinedStore(inject("redis"));
  try {
    const own = counter();
    const unused = [{ counter: own, quota: 0, window: 0 }];
    expect(await verdictOf(store.decide([[own]], 0, unused))).toMatchObject({
      groups: [{ admitted: true }],
    });
  } finally {
    close();
  }
});
