// Makes the pictures of the dashboard in docs/pictures/, with invented traffic from a fixed seed. Needs a Chromium.
// Usage: npm run pictures

import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { findChromium, launchChromium } from "../dev/chromium.ts";
import { inventHistory } from "../dev/traffic/history.ts";
import { startWorkerd, weirModule, workerConfig } from "../dev/workerd.ts";
import type { Denials } from "../src/statistics/denials.ts";
import type { LimitedClient } from "../src/statistics/sums.ts";

const SEED = 4711;
/** The time on the pictures. It is fixed, so that a new picture differs only if the page has changed. */
const NOW = Date.UTC(2026, 10, 20, 14, 32, 10);
const DAY_MS = 24 * 3_600_000;
const TOKEN = "token-of-the-pictures-with-forty-letters";
const MAX_BYTES = 150 * 1024;
const FOLDER = join(import.meta.dirname, "../docs/pictures");
const WIDTH = 1200;
/** The maximum height of a picture. The rest of the page is cut off. */
const MAX_HEIGHT = 1000;

const RULES = [
  { name: "login", match: { methods: ["POST"], paths: ["/login"] }, limit: 5, window: "1m" },
  {
    name: "search",
    match: { paths: ["/search"] },
    key: "header:x-api-key | ip",
    limits: [
      { limit: 60, window: "1m" },
      { limit: 1000, window: "1h" },
    ],
  },
  {
    name: "export",
    match: { paths: ["/export/*"] },
    key: "header:x-api-key",
    limit: 20,
    window: "1h",
  },
  {
    name: "search-address",
    match: { paths: ["/search"] },
    limit: 600,
    window: "1m",
    mode: "shadow",
  },
];

/** The script sets the Worker's clock, also that of its Durable Objects. */
const MAIN = `
  import { ControlObject, CounterObject, defineConfig, weir } from "./weir.mjs";
  const realNow = Date.now.bind(Date);
  let ahead = 0;
  Date.now = () => realNow() + ahead;
  const limiter = weir(defineConfig(${JSON.stringify({ timeoutMs: 10_000, rules: RULES })}));
  export default {
    async fetch(request, env, ctx) {
      const { pathname } = new URL(request.url);
      const control = env.WEIR_CONTROL.getByName("global");
      if (pathname === "/clock") {
        ahead = (await request.json()).now - realNow();
        await control.totals();
        return new Response("set");
      }
      if (pathname === "/history") {
        await control.upload(await request.json());
        return new Response("added");
      }
      return limiter.fetch(request, env, ctx, () => new Response("the app"));
    },
  };
  export { ControlObject, CounterObject };
`;

const chromium = findChromium();
if (!chromium) throw new Error("There is no Chromium. On Debian: apt-get install chromium");
mkdirSync(FOLDER, { recursive: true });

const workerd = await startWorkerd([await worker()], { onLog: () => {} });
const browser = await launchChromium(chromium);
try {
  const [url] = workerd.urls as [URL];
  const client = await addTraffic(url);
  for (const theme of ["light", "dark"] as const) await takePictures(browser, url, theme, client);
} finally {
  await browser.close();
  await workerd.stop();
}

async function worker() {
  const object = (exportName: string) =>
    ({ type: "durable-object", worker: "weir", exportName }) as const;
  const sqlite = { type: "durable-object", storage: "sqlite" } as const;
  return {
    config: {
      ...workerConfig("weir", { "main.mjs": MAIN, "weir.mjs": await weirModule() }),
      env: {
        COUNTERS: object("CounterObject"),
        WEIR_CONTROL: object("ControlObject"),
        WEIR_ADMIN_TOKEN: { type: "text", value: TOKEN } as const,
      },
      exports: { CounterObject: sqlite, ControlObject: sqlite },
    },
  };
}

