import { describe, expect, it } from "vitest";
import { STYLE as REPORT_STYLE } from "../../../cli/html/assets.generated.ts";
import { STYLE as DASHBOARD_STYLE } from "../../../src/admin/dashboard/assets.generated.ts";
import { SIGNS } from "../../../src/admin/dashboard/components.ts";

describe.each([
  { name: "the reports", style: REPORT_STYLE },
  { name: "the dashboard", style: DASHBOARD_STYLE },
])("the style sheet of $name", ({ style }) => {
  it.each(Object.keys(SIGNS))("has a colour for the tone %s, in both themes", (tone) => {
    expect(style).toMatch(new RegExp(`--${tone}: *light-dark\\(`));
  });
});
