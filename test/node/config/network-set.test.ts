import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  contains,
  MAX_NETWORKS,
  type Network,
  NetworkSet,
  parseAddress,
  parseNetwork,
} from "../../../src/config/address.ts";
import { propertyRuns } from "../../suite/runs.ts";
import { definedRule, faultsOf, withRule } from "./fixtures.ts";

function setOf(texts: readonly string[]): NetworkSet {
  return new NetworkSet(
    texts,
    texts.map((text) => parseNetwork(text) as Network),
  );
}

/** Addresses and networks that are often equal, nested or adjacent. */
const ipv4 = fc.tuple(
  fc.constantFrom(10, 11),
  fc.nat(3),
  fc.constantFrom(0, 127, 128, 255),
  fc.nat(9),
);
const ipv6 = fc
  .array(fc.constantFrom("0", "1", "7fff", "8000", "ffff"), { minLength: 7, maxLength: 7 })
  .map((groups) => ["2001", ...groups].join(":"));
const address = fc.oneof(
  ipv4.map((bytes) => bytes.join(".")),
  ipv6,
);
const network = fc
  .oneof(
    fc
      .tuple(ipv4, fc.integer({ min: 0, max: 32 }))
      .map(([bytes, bits]) => `${bytes.join(".")}/${bits}`),
    fc.tuple(ipv6, fc.integer({ min: 0, max: 128 })).map(([text, bits]) => `${text}/${bits}`),
    address.filter((text) => parseNetwork(text) !== undefined),
  )
  .filter((text) => parseNetwork(text) !== undefined);

describe("a set of networks", () => {
  it("contains the addresses that one of its networks contains", () => {
    fc.assert(
      fc.property(
        fc.array(network, { maxLength: 12 }),
        fc.array(address),
        (networks, addresses) => {
          const set = setOf(networks);
          for (const text of addresses) {
            const parsed = parseAddress(text) ?? fail();
            const expected = networks.some((each) =>
              contains(parseNetwork(each) ?? fail(), parsed),
            );
            expect(set.contains(parsed), `${text} in ${networks}`).toBe(expected);
          }
        },
      ),
      propertyRuns(500),
    );
  });

  it.each([
    [["10.0.0.0/8", "10.1.0.0/16"], "10.2.0.1", true],
    [["10.1.0.0/16", "10.0.0.0/8", "10.1.2.3"], "10.255.255.255", true],
    [["0.0.0.0/0"], "255.255.255.255", true],
    [["::/0"], "ffff::", true],
    [["::/0"], "1.2.3.4", false],
    [["0.0.0.0/0"], "::102:304", false],
    [["198.51.100.7/24"], "198.51.100.0", true],
    [["2001:db8::/33"], "2001:db8:7fff:ffff::", true],
    [["2001:db8::/33"], "2001:db8:8000::", false],
    [[], "1.2.3.4", false],
  ])("of %j and %s: %s", (networks, text, expected) => {
    expect(setOf(networks).contains(parseAddress(text) ?? fail())).toBe(expected);
  });

  it("keeps the networks in the order of the user", () => {
    const { exempt } = definedRule({ exempt: { ips: ["192.0.2.7/24", "::1", "10.0.0.0/8"] } });
    expect(JSON.stringify(exempt?.networks)).toBe('[["192.0.2.7",24],["::1",128],["10.0.0.0",8]]');
    expect(exempt?.networks.size).toBe(3);
  });
});

describe("a list of networks", () => {
  it("may have ten thousand networks, and no more than the maximum", () => {
    const ips = Array.from({ length: 10_000 }, (_, i) => `10.${i >> 8}.${i & 255}.0/24`);
    const { match } = definedRule({ match: { ips } });
    expect(match.ips?.contains(parseAddress("10.39.15.9") ?? fail())).toBe(true);
    expect(match.ips?.contains(parseAddress("10.39.16.9") ?? fail())).toBe(false);
    const tooMany = Array<string>(MAX_NETWORKS + 1).fill("192.0.2.1");
    expect(faultsOf(withRule({ match: { ips: tooMany } }))).toMatchObject([
      { path: "rules[0].match.ips", message: expect.stringContaining("at most 50000 items") },
    ]);
  });

  it("reports each item that is no network", () => {
    const ips = ["192.0.2.1", "x", "10.0.0.0/33", 5];
    expect(faultsOf(withRule({ match: { ips } })).map(({ path }) => path)).toEqual([
      "rules[0].match.ips[1]",
      "rules[0].match.ips[2]",
      "rules[0].match.ips[3]",
    ]);
  });
});

function fail(): never {
  throw new Error("The address is not valid.");
}
