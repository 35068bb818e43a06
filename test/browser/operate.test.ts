import type { Page } from "playwright-core";
import { expect, it, vi } from "vitest";
import { PATIENCE } from "../patience.ts";
import { describeInBrowser, logIn, PAGES, READ_TOKEN, TOKEN, useDashboard } from "./dashboard.ts";

describeInBrowser("an operator", () => {
  const dashboard = useDashboard();

  /** Uses up the limit of the rule login, and one request more. */
  async function limit(ip: string): Promise<void> {
    const statuses: number[] = [];
    for (let sent = 0; sent < 6; sent++) {
      statuses.push(await dashboard.request(ip, "/login", "POST"));
    }
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
  }

  async function lookUp(page: Page, ip: string): Promise<void> {
    await page.goto("/_weir/clients");
    await page.getByLabel("Known value").first().selectOption("ip");
    await page.getByLabel("Value", { exact: true }).first().fill(ip);
    await page.getByRole("button", { name: "Look up" }).click();
  }

  const cardOf = (page: Page, rule: string) =>
    page
      .locator(".client-card")
      .filter({ has: page.getByRole("link", { name: rule, exact: true }) });

  it("logs in with the right token only, and logs out", async () => {
    const page = await dashboard.open();
    await logIn(page, `${TOKEN}x`);
    expect(await page.getByRole("alert").textContent()).toContain("This is not the token");

    await logIn(page);
    expect(await page.getByRole("heading", { level: 1 }).textContent()).toBe("Overview");
    const [cookie] = await page.context().cookies(new URL("/_weir/", dashboard.url).href);
    expect(cookie).toMatchObject({
      httpOnly: true,
      secure: true,
      sameSite: "Strict",
      path: "/_weir",
    });

    await page.getByRole("button", { name: "Log out" }).click();
    expect(new URL(page.url()).pathname).toBe("/_weir/login");
    await page.goto("/_weir/");
    expect(await page.textContent("body")).toBe("the app");
  });

  it("watches the chart move under traffic, without a reload by hand", async () => {
    const page = await dashboard.openLoggedIn();
    const sum = async () => {
      const cells = await page.locator("#requests tbody td.number").allTextContents();
      return cells
        .map((text) => Number(text.replace(/\D/g, "")))
        .reduce((all, each) => all + each, 0);
    };
    const before = await sum();
    for (let sent = 0; sent < 30; sent++) await dashboard.request("198.51.100.1", "/search");
    await vi.waitFor(async () => expect(await sum()).toBeGreaterThanOrEqual(before + 30), PATIENCE);
    const drawn = await page.locator("#requests .plot").screenshot();
    for (let sent = 0; sent < 60; sent++) await dashboard.request("198.51.100.2", "/search");
    await vi.waitFor(async () => expect(await sum()).toBeGreaterThanOrEqual(before + 90), PATIENCE);
    expect((await page.locator("#requests .plot").screenshot()).equals(drawn)).toBe(false);
  });

  it("finds a limited client, raises its limit in two clicks, and sees it pass", async () => {
    await limit("203.0.113.7");
    const page = await dashboard.openLoggedIn();
    const link = page
      .locator("#limited-clients tr")
      .filter({ hasText: "login" })
      .getByRole("link")
      .first();
    await vi.waitFor(async () => {
      await page.reload();
      expect(await link.count()).toBe(1);
    }, PATIENCE);
    await link.click();
    const card = cardOf(page, "login");
    expect(await card.textContent()).toContain("exhausted");

    await card.getByText("Set override", { exact: true }).first().click();
    await card.getByLabel("New limit of login").fill("500");
    await card.getByLabel("Reason").first().fill("Ticket 4711");
    await card.getByRole("button", { name: "Set override" }).click();
    expect(await page.getByRole("status").textContent()).toBeTruthy();
    await vi.waitFor(async () => {
      expect(await dashboard.request("203.0.113.7", "/login", "POST")).toBe(200);
    }, PATIENCE);
    expect(await cardOf(page, "login").textContent()).toContain("Ticket 4711");

    await page.goto("/_weir/overrides");
    const row = page.getByRole("row").filter({ hasText: "Ticket 4711" });
    await row.getByText("Remove", { exact: true }).click();
    await row.getByLabel("Reason").fill("Done");
    await row.getByRole("button", { name: "Remove override" }).click();
    expect(await page.getByRole("row").filter({ hasText: "Ticket 4711" }).count()).toBe(0);
    await vi.waitFor(async () => {
      expect(await dashboard.request("203.0.113.7", "/login", "POST")).toBe(429);
    }, PATIENCE);

    await page.goto("/_weir/audit");
    const audit = await page.locator("main").textContent();
    expect(audit).toContain("Ticket 4711");
    expect(audit).toContain("Done");
  });

  it("finds a client by its address, which is in no URL, and resets it", async () => {
    await limit("203.0.113.8");
    const page = await dashboard.openLoggedIn();
    const urls: string[] = [];
    page.on("request", (request) => urls.push(request.url()));
    await lookUp(page, "203.0.113.8");
    const card = cardOf(page, "login");
    await card.getByText("Reset counts").click();
    await card.getByLabel("Reason").last().fill("Ticket 4712");
    await card.getByRole("button", { name: "Reset", exact: true }).click();
    expect(await page.getByRole("status").textContent()).toBeTruthy();
    await vi.waitFor(async () => {
      expect(await dashboard.request("203.0.113.8", "/login", "POST")).toBe(200);
    }, PATIENCE);
    expect(urls.filter((url) => url.includes("203.0.113.8"))).toEqual([]);
  });

  it("sees everything and changes nothing with the token for reading", async () => {
    const page = await dashboard.open();
    await logIn(page, READ_TOKEN);
    for (const [path, heading] of PAGES) {
      await page.goto(path);
      expect(await page.getByRole("heading", { level: 1 }).textContent()).toBe(heading);
    }
    await lookUp(page, "203.0.113.9");
    expect(await cardOf(page, "login").count()).toBe(1);
    expect(await cardOf(page, "model").textContent()).toContain("0 / 4 requests are open now");
    expect(await page.getByText("Set override").count()).toBe(0);
    expect(await page.textContent("footer")).toContain("read only");
  });

  it("reads and changes everything without scripts", async () => {
    await limit("203.0.113.10");
    const page = await dashboard.openLoggedIn({ javaScriptEnabled: false });
    for (const [path, heading] of PAGES) {
      await page.goto(path);
      expect(await page.getByRole("heading", { level: 1 }).textContent()).toBe(heading);
    }
    await lookUp(page, "203.0.113.10");
    const card = cardOf(page, "login");
    await card.getByText("Set override", { exact: true }).first().click();
    await card.getByLabel("No limit").check();
    await card.getByLabel("Reason").first().fill("Without scripts");
    await card.getByRole("button", { name: "Set override" }).click();
    const confirm = page.getByRole("button", { name: "Yes, set this override" });
    if ((await confirm.count()) > 0) await confirm.click();
    await page.goto("/_weir/overrides");
    expect(await page.getByRole("row").filter({ hasText: "Without scripts" }).count()).toBe(1);
  });

  it("works with the keyboard alone, and always sees where the focus is", async () => {
    const page = await dashboard.open();
    await page.goto("/_weir/login");
    await page.locator("input:focus").waitFor();
    await page.keyboard.type(TOKEN);
    await page.keyboard.press("Enter");
    await page.waitForURL("**/_weir/");
    await page.keyboard.press("Tab");
    expect(await focused(page)).toMatchObject({ text: "Skip to the content", isVisible: true });

    await press(page, "Tab", "Clients");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/_weir/clients");
    await press(page, "Tab", "value0");
    await page.keyboard.type("203.0.113.11");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Client", exact: true }).waitFor();
    await press(page, "Tab", "Set override");
    await page.keyboard.press("Enter");
    await press(page, "Tab", /^limit:/);
    await page.keyboard.type("77");
    await press(page, "Tab", "reason");
    await page.keyboard.type("By keyboard");
    await page.keyboard.press("Enter");
    await page.getByRole("status").waitFor();
    expect(await page.locator("main").textContent()).toContain("By keyboard");
  });

  /** Presses a key until the element with this name or text has the focus. */
  async function press(page: Page, key: string, name: string | RegExp): Promise<void> {
    const seen: string[] = [];
    while (seen.length < 60) {
      await page.keyboard.press(key);
      const element = await focused(page);
      expect(element).toMatchObject({ isVisible: true });
      const texts = [element.text, element.name];
      if (texts.some((text) => (typeof name === "string" ? text === name : name.test(text))))
        return;
      seen.push(element.text || element.name);
    }
    expect.fail(`No element is ${name}, only ${seen.join(", ")}`);
  }

  function focused(page: Page) {
    return page.evaluate(() => {
      const element = document.activeElement as HTMLInputElement;
      const box = element.getBoundingClientRect();
      const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element);
      const hasRing = (outlineStyle !== "none" && outlineWidth !== "0px") || boxShadow !== "none";
      return {
        text: element.matches("input, select, textarea") ? "" : (element.textContent ?? "").trim(),
        name: element.name ?? "",
        isVisible: element === document.body || (box.width > 0 && box.height > 0 && hasRing),
      };
    });
  }
});
