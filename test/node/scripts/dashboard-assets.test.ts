import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { assetsModule } from "../../../scripts/dashboard-assets.ts";

it("the generated module has the assets of the present sources: run npm run assets", async () => {
  const generated = await readFile("src/admin/dashboard/assets.generated.ts", "utf8");
  // This test does not use `toBe`, because a failure would print both modules.
  expect(generated === (await assetsModule())).toBe(true);
});
