import { afterEach, describe, expect, it, vi } from "vitest";
import { identifying, type Sent } from "./requests.ts";

/** Whether a rule with these exemptions leaves a request uncounted. */
async function exempted(exempt: object, sent: Sent, env: Record<string, unknown> = {}) {
  const subjects = await identifying([{ exempt }], {}, { env })(sent);
  return subjects.length === 0;
}

describe("an address is exempt", () => {
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
  ])("by %s, for %s: %s", async (network, address, expected) => {
    expect(await exempted({ ips: [network] }, { "cf-connecting-ip": address })).toBe(expected);
  });

  it("by any network of several", async () => {
    const ips = ["192.0.2.0/24", "198.51.100.0/24", "2001:db8::/32"];
    expect(await exempted({ ips }, { "cf-connecting-ip": "198.51.100.1" })).toBe(true);
    expect(await exempted({ ips }, { "cf-connecting-ip": "2001:db8::1" })).toBe(true);
    expect(await exempted({ ips }, { "cf-connecting-ip": "203.0.113.1" })).toBe(false);
  });

  it.each(["x-forwarded-for", "x-real-ip", "true-client-ip"])(
    "not when %s alone claims it",
    async (header) => {
      expect(await exempted({ ips: ["198.51.100.1"] }, { [header]: "198.51.100.1" })).toBe(false);
    },
  );

  it("not when all Workers of other zones have it", async () => {
    const sent = { "cf-connecting-ip": "2a06:98c0:3600::103", "cf-worker": "evil.example" };
    expect(await exempted({ ips: ["2a06:98c0::/29"] }, sent)).toBe(false);
  });
});

describe("a header exempts", () => {
  const secret = { headers: { "X-Internal": { secret: "INTERNAL" } } };
  const set = { INTERNAL: "s3cret" };

  it.each<[string, object, Sent, Record<string, unknown>, boolean]>([
    ["with the text", { headers: { "X-Probe": "up" } }, { "x-probe": "up" }, {}, true],
    ["not with another text", { headers: { "x-probe": "up" } }, { "x-probe": "UP" }, {}, false],
    ["not with more text", { headers: { "x-probe": "up" } }, { "x-probe": "upper" }, {}, false],
    ["not when it is empty", { headers: { "x-probe": "up" } }, { "x-probe": "" }, {}, false],
    ["not when it is not there", { headers: { "x-probe": "up" } }, {}, {}, false],
    ["with the secret", secret, { "x-internal": "s3cret" }, set, true],
    ["not with another secret", secret, { "x-internal": "s3creT" }, set, false],
    ["not with the secret's name", secret, { "x-internal": "INTERNAL" }, set, false],
    ["not with nothing", secret, { "x-internal": "" }, set, false],
    ["not when the secret is not set", secret, { "x-internal": "undefined" }, {}, false],
    ["not when the secret is empty", secret, { "x-internal": "" }, { INTERNAL: "" }, false],
    ["not when the secret is blank", secret, { "x-internal": " " }, { INTERNAL: " " }, false],
    ["not when the secret is no text", secret, { "x-internal": "1" }, { INTERNAL: 1 }, false],
    [
      "when it is any of several",
      { headers: { "x-probe": "up", ...secret.headers } },
      { "x-internal": "s3cret" },
      set,
      true,
    ],
    [
      "or the address does",
      { ips: ["203.0.113.0/24"], ...secret },
      { "x-internal": "wrong" },
      set,
      true,
    ],
    [
      "or it does, whatever the address",
      { ips: ["192.0.2.1"], ...secret },
      { "x-internal": "s3cret" },
      set,
      true,
    ],
  ])("%s", async (_, exempt, sent, env, expected) => {
    expect(await exempted(exempt, sent, env)).toBe(expected);
  });
});

it("leaves the rules that do not exempt the request, in their order", async () => {
  const rules = [{}, { exempt: { ips: ["203.0.113.7"] } }, {}];
  const subjects = await identifying(rules)();
  expect(subjects.map(({ rule }) => rule.name)).toEqual(["r0", "r2"]);
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
    "by nothing but timingSafeEqual, over digests of one length: %.12s",
    async (guess) => {
      const compare = vi.spyOn(crypto.subtle, "timingSafeEqual");
      const isExempt = await exempted(exempt, { "x-internal": guess }, env);
      expect(isExempt).toBe(guess === "let-me-pass");
      expect(compare).toHaveBeenCalledTimes(1);
      const lengths = compare.mock.calls[0]?.map((digest) => digest.byteLength);
      expect(lengths).toEqual([32, 32]);
    },
  );

  // A comparison beside it, such as === to be faster, would decide some of these by itself.
  it.each([true, false])("and no other comparison has a say: %s", async (verdict) => {
    vi.spyOn(crypto.subtle, "timingSafeEqual").mockReturnValue(verdict);
    for (const guess of guesses) {
      expect(await exempted(exempt, { "x-internal": guess }, env), guess).toBe(verdict);
    }
  });
});
