import { execFile } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { unstable_startWorker } from "wrangler";
import { faultsIn } from "../../src/config/define.ts";
import { chromiumPath, describeInBrowser, useBrowser, violationsOf } from "./dashboard.ts";

const PHONE = { width: 320, height: 640 };
/** The pages of the site by the files of docs/, which are in the same folders. */
const pages = globSync("docs/**/*.md").map((path) => path.replace(/README\.md$/, "index.md"));
const PATHS = ["/", ...pages.map((file) => `/${file.replace(/(?:index)?\.md$/, "")}`)];

/** The lines of one client: two requests within a minute, and a line that is no request. */
const LOG = `192.0.2.9 - - [05/Jan/2026:09:00:00 +0000] "POST /login HTTP/1.1" 200 5 "-" "-"
no request
192.0.2.9 - - [05/Jan/2026:09:00:30 +0000] "POST /login HTTP/1.1" 200 5 "-" "-"
`;

beforeAll(async () => {
  // Vitest has set NODE_ENV for tests. With it, the site would contain the code for development.
  const env = { ...process.env, NODE_ENV: "production" };
  const vitepress = "node_modules/vitepress/bin/vitepress.js";
  await promisify(execFile)(process.execPath, [vitepress, "build", "site"], { env });
});

it("is built with a page for each page of docs/", () => {
  const built = pages.map((path) => join("dist/site", path.replace(/\.md$/, ".html")));
  expect(built.length).toBeGreaterThan(20);
  expect(built.filter((path) => !existsSync(path))).toEqual([]);
});

