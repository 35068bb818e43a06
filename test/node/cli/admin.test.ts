import { describe, expect, it } from "vitest";
import { problem, startFakeApi, TOKEN } from "./fake-api.ts";
import { runWeir, temporaryFolder } from "./run-weir.ts";

const CLIENT = "J2rAWY1vmcsYy6tNd_0bxQ";
const NOW = Date.now();

const RULES = {
  rules: [
    { name: "login", limits: [{ policy: "login", limit: 5, window: "1m" }], hasBan: true },
    {
      name: "search",
      limits: [
        { policy: "search/1m", limit: 60, window: "1m" },
        { policy: "search/1h", limit: 1000, window: "1h" },
      ],
      hasBan: false,
    },
  ],
};

const QUOTA = {
  policy: "login",
  limit: 5,
  windowMs: 60_000,
  remaining: 0,
  resetMs: 41_500,
  resetAt: NOW + 41_500,
  violated: false,
  retryAfterMs: 41_500,
  reservationDelayMs: 0,
};

const OVERRIDE = {
  rule: "login",
  client: CLIENT,
  effect: { kind: "limits", limits: { login: 500 } },
  expiresAt: NOW + 7_200_000,
  reason: "Migration of a customer",
  by: "token",
  setAt: NOW,
};

const REPORT = { rule: "login", client: CLIENT, countedBy: "ip", quotas: [QUOTA], banMs: 0 };

const REQUESTS = {
  requests: 1500,
  unmatched: 300,
  refused: 0,
  allowed: 1000,
  limited: 195,
  undecidedPassed: 5,
  undecidedDenied: 0,
  fromMemory: 150,
  countedLocally: 0,
  waited: 0,
  waitedMs: 0,
};
const STORE = {
  calls: 1350,
  failures: 5,
  commands: 0,
  latency: [0, 675, 600, 75, 0, 0, 0, 0, 0, 0, 0, 0, 0],
  latencyMs: 4000,
};
const LOGIN = {
  requests: 1200,
  allowed: 1000,
  limited: 195,
  marked: 0,
  undecided: 5,
  shadowLimited: 0,
  peak: 0.875,
};
const STATISTICS = {
  resolution: "minute",
  buckets: [
    { at: Date.UTC(2026, 10, 22, 17, 4), requests: REQUESTS, store: STORE },
    { at: Date.UTC(2026, 10, 22, 17, 5), requests: REQUESTS, store: STORE },
  ],
  rules: { login: LOGIN },
  clients: [
    { rule: "login", client: CLIENT, count: 12_345, error: 3, lastAt: NOW - 61_000, shadow: false },
    { rule: "search", client: "b".repeat(22), count: 7, error: 0, lastAt: NOW, shadow: true },
  ],
  isolates: 2,
  openBreakers: 1,
};

