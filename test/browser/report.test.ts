import { expect, it } from "vitest";
import { describeInBrowser, violationsOf } from "./dashboard.ts";
import { openDetails } from "./open-details.ts";
import { REPORTS, type ReportName, useReports } from "./report-pages.ts";

const NAMES = Object.keys(REPORTS) as ReportName[];
const SCREENS = [
  { width: 360, height: 740 },
  { width: 1600, height: 1000 },
];
/** The reports that together have all elements of the others. */
const ALL_ELEMENTS: readonly ReportName[] = [
  "comparison",
  "replay with hostile texts",
  "replay without requests",
];
const WITH_CHARTS: readonly ReportName[] = ["replay", "comparison"];

describeInBrowser("a report from the disk, without a network", () => {
  const reports = useReports();

  it.each(NAMES)(
    "fits a narrow dark screen and a wide light one, and has no fault for axe: %s",
    async (name) => {
      for (const [index, viewport] of SCREENS.entries()) {
        const page = await reports.open(name, { viewport, colorScheme: index ? "light" : "dark" });
        await openDetails(page);
        expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(
          viewport.width,
        );
        if (!ALL_ELEMENTS.includes(name)) continue;
        expect(await violationsOf(page)).toEqual([]);
      }
    },
  );

  it.each(NAMES)(
    "has a title, a language, headings in order, and no script but its own: %s",
    async (name) => {
      const page = await reports.open(name);
      expect(await page.title()).toMatch(/^.+ · Weir$/);
      expect(await page.locator("html").getAttribute("lang")).toBe("en");
      const levels = await page
        .locator("h1, h2, h3, h4")
        .evaluateAll((headings) => headings.map(({ tagName }) => Number(tagName.slice(1))));
      expect(levels.filter((level) => level === 1)).toHaveLength(1);
      expect(levels.filter((level, index) => level > (levels[index - 1] ?? 0) + 1)).toEqual([]);
      expect(await page.locator("script").count()).toBe(1);
      expect(await page.locator("img, iframe, object, embed, base, [onerror]").count()).toBe(0);
      expect(await page.title()).not.toBe("x");
    },
  );

  it.each(WITH_CHARTS)("shows the values of its charts below the pointer: %s", async (name) => {
    const page = await reports.open(name);
    const drawings = page.locator("svg[data-chart]");
    expect(await drawings.count()).toBeGreaterThan(0);
    expect(await page.locator(".tip").isVisible()).toBe(false);
    for (const drawing of await drawings.all()) {
      await drawing.hover();
      expect(await page.locator(".tip").textContent()).toMatch(
        /^2026-11-\d\d \d\d:\d\d\D+ [\d.,K]+/,
      );
    }
    await page.locator("h1").hover();
    expect(await page.locator(".tip").isVisible()).toBe(false);
  });

  it.each(WITH_CHARTS)("shows its charts without scripts and on paper: %s", async (name) => {
    const readers = [
      await reports.open(name, { javaScriptEnabled: false }),
      await reports.open(name),
    ];
    await readers[1]?.emulateMedia({ media: "print" });
    for (const page of readers) {
      const drawing = page.locator("svg[data-chart]").first();
      expect((await drawing.boundingBox())?.height).toBeGreaterThan(100);
    }
  });
});
