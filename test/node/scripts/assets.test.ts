import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { ASSET_MODULES } from "../../../scripts/assets.ts";

describe.each(Object.entries(ASSET_MODULES))("the generated module %s", (path, source) => {
  it("has the assets of the present sources: run npm run assets", async () => {
    const generated = await readFile(path, "utf8");
    // This test does not use `toBe`, because a failure would print both modules.
    expect(generated === (await source())).toBe(true);
  });
});

describe.each(["src/admin/dashboard/assets.generated.ts", "cli/html/assets.generated.ts"])(
  "%s",
  (path) => {
    it("contains the licence of uPlot, whose code is in it", async () => {
      const licence = await readFile("node_modules/uplot/LICENSE", "utf8");
      const { SCRIPT } = (await import(`../../../${path}`)) as { SCRIPT: string };
      expect(SCRIPT.includes(licence.trim())).toBe(true);
    });
  },
);