describe("weir peek", () => {
  it("shows the client's own limit, and where it came from", async () => {
    const report = { ...REPORT, limitSource: "5 from custom:quota" };
    await using api = await startFakeApi({
      "GET rules": RULES,
      "POST peek": { clients: [report] },
    });
    const run = await api.run("peek", "login", "--ip", "203.0.113.7");
    expect(run.stdout.split("\n").slice(0, 2)).toEqual([
      `login  client ${CLIENT}, counted by ip`,
      "  own limit: 5 from custom:quota",
    ]);
  });

  it("shows no quota of an unknown limit", async () => {
    const [first, ...rest] = REPORT.quotas;
    const quotas = [{ ...first, isUnknown: true }, ...rest];
    await using api = await startFakeApi({
      "GET rules": RULES,
      "POST peek": { clients: [{ ...REPORT, limitSource: "unknown here: …", quotas }] },
    });
    const run = await api.run("peek", "login", "--ip", "203.0.113.7");
    expect(run.stdout).toMatch(/^ {2}own limit: unknown here: …$/m);
    expect(run.stdout).toMatch(/^ {2}login +\? +\? +1m *$/m);
  });

  it("shows the quota of a client that is known by its address", async () => {
    await using api = await startFakeApi({
      "GET rules": RULES,
      "POST peek": { clients: [REPORT] },
    });
    const run = await api.run("peek", "login", "--ip", "203.0.113.7");
    expect(run).toMatchObject({ code: 0, stderr: "" });
    expect(run.stdout).toBe(
      [
        `login  client ${CLIENT}, counted by ip`,
        "  POLICY  LIMIT  LEFT  WINDOW  MORE IN",
        "  login       5     0  1m      42s",
        "",
      ].join("\n"),
    );
    expect(api.sent).toMatchObject([
      { method: "GET", path: "rules" },
      {
        method: "POST",
        path: "peek",
        authorization: `Bearer ${TOKEN}`,
        body: { known: { ip: "203.0.113.7" }, rule: "login" },
      },
      { method: "POST", path: "denials?limit=1000&rule=login" },
    ]);
  });

  it("shows the open requests of a client as a bar", async () => {
    const slots = { ...QUOTA, policy: "login/concurrent", limit: 4, remaining: 1 };
    const quotas = [QUOTA, { ...slots, windowMs: 300_000, concurrent: true }];
    await using api = await startFakeApi({
      "GET rules": RULES,
      "POST peek": { clients: [{ ...REPORT, quotas }] },
    });
    const { stdout } = await api.run("peek", "login", "--ip", "203.0.113.7");
    expect(stdout.split("\n").slice(1, -1)).toEqual([
      "  POLICY            LIMIT  LEFT  WINDOW  MORE IN  OPEN NOW",
      "  login                 5     0  1m      42s",
      "  login/concurrent      4     1                   ███████████████░░░░░ 3 / 4",
    ]);
  });

  it("shows a ban and an override", async () => {
    const report = { ...REPORT, quotas: [], banMs: 3_600_000, override: OVERRIDE };
    await using api = await startFakeApi({
      "GET rules": RULES,
      "POST peek": { clients: [report] },
    });
    const { stdout } = await api.run("peek", "--client", CLIENT);
    expect(stdout).toContain("  banned for another 1h\n");
    expect(stdout).toMatch(
      /override: login = 500, until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, by token: Migration of a customer/,
    );
    expect(api.sent.at(-1)?.body).toEqual({ client: CLIENT });
  });

  it("shows the override of the rule, which changes the limits of the client", async () => {
    const { client, ...fields } = OVERRIDE;
    const ruleOverride = { ...fields, effect: { mode: "shadow", factor: 0.2 }, reason: "Attack" };
    const [login, search] = RULES.rules;
    const rules = [{ ...login, override: ruleOverride }, search];
    await using api = await startFakeApi({
      "GET rules": { rules },
      "POST peek": { clients: [REPORT, { ...REPORT, rule: "search" }] },
    });
    const { stdout } = await api.run("peek", "--ip", "203.0.113.7");
    const [inLogin, inSearch] = stdout.split("\n\n");
    expect(inLogin).toMatch(
      /\n {2}override of the rule: in shadow mode: denies nothing, all limits × 0\.2, until \S+ \S+ UTC, by token: Attack\n/,
    );
    expect(inSearch).not.toContain("override");
  });

  it("explains that a client's override replaces the factor of its rule", async () => {
    const { client, ...fields } = OVERRIDE;
    const rules = [{ ...RULES.rules[0], override: { ...fields, effect: { factor: 0.2 } } }];
    await using api = await startFakeApi({
      "GET rules": { rules },
      "POST peek": { clients: [{ ...REPORT, override: OVERRIDE }] },
    });
    expect((await api.run("peek", "--ip", "203.0.113.7")).stdout).toContain(
      "  override of the rule, whose factor does not apply to this client: all limits × 0.2, until ",
    );
  });

  it("sends the values of a combined key", async () => {
    await using api = await startFakeApi({
      "GET rules": RULES,
      "POST peek": { clients: [REPORT] },
    });
    await api.run("peek", "--ip", "203.0.113.7", "--known", "header:x-api-key=a=b");
    expect(api.sent.at(-1)?.body).toEqual({
      known: { ip: "203.0.113.7", "header:x-api-key": "a=b" },
    });
  });

  it("reads a key from standard input, so that it is in no argument", async () => {
    await using api = await startFakeApi({
      "GET rules": RULES,
      "POST peek": { clients: [REPORT] },
    });
    await using folder = await temporaryFolder();
    const args = ["peek", "--known", "header:x-api-key=-", "--at", api.url];
    const run = await runWeir(args, folder.path, { WEIR_ADMIN_TOKEN: TOKEN }, "secret-key\n");
    expect(run).toMatchObject({ code: 0, stderr: "" });
    expect(api.sent.at(-1)?.body).toEqual({ known: { "header:x-api-key": "secret-key" } });
    expect(run.stdout).not.toContain("secret-key");
  });

  it("exits with 1 if no rule counts the client", async () => {
    await using api = await startFakeApi({ "GET rules": RULES, "POST peek": { clients: [] } });
    const run = await api.run("peek", "--ip", "203.0.113.7");
    expect(run).toMatchObject({ code: 1, stdout: "" });
    expect(run.stderr).toContain("No rule counts clients by these values.");
  });

  it.each<[string[], string]>([
    [[], "Name the client: --ip 203.0.113.7"],
    [["--known", "header:x-api-key"], "--known needs a name and a value"],
    [["--known", "ip=a", "--ip", "b"], "ip is given twice"],
    [["--ip", "203.0.113.7:443"], "--ip is not an IP address. Allowed: an address without a port"],
    [["--ip", "203.0.113.0/24"], "--ip is not an IP address."],
    [["--client", "203.0.113.7"], "--client must be an identity: 22 characters"],
    [["--client", CLIENT, "--ip", "b"], "--client is already complete"],
  ])("makes no call with the options %j", async (args, message) => {
    await using api = await startFakeApi({});
    const run = await api.run("peek", ...args);
    expect(run).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining(message) });
    expect(api.sent).toEqual([]);
  });
});

