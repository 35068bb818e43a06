import { expect, it } from "vitest";
import { logsTarget } from "../../../fuzz/targets/logs.ts";

it(`with arbitrary lines: ${logsTarget.about}`, async () => {
  const { cases, finding } = await logsTarget.check({ cases: 3000, seed: 20_260_101 });
  expect(finding).toBeUndefined();
  expect(cases).toBeGreaterThanOrEqual(12_000);
});
