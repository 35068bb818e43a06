import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { replayPage } from "../../cli/html/replay-page.ts";
import { launchChromium } from "../../dev/chromium.ts";
import { hostile, withNumbers, withShortLists } from "../node/html/changed.ts";
import { COMPARISON } from "../node/html/comparison.ts";
import { EMPTY_REPLAY, replayOf } from "../node/html/fixtures.ts";
import { chromiumPath } from "./dashboard.ts";

/** Short lists have the same elements as long ones, and axe reads each element. */
const REPLAY = withShortLists(replayOf(5), 5);
const FULL = withShortLists(
  replayOf(4, {
    isPartial: true,
    failed: [{ option: "--max-newly-denied", allowed: 0, clients: 104 }],
    comparison: COMPARISON,
  }),
  4,
);

/** The reports of the tests, each as one file. */
export const REPORTS = {
  replay: replayPage(REPLAY),
  comparison: replayPage(FULL),
  "replay with hostile texts": replayPage(hostile(FULL)),
  "replay with huge numbers": replayPage(withNumbers(FULL, (value) => (value + 1) * 1e9)),
  "replay without requests": replayPage(EMPTY_REPLAY),
} as const;

export type ReportName = keyof typeof REPORTS;

/** Opens reports from the disk. */
export interface ReportBrowser {
  open(name: ReportName, options?: BrowserContextOptions): Promise<Page>;
  /** Accepts errors that a test has caused on purpose. */
  accept(expected: RegExp): void;
}

/**
 * Writes the reports into a folder and starts a browser before the tests of a file. After each test, it checks
 * that no report sent a request or caused an error, such as a violation of its Content-Security-Policy.
 */
export function useReports(): ReportBrowser {
  let browser: Browser;
  let folder: string;
  const contexts: BrowserContext[] = [];
  const complaints: string[] = [];

  beforeAll(async () => {
    if (!chromiumPath) return;
    folder = await mkdtemp(join(tmpdir(), "weir-reports-"));
    for (const [name, page] of Object.entries(REPORTS)) await writeFile(pathOf(name), page);
    browser = await launchChromium(chromiumPath);
  });
  afterEach(async () => {
    await Promise.all(contexts.splice(0).map((context) => context.close()));
    expect(complaints.splice(0)).toEqual([]);
  });
  afterAll(async () => {
    await browser?.close();
    if (folder) await rm(folder, { recursive: true });
  });

  const pathOf = (name: string) => join(folder, `${name.replaceAll(" ", "-")}.html`);

  return {
    async open(name, options) {
      const context = await browser.newContext({ offline: true, ...options });
      contexts.push(context);
      const page = await context.newPage();
      page.setDefaultTimeout(15_000);
      const url = pathToFileURL(pathOf(name)).href;
      page.on("pageerror", (error) => complaints.push(`${name}: ${error}`));
      page.on("console", (message) => complaints.push(`${name}: ${message.text()}`));
      page.on("request", (request) => {
        const [sent] = request.url().split("#");
        if (sent !== url && !sent?.startsWith("data:")) complaints.push(`${name}: ${sent}`);
      });
      await page.goto(url);
      return page;
    },
    accept(expected) {
      const others = complaints.filter((complaint) => !expected.test(complaint));
      expect(others.length).toBeLessThan(complaints.length);
      complaints.splice(0, complaints.length, ...others);
    },
  };
}
