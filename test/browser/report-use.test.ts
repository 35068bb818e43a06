import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { describeInBrowser } from "./dashboard.ts";
import { useReports } from "./report-pages.ts";

const backgroundOf = (page: Page) =>
  page.evaluate(() => getComputedStyle(document.body).backgroundColor);

describeInBrowser("a reader of a report", () => {
  const reports = useReports();

  const shownRules = (page: Page) =>
    page.locator("#rules-table tbody tr:visible th a").allTextContents();
  const shownCards = (page: Page) => page.locator("article.rule:visible h3").allTextContents();

  it("chooses a theme without scripts and without cookies", async () => {
    for (const javaScriptEnabled of [true, false]) {
      const page = await reports.open("replay", { javaScriptEnabled, colorScheme: "light" });
      const light = await backgroundOf(page);
      const plot = page.locator("figure[data-chart] .plot").first();
      const drawn = await plot.screenshot();
      await page.getByTitle("Dark theme").click();
      const dark = await backgroundOf(page);
      expect(dark).not.toBe(light);
      expect((await plot.screenshot()).equals(drawn)).toBe(false);
      await page.getByRole("radio", { name: "Dark theme" }).press("ArrowLeft");
      expect(await backgroundOf(page)).toBe(light);
      expect(await page.context().cookies()).toEqual([]);
    }
  });

  it("filters rules by their names", async () => {
    const page = await reports.open("replay");
    expect(await shownRules(page)).toEqual(["search", "rule-2", "rule-4", "rule-5"]);
    await page.getByRole("searchbox").fill(" Rule-4 ");
    expect(await shownRules(page)).toEqual(["rule-4"]);
    expect((await shownCards(page)).map((text) => text.trim())).toEqual(["rule-4 shadow"]);
    expect(await page.locator("article.rule:visible tbody tr:visible").count()).toBeGreaterThan(0);
    expect(await page.locator("output").textContent()).toBe("1 of 5 rules");
    await page.getByRole("searchbox").fill("");
    expect(await shownCards(page)).toHaveLength(4);
  });

  it("filters rules by their clients, and then sees only these clients", async () => {
    const page = await reports.open("replay");
    await page.getByRole("searchbox").fill("203.0.113.81");
    expect(await shownRules(page)).toEqual(["search", "rule-2", "rule-4", "rule-5"]);
    const clients = await page.locator("article.rule:visible .client:visible").allTextContents();
    expect(new Set(clients)).toEqual(new Set(["203.0.113.81"]));
    await page.getByRole("searchbox").fill("no such client");
    expect(await shownRules(page)).toEqual([]);
    expect(await shownCards(page)).toEqual([]);
    await page.getByRole("searchbox").press("Enter");
    expect(await page.locator("output").textContent()).toBe("0 of 5 rules");
  });

  it("sees no control that does nothing without scripts", async () => {
    const page = await reports.open("replay", { javaScriptEnabled: false });
    expect(await page.locator("button:visible, form:visible").count()).toBe(0);
  });

  it("prints everything that matters, in light colours", async () => {
    const page = await reports.open("replay", { colorScheme: "dark" });
    const closed = page.locator("details.printed:not([open])");
    expect(await closed.count()).toBeGreaterThan(0);
    await page.emulateMedia({ media: "print" });
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    expect(await closed.count()).toBe(0);
    expect(await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme)).toBe(
      "light",
    );
    expect(await page.getByRole("searchbox").isVisible()).toBe(false);
    await page.evaluate(() => dispatchEvent(new Event("afterprint")));
    expect(await closed.count()).toBeGreaterThan(0);
  });

  it("is protected from scripts by the policy of the page", async () => {
    const page = await reports.open("replay");
    const refused = page.waitForEvent("console");
    await page.evaluate(() => {
      const script = document.createElement("script");
      script.textContent = "document.title = 'x'";
      document.body.append(script);
    });
    await refused;
    expect(await page.title()).not.toBe("x");
    reports.accept(/Content Security Policy/);
  });
});
