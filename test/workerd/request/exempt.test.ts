import { afterEach, describe, expect, it, vi } from "vitest";
import { identifying, type Sent } from "./requests.ts";

/** Whether these exemptions exempt a request from a rule. */
async function isExempted(exempt: object, sent: Sent, env: Record<string, unknown> = {}) {
  const appliedRules = await identifying([{ exempt }], {}, { env })(sent);
  return appliedRules.length === 0;
}

describe("an address exempts a request", () => {
  it.each<[string, string, boolean]>([
    ["198.51.100.0/24", "198.51.100.7", true],
    ["198.51.100.0/24", "198.51.101.7", false],
    ["198.51.100.7", "198.51.100.7", true],
    ["198.51.100.7", "198.51.100.8", false],
    ["0.0.0.0/0", "198.51.100.7", true],
    ["0.0.0.0/0", "2001:db8::1", false],
    ["198.51.100.0/24", "::ffff:198.51.100.7", true],
    ["198.51.100.0/24", "::ffff:c633:6407", true],
    ["198.51.100.0/24", "64:ff9b::198.51.100.7", true],
    ["198.51.100.0/24", "::198.51.100.7", true],
    ["::1", "::1", true],
    ["::/0", "::198.51.100.7", false],
    ["198.51.100.0/24", "2002:c633:6407::1", true],
    ["2001:db8::/32", "2001:db8:1:2::3", true],
    ["2001:db8::/32", "2001:db9::1", false],
    ["2001:db8::1", "2001:DB8:0::1", true],
    ["2001:db8::1", "2001:db8::2", false],
    ["::/0", "198.51.100.7", false],
    ["::/0", "::ffff:198.51.100.7", false],
    ["0.0.0.0/0", "198.51.100.7, 10.0.0.1", false],
    ["0.0.0.0/0", "", false],
    ["::/0", "nonsense", false],
  ])("if the network %s contains %s: %s", async (network, address, expected) => {
    expect(await isExempted({ ips: [network] }, { "cf-connecting-ip": address })).toBe(expected);
  });

  it("if any of several networks contains it", async () => {
    const ips = ["192.0.2.0/24", "198.51.100.0/24", "2001:db8::/32"];
    expect(await isExempted({ ips }, { "cf-connecting-ip": "198.51.100.1" })).toBe(true);
    expect(await isExempted({ ips }, { "cf-connecting-ip": "2001:db8::1" })).toBe(true);
    expect(await isExempted({ ips }, { "cf-connecting-ip": "203.0.113.1" })).toBe(false);
  });

  it.each(["x-forwarded-for", "x-real-ip", "true-client-ip"])(
    "not if only %s carries it",
    async (header) => {
      expect(await isExempted({ ips: ["198.51.100.1"] }, { [header]: "198.51.100.1" })).toBe(false);
    },
  );

  it("not if it is the address of Workers of other zones", async () => {
    const sent = { "cf-connecting-ip": "2a06:98c0:3600::103", "cf-worker": "evil.example" };
    expect(await isExempted({ ips: ["2a06:98c0::/29"] }, sent)).toBe(false);
  });
});

describe("a header exempts a request", () => {
  const secret = { headers: { "X-Internal": { secret: "INTERNAL" } } };
  const set = { INTERNAL: "s3cret" };

  it.each<[string, object, Sent, Record<string, unknown>, boolean]>([
    ["with the text", { headers: { "X-Probe": "up" } }, { "x-probe": "up" }, {}, true],
    ["not with another text", { headers: { "x-probe": "up" } }, { "x-probe": "UP" }, {}, false],
    ["not with more text", { headers: { "x-probe": "up" } }, { "x-probe": "upper" }, {}, false],
    ["not if it is empty", { headers: { "x-probe": "up" } }, { "x-probe": "" }, {}, false],
    ["not if it is missing", { headers: { "x-probe": "up" } }, {}, {}, false],
    ["with the secret", secret, { "x-internal": "s3cret" }, set, true],
    ["not with another secret", secret, { "x-internal": "s3creT" }, set, false],
    ["not with the secret's name", secret, { "x-internal": "INTERNAL" }, set, false],
    ["not with an empty value", secret, { "x-internal": "" }, set, false],
    ["not if the secret is not set", secret, { "x-internal": "undefined" }, {}, false],
    ["not if the secret is empty", secret, { "x-internal": "" }, { INTERNAL: "" }, false],
    ["not if the secret is blank", secret, { "x-internal": " " }, { INTERNAL: " " }, false],
    ["not if the secret is not a text", secret, { "x-internal": "1" }, { INTERNAL: 1 }, false],
    [
      "if any of several headers matches",
      { headers: { "x-probe": "up", ...secret.headers } },
      { "x-internal": "s3cret" },
      set,
      true,
    ],
    [
      "or its address exempts it",
      { ips: ["203.0.113.0/24"], ...secret },
      { "x-internal": "wrong" },
      set,
      true,
    ],
    [
      "with the secret, from any address",
      { ips: ["192.0.2.1"], ...secret },
      { "x-internal": "s3cret" },
      set,
      true,
    ],
  ])("%s", async (_, exempt, sent, env, expected) => {
    expect(await isExempted(exempt, sent, env)).toBe(expected);
  });
});

it("an exempt request is still counted by its other rules, in their order", async () => {
  const rules = [{}, { exempt: { ips: ["203.0.113.7"] } }, {}];
  const appliedRules = await identifying(rules)();
  expect(appliedRules.map(({ rule }) => rule.name)).toEqual(["r0", "r2"]);
});

describe("a secret is compared in constant time", () => {
  afterEach(() => {
    vi.restoreAllMocks();
  });

  const exempt = { headers: { "x-internal": { secret: "INTERNAL" } } };
  const env = { INTERNAL: "let-me-pass" };
  const guesses = [
    "l",
    "let-me-pas",
    "let-me-pass",
    "let-me-passe",
    "LET-ME-PASS",
    "x".repeat(4000),
  ];

  it.each(guesses)(
    "by timingSafeEqual only, over digests of equal length: %.12s",
    async (guess) => {
      const compare = vi.spyOn(crypto.subtle, "timingSafeEqual");
      const passed = await isExempted(exempt, { "x-internal": guess }, env);
      expect(passed).toBe(guess === "let-me-pass");
      expect(compare).toHaveBeenCalledTimes(1);
      const lengths = compare.mock.calls[0]?.map((digest) => digest.byteLength);
      expect(lengths).toEqual([32, 32]);
    },
  );

  // If the code also compared the values with === (for speed, for example), that comparison would
  // decide some of these guesses.
  it.each([true, false])("and no other comparison decides: %s", async (verdict) => {
    vi.spyOn(crypto.subtle, "timingSafeEqual").mockReturnValue(verdict);
    for (const guess of guesses) {
      expect(await isExempted(exempt, { "x-internal": guess }, env), guess).toBe(verdict);
    }
  });
});
