import { describe, expect, it } from "vitest";
import type { LogFacts } from "../../../cli/logs/log-request.ts";
import type { ConfigInput, RuleInput } from "../../../src/config/index.ts";
import { ALL, COMBINED, decide, engineOf, logged } from "./requests.ts";

type Fields = Partial<Omit<RuleInput, "name" | "limit" | "window">>;

const settings: Partial<ConfigInput> = {
  jwt: { secret: "JWT_SECRET" },
  custom: {
    keys: { account: () => "a" },
    costs: { depth: () => 1 },
    settle: { tokens: () => 1 },
  },
};

const configOf = (fields: Fields, more: Partial<ConfigInput> = settings) =>
  ({ ...more, rules: [{ name: "api", limit: 5, window: "1m", ...fields }] }) as ConfigInput;

describe("a rule that needs what the log does not state", () => {
  it.each<[code: string, fields: Fields, missing: string, cure?: string]>([
    ["not-logged", { key: "header:x-api-key" }, "x-api-key", "--map header:x-api-key=FIELD"],
    ["not-logged", { key: "header:x-api-key | ip" }, "x-api-key"],
    ["not-logged", { key: ["ip", "cookie:sid"] }, "cookie"],
    ["not-logged", { key: "country" }, "country", "--map country=FIELD"],
    ["not-logged", { key: "asn" }, "AS number"],
    ["not-logged", { key: "ja4" }, "JA4"],
    ["not-logged", { key: "host" }, "the host", "--host NAME"],
    ["not-logged", { match: { hosts: ["example.com"] } }, "match.hosts", "--host NAME"],
    ["not-logged", { match: { except: { hosts: ["example.com"] } } }, "match.except.hosts"],
    ["not-logged", { match: { headers: { "x-plan": true } } }, "x-plan"],
    ["not-logged", { match: { countries: ["DE"] } }, "country"],
    ["not-logged", { match: { asns: [64496] } }, "AS number"],
    ["not-logged", { match: { bots: "verified" } }, "bot"],
    [
      "not-logged",
      { tiers: { by: "header:x-plan", limits: { pro: { limit: 9, window: "1m" } } } },
      "tiers.by",
    ],
    ["not-logged", { cost: "body:bytes" }, "length"],
    ["not-logged", { cost: "header:x-cost" }, "x-cost of responses"],
    ["custom-function", { key: "custom:account" }, "account"],
    ["custom-function", { cost: "custom:depth" }, "depth"],
    ["custom-function", { cost: { settle: "custom:tokens" } }, "tokens"],
    ["token-not-verified", { key: "jwt:sub" }, "sub"],
  ])(
    "is left out with the note %s: %j",
    async (code, fields, missing, cure = "--missing-as-absent") => {
      const engine = engineOf(configOf(fields), COMBINED);
      expect(engine.leftOut.map(({ rule }) => rule)).toEqual(["api"]);
      expect(engine.rules).toEqual([]);
      const note = engine.notes.find((each) => each.rule === "api");
      expect(note).toMatchObject({
        code,
        text: expect.stringContaining('The rule "api" is left out.'),
      });
      expect(note?.text).toContain(missing);
      expect(note?.text).toContain(cure);
      const [decided] = decide(engine, [logged(0)]);
      expect(decided).toMatchObject({ outcome: "unmatched", verdicts: [] });

      const absent = engineOf(configOf(fields), COMBINED, true);
      expect(absent.leftOut).toEqual([]);
      const codes = absent.notes.filter((each) => each.rule === "api").map((each) => each.code);
      expect(codes).toEqual(["treated-as-absent"]);
    },
  );

  it.each<[code: string, fields: Fields]>([
    ["not-logged", { count: { status: [404] } }],
    ["programs-only", { for: "programs" }],
  ])("is left out with the note %s, even if missing values count as absent", (code, fields) => {
    const facts: LogFacts = new Set(["ip"]);
    for (const missingAsAbsent of [false, true]) {
      const engine = engineOf(configOf(fields), facts, missingAsAbsent);
      expect(engine.leftOut.map(({ rule }) => rule)).toEqual(["api"]);
      expect(engine.notes[0]).toMatchObject({ code, rule: "api" });
      expect(engine.notes[0]?.text).not.toContain("--missing-as-absent");
    }
  });

  it("is replayed as without async, with a note that more requests may pass", () => {
    const requests = [0, 1, 2, 3, 4, 5, 61_000].map((at) => logged(at));
    const engine = engineOf(configOf({ async: true, limit: 3 } as Fields), COMBINED);
    const without = engineOf(configOf({ limit: 3 } as Fields), COMBINED);
    expect(decide(engine, requests)).toEqual(decide(without, requests));
    expect(without.notes).toEqual([]);
    expect(engine.notes).toMatchObject([
      { code: "passes-ahead", rule: "api", text: expect.stringContaining("one request more") },
    ]);
  });

  it("is replayed without a limit for open requests if the log has no durations", () => {
    const facts: LogFacts = new Set([...COMBINED, "country"]);
    const limits = { DE: { concurrent: 1 } };
    for (const fields of [{}, { ban: "1h" }] as const) {
      const engine = engineOf(configOf({ concurrent: 1, ...fields }), facts);
      expect(engine.rules).toMatchObject([{ limits: "5 per 1m" }]);
      expect(engine.leftOut).toEqual([]);
      expect(engine.notes[0]).toMatchObject({ code: "concurrent-left-out", rule: "api" });
      const decided = decide(engine, [logged(0), logged(0), logged(0)]);
      expect(decided.map(({ outcome }) => outcome)).not.toContain("limited");
    }
    const only = { name: "api", concurrent: 1 };
    const tiers = { by: "country", limits: { DE: { limit: 1, window: "1m" } } } as const;
    const tiered = engineOf({ rules: [{ ...only, tiers }] }, facts);
    const requests = ["DE", "FR", "DE", "FR"].map((country) => logged(0, { cf: { country } }));
    const outcomes = decide(tiered, requests).map(({ outcome }) => outcome);
    expect(outcomes).toEqual(["allowed", "unmatched", "limited", "unmatched"]);
    const leftOut = engineOf({ rules: [{ ...only, tiers: { by: "country", limits } }] }, facts);
    expect(leftOut.rules).toEqual([]);
    expect(leftOut.leftOut).toEqual([
      { rule: "api", reason: expect.stringContaining("--map duration=FIELD") },
    ]);
    expect(leftOut.notes[0]).toMatchObject({ code: "concurrent-left-out", rule: "api" });
  });

  it("is replayed with the default of a limit that differs by client", () => {
    const source = { max: 1000, default: 2 };
    for (const from of ["custom:quota", "jwt:limit"]) {
      const config = configOf({ limit: { ...source, from } } as Fields, {
        ...settings,
        custom: { limits: { quota: () => 9 } },
      });
      const engine = engineOf(config, COMBINED);
      expect(engine.leftOut).toEqual([]);
      expect(engine.rules).toMatchObject([{ limits: `${from} (at most 1000, default 2) per 1m` }]);
      expect(engine.notes).toMatchObject([{ code: "default-limit", rule: "api" }]);
      const decided = decide(engine, [logged(0), logged(0), logged(0)]);
      expect(decided.map(({ outcome }) => outcome)).toEqual(["allowed", "allowed", "limited"]);
    }
  });

  it("is replayed if every request has an earlier alternative", () => {
    const engine = engineOf(configOf({ key: "ip | header:x-api-key" }), COMBINED);
    expect(engine.leftOut).toEqual([]);
  });

  it("counts by the address if a missing key counts as absent", async () => {
    const config = configOf({ key: "header:x-api-key | ip" });
    const engine = engineOf(config, COMBINED, true);
    const [decided] = decide(engine, [logged(0)]);
    expect(decided?.verdicts[0]?.client).toBe("203.0.113.7");
  });
});