it("has an llms.txt", () => {
  expect(readFileSync("dist/site/llms.txt", "utf8")).toMatch(/^# Weir\n\n> /);
});

describeInBrowser("the website", () => {
  let server: Awaited<ReturnType<typeof unstable_startWorker>>;
  let url: URL;
  const openPage = useBrowser(() => url);
  const foreign: string[] = [];

  beforeAll(async () => {
    if (!chromiumPath) return;
    server = await unstable_startWorker({
      config: "site/wrangler.toml",
      dev: { server: { hostname: "127.0.0.1", port: 0 }, inspector: false, logLevel: "error" },
    });
    url = await server.url;
  });
  afterAll(async () => {
    await server?.dispose();
    expect(foreign).toEqual([]);
  });

  const open: typeof openPage = async (options) => {
    const page = await openPage(options);
    page.on("request", (request) => {
      if (new URL(request.url()).origin !== url.origin) foreign.push(request.url());
    });
    return page;
  };

  it.each([
    { colorScheme: "light", rule: undefined },
    { colorScheme: "dark", rule: "color-contrast" },
  ] as const)("has no fault for axe in the $colorScheme theme", async ({ colorScheme, rule }) => {
    const page = await open({ colorScheme });
    const violations: string[] = [];
    for (const path of ["/", "/docs/configuration", "/docs/performance"]) {
      await page.goto(path);
      if (path === "/") await summaryOf(page).waitFor();
      violations.push(...(await violationsOf(page, rule)).map((text) => `${path}: ${text}`));
    }
    expect(violations).toEqual([]);
  });

  it("has no page that scrolls to the side on a phone", async () => {
    const page = await open({ viewport: PHONE });
    await page.goto("/");
    await summaryOf(page).waitFor();
    const widths: [string, number][] = [];
    for (const path of PATHS) {
      await page.goto(path);
      widths.push([path, await page.evaluate(() => document.documentElement.scrollWidth)]);
    }
    expect(widths.filter(([, width]) => width !== PHONE.width)).toEqual([]);
  });

  it("shows what Weir is, how to install it and three reasons before the playground", async () => {
    const page = await open({ viewport: { width: 1280, height: 800 } });
    await page.goto("/");
    await summaryOf(page).waitFor();
    const first = page.locator(".first-screen");
    await first.getByText(/^npm install git/).waitFor();
    expect(await first.getByRole("listitem").count()).toBe(3);
    expect(await page.title()).toBe("Weir | A rate limiter for Cloudflare's edge");
    const playground = await page.locator(".playground").boundingBox();
    expect(playground?.y).toBeLessThan(500);
  });

  it("finds a page by its text", async () => {
    const page = await open();
    await page.goto("/");
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByRole("searchbox").fill("boundary of two windows");
    await page
      .getByRole("option", { name: /boundary of two windows/ })
      .first()
      .click();
    await page.getByRole("heading", { level: 1, name: "How Weir counts" }).waitFor();
    expect(new URL(page.url()).pathname).toBe("/docs/how-it-counts");
  });

  it.each([
    ["why 429", /^\/docs\/(?:troubleshooting|responses)\b/],
    ["what does it cost", /^\/docs\/cost\b/],
    ["too many requests", /^\/docs\/troubleshooting\b/],
  ])(
    "finds the page that answers the question %s among the first three",
    async (query, expected) => {
      const page = await open();
      await page.goto("/");
      await page.getByRole("button", { name: "Search" }).click();
      await page.getByRole("searchbox").fill(query);
      await page.getByRole("option").first().waitFor();
      const links = await page.getByRole("option").locator("a").all();
      const first = links.slice(0, 3).map((link) => link.getAttribute("href"));
      expect(await Promise.all(first)).toContainEqual(expect.stringMatching(expected));
    },
  );

  it("answers 404 with a page for an unknown path", async () => {
    const page = await open();
    expect((await page.goto("/no-such-page"))?.status()).toBe(404);
    await page.getByText("PAGE NOT FOUND").waitFor();
  });

  it("decides a burst by the rules of README.md", async () => {
    const page = await open();
    await page.goto("/");
    await expect.poll(() => summaryOf(page).textContent()).toBe("8 requests: 5 passed, 3 denied.");
    const policy = '"login";q=5;w=60;weir-even=4.5';
    expect(await rowsOf(page)).toEqual([
      ...[4, 3, 2, 1, 0].map((left) => `200 ${policy} "login";r=${left};t=66 `),
      ...Array(3).fill(`429 ${policy} "login";r=0;t=66 66`),
    ]);
  });

  it("draws each request of a burst as a bar of its own", async () => {
    const page = await open();
    await page.goto("/");
    await summaryOf(page).waitFor();
    const paths = await page.locator(".playground figure.chart [data-chart] path").all();
    const shapes = await Promise.all(paths.map((path) => path.getAttribute("d")));
    expect(shapes.map((shape) => shape?.match(/M/g)?.length)).toEqual([8, 5]);
    expect(shapes.join("")).not.toMatch(/l/);
  });

  it("decides a steady client and two clients, each with its own quota", async () => {
    const page = await open();
    await page.goto("/");
    await page.getByLabel("Traffic").selectOption("a steady client");
    await expect.poll(() => summaryOf(page).textContent()).toMatch(/^24 requests: 15 passed/);
    await page.getByLabel("Traffic").selectOption("two clients");
    await expect.poll(() => summaryOf(page).textContent()).toMatch(/^30 requests: 21 passed/);
    await page.getByRole("slider").fill("4");
    await expect.poll(() => summaryOf(page).textContent()).toMatch(/^15 requests: 15 passed/);
  });

  it("decides by other rules, in the notation of JSON", async () => {
    const page = await open();
    await page.goto("/");
    await write(
      page,
      '{ "rules": [{ "name": "all", "limit": 2, "window": "1h", "count": { "status": [401] } }] }',
    );
    await page.getByLabel("Status of the origin").fill("401");
    await expect.poll(() => summaryOf(page).textContent()).toBe("8 requests: 2 passed, 6 denied.");
    await page.getByLabel("Status of the origin").fill("200");
    await expect.poll(() => summaryOf(page).textContent()).toBe("8 requests: 8 passed, 0 denied.");
  });

  it("decides a log", async () => {
    const page = await open();
    await page.goto("/");
    await write(page, '{ rules: [{ name: "login", limit: 1, window: "1m" }] }');
    await page.getByLabel("Traffic").selectOption("a log of your own");
    await page.getByLabel("Lines of Apache").fill(LOG);
    await expect
      .poll(() => summaryOf(page).textContent())
      .toBe("2 requests: 1 passed, 1 denied. 1 line is no request.");
    expect((await rowsOf(page))[1]).toMatch(/^429 .* 30$/);
  });

  it("shows the faults of a configuration with its own messages", async () => {
    const page = await open();
    await page.goto("/");
    const input = { rules: [{ name: "login", limit: "5", windw: "1m" }] };
    await write(page, JSON.stringify(input));
    const faults = faultsIn(input).map(({ path, message }) => `${path} ${message}`);
    expect(faults.length).toBe(2);
    await expect
      .poll(() => page.getByRole("alert").locator("li").allTextContents())
      .toEqual(faults);
    expect(await page.locator(".cm-lintRange-error").allTextContents()).toContain('"5"');
    await write(page, "{ rules: [{ mo }] }");
    await expect
      .poll(() => page.getByRole("alert").textContent())
      .toMatch(/needs a colon and a value/);
    await write(page, "{ rules: [ }");
    await expect.poll(() => page.getByRole("alert").textContent()).toMatch(/syntax/);
  });

  it("completes the fields and the words of a rule", async () => {
    const page = await open();
    await page.goto("/");
    await write(page, "{ rules: [{ ");
    await page.keyboard.type("onEr");
    await page.getByRole("option", { name: /^onError/ }).click();
    await page.keyboard.type('"cl');
    await page.getByRole("option", { name: '"closed"' }).click();
    expect(await page.getByRole("textbox", { name: "Rules" }).textContent()).toBe(
      '{ rules: [{ onError: "closed"',
    );
  });
});

function summaryOf(page: Page) {
  return page.locator(".playground [role=status]");
}

/** Returns the status and the three fields of each response. */
async function rowsOf(page: Page): Promise<string[]> {
  const rows = await page.locator(".playground figure table.cards tbody tr").all();
  return Promise.all(
    rows.map(async (row) => (await row.locator("td").allTextContents()).slice(2).join(" ")),
  );
}

/** Replaces the rules, as a user does. */
async function write(page: Page, text: string): Promise<void> {
  await page.getByRole("textbox", { name: "Rules" }).click();
  await page.keyboard.press("Control+A");
  await page.keyboard.insertText(text);
}