describe("weir reset", () => {
  it.each<[string[], string, string]>([
    [[], "POST reset", "The counts are removed"],
    [["--ban-only"], "POST lift-ban", "The counts are unchanged."],
  ])("sends the client and the reason, with %j", async (args, call, printed) => {
    await using api = await startFakeApi({ "GET rules": RULES, [call]: { clients: [REPORT] } });
    const run = await api.run("reset", "login", "--ip", "::1", "--reason", "Ticket 4711", ...args);
    expect(run).toMatchObject({ code: 0, stderr: "", stdout: expect.stringContaining(printed) });
    expect(api.sent.at(-1)?.body).toEqual({
      known: { ip: "::1" },
      rule: "login",
      why: "Ticket 4711",
    });
  });

  it("requires a reason", async () => {
    await using api = await startFakeApi({});
    const run = await api.run("reset", "login", "--ip", "203.0.113.7");
    expect(run.code).toBe(1);
    expect(run.stderr).toContain("required option '--reason <text>' not specified");
    expect(api.sent).toEqual([]);
  });
});

describe("weir override", () => {
  const set = (...args: string[]) => ["override", ...args, "--for", "2h", "--reason", "Why"];

  it.each<[string[], object]>([
    [["login", "--limit", "500"], { kind: "limits", limits: { login: 500 } }],
    [
      ["search", "--limits", "search/1m=5,1h=50"],
      { kind: "limits", limits: { "search/1m": 5, "search/1h": 50 } },
    ],
    [["search", "--factor", "2.5"], { kind: "factor", factor: 2.5 }],
    [["login", "--unlimited"], { kind: "unlimited" }],
    [["login", "--block"], { kind: "blocked" }],
  ])("sets the override of one client: %j", async ([rule = "", ...args], effect) => {
    const override = { ...OVERRIDE, rule, effect };
    await using api = await startFakeApi({ "GET rules": RULES, "PUT overrides": { override } });
    const run = await api.run(...set(rule, "--ip", "203.0.113.7", ...args));
    expect(run).toMatchObject({ code: 0, stderr: "" });
    expect(run.stdout).toContain(`Set: ${rule}, client ${CLIENT}: `);
    expect(api.sent.at(-1)?.body).toEqual({
      rule,
      known: { ip: "203.0.113.7" },
      effect,
      expiresIn: "2h",
      reason: "Why",
    });
  });

  it.each<[string[], object]>([
    [["--mode", "shadow"], { mode: "shadow" }],
    [["--mode", "enforce", "--factor", "0.5"], { mode: "enforce", factor: 0.5 }],
  ])("sets the override of a rule: %j", async (args, effect) => {
    const { client, ...fields } = OVERRIDE;
    await using api = await startFakeApi({
      "GET rules": RULES,
      "PUT overrides": { override: { ...fields, effect } },
    });
    const run = await api.run(...set("login", ...args));
    expect(run.stdout).toContain("Set: login, all clients: ");
    const body = { rule: "login", effect, expiresIn: "2h", reason: "Why" };
    expect(api.sent.at(-1)).toMatchObject({ method: "PUT", body });
  });

  it("removes an override by the identity that the Worker computes", async () => {
    await using api = await startFakeApi({
      "POST peek": { clients: [{ ...REPORT, override: OVERRIDE }] },
      "DELETE overrides": { override: OVERRIDE },
    });
    const args = ["login", "--ip", "203.0.113.7", "--remove", "--reason", "Over"];
    const run = await api.run("override", ...args);
    expect(run).toMatchObject({ code: 0, stderr: "" });
    expect(run.stdout).toContain(`Removed: login, client ${CLIENT}: login = 500.\n`);
    expect(api.sent.at(-1)?.body).toEqual({ id: `login:${CLIENT}`, why: "Over" });
  });

  it("removes nothing if the client has no override", async () => {
    await using api = await startFakeApi({
      "GET rules": RULES,
      "POST peek": { clients: [REPORT] },
    });
    const run = await api.run("override", "login", "--ip", "::1", "--remove", "--reason", "Over");
    expect(run).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("login has no override for this client."),
    });
    expect(api.sent.map(({ method }) => method)).toEqual(["POST"]);
  });

  it.each<[string, string | number]>([
    ["3600", 3600],
    ["3600s", "3600s"],
  ])("ends after --for %s", async (given, expiresIn) => {
    const { client, ...fields } = OVERRIDE;
    await using api = await startFakeApi({
      "GET rules": RULES,
      "PUT overrides": { override: { ...fields, effect: { mode: "off" } } },
    });
    const args = ["login", "--mode", "off", "--for", given, "--reason", "Why"];
    expect(await api.run("override", ...args)).toMatchObject({ code: 0, stderr: "" });
    expect(api.sent.at(-1)?.body).toMatchObject({ expiresIn });
  });

  it.each([[["--client", CLIENT]], [[]]])(
    "reports that there is no override to remove, with %j",
    async (selected) => {
      const detail = "The rule login has no override for all clients.";
      await using api = await startFakeApi({ "DELETE overrides": problem(404, detail) });
      const run = await api.run("override", "login", ...selected, "--remove", "--reason", "Over");
      expect(run).toEqual({ code: 1, stdout: "", stderr: `${detail}\n` });
    },
  );

  it.each<[string[], string]>([
    [
      ["login", "--mode", "off", "--for", "2 hours", "--reason", "x"],
      '--for is "2 hours". Allowed: a whole number of seconds, or a whole number and a unit',
    ],
    [["login", "--mode", "off", "--for", "366d", "--reason", "x"], "to 365 days"],
    [["login", "--mode", "off", "--for", "0", "--reason", "x"], "from 1 second"],
    [["login", "--factor", "1001", "--for", "2h", "--reason", "x"], "above 0 and at most 1000"],
    [["login", "--ip", "::1", "--block", "--reason", "x"], "An override always has an end."],
    [set("login", "--ip", "::1").slice(1), "Name exactly one of --limit"],
    [set("login", "--ip", "::1", "--block", "--unlimited").slice(1), "Name exactly one of"],
    [set("login", "--ip", "::1", "--mode", "off").slice(1), "--mode changes a rule for all"],
    [set("login", "--limit", "5").slice(1), "--limit needs a client"],
    [set("login").slice(1), "Name what to change"],
    [set("search", "--ip", "::1", "--limit", "7").slice(1), "--limits search/1m=7,search/1h=7"],
    [set("search", "--ip", "::1", "--limits", "1d=7").slice(1), '--limits has "1d=7"'],
    [set("logins", "--ip", "::1", "--block").slice(1), "no rule logins. Did you mean login?"],
    [set("xxxxxx", "--ip", "::1", "--block").slice(1), "no rule xxxxxx. It has: login, search."],
    [["login", "--remove", "--block", "--reason", "x"], "--remove takes only"],
  ])("changes nothing with the options %j", async (args, message) => {
    await using api = await startFakeApi({ "GET rules": RULES });
    const run = await api.run("override", ...args);
    expect(run).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining(message) });
    expect(api.sent.filter(({ method }) => method !== "GET")).toEqual([]);
  });
});

