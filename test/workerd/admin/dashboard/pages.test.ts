import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { NO_CONTROL } from "../../../../src/admin/control-client.ts";
import { denialChart, overviewCharts } from "../../../../src/admin/dashboard/traffic-charts.ts";
import { formatRelativeTime } from "../../../../src/admin/format.ts";
import {
  type AdminOperations,
  type ClientReport,
  OperationError,
  type RuleView,
} from "../../../../src/admin/operations.ts";
import type { Quota } from "../../../../src/config/custom.ts";
import type { StoredDenials } from "../../../../src/control/protocol.ts";
import { noRequests, noRuleSums, noStoreSums } from "../../../../src/statistics/sums.ts";
import { createDashboard, NOW } from "./dashboard.ts";
import { FakeOperations } from "./fake-operations.ts";

beforeEach(() => {
  vi.useFakeTimers({ now: NOW, toFake: ["Date", "setTimeout", "clearTimeout"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** The pages that show data of the control object. */
const PATHS = ["/", "/rules", "/rules/search", "/clients", "/denials", "/overrides", "/audit"];
const CHANGES = ["/clients?client=A&rule=login", ...PATHS];

describe.each([...PATHS, "/explain"])("GET /_weir%s", (path) => {
  it("answers with a page", async () => {
    const response = await createDashboard().request(path);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/html; charset=UTF-8");
    expect(await response.text()).toMatch(/^<!doctype html><html lang="en".*<\/html>$/s);
  });

  it("has no inline script, no inline style and no address of another host", async () => {
    const page = await createDashboard().text(path);
    expect(page).not.toMatch(/<script(?![^>]* src="\/_weir\/assets\/)/);
    expect(page).not.toMatch(/<style|\sstyle=|\son[a-z]+=|javascript:/);
    expect(page).not.toMatch(/(?:src|href|action)="(?!\/_weir\/|#)/);
  });
});

describe.each(PATHS)("GET /_weir%s", (path) => {
  it("answers with what it has if the Worker has no control object", async () => {
    const fails = async () => {
      throw new OperationError("unavailable", "The Worker has no binding WEIR_CONTROL.");
    };
    const operations = {
      statistics: fails,
      totals: fails,
      overrides: fails,
      denials: fails,
      audit: fails,
    };
    const response = await createDashboard({ operations }).request(path);
    expect(response.status).toBe(200);
    const page = await response.text();
    if (path !== "/") expect(page).not.toContain("No traffic yet");
    if (path === "/rules") expect(page).toContain(">login<");
    expect(page).toContain("WEIR_CONTROL");
  });

  it("answers within three seconds if the control object does not answer", async () => {
    const hangs = () => new Promise<never>(() => {});
    const operations = {
      statistics: hangs,
      totals: hangs,
      overrides: hangs,
      denials: hangs,
      audit: hangs,
    };
    const response = createDashboard({ operations }).request(path);
    await vi.advanceTimersByTimeAsync(3000);
    expect((await response).status).toBe(200);
    expect(await (await response).text()).toContain("The control object does not answer.");
  });

  it("does not show the message of an unexpected error", async () => {
    const fails = async () => {
      throw new Error("secret detail");
    };
    const operations = {
      statistics: fails,
      totals: fails,
      overrides: fails,
      denials: fails,
      audit: fails,
    };
    const page = await createDashboard({ operations, rules: 3 }).text(path);
    expect(page).not.toContain("secret detail");
  });
});

it("answers with 503 if the rules of a rule's page cannot be read", async () => {
  const rules = async () => {
    throw new OperationError("unavailable", "No answer.");
  };
  const response = await createDashboard({ operations: { rules } }).request("/rules/search");
  expect(response.status).toBe(503);
});

it("answers with 404 for a rule that the configuration does not have", async () => {
  const response = await createDashboard().request("/rules/constructor");
  expect(response.status).toBe(404);
});

it("shows the steps to add the control object only if it is not bound", async () => {
  const pageWith = (message: string) => {
    const statistics = async () => {
      throw new OperationError("unavailable", message);
    };
    return createDashboard({ operations: { statistics } }).text("/rules/search");
  };
  const unbound = await pageWith(NO_CONTROL);
  expect(unbound).toContain("docs/deploying.md");
  expect(unbound).toContain("add a migration");
  const failed = await pageWith("The control object (binding WEIR_CONTROL) did not answer.");
  expect(failed).toContain("did not answer");
  expect(failed).not.toContain("migration");
});

it("shows the override of the rule when a client is looked up", async () => {
  const dashboard = createDashboard();
  const reason = "too many 429";
  await dashboard.fake.setOverride(
    { rule: "login", effect: { mode: "shadow" }, expiresAt: NOW + 60_000, reason },
    "token",
  );
  const page = await dashboard.text("/clients?client=A&rule=login");
  expect(page).toMatch(/The rule is overridden for all clients: .*in shadow mode: denies nothing/);
  expect(page).toContain(reason);
});

it("shows from when on the most limited clients are counted", async () => {
  const clientsFrom = Date.UTC(2026, 10, 22, 9);
  const { fake } = createDashboard();
  const operations: Partial<AdminOperations> = {
    statistics: async (query) => ({ ...(await fake.statistics(query)), clientsFrom }),
  };
  for (const path of ["/", "/clients", "/rules/search"]) {
    const page = await createDashboard({ operations }).text(path);
    expect(page).toContain("Counted by the hour, since 2026-11-22 09:00:00 UTC.");
  }
});

it("shows the time until an end, and the time since a change", () => {
  expect(formatRelativeTime(NOW + 112 * 60_000, NOW)).toBe("in 1h 52m");
  expect(formatRelativeTime(NOW - 90_000, NOW)).toBe("1m 30s ago");
  expect(formatRelativeTime(NOW, NOW)).toBe("now");
});

it("marks the end of a chart while its last bucket is not over", async () => {
  for (const path of ["/", "/rules/search"]) {
    const page = await createDashboard().text(path);
    expect(page).toContain("not over yet");
    expect(page).toMatch(/<rect class="unfinished" x="58" y="0" width="1"/);
  }
  const query = { resolution: "minute", from: NOW - 90_000, until: NOW - 30_000 } as const;
  expect(overviewCharts(query, [], NOW).requests.unfinished).toBe(false);
});

it("names each cell of the audit list and of the overrides, for narrow screens", async () => {
  const dashboard = createDashboard();
  const change = { rule: "login", expiresAt: NOW + 1000, reason: "r" };
  await dashboard.fake.setOverride({ ...change, effect: { mode: "off" } }, "token");
  for (const [path, label] of [
    ["/audit", "Why"],
    ["/overrides", "Reason"],
  ] as const) {
    const page = await dashboard.text(path);
    expect(page).toContain('<table class="cards">');
    expect(page).toContain(`data-label="${label}"`);
  }
});

it("shows no forms for changes to a read-only operator", async () => {
  const dashboard = createDashboard({ role: "read" });
  for (const path of CHANGES) {
    const actions = [...(await dashboard.text(path)).matchAll(/action="([^"]*)"/g)];
    const allowed = ["/_weir/logout", "/_weir/clients", "/_weir/denials", "/_weir/rules"];
    expect(actions.filter(([, action = ""]) => !allowed.includes(action))).toEqual([]);
  }
});

it("shows how to send traffic if there was none", async () => {
  const dashboard = createDashboard({
    operations: {
      statistics: async ({ resolution }) => ({
        resolution,
        buckets: [],
        rules: {},
        clients: [],
        isolates: 0,
        openBreakers: 0,
      }),
      totals: async () => ({
        ...(await dashboard.fake.totals()),
        requests: { ...(await dashboard.fake.totals()).requests, requests: 0 },
      }),
    },
  });
  const page = await dashboard.text("/");
  expect(page).toContain("No traffic yet");
  expect(page).toContain("https://api.example.com/");
});

it("has tables with captions, and headings for columns and rows", async () => {
  const page = await createDashboard().text("/");
  const tables = page.match(/<table.*?<\/table>/gs) ?? [];
  expect(tables.length).toBeGreaterThan(5);
  for (const table of tables) {
    expect(table).toMatch(/<caption.*<th scope="col".*<th scope="row"/s);
  }
});

describe("the list of rules", () => {
  const namesOn = (page: string) =>
    [...page.matchAll(/<a href="\/_weir\/rules\/([a-z0-9-]+)">/g)].map(([, name]) => name);

  it("contains only the rules with a text", async () => {
    const page = await createDashboard({ rules: 200 }).text("/rules?q=Partner-19");
    expect(namesOn(page)).toHaveLength(11);
    expect(page).toContain("11 of 200 rules");
  });

  it("is in the order of the configuration unless an order is given", async () => {
    const dashboard = createDashboard();
    expect(namesOn(await dashboard.text("/rules")).slice(0, 2)).toEqual(["login", "search"]);
    expect(namesOn(await dashboard.text("/rules?sort=name")).slice(0, 2)).toEqual(["api", "login"]);
    expect(namesOn(await dashboard.text("/rules?sort=__proto__")).slice(0, 1)).toEqual(["login"]);
  });

  it("says so if no rule contains the text", async () => {
    expect(await createDashboard().text("/rules?q=zzz")).toContain("No rule contains this text");
  });
});

describe("the peak use of a rule", () => {
  const sums = (peak: number, limited: number) => ({
    ...noRuleSums(),
    requests: 200,
    limited,
    peak,
  });
  const dashboard = createDashboard({
    operations: {
      statistics: async ({ resolution }) => ({
        resolution,
        buckets: [],
        rules: { login: sums(0.875, 0), search: sums(1, 5), uploads: sums(0, 0) },
        clients: [],
        isolates: 1,
        openBreakers: 0,
      }),
    },
  });

  it.each(["/", "/rules?sort=peak"])("orders the rules on %s, the highest first", async (path) => {
    const page = await dashboard.text(path);
    const table = /<table[^>]*>(?:(?!<table).)*Peak use.*?<\/table>/s.exec(page)?.[0] ?? "";
    const rows = [...table.matchAll(/<tr.*?<\/tr>/gs)].map(([row]) => row);
    const rowOf = (rule: string) => rows.findIndex((row) => row.includes(`/rules/${rule}"`));
    expect([rowOf("search"), rowOf("login")]).toEqual([1, 2]);
    expect(rows[1]).toMatch(/>100%<.*>2\.5%</s);
    expect(rows[2]).toMatch(/>87\.5%<.*>0%</s);
    expect(rows[rowOf("uploads")]).toMatch(/>–<.*>0%</s);
  });

  it("is on the page of the rule", async () => {
    const page = await dashboard.text("/rules/login");
    expect(page).toMatch(/Peak use of the limit by one client: <b>87\.5%<\/b>/);
  });
});

describe("the open requests of a rule with concurrent", () => {
  const slots = { policy: "login/concurrent", limit: 4, window: "concurrent", concurrent: true };
  const page = (path: string, openPeak?: number) => {
    const sums = { ...noRuleSums(), requests: 9, ...(openPeak !== undefined && { openPeak }) };
    return createDashboard({
      operations: {
        rules: async () => {
          const [view] = (await new FakeOperations({ rules: 1, clock: () => NOW }).rules()) as [
            RuleView,
          ];
          return [{ ...view, limits: [...view.limits, slots], waitMs: 2000 } as RuleView];
        },
        statistics: async ({ resolution }) => ({
          resolution,
          buckets: [],
          rules: { login: sums },
          clients: [],
          isolates: 1,
          openBreakers: 0,
        }),
        peek: async (selector, rule) => {
          const fake = new FakeOperations({ rules: 1, clock: () => NOW });
          const [report] = (await fake.peek(selector, rule)) as [ClientReport];
          const quota = { ...(report.quotas[0] as Quota), policy: slots.policy, limit: 4 };
          return [{ ...report, quotas: [{ ...quota, remaining: 1, concurrent: true }] }];
        },
      },
    }).text(path);
  };

  it.each([
    [3, "3 / 4", "allowed", "75%"],
    [4, "4 / 4", "limited", "100%"],
    [undefined, "– / 4", "allowed", "0%"],
  ])("are a bar on the page of the rule, with %s of 4", async (openPeak, text, tone, width) => {
    const html = await page("/rules/login", openPeak);
    const bar = `<svg class="bar" aria-hidden="true"><rect fill="var(--${tone})" width="${width}"`;
    const [, card = ""] = /id="open" data-live>(.*?)<\/div><\/div>/s.exec(html) ?? [];
    expect(card).toContain("<bdi>login/concurrent</bdi>");
    expect(card).toContain(`${text} open requests, the highest number of one client`);
    expect(`${card}${html.split(card)[1]}`).toContain(bar);
    expect(html).toContain("<dd><bdi>4 open requests</bdi></dd>");
    expect(html).toContain("<dd><bdi>up to 2s</bdi></dd>");
  });

  it("are a bar on the page of a client", async () => {
    const html = await page(`/clients?client=${"a".repeat(22)}&rule=login`);
    expect(html).toContain("3 / 4 requests are open now");
    expect(html).toContain('<rect fill="var(--allowed)" width="75%"');
    expect(html).not.toContain("resets in");
  });

  it("are no window in the list of rules", async () => {
    expect(await page("/rules")).toContain("5 / 1m, 4 open");
  });
});

describe("the requests that passed ahead of the store", () => {
  const pagesOf = (ahead: number, over: number, async?: true) => {
    const sums = { ...noRuleSums(), requests: 400, allowed: 397, ahead, over };
    const bucket = { at: NOW, store: noStoreSums() };
    const [view] = new FakeOperations({ rules: 1, clock: () => NOW }).views as [RuleView];
    return createDashboard({
      operations: {
        rules: async () => [{ ...view, ...(async && { async }) }],
        statistics: async ({ resolution }) => ({
          resolution,
          buckets: [{ ...bucket, requests: { ...noRequests(), requests: 400, ahead, over } }],
          rules: { login: sums },
          ruleBuckets: [sums],
          clients: [],
          isolates: 1,
          openBreakers: 0,
        }),
      },
    });
  };

  it("are on the overview, with those over the limit", async () => {
    const page = await pagesOf(1234, 3, true).text("/");
    expect(page).toMatch(/Passed ahead of the store.*?<b[^>]*>1,234<\/b>.*?3 over the limit/s);
    expect(page).toMatch(/\/rules\/login".*?>0\.75%</s);
  });

  it("are on the page of the rule, with those over the limit", async () => {
    const page = await pagesOf(1234, 3, true).text("/rules/login");
    expect(page).toContain("<b>0.75%</b> were over the limit: 0 denied");
    expect(page).toContain("1,234 passed ahead of the store, which denied 3 of them later.");
    expect(page).toMatch(/Passes ahead.*before the store has decided/s);
    expect(page).toContain("Passed ahead, over");
  });

  it("are left out if there are none", async () => {
    const dashboard = pagesOf(0, 0);
    expect(await dashboard.text("/")).not.toMatch(/ahead/);
    expect(await dashboard.text("/rules/login")).not.toMatch(/ahead/);
  });
});

it("pages through the list of changes", async () => {
  const entries = Array.from({ length: 120 }, (_, index) => ({
    id: 120 - index,
    at: NOW,
    by: "token",
    action: "log-in" as const,
  }));
  const audit = async (limit: number, before = 1000) =>
    entries.filter(({ id }) => id < before).slice(0, limit);
  const dashboard = createDashboard({ operations: { audit } });
  expect(await dashboard.text("/audit")).toContain("/_weir/audit?before=71");
  expect(await dashboard.text("/audit?before=71")).toContain("/_weir/audit?before=21");
  expect(await dashboard.text("/audit?before=21")).not.toContain("Older");
});

describe("the log-in page", () => {
  it("shows only faults that it knows", async () => {
    const dashboard = createDashboard();
    expect(await dashboard.text("/login?fault=wrong")).toContain("This is not the token.");
    expect(await dashboard.text("/login?fault=toString")).not.toContain('role="alert"');
  });

  it("loads nothing that needs a session", async () => {
    const dashboard = createDashboard();
    const page = await dashboard.text("/login");
    const [, path = ""] = /<link rel="stylesheet" href="\/_weir([^"]+)"/.exec(page) ?? [];
    expect(path).toMatch(/^\/login\//);
    expect((await dashboard.request(path)).status).toBe(200);
    expect(page).not.toContain("/_weir/assets");
  });
});

describe("an asset", () => {
  it("may be kept for ever, because its name changes with its content", async () => {
    const dashboard = createDashboard();
    const page = await dashboard.text("/");
    for (const [, path = ""] of page.matchAll(/(?:src|href)="\/_weir(\/assets\/[^"]+)"/g)) {
      const response = await dashboard.request(path);
      expect(response.status).toBe(200);
      expect(response.headers.get("cache-control")).toContain("immutable");
    }
  });

  it("answers with 404 for other names", async () => {
    expect((await createDashboard().request("/assets/constructor")).status).toBe(404);
    expect((await createDashboard().request("/login/other.css")).status).toBe(404);
  });
});

it.each([
  ["gzip, br", "gzip"],
  ["br;q=1, gzip;q=0.5", "gzip"],
  ["gzip;q=0", null],
  ["gzip;q=0.0, br", null],
  ["gzip;q=0.001", "gzip"],
  ["*", "gzip"],
  ["*;q=0, gzip", "gzip"],
  ["gzip;q=x", null],
  ["gzip;q=0.5, identity", null],
  ["gzipped", null],
  ["", null],
  ["identity", null],
])("compresses for Accept-Encoding: %s only if gzip is accepted", async (accepted, encoding) => {
  const headers = { "accept-encoding": accepted };
  const response = await createDashboard().request("/rules", { headers });
  expect(response.headers.get("content-encoding")).toBe(encoding);
  expect(response.headers.get("vary")).toBe("Accept-Encoding");
});

it("does not compress for a client without Accept-Encoding, although Cloudflare adds the field", async () => {
  const request = new Request("https://api.example.com/_weir/rules", {
    headers: { "accept-encoding": "br, gzip" },
    cf: { clientAcceptEncoding: "" },
  });
  const response = await createDashboard().app.request(request);
  expect(response.headers.get("content-encoding")).toBeNull();
});

describe("a limit that differs by client", () => {
  const source = { from: "custom:quota", max: 100_000 };
  const limits = [
    { policy: "login/1m", limit: 100, window: "1m", source },
    { policy: "login/concurrent", limit: 2, window: "concurrent", concurrent: true, source },
  ] as const;
  const fake = new FakeOperations({ rules: 1, clock: () => NOW });
  const dashboard = createDashboard({
    operations: {
      rules: async () => [{ ...((await fake.rules())[0] as RuleView), limits }],
      statistics: async (query) => {
        const report = await fake.statistics(query);
        return { ...report, rules: { login: { ...noRuleSums(), openPeak: 50_000 } } };
      },
      peek: async (...asked) => {
        const [report] = (await fake.peek(...asked)) as [ClientReport];
        return [{ ...report, limitSource: "500 from custom:<b>quota" }];
      },
    },
  });

  it("is shown with its source, its max and its default in the list of rules", async () => {
    const html = await dashboard.text("/rules");
    expect(html).toContain("custom:quota, at most 100,000, default 100 / 1m");
    expect(html).toContain("custom:quota, at most 100,000, default 2 open");
  });

  it("is shown so on the page of the rule, whose bar ends at the max", async () => {
    const html = await dashboard.text("/rules/login");
    expect(html).toContain("<bdi>custom:quota, at most 100,000, default 100 in 1m</bdi>");
    expect(html).toContain("<bdi>custom:quota, at most 100,000, default 2 open requests</bdi>");
    expect(html).toContain("50,000 / 100,000 open requests");
  });

  it("has its number and its origin on the page of the client", async () => {
    const html = await dashboard.text(`/clients?client=${"a".repeat(22)}&rule=login`);
    expect(html).toContain("The client's own limit: 500 from custom:&lt;b&gt;quota.");
  });
});

describe("the denials", () => {
  it("are listed a hundred at a time, the newest first, with links to client and rule", async () => {
    const dashboard = createDashboard();
    const page = await dashboard.text("/denials");
    expect(page.match(/<th scope="row">/g)).toHaveLength(100);
    const [, client, rule] =
      /href="\/_weir\/clients\?client=([\w-]{22})&amp;rule=(\w+)" class="client"/.exec(page) ?? [];
    expect([client?.length, rule]).toEqual([22, "login"]);
    expect(page).toContain('<a href="/_weir/rules/login">');
    expect(page).toContain('<a href="/_weir/denials?before=9901">Older</a>');
    expect(page).toContain('data-refresh="/_weir/denials"');
    const older = await dashboard.text("/denials?before=9901");
    expect(older).toContain('<a href="/_weir/denials">Newest</a>');
    expect(older).not.toContain("data-refresh");
    expect(await dashboard.text("/denials?before=8101")).not.toContain("Older");
  });

  it("are filtered by rule and client, and say what happened and when to retry", async () => {
    const asked: unknown[] = [];
    const fields = { rule: "former", policy: "former/1h", client: "x".repeat(22), count: 1234 };
    const denials = (more: Partial<StoredDenials>): StoredDenials => ({
      ...{ id: 7, mode: "enforce", firstAt: NOW, lastAt: NOW, ...fields, ...more },
    });
    const operations: Partial<AdminOperations> = {
      denials: async (...given) => {
        asked.push(given);
        return [
          denials({ retryAfterMs: 34_000, colo: "FRA" }),
          denials({ mode: "shadow" }),
          denials({ mode: "local" }),
          denials({ mode: "ahead" }),
        ];
      },
    };
    const path = `/denials?rule=former&client=${"x".repeat(22)}`;
    const page = await createDashboard({ operations }).text(path);
    expect(asked).toEqual([
      [{ rule: "former", before: undefined, limit: 101 }, { client: "x".repeat(22) }],
    ]);
    expect(page).toContain('<option value="former" selected>former</option>');
    for (const text of ["denied", "shadow: passed", "denied: the store failed", "passed ahead"]) {
      expect(page).toContain(`>${text}</span>`);
    }
    expect(page).toMatch(/1,234<.*FRA.*in 34s.*>never</s);
  });

  it("have a faulty identity: the page says so", async () => {
    const denials = async () => {
      throw new OperationError("invalid", "client must be an identity.");
    };
    const page = await createDashboard({ operations: { denials } }).text("/denials?client=x");
    expect(page).toContain("client must be an identity.");
  });

  it("of a client are on its page as charts, in one line of time with the changes of operators", async () => {
    const dashboard = createDashboard();
    const fake = await dashboard.fake.peek({}, "login");
    const client = fake[0]?.client ?? "";
    await dashboard.post("/clients/reset", { client, rule: "login", why: "ticket 4711" });
    const page = await dashboard.text(`/clients?client=${client}&rule=login`);
    for (const title of ["per minute, 1 hour", "per hour, 1 day", "per day, 7 days"]) {
      expect(page).toContain(`Denials ${title}`);
    }
    const history = page.slice(page.indexOf('id="history"'));
    expect(history).toMatch(/reset counts.*ticket 4711.*requests? by .*may retry/s);
    expect(history).toContain(`/_weir/denials?client=${client}&amp;rule=login`);
    const other = await dashboard.text(`/clients?client=${client}&rule=search`);
    expect(other).not.toContain("ticket 4711");
  });

  it("have none on the page of a client without any, and the page of a rule links to them", async () => {
    const denials = async () => [];
    const dashboard = createDashboard({ operations: { denials } });
    const page = await dashboard.text(`/clients?client=${"a".repeat(22)}&rule=login`);
    expect(page).toContain("No denials, and no changes.");
    expect(page).not.toContain("Denials per minute");
    expect(await dashboard.text("/denials")).toContain("No denials");
    expect(await dashboard.text("/rules/login")).toContain("/_weir/denials?rule=login");
  });
});

it("counts a client's denials in the chart by what happened to the requests", () => {
  const of = { rule: "login", policy: "login", client: "x", firstAt: NOW } as const;
  const query = { resolution: "minute", from: NOW - 150_000, until: NOW + 30_000 } as const;
  const { series } = denialChart(
    query,
    [
      { ...of, mode: "enforce", count: 3, lastAt: NOW },
      { ...of, mode: "local", count: 4, lastAt: NOW - 1 },
      { ...of, mode: "shadow", count: 5, lastAt: NOW - 60_000 },
      { ...of, mode: "shadow", count: 9, lastAt: NOW - 600_000 },
    ],
    NOW,
  );
  expect(series.map(({ label, values }) => [label, values])).toEqual([
    ["Limited", [0, 0, 7]],
    ["Shadow: would deny", [0, 5, 0]],
  ]);
});
