import type { Page } from "playwright-core";
import { beforeAll, expect, it, vi } from "vitest";
import { PATIENCE } from "../patience.ts";
import { describeInBrowser, PAGES, TOKEN, useDashboard, violationsOf } from "./dashboard.ts";
import { openDetails } from "./open-details.ts";

const MAX_BYTES = 100 * 1024;
const PHONE = { width: 320, height: 640 };

describeInBrowser("every page of the dashboard", () => {
  const dashboard = useDashboard();
  /** The paths of all pages: navigation, a rule, a client, a fault, and the log-in. */
  let paths: string[];

  beforeAll(async () => {
    for (let sent = 0; sent < 8; sent++) {
      await dashboard.request("203.0.113.7", "/login", "POST");
      await dashboard.request("203.0.113.7", "/search?q=tent");
      await dashboard.request(`203.0.113.${sent}`, "/reads");
    }
    const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
    const api = async (method: string, path: string, body?: object) => {
      const url = new URL(`/_weir/api/${path}`, dashboard.url);
      const response = await fetch(url, {
        method,
        headers,
        ...(body && { body: JSON.stringify(body) }),
      });
      expect(response.status, await response.clone().text()).toBe(200);
      return (await response.json()) as never;
    };
    await api("PUT", "overrides", {
      rule: "search",
      effect: { mode: "shadow" },
      expiresIn: "1h",
      reason: "A long reason, ".repeat(10),
    });
    await api("PUT", "overrides", {
      rule: "login",
      known: { ip: "203.0.113.7" },
      effect: { kind: "limits", limits: { login: 6 } },
      expiresIn: "2h",
      reason: "Ticket 4711",
    });
    const { clients }: { clients: { client: string }[] } = await api("POST", "peek", {
      known: { ip: "203.0.113.7" },
      rule: "login",
    });
    paths = [
      ...PAGES.map(([path]) => path),
      "/_weir/rules/login",
      "/_weir/rules/model",
      "/_weir/rules/reads",
      "/_weir/rules/no-such-rule",
      `/_weir/clients?client=${clients[0]?.client}&rule=login`,
      `/_weir/denials?rule=login&client=${clients[0]?.client}`,
      "/_weir/login?fault=wrong",
    ];
    await vi.waitFor(async () => {
      const page = await dashboard.openLoggedIn();
      expect(await page.locator("#limited-clients tbody tr").count()).toBeGreaterThan(0);
    }, PATIENCE);
  });

  it.each([
    { colorScheme: "light", rule: undefined },
    { colorScheme: "dark", rule: "color-contrast" },
  ] as const)("has no fault for axe in the $colorScheme theme", async ({ colorScheme, rule }) => {
    const page = await dashboard.openLoggedIn({ colorScheme });
    const violations: string[] = [];
    for (const path of paths) {
      await page.goto(path);
      await openDetails(page);
      violations.push(...(await violationsOf(page, rule)).map((text) => `${path}: ${text}`));
    }
    await explain(page);
    violations.push(...(await violationsOf(page, rule)).map((text) => `explanation: ${text}`));
    expect(violations).toEqual([]);
  });

  it("fits a narrow screen without horizontal scrolling", async () => {
    const page = await dashboard.openLoggedIn({ viewport: PHONE });
    const wide: string[] = [];
    for (const path of paths) {
      await page.goto(path);
      await openDetails(page);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      if (width > PHONE.width) wide.push(`${path}: ${width} px`);
    }
    await explain(page);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    if (width > PHONE.width) wide.push(`explanation: ${width} px`);
    expect(wide).toEqual([]);
  });

  it("shows how many requests passed ahead of the store", async () => {
    const page = await dashboard.openLoggedIn();
    await page.goto("/_weir/");
    const tile = page.locator("li.tile", { hasText: "Passed ahead of the store" });
    expect(await tile.locator("b").textContent()).toBe("8");
    await page.goto("/_weir/rules/reads");
    const lead = await page.locator("#lead").textContent();
    expect(lead).toContain("8 passed ahead of the store, which denied 0 of them later.");
  });

  it("shows a denial within 6 seconds, and the client's page two clicks from the overview", async () => {
    const page = await dashboard.openLoggedIn();
    const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
    const url = new URL("/_weir/api/peek", dashboard.url);
    const body = JSON.stringify({ known: { ip: "203.0.113.99" }, rule: "login" });
    const answer = await fetch(url, { method: "POST", headers, body });
    const { clients } = (await answer.json()) as { clients: { client: string }[] };
    for (let sent = 0; sent < 9; sent++) {
      await dashboard.request("203.0.113.99", "/login", "POST");
    }
    const deniedAt = Date.now();
    await page.goto("/_weir/");
    await page.getByRole("navigation", { name: "Pages", exact: true }).getByText("Denials").click();
    const link = page.locator("#denials a.client", { hasText: clients[0]?.client ?? "" });
    await vi.waitFor(async () => {
      await page.reload();
      expect(await link.count()).toBe(1);
    }, PATIENCE);
    const shownMs = Date.now() - deniedAt;
    console.log(`A denial is on the page after ${shownMs} ms.`);
    expect(shownMs).toBeLessThan(6000);
    await link.click();
    await page.getByRole("heading", { name: "Last 7 days" }).waitFor();
    expect(await page.locator("#history").textContent()).toContain("4 requests by login");
  });

  it("has a title, a language and one first heading", async () => {
    const page = await dashboard.openLoggedIn();
    for (const path of paths) {
      await page.goto(path);
      expect(await page.title()).toMatch(/^.+ · Weir$/);
      expect(await page.locator("html").getAttribute("lang")).toBe("en");
      expect(await page.locator("h1").count()).toBe(1);
    }
  });

  it("transfers at most 100 KiB on the overview, in the first visit", async () => {
    const page = await dashboard.openLoggedIn();
    const session = await page.context().newCDPSession(page);
    await session.send("Network.enable");
    await session.send("Network.setCacheDisabled", { cacheDisabled: true });
    let bytes = 0;
    session.on("Network.loadingFinished", ({ encodedDataLength }) => {
      bytes += encodedDataLength;
    });
    await page.goto("/_weir/", { waitUntil: "networkidle" });
    expect(bytes).toBeGreaterThan(1000);
    expect(bytes).toBeLessThanOrEqual(MAX_BYTES);
  });
});

/** Explains a denied request with a long path, and opens the explanation. */
async function explain(page: Page): Promise<void> {
  await page.goto("/_weir/explain");
  await page.getByLabel("Method").fill("POST");
  await page.getByLabel("URL or path").fill(`/login?${"long=value&".repeat(20)}`);
  await page.getByLabel("Client's address").fill("203.0.113.8");
  await page.getByLabel("Headers, one in each line").fill("x-api-key: abc");
  await page.getByRole("button", { name: "Explain", exact: true }).click();
  await page.getByText("Rules that do not apply").waitFor();
  await openDetails(page);
}