describe("weir overrides", () => {
  it("lists the overrides, without what a terminal would obey", async () => {
    const odd = { ...OVERRIDE, client: undefined, effect: { mode: "off" }, reason: "a\u001b[2Jb" };
    await using api = await startFakeApi({ "GET overrides": { overrides: [OVERRIDE, odd] } });
    const run = await api.run("overrides");
    const [heading, first, second] = run.stdout.split("\n");
    expect(heading).toMatch(/^RULE +CLIENT +EFFECT +ENDS IN +BY +REASON$/);
    expect(first).toMatch(new RegExp(`^login +${CLIENT} +login = 500 +(2h|1h 59m|1h 60m) +token`));
    expect(second).toMatch(/^login +\(all clients\) +off: does not apply .* a \[2Jb$/);
  });

  it("reports that there are none", async () => {
    await using api = await startFakeApi({ "GET overrides": { overrides: [] } });
    expect(await api.run("overrides")).toMatchObject({
      code: 0,
      stdout: "There are no overrides.\n",
    });
  });
});

describe("weir stats", () => {
  it("shows the sums of all rules", async () => {
    await using api = await startFakeApi({ "GET rules": RULES, "GET statistics": STATISTICS });
    const run = await api.run("stats");
    expect(run).toMatchObject({ code: 0, stderr: "" });
    expect(run.stdout.split("\n")).toEqual([
      "Last 1h: 3,000 requests, 390 limited (13.0%), 10 undecided",
      "Store: 2,700 calls, 10 failed, half within 2 ms, 99% within 9.1 ms; 10.0% of the requests decided from memory",
      "Isolates: 2, 1 with an open breaker",
      "Requests: ██",
      "",
      "RULE   REQUESTS  ALLOWED  LIMITED  MARKED  UNDECIDED  SHADOW  PEAK USE",
      "login     1,200    1,000      195       0          5       0  87.5%",
      "",
    ]);
  });

  it("says what the column SHADOW means if a rule in shadow mode would have denied requests", async () => {
    const rules = { login: { ...LOGIN, shadowLimited: 7 } };
    const report = { ...STATISTICS, rules };
    await using api = await startFakeApi({ "GET rules": RULES, "GET statistics": report });
    const { stdout } = await api.run("stats");
    expect(stdout).toMatch(
      /\n\nSHADOW: requests that a rule in shadow mode would have denied\. .*\n$/,
    );
  });

  it("shows the requests that passed ahead, and those that were over the limit, if there are any", async () => {
    const requests = { ...REQUESTS, ahead: 600, over: 2 };
    const buckets = STATISTICS.buckets.map((bucket) => ({ ...bucket, requests }));
    const login = { ...LOGIN, ahead: 0, over: 0 };
    const rules = { login, reads: { ...login, requests: 1100, ahead: 1000, over: 4 } };
    const report = { ...STATISTICS, buckets, rules };
    await using api = await startFakeApi({ "GET rules": RULES, "GET statistics": report });
    const { stdout } = await api.run("stats");
    const [first = "", , , , ...lines] = stdout.split("\n");
    expect(first).toMatch(/10 undecided, 1,200 passed ahead of the store \(4 over the limit\)$/);
    expect(lines.slice(1)).toEqual([
      "RULE   REQUESTS  ALLOWED  LIMITED  MARKED  UNDECIDED  SHADOW  PEAK USE  AHEAD  OVER",
      "login     1,200    1,000      195       0          5       0  87.5%         0     0",
      "reads     1,100    1,000      195       0          5       0  87.5%     1,000     4",
      "",
      "AHEAD: requests that passed before the store had decided (async). OVER: those that it denied later.",
      "",
    ]);
  });

  it("asks for the last hours of one rule, and shows one line for each of them", async () => {
    const report = { ...STATISTICS, ruleBuckets: [LOGIN, LOGIN] };
    await using api = await startFakeApi({ "GET rules": RULES, "GET statistics": report });
    const run = await api.run("stats", "--rule", "login", "--last", "2d", "--by", "hour");
    expect(run.stdout).toMatch(/^2026-11-22 17:04:00 UTC +1,200 +1,000 +195 /m);
    const query = new URLSearchParams(api.sent.at(-1)?.path.split("?")[1]);
    expect(Object.fromEntries(query)).toMatchObject({ resolution: "hour", rule: "login" });
    expect(Number(query.get("until")) - Number(query.get("from"))).toBe(2 * 86_400_000);
  });

  it("refuses a time that it cannot read", async () => {
    await using api = await startFakeApi({});
    const run = await api.run("stats", "--last", "yesterday");
    expect(run).toMatchObject({ code: 1, stderr: expect.stringContaining("such as 15m, 1h") });
  });
});

describe("weir top", () => {
  it("shows the clients that were limited most", async () => {
    await using api = await startFakeApi({ "GET rules": RULES, "GET statistics": STATISTICS });
    const [heading, first, second] = (await api.run("top")).stdout.split("\n");
    expect(heading).toMatch(/^RULE +CLIENT +LIMITED +ERROR +LAST/);
    expect(first).toMatch(new RegExp(`^login +${CLIENT} +12,345 +± 3 +1m \\d+s ago$`));
    expect(second).toMatch(/^search +b{22} +7 .* shadow: not denied$/);
  });

  it("shows from when on the clients are counted, because they are kept by hour", async () => {
    const clientsFrom = Date.UTC(2026, 10, 22, 18);
    const answer = { ...STATISTICS, clientsFrom };
    await using api = await startFakeApi({ "GET rules": RULES, "GET statistics": answer });
    const shown = await api.run("top", "--last", "1m");
    expect(shown.stdout).toContain(
      "Counted since 2026-11-22 18:00:00 UTC. The counts are usually at most 25 seconds old",
    );
    const { stdout } = await api.run("top", "--last", "1m", "--json");
    expect(JSON.parse(stdout)).toMatchObject({ clientsFrom });
  });

  it("says how old its counts are if it shows no client, because a denial may be newer", async () => {
    const answer = { ...STATISTICS, clients: [] };
    await using api = await startFakeApi({ "GET rules": RULES, "GET statistics": answer });
    expect((await api.run("top")).stdout).toMatch(
      /^No client was limited in the last 1h\. The counts are usually at most 25 seconds old/,
    );
  });

  it("shows as many as asked for", async () => {
    await using api = await startFakeApi({ "GET rules": RULES, "GET statistics": STATISTICS });
    const { stdout } = await api.run("top", "--count", "1", "--json");
    expect(JSON.parse(stdout).clients).toHaveLength(1);
  });

  it.each(["0", "101", "1e1"])("refuses --count %s, with the bounds", async (given) => {
    await using api = await startFakeApi({});
    const run = await api.run("top", "--count", given);
    expect(run).toMatchObject({ code: 1, stdout: "" });
    expect(run.stderr).toContain("Allowed: a whole number from 1 to 100.");
    expect(api.sent).toEqual([]);
  });
});

const DENIAL = {
  ...{ id: 7, rule: "login", policy: "login", client: CLIENT, mode: "enforce", count: 1234 },
  ...{ firstAt: NOW - 9000, lastAt: Date.UTC(2026, 10, 22, 12, 0, 5), retryAfterMs: 41_500 },
  colo: "FRA",
};

describe("weir denials", () => {
  const answers = { "GET rules": RULES, "GET denials": { denials: [DENIAL] } };

  it("shows the newest denials of all clients", async () => {
    await using api = await startFakeApi({
      ...answers,
      "GET denials": {
        denials: [DENIAL, { ...DENIAL, mode: "shadow", retryAfterMs: undefined, colo: undefined }],
      },
    });
    const [heading, first, second, , note] = (await api.run("denials")).stdout.split("\n");
    expect(heading).toMatch(/^LAST +TIMES +RULE +POLICY +CLIENT +WHAT +PLACE +RETRY AFTER$/);
    const row = `^2026-11-22 12:00:05 UTC +1,234 +login +login +${CLIENT}`;
    expect(first).toMatch(new RegExp(`${row} +denied +FRA +42s$`));
    expect(second).toMatch(new RegExp(`${row} +shadow: passed +never$`));
    expect(note).toBe("All that are kept. Isolates upload them every 5 to 25 seconds.");
    expect(api.sent.map(({ method, path }) => `${method} ${path}`)).toEqual([
      "GET denials?limit=20",
    ]);
  });

  it("asks for a client by values in the body, never in a URL", async () => {
    await using api = await startFakeApi({ "POST denials": { denials: [] } });
    const run = await api.run("denials", "--ip", "203.0.113.7", "--since", "2026-11-22T12:00:00Z");
    expect(run).toMatchObject({ code: 0 });
    expect(run.stdout).toContain("No denials from 2026-11-22 12:00:00 UTC.");
    const [{ path, body } = { path: "", body: {} }] = api.sent;
    expect(path).toBe(`denials?limit=20&since=${Date.UTC(2026, 10, 22, 12)}`);
    expect(body).toEqual({ known: { ip: "203.0.113.7" } });
  });

  it("reads times of day in UTC: the last such time, and the next one after it", async () => {
    await using api = await startFakeApi(answers);
    await api.run("denials", "--since", "12:00", "--until", "12:30", "--limit", "5");
    const query = new URLSearchParams(api.sent[0]?.path.split("?")[1]);
    const since = Number(query.get("since"));
    expect(new Date(since).toISOString()).toMatch(/T12:00:00.000Z$/);
    expect(Date.now() - since).toBeGreaterThanOrEqual(0);
    expect(Date.now() - since).toBeLessThan(86_400_000);
    expect(Number(query.get("until")) - since).toBe(1_800_000);
    expect(query.get("limit")).toBe("5");
  });

  it("reads how long ago, and only one rule", async () => {
    await using api = await startFakeApi(answers);
    const run = await api.run("denials", "--since", "2h", "--rule", "login", "--json");
    expect(JSON.parse(run.stdout)).toEqual({ denials: [DENIAL] });
    const query = new URLSearchParams(api.sent.at(-1)?.path.split("?")[1]);
    expect(Math.abs(Date.now() - Number(query.get("since")) - 7_200_000)).toBeLessThan(60_000);
    expect(query.get("rule")).toBe("login");
  });

  it("refuses a time that ends before it begins", async () => {
    await using api = await startFakeApi(answers);
    const run = await api.run("denials", "--since", "5m", "--until", "10m");
    expect(run).toMatchObject({ code: 1, stdout: "" });
    expect(run.stderr).toMatch(/--until, .* UTC, is before --since, .* UTC\./);
  });

  it("says that the Worker may be too old to have denials", async () => {
    const detail = "There is nothing at this path. See docs/operating.md.";
    await using api = await startFakeApi({ "GET denials": problem(404, detail) });
    const { stderr } = await api.run("denials");
    expect(stderr).toContain("The Worker may be older than this command.");
  });

  it.each([
    ["--since", "noon", "a time of day in UTC, such as 12:00"],
    ["--until", "25:00", "a time of day in UTC, such as 12:00"],
    ["--since", "2026-02-30T12:00:00Z", "a time with its zone"],
    ["--limit", "1001", "Allowed: a whole number from 1 to 1000."],
    ["--client", "203.0.113.7", "--client must be an identity"],
  ])("refuses %s %s", async (option, given, message) => {
    await using api = await startFakeApi({});
    const run = await api.run("denials", option, given);
    expect(run).toMatchObject({ code: 1, stdout: "" });
    expect(run.stderr).toContain(message);
    expect(api.sent).toEqual([]);
  });

  it("are below the quotas of weir peek, the last five of each rule", async () => {
    const others = Array.from({ length: 9 }, () => DENIAL);
    await using api = await startFakeApi({
      "GET rules": RULES,
      "POST peek": { clients: [REPORT] },
      "POST denials": { denials: [...others, { ...DENIAL, rule: "search" }] },
    });
    const { stdout } = await api.run("peek", "--ip", "203.0.113.7");
    expect(stdout.match(/^ {2}2026-11-22 12:00:05 UTC +1,234 +login .* 42s$/gm)).toHaveLength(5);
    const { stdout: json } = await api.run("peek", "--ip", "203.0.113.7", "--json");
    expect(JSON.parse(json).denials).toHaveLength(10);
  });

  it("are left out of weir peek if the Worker has none", async () => {
    await using api = await startFakeApi({
      "GET rules": RULES,
      "POST peek": { clients: [REPORT] },
      "POST denials": problem(503, "The Worker has no control object."),
    });
    const { code, stdout } = await api.run("peek", "--ip", "203.0.113.7");
    expect(code).toBe(0);
    expect(stdout).not.toContain("PLACE");
  });
});

describe("--json", () => {
  it("prints the answer of the API as one document", async () => {
    await using api = await startFakeApi({
      "GET rules": RULES,
      "POST peek": { clients: [REPORT] },
    });
    const run = await api.run("peek", "--ip", "203.0.113.7", "--json");
    expect(JSON.parse(run.stdout)).toEqual({ clients: [REPORT] });
  });

  it("prints an error as one document", async () => {
    await using api = await startFakeApi({ "GET overrides": problem(404, "There is none.") });
    const run = await api.run("overrides", "--json");
    expect(run).toMatchObject({ code: 1, stderr: "" });
    expect(JSON.parse(run.stdout)).toEqual({ ok: false, error: "There is none." });
  });
});

describe("a Worker that sends codes for a terminal", () => {
  /** Every character that a terminal obeys, or that changes the direction of a text. */
  const CODES = [0x7f, 0x61c, 0x200b, 0x200e, 0x200f, 0x2028, 0x2029, 0xfeff]
    .concat(range(0, 0x1f), range(0x80, 0x9f), range(0x202a, 0x202e), range(0x2066, 0x2069))
    .map((code) => String.fromCharCode(code));
  const EVIL = `a${CODES.join("x")}z`;

  function range(first: number, last: number): number[] {
    return Array.from({ length: last - first + 1 }, (_, at) => first + at);
  }

  /** Replaces each text of an answer, and the numbers that are printed without a format. */
  function evil(value: unknown): unknown {
    if (typeof value === "string") return value === "login" ? value : EVIL;
    if (Array.isArray(value)) return value.map(evil);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, each]) => [
        name,
        name === "isolates" || name === "openBreakers" ? `1${EVIL}` : evil(each),
      ]),
    );
  }

  const answers = {
    "GET rules": evil(RULES) as object,
    "GET statistics": {
      ...(evil(STATISTICS) as object),
      rules: { [EVIL]: LOGIN },
      openBreakers: "\u2028 1",
    },
    "GET overrides": { overrides: [evil(OVERRIDE)] },
    "POST peek": { clients: [{ ...(evil(REPORT) as object), override: evil(OVERRIDE) }] },
    "GET denials": { denials: [evil(DENIAL)] },
    "POST denials": { denials: [evil(DENIAL)] },
    "POST reset": { clients: [evil(REPORT)] },
    "PUT overrides": { override: evil(OVERRIDE) },
  };

  it.each([
    ["stats"],
    ["stats", "--by", "hour"],
    ["top"],
    ["denials"],
    ["overrides"],
    ["peek", "login", "--ip", "203.0.113.7"],
    ["reset", "login", "--ip", "203.0.113.7", "--reason", "why"],
    ["override", "login", "--ip", "203.0.113.7", "--factor", "2", "--for", "1h", "--reason", "why"],
    ["peek", "none", "--ip", "203.0.113.7"],
  ])("cannot print them: %s %s %s", async (...args) => {
    await using api = await startFakeApi(answers);
    for (const form of [[], ["--json"]]) {
      const { stdout, stderr } = await api.run(...args, ...form);
      const printed = stdout + stderr;
      expect(printed).toMatch(/[axz]/);
      expect(CODES.filter((code) => code !== "\n" && printed.includes(code))).toEqual([]);
      expect(printed).not.toMatch(/x\nx/);
    }
  });
});
