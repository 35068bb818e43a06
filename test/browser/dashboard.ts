import axe from "axe-core";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect } from "vitest";
import { findChromium, launchChromium } from "../../dev/chromium.ts";
import type { RuleInput } from "../../src/config/index.ts";
import { send } from "../node/support/client.ts";
import { type RunningWorker, startWorker, TIMEOUT_MS } from "../node/support/worker.ts";

export const TOKEN = "token-of-the-browser-tests-with-40-letters";
export const READ_TOKEN = "token-for-reading-of-the-browser-tests-40";

/** The pages that every operator can open, with their first heading. */
export const PAGES = [
  ["/_weir/", "Overview"],
  ["/_weir/rules", "Rules"],
  ["/_weir/clients", "Clients"],
  ["/_weir/denials", "Denials"],
  ["/_weir/explain", "Explain"],
  ["/_weir/overrides", "Overrides"],
  ["/_weir/audit", "Audit"],
] as const;

const RULES: readonly RuleInput[] = [
  { name: "login", match: { methods: ["POST"], paths: ["/login"] }, limit: 5, window: "52w" },
  {
    name: "search",
    match: { paths: ["/search"] },
    key: "header:x-api-key | ip",
    limits: [
      { limit: 60, window: "1m" },
      { limit: 1000, window: "1h" },
    ],
  },
  { name: "reads", match: { paths: ["/reads"] }, limit: 10, window: "52w", async: true },
  { name: "model", match: { paths: ["/model"] }, concurrent: 4 },
  { name: "trial", match: { paths: ["/search"] }, limit: 3, window: "1m", mode: "shadow" },
];

/** The path of the browser; undefined if there is none. */
export const chromiumPath = findChromium();
if (!chromiumPath) {
  const reason = "There is no Chromium in CHROME_PATH or PATH. On Debian: apt-get install chromium";
  if (process.env.WEIR_DEMAND_CHROMIUM === "1") throw new Error(reason);
  console.warn(`The tests in a browser are left out. ${reason}`);
}

/** A group of tests in a browser. It is left out if there is no browser. */
export const describeInBrowser: typeof describe.skip = describe.skipIf(!chromiumPath) as never;

/** A Worker with the dashboard, and a browser. */
export interface Dashboard {
  readonly url: URL;
  /** Opens a page in a new session, without cookies. */
  open(options?: BrowserContextOptions): Promise<Page>;
  /** Opens a page in a session that has logged in. */
  openLoggedIn(options?: BrowserContextOptions): Promise<Page>;
  /** Sends a request as a client, and returns its status. */
  request(ip: string, path: string, method?: string): Promise<number>;
}

/**
 * Starts a browser before the tests of a file, and returns a function that opens a page in a new session, without
 * cookies. After each test, it checks that no page reported an error, such as a violation of its
 * Content-Security-Policy.
 *
 * @param url the address of the server
 */
export function useBrowser(url: () => URL): Dashboard["open"] {
  let browser: Browser;
  const contexts: BrowserContext[] = [];
  const complaints: string[] = [];

  beforeAll(async () => {
    if (chromiumPath) browser = await launchChromium(chromiumPath);
  });
  afterEach(async () => {
    await Promise.all(contexts.splice(0).map((context) => context.close()));
    expect(complaints.splice(0)).toEqual([]);
  });
  afterAll(() => browser?.close());

  return async (options = {}) => {
    const context = await browser.newContext({ baseURL: url().href, ...options });
    contexts.push(context);
    const page = await context.newPage();
    page.setDefaultTimeout(15_000);
    page.on("pageerror", (error) => complaints.push(`${page.url()}: ${error}`));
    page.on("console", (message) => {
      // Chromium reports a page with the status 404 as an error. All other errors are faults of a page.
      const isFaultPage = / 404 /.test(message.text()) && message.location().url === page.url();
      if (["error", "warning"].includes(message.type()) && !isFaultPage) {
        complaints.push(`${page.url()}: ${message.text()}`);
      }
    });
    return page;
  };
}

/** Starts a Worker and a browser before the tests of a file. */
export function useDashboard(): Dashboard {
  let worker: RunningWorker;
  const open = useBrowser(() => worker.url);

  beforeAll(async () => {
    if (!chromiumPath) return;
    worker = await startWorker({
      config: { rules: RULES },
      main: MAIN,
      vars: { WEIR_ADMIN_TOKEN: TOKEN, WEIR_ADMIN_READ_TOKEN: READ_TOKEN },
    });
  });
  afterAll(() => worker?.stop());

  return {
    get url() {
      return worker.url;
    },
    open,
    async openLoggedIn(options) {
      const page = await open(options);
      await logIn(page);
      return page;
    },
    async request(ip, path, method = "GET") {
      const headers = { "cf-connecting-ip": ip };
      return (await send(worker.url, path, { method, headers })).status;
    },
  };
}

const MAIN = `
  import { ControlObject, CounterObject, defineConfig, weir } from "./weir.mjs";
  const limiter = weir(defineConfig(${JSON.stringify({ timeoutMs: TIMEOUT_MS, rules: RULES })}));
  export default {
    fetch: (request, env, ctx) =>
      limiter.fetch(request, env, ctx, () => new Response("the app", { status: 200 })),
  };
  export { ControlObject, CounterObject };
`;

/** Enters a token into the form of the log-in page. */
export async function logIn(page: Page, token = TOKEN): Promise<void> {
  await page.goto("/_weir/login");
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
}

/**
 * Returns the violations that axe finds, each as one line.
 *
 * @param rule the only rule to check, such as that of the colours, which are all that two themes differ in
 * @default all rules
 */
export async function violationsOf(page: Page, rule?: "color-contrast"): Promise<string[]> {
  // A page's policy would forbid a script in the page.
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(
    (runOnly) =>
      (globalThis as unknown as { axe: typeof axe }).axe.run(document, {
        resultTypes: ["violations"],
        ...(runOnly && { runOnly }),
      }),
    rule && [rule],
  );
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target.join(" ")} ${failureSummary}`),
  );
}
