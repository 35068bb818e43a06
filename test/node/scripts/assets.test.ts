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