describe("a note at the end of a replay", () => {
  async function laterNotes(fields: Fields, requests: Parameters<typeof logged>[1][], facts = ALL) {
    const engine = engineOf(configOf(fields), facts);
    const decided = decide(
      engine,
      requests.map((request, index) => logged(index, request)),
    );
    return { decided, notes: engine.notes };
  }

  it("counts the requests whose address is unknown, which the rule leaves out", async () => {
    const ips = [undefined, "crawler.example.com", "203.0.113.1", ""];
    const { decided, notes } = await laterNotes(
      {},
      ips.map((ip) => ({ ip })),
    );
    const outcomes = decided.map(({ outcome }) => outcome);
    expect(outcomes).toEqual(["unmatched", "unmatched", "allowed", "unmatched"]);
    expect(notes).toEqual([
      {
        code: "address-not-logged",
        rule: "api",
        text: expect.stringMatching(/^3 requests have no/),
      },
    ]);
  });

  it("does not concern requests with another key", async () => {
    const headers = new Map([["x-api-key", "abc"]]);
    const { decided, notes } = await laterNotes({ key: "header:x-api-key" }, [
      { ip: undefined, headers },
      { ip: undefined },
    ]);
    expect(decided.map(({ outcome }) => outcome)).toEqual(["allowed", "unmatched"]);
    expect(notes).toHaveLength(1);
  });

  it("counts requests without a status, by which a rule is charged", async () => {
    const { notes } = await laterNotes({ count: { status: [401] } }, [{ status: undefined }, {}]);
    expect(notes).toEqual([
      { code: "status-not-logged", text: expect.stringMatching(/^1 request has no status/) },
    ]);
  });

  it("counts OPTIONS requests that count as preflights", async () => {
    const { decided, notes } = await laterNotes({}, [{ method: "OPTIONS" }, {}], COMBINED);
    expect(decided.map(({ outcome }) => outcome)).toEqual(["unmatched", "allowed"]);
    expect(notes).toMatchObject([{ code: "assumed-preflights" }]);
  });
});

describe("an exemption that the log does not state", () => {
  it.each([
    [{ "x-internal": "yes" }, COMBINED, true],
    [{ "x-internal": { secret: "TOKEN" } }, ALL, true],
    [{ "x-internal": "yes" }, ALL, false],
  ] as const)("%j is left out with a note", async (headers, facts, isLeftOut) => {
    const engine = engineOf(configOf({ exempt: { headers } }), facts);
    const codes = engine.notes.map(({ code }) => code);
    expect(codes.includes("exemption-not-logged")).toBe(isLeftOut);
    const sent = facts === ALL ? new Map([["x-internal", "yes"]]) : undefined;
    const [decided] = decide(engine, [logged(0, { headers: sent })]);
    expect(decided?.outcome).toBe(isLeftOut ? "allowed" : "unmatched");
  });
});
