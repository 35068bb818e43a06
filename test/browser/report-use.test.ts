import { expect, it } from "vitest";
import { describeInBrowser } from "./dashboard.ts";
import { useReports } from "./report-pages.ts";

describeInBrowser("a reader of a report", () => {
  const reports = useReports();

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
    expect(await page.getByRole("navigation").isVisible()).toBe(false);
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
