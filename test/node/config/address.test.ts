import fc from "fast-check";
import ipaddr from "ipaddr.js";
import { describe, expect, it } from "vitest";
import {
  contains,
  type Network,
  parseAddress,
  parseNetwork,
  unwrapIPv4,
} from "../../../src/config/address.ts";
import { propertyRuns } from "../../suite/runs.ts";

/** Notations of addresses, valid and invalid. */
const group = fc.oneof(
  fc.constantFrom("", "0", "ffff", "FFFF", "0db8", "10000", "g", "64", "ff9b", "2002", "2001"),
  fc.integer({ min: 0, max: 0xffff }).map((value) => value.toString(16)),
);
const notation = fc.oneof(
  fc.ipV6(),
  fc.ipV4(),
  fc.ipV4().map((address) => `::ffff:${address}`),
  fc
    .tuple(fc.array(group, { maxLength: 9 }), fc.constantFrom("", "1.2.3.4", "1.2.3", "256.1.1.1"))
    .map(([groups, end]) => [...groups, ...(end ? [end] : [])].join(":")),
  fc.tuple(fc.ipV6(), fc.stringMatching(/^%[\da-zA-Z%.]{0,9}$/)).map((parts) => parts.join("")),
  fc.stringMatching(/^[\da-f:.%/ \t]{0,50}$/),
);

/** Parses an address with ipaddr.js, without its zone, except for the notations that Weir refuses. */
function expected(text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  if (!text.includes(":")) {
    return ipaddr.IPv4.isValidFourPartDecimal(text) ? ipaddr.IPv4.parse(text) : undefined;
  }
  const [address = ""] = text.split("%");
  const [, embedded] = /:([\d.]*\..*)$/.exec(address) ?? [];
  const isRefused = embedded !== undefined && !ipaddr.IPv4.isValidFourPartDecimal(embedded);
  if (isRefused || !ipaddr.IPv6.isValid(text)) return undefined;
  // ipaddr.js takes the deprecated addresses of this form for mapped IPv4 addresses.
  if (embedded && address === `::${embedded}`) {
    const zeros = new Array<number>(12).fill(0);
    return new ipaddr.IPv6([...zeros, ...ipaddr.IPv4.parse(embedded).toByteArray()]);
  }
  return ipaddr.IPv6.parse(address);
}

describe("an address", () => {
  it("is read and written as ipaddr.js does it", () => {
    fc.assert(
      fc.property(notation, (text) => {
        const address = parseAddress(text);
        expect(address?.toString()).toBe(expected(text)?.toString());
        expect(address?.bytes).toEqual(expected(text)?.toByteArray());
      }),
      propertyRuns(2000),
    );
  });

  it("is cut to its first bits as ipaddr.js does it", () => {
    fc.assert(
      fc.property(fc.ipV6(), fc.integer({ min: 0, max: 128 }), (text, bits) => {
        const network = ipaddr.IPv6.networkAddressFromCIDR(`${expected(text)}/${bits}`);
        expect(String(parseAddress(text)?.masked(bits))).toBe(network.toString());
      }),
    );
  });

  it("is in the networks that ipaddr.js finds", () => {
    const ipVersion = fc.constantFrom(fc.ipV4(), fc.ipV6());
    const cases = ipVersion.chain((addresses) =>
      fc.tuple(addresses, addresses, fc.integer({ min: 0, max: 32 }), fc.boolean()),
    );
    fc.assert(
      fc.property(cases, ([text, other, bits, isSame]) => {
        const address = parseAddress(text);
        const network: Network = [parseAddress(isSame ? text : other) ?? fail(), bits];
        const match = expected(text)?.match(expected(network[0].toString()) as never, bits);
        expect(address && contains(network, address)).toBe(match);
      }),
    );
  });

  it.each([
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["::ffff:0:192.0.2.1", "192.0.2.1"],
    ["64:ff9b::192.0.2.1", "192.0.2.1"],
    ["64:ff9b:1:2::192.0.2.1", "192.0.2.1"],
    ["2002:c000:201::1", "192.0.2.1"],
    ["2001:0:1:2:3:4:3fff:fdfe", "192.0.2.1"],
    ["64:ff9b:2::192.0.2.1", "64:ff9b:2::c000:201"],
    ["2001:db8::1", "2001:db8::1"],
    ["::192.0.2.1", "192.0.2.1"],
    ["0:0:0:0:0:0:c000:201", "192.0.2.1"],
    ["::", "::"],
    ["::1", "::1"],
    ["::0.1.2.3", "::1:203"],
    ["::1:192.0.2.1", "::1:c000:201"],
    ["192.0.2.1", "192.0.2.1"],
  ])("is unwrapped if it contains an IPv4 address: %s", (text, unwrapped) => {
    expect(String(unwrapIPv4(parseAddress(text) ?? fail()))).toBe(unwrapped);
  });

  it.each([
    ["fe80::1%eth0", "fe80::1"],
    ["2001:DB8::1%25eth1", "2001:db8::1"],
    ["::ffff:192.0.2.1%1", "::ffff:c000:201"],
    [
      `1111:2222:3333:4444:5555:6666:123.123.123.123%${"e".repeat(1000)}`,
      "1111:2222:3333:4444:5555:6666:7b7b:7b7b",
    ],
  ])("is read without its zone: %s", (text, address) => {
    expect(String(parseAddress(text))).toBe(address);
  });

  it.each([
    "fe80::1%",
    "fe80::1%eth0%eth1",
    "fe80::1%eth0:1",
    "192.0.2.1%eth0",
    "%eth0",
    "2001:db8::1\t",
    " ::1",
    "[::1]",
    "::1]:80/",
    "1.2.3.04",
    "1.2.3",
    "::01.2.3.4",
  ])("is refused in a notation that programs read differently: %j", (text) =>
    expect(parseAddress(text)).toBeUndefined(),
  );

  it.each([
    "10.0.0.0/33",
    "10.0.0.0/08",
    "::/129",
    "10.0.0.0/",
    "/8",
    "10.0.0.0/8/8",
    "::ffff:0:0/96",
    "fe80::1%eth0",
    "fe80::1%eth0/64",
    "fe80::/64%eth0",
  ])("is no network: %s", (text) => expect(parseNetwork(text)).toBeUndefined());
});

function fail(): never {
  throw new Error("The address is not valid.");
}