/** @returns the identity of a limited client */
async function addTraffic(url: URL): Promise<string> {
  const post = (path: string, body: object, method = "POST") =>
    send(new URL(path, url), method, body);
  // The statistics begin a day ago.
  await post("/clock", { now: NOW - DAY_MS });
  await post("/clock", { now: NOW });
  for (let sent = 0; sent < 9; sent++) {
    await fetch(new URL("/login", url), {
      method: "POST",
      headers: { "cf-connecting-ip": "203.0.113.66" },
    });
  }
  const known = { ip: "203.0.113.66" };
  const { clients } = await post("/_weir/api/peek", { known, rule: "login" });
  const attacker = (clients as { client: string }[])[0]?.client ?? "";
  await post("/history", {
    source: "pictures",
    sequence: 1,
    minutes: inventHistory(SEED, 24 * 60, NOW),
    clients: limitedClients(attacker),
    denials: denialsOf(limitedClients(attacker)),
    breakerOpen: false,
    overridesVersion: 0,
  });
  const overrides = [
    {
      rule: "login",
      known: { ip: "198.51.100.7" },
      effect: { kind: "limits", limits: { login: 50 } },
      expiresIn: "8h",
      reason: "Ticket 4711: an office behind one address",
    },
    {
      rule: "search",
      known: { "header:x-api-key": "shop-4711" },
      effect: { kind: "factor", factor: 2 },
      expiresIn: "7d",
      reason: "Sale of the customer until Friday",
    },
    { rule: "export", effect: { factor: 0.5 }, expiresIn: "1h", reason: "The database is slow" },
  ];
  for (const override of overrides) await post("/_weir/api/overrides", override, "PUT");
  return attacker;
}

function limitedClients(attacker: string): LimitedClient[] {
  const invent = (index: number) =>
    Buffer.from(`client-${index}-of-${SEED}-xyz`).toString("base64url").slice(-22);
  const rows: [string, string, number, boolean][] = [
    ["login", attacker, 4312, false],
    ["search", invent(1), 1290, false],
    ["search-address", invent(2), 604, true],
    ["search", invent(3), 211, false],
    ["login", invent(4), 37, false],
    ["export", invent(5), 24, false],
    ["login", invent(6), 9, false],
  ];
  return rows.map(([rule, client, count, shadow], index) => ({
    rule,
    client,
    count,
    error: 0,
    lastAt: NOW - index * index * 23_000 - 4000,
    shadow,
  }));
}

/** Returns the denials of clients by the minute. The busiest ones began earlier, and have paused. */
function denialsOf(clients: readonly LimitedClient[]): Denials[] {
  return clients.flatMap(({ rule, client, count, lastAt, shadow }) => {
    const minutes = Math.ceil(Math.sqrt(count));
    return Array.from({ length: minutes }, (_, index) => index)
      .filter((index) => index % 9 < 6)
      .map((index) => ({
        ...{ rule, policy: rule === "search" ? "search/1m" : rule, client },
        mode: shadow ? ("shadow" as const) : ("enforce" as const),
        count: Math.ceil((count / minutes) * (1.2 - 0.1 * (index % 5))),
        firstAt: lastAt - index * 60_000 - 20_000,
        lastAt: lastAt - index * 60_000,
        retryAfterMs: 41_000 - 1000 * (index % 30),
        colo: index % 4 === 0 ? "AMS" : "FRA",
      }));
  });
}

async function send(url: URL, method: string, body: object): Promise<Record<string, unknown>> {
  const response = await fetch(url, {
    method,
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${url.pathname}: ${response.status} ${text}`);
  return text.startsWith("{") ? JSON.parse(text) : {};
}

async function takePictures(
  browser: Browser,
  url: URL,
  colorScheme: "light" | "dark",
  client: string,
): Promise<void> {
  const context = await browser.newContext({
    baseURL: url.href,
    colorScheme,
    viewport: { width: WIDTH, height: 800 },
    reducedMotion: "reduce",
  });
  const page = await context.newPage();
  await page.clock.setFixedTime(NOW);
  await page.goto("/_weir/login");
  await page.getByLabel("Token").fill(TOKEN);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.waitForURL("**/_weir/");
  await page.waitForLoadState("networkidle");
  await take(page, "overview", colorScheme);
  await page.goto(`/_weir/clients?client=${client}&rule=login`);
  await page.getByText("Set override", { exact: true }).first().click();
  await take(page, "client", colorScheme);
  await page.goto("/_weir/overrides");
  await take(page, "overrides", colorScheme);
  await context.close();
}

async function take(page: Page, name: string, theme: string): Promise<void> {
  const path = join(FOLDER, `${name}-${theme}.png`);
  await page.evaluate("document.fonts.ready");
  const { bottom } = await page
    .locator("main")
    .boundingBox()
    .then((box) => ({ bottom: Math.ceil((box?.y ?? 0) + (box?.height ?? 0)) }));
  const clip = { x: 0, y: 0, width: WIDTH, height: Math.min(bottom - 24, MAX_HEIGHT) };
  await page.screenshot({ path, fullPage: true, clip, animations: "disabled" });
  const { size } = statSync(path);
  console.log(`docs/pictures/${name}-${theme}.png: ${Math.ceil(size / 1024)} KiB`);
  if (size > MAX_BYTES) throw new Error(`The picture is larger than ${MAX_BYTES / 1024} KiB.`);
}
