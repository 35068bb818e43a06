import { describe, expect, it } from "vitest";
import { STYLE as REPORT_STYLE } from "../../../cli/html/assets.generated.ts";
import { STYLE as DASHBOARD_STYLE } from "../../../src/admin/dashboard/assets.generated.ts";
import { SIGNS } from "../../../src/admin/dashboard/chart-drawing.ts";

describe.each([
  { name: "the reports", style: REPORT_STYLE },
  { name: "the dashboard", style: DASHBOARD_STYLE },
])("the style sheet of $name", ({ style }) => {
  it.each(Object.keys(SIGNS))(
    "has a colour for each form of the tone %s, in both themes",
    (tone) => {
      for (const [form, property] of [
        [`area-${tone}`, "fill"],
        [`fill-${tone}`, "fill"],
        [`stroke-${tone}`, "stroke"],
        [`back-${tone}`, "background"],
      ]) {
        const [, block = ""] = new RegExp(`\\.${form}\\{([^}]*)\\}`).exec(style) ?? [];
        expect(block, form).toContain(`${property}:`);
        const [, variable = ""] = /var\((--[a-z-]+)\)/.exec(block) ?? [];
        expect(style, `${form} uses ${variable}`).toMatch(
          new RegExp(`${variable}: *light-dark\\(`),
        );
      }
    },
  );
});
