import { expect, inject, it } from "vitest";
import type {} from "../../../dev/provided-redis.ts";
import { checkScript, scriptTarget } from "../../../fuzz/targets/script.ts";

it(`against arbitrary calls: ${scriptTarget.about}`, async () => {
  const { cases, finding } = await checkScript(inject("redis"), { cases: 4000, seed: 20_260_101 });
  expect(finding).toBeUndefined();
  expect(cases).toBeGreaterThanOrEqual(4000);
}, 30_000);
