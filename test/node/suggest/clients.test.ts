import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LogFacts, LogRequest } from "../../../cli/logs/log-request.ts";
import { LogRules } from "../../../cli/replay/log-rules.ts";
import { type RuleOptions, requestedRule } from "../../../cli/suggest/requested-rule.ts";
import { clientAddress } from "../../../src/request/headers.ts";
import { propertyRuns } from "../../suite/runs.ts";
import { FACTS, requestAt } from "./counted.ts";

function readerFor(options: RuleOptions, facts: LogFacts = FACTS, missingAsAbsent = false) {
  const { rule, config } = requestedRule(options);
  const rules = new LogRules(config, [rule], facts, missingAsAbsent);
  return {
    rules,
    clientOf: (request: LogRequest): string | undefined => rules.clientsOf(request)?.[0]?.text,
    withoutAddress: () => rules.notes().find(({ code }) => code === "address-not-logged")?.text,
  };
}

/** The texts of clients, without clients that are left out. */
function identitiesOf(
  { clientOf }: ReturnType<typeof readerFor>,
  requests: readonly LogRequest[],
): string[] {
  return requests.flatMap((request) => clientOf(request) ?? []);
}

/** Addresses in canonical and in other notations, and other texts. */
const addresses = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc.ipV4().map((address) => `::ffff:${address}`),
  fc.stringMatching(/^(?:[0-9]{1,3}\.){2,4}[0-9]{0,3}$/),
  fc.constantFrom(
    "",
    "-",
    "01.2.3.4",
    "1.2.3.4 ",
    "256.1.1.1",
    "1..2.3",
    "1.2.3.4.",
    "2001:db8::1",
  ),
);

describe("the clients of requests", () => {
  it("are those of the Worker, for every notation of an address", () => {
    fc.assert(
      fc.property(fc.array(addresses, { maxLength: 5 }), (texts) => {
        const reader = readerFor({}, new Set(["status"]), true);
        for (const ip of [...texts, ...texts]) {
          const headers = new Headers({ "cf-connecting-ip": ip });
          expect(reader.clientOf(requestAt(0, ip))).toBe(clientAddress(headers, 64));
        }
      }),
      propertyRuns(500),
    );
  });

  it("leave out requests without a valid address, and count them", () => {
    const reader = readerFor({});
    const requests = ["192.0.2.1", "", "-", "2001:db8::1"].map((ip) => requestAt(0, ip));
    requests.push(requestAt(0, "", { ip: undefined }));
    expect(identitiesOf(reader, requests)).toEqual(["192.0.2.1", "2001:db8::/64"]);
    expect(reader.withoutAddress()).toMatch(/^3 requests have/);
  });

  it("need the address only if the key's other values are absent", () => {
    const facts = new Set(["ip", "header:origin", "header:access-control-request-method"]);
    const reader = readerFor({ key: ["header:x-api-key"] }, facts);
    const request = (key: string | undefined) =>
      requestAt(0, "", { ip: undefined, headers: new Map(key ? [["x-api-key", key]] : []) });
    const found = identitiesOf(reader, [request("a"), request("b"), request(undefined)]);
    expect(new Set(found).size).toBe(2);
    expect(reader.withoutAddress()).toMatch(/^1 request has/);
  });

  it("are shown without credentials", () => {
    const facts = new Set(["ip", "header:origin", "header:access-control-request-method"]);
    const reader = readerFor({ key: ["header:x-api-key", "path"] }, facts);
    const headers = new Map([["x-api-key", "s3cret-of-many-characters"]]);
    const shown = reader.clientOf(requestAt(0, "192.0.2.1", { headers, target: "/a?b" }));
    expect(shown).toMatch(/^s3cr….*, \/a$/);
    expect(shown).not.toContain("s3cret");
  });

  it("have only the requests that the rule matches, by their canonical path", () => {
    const reader = readerFor({ match: "POST /login" });
    const requests = ["/login?a=1", "/%6Cogin", "//login", "/LOGIN", "/logout", "/"].map((target) =>
      requestAt(0, "192.0.2.1", { method: "POST", target }),
    );
    requests.push(requestAt(0, "192.0.2.1", { target: "/login" }));
    expect(identitiesOf(reader, requests)).toHaveLength(4);
  });

  it("leave out preflights and paths that the Worker refuses, and count them", () => {
    const reader = readerFor({});
    const preflight = requestAt(0, "192.0.2.1", { method: "OPTIONS" });
    const long = requestAt(0, "192.0.2.1", { target: `/${"%2f".repeat(20_000)}` });
    expect(identitiesOf(reader, [preflight, long])).toEqual([]);
    expect(reader.rules.notes().map(({ code, text }) => [code, text.slice(0, 9)])).toEqual([
      ["refused-requests", "1 request"],
      ["assumed-preflights", "1 request"],
    ]);
  });
});
