import { describe, expect, it } from "vitest";
import { OperationError, type RuleView } from "../../../../src/admin/operations.ts";
import { createDashboard, NOW } from "./dashboard.ts";
import { fakeExplanation } from "./fake-explanation.ts";

/** Texts that would change the page if it did not escape them. */
const HOSTILE = [
  "<script>alert(1)</script>",
  `"><img src=x onerror=alert(1)>`,
  `' autofocus onfocus='alert(1)`,
  "</title></textarea><svg onload=alert(1)>",
  "&lt;script&gt;&#x3c;b>",
  "javascript:alert(1)",
  "\u202Egnp.exe\u2066",
  "</script><!--",
];

const PATHS = [
  "/",
  "/rules",
  "/clients",
  "/clients?client=X&rule=R",
  "/denials",
  "/overrides",
  "/audit",
  "/rules/R",
];

/** A dashboard in which every text that somebody else has written is hostile. */
function hostileDashboard(text: string) {
  const dashboard = createDashboard({
    actor: text,
    operations: {
      rules: async () => [view("R", text), view(text, text)],
      peek: async () => [
        {
          ...(await dashboard.fake.peek({}, "login"))[0],
          rule: text,
          client: text,
          countedBy: text,
          quotas: [{ ...quota, policy: text }],
          banMs: 5000,
          override,
        },
      ],
      statistics: async (query) => ({
        ...(await dashboard.fake.statistics(query)),
        clients: [{ rule: text, client: text, count: 3, error: 1, lastAt: NOW, shadow: true }],
      }),
      denials: async () => [
        {
          ...{ id: 1, rule: text, policy: text, client: text, colo: text, count: 3 },
          ...{ firstAt: NOW, lastAt: NOW, mode: text as "enforce" },
        },
      ],
      overrides: async () => [override],
      explain: async () => withTexts(fakeExplanation(NOW), text),
      audit: async () => [
        {
          id: 1,
          at: NOW,
          by: text,
          action: "override",
          rule: text,
          client: text,
          why: text,
          before: { [text]: text },
          after: text,
        },
      ],
    },
  });
  const override = {
    rule: text,
    client: text,
    expiresAt: NOW + 1000,
    reason: text,
    by: text,
    setAt: NOW,
    effect: { kind: "limits" as const, limits: { [text]: 5 } },
  };
  const view = (name: string, match: string): RuleView => ({
    name,
    key: text,
    mode: "enforce",
    configuredMode: "shadow",
    onError: "open",
    limits: [{ policy: text, limit: 5, window: text }],
    hasTiers: false,
    hasBan: false,
    match,
    override,
  });
  const quota = {
    policy: "",
    limit: 5,
    windowMs: 1000,
    remaining: 0,
    resetMs: 1,
    resetAt: NOW,
    violated: true,
    retryAfterMs: 1,
    reservationDelayMs: 0,
  };
  return dashboard;
}

/** The fields of an explanation whose texts Weir has chosen. */
const OWN_FIELDS = new Set(["outcome", "mode", "result"]);

/** Returns a value in which a text replaces every other text. */
function withTexts<Value>(value: Value, text: string, field = ""): Value {
  if (typeof value === "string") return OWN_FIELDS.has(field) ? value : (text as Value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((each) => withTexts(each, text, field)) as Value;
  const entries = Object.entries(value).map(([name, each]) => [name, withTexts(each, text, name)]);
  return Object.fromEntries(entries) as Value;
}

/** Returns the names of all elements and attributes, as the runtime's own parser reads them. */
async function structureOf(response: Response): Promise<string[]> {
  const names: string[] = [];
  const parsed = new HTMLRewriter()
    .on("*", {
      element(element) {
        const attributes = [...element.attributes].map(([name = "", value]) =>
          name === "href" || name === "action" ? `${name}=${schemeOf(value ?? "")}` : name,
        );
        names.push([element.tagName, ...attributes].join(" "));
      },
    })
    .transform(response);
  await parsed.text();
  return names;
}

function schemeOf(address: string): string {
  return new URL(address, "https://api.example.com").protocol;
}

describe.each(HOSTILE)("the text %s", (text) => {
  it.each(PATHS)("changes nothing but text on %s", async (path) => {
    const [hostile, harmless] = await Promise.all([
      structureOf(await hostileDashboard(text).request(path)),
      structureOf(await hostileDashboard("harmless").request(path)),
    ]);
    expect(hostile).toEqual(harmless);
  });

  it("changes nothing but text in an explanation", async () => {
    const form = { url: "/" };
    const [hostile, harmless] = await Promise.all([
      structureOf(await hostileDashboard(text).post("/explain", form)),
      structureOf(await hostileDashboard("harmless").post("/explain", form)),
    ]);
    expect(hostile.length).toBeGreaterThan(150);
    expect(hostile).toEqual(harmless);
  });

  it("changes nothing but text in a message about a fault", async () => {
    const structure = async (message: string) => {
      const peek = async () => {
        throw new OperationError("invalid", message);
      };
      return structureOf(
        await createDashboard({ operations: { peek } }).request("/clients?client=1"),
      );
    };
    expect(await structure(text)).toEqual(await structure("harmless"));
  });

  it("changes nothing but text if it comes from an address or a form", async () => {
    const dashboard = createDashboard();
    const pagesWith = async (value: string) => {
      const encoded = encodeURIComponent(value);
      const fields = { target: "rule", rule: value, mode: value, reason: value, expiresIn: value };
      return Promise.all([
        structureOf(
          await dashboard.request(`/rules?q=${encoded}&sort=${encoded}&range=${encoded}`),
        ),
        structureOf(await dashboard.request(`/rules/${encoded}`)),
        structureOf(await dashboard.request(`/?done=${encoded}&range=${encoded}`)),
        structureOf(await dashboard.request(`/login?fault=${encoded}`)),
        structureOf(await dashboard.request(`/audit?before=${encoded}`)),
        structureOf(
          await dashboard.request(`/denials?before=${encoded}&rule=${encoded}&client=${encoded}`),
        ),
        structureOf(await dashboard.request(`/clients?client=${encoded}&rule=login`)),
        structureOf(await dashboard.post("/clients", { by0: value, value0: value })),
        structureOf(await dashboard.post("/overrides", fields)),
        structureOf(await dashboard.request(`/explain?url=${encoded}&method=${encoded}`)),
        structureOf(
          await dashboard.post("/explain", {
            method: value,
            url: value,
            headers: `${value}\na`,
            ip: value,
            country: value,
            asn: value,
          }),
        ),
      ]);
    };
    expect(await pagesWith(text)).toEqual(await pagesWith("harmless"));
  });

  it("keeps its direction to itself", async () => {
    const page = await hostileDashboard(text).text("/audit");
    expect(page).toMatch(/<td class="any" data-label="Why"><bdi>/);
  });
});
