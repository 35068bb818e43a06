import { describe, expect, it } from "vitest";
import { clientAddress } from "../../../src/request/headers.ts";

function client(address: string, prefix = 64, headers: Record<string, string> = {}) {
  return clientAddress(new Headers({ "cf-connecting-ip": address, ...headers }), prefix);
}

describe("a client's address", () => {
  it.each([
    ["an IPv4 address", "203.0.113.7", "203.0.113.7"],
    ["the same address mapped into IPv6", "::ffff:203.0.113.7", "203.0.113.7"],
    ["the mapped address in hexadecimal", "::ffff:cb00:7107", "203.0.113.7"],
    ["the mapped address in full length", "0:0:0:0:0:FFFF:CB00:7107", "203.0.113.7"],
    ["the same address in the compatible notation", "::203.0.113.7", "203.0.113.7"],
    ["the compatible address in hexadecimal", "::cb00:7107", "203.0.113.7"],
    ["the loopback address of IPv6", "::1", "::/64"],
    ["the same address behind NAT64", "64:ff9b::203.0.113.7", "203.0.113.7"],
    [
      "the same address behind NAT64 with the prefix for local use",
      "64:ff9b:1::203.0.113.7",
      "203.0.113.7",
    ],
    ["the same address translated (RFC 2765)", "::ffff:0:203.0.113.7", "203.0.113.7"],
    ["the same address through 6to4", "2002:cb00:7107::1", "203.0.113.7"],
    ["the same address through Teredo", "2001:0:4136:e378:8000:63bf:34ff:8ef8", "203.0.113.7"],
    [
      "the same address through another Teredo server",
      "2001:0:5ef5:79fd:0:1234:34ff:8ef8",
      "203.0.113.7",
    ],
    ["an IPv6 address", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["another address in its /64", "2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"],
    ["its network in another spelling", "2001:0DB8:0001:0002:0:0:0:0", "2001:db8:1:2::/64"],
    ["an address in its /64 with a zone", "2001:db8:1:2::1%eth0", "2001:db8:1:2::/64"],
    ["another /64", "2001:db8:1:3::1", "2001:db8:1:3::/64"],
  ])("is canonical for %s", (_, address, expected) => {
    expect(client(address)).toBe(expected);
  });

  it.each([
    [128, "2001:db8:1:2:3:4:5:6/128"],
    [64, "2001:db8:1:2::/64"],
    [60, "2001:db8:1::/60"],
    [56, "2001:db8:1::/56"],
    [49, "2001:db8:1::/49"],
    [48, "2001:db8:1::/48"],
    [1, "::/1"],
  ])("is cut to a prefix of %i bits", (prefix, expected) => {
    expect(client("2001:db8:1:2:3:4:5:6", prefix)).toBe(expected);
  });

  it.each(["x-forwarded-for", "x-real-ip", "true-client-ip", "forwarded", "x-client-ip"])(
    "is not read from %s",
    (header) => {
      expect(client("203.0.113.7", 64, { [header]: "198.51.100.1" })).toBe("203.0.113.7");
      expect(clientAddress(new Headers({ [header]: "198.51.100.1" }), 64)).toBe("unknown");
    },
  );

  it.each(["", "nonsense", "203.0.113", "203.0.113.300", "0x7f.1", "1.2.3.4, 5.6.7.8", "::g"])(
    "is unknown for %j, so that all such requests are one client",
    (address) => {
      expect(client(address)).toBe("unknown");
    },
  );

  it("is correct after more addresses than the cache holds", () => {
    for (let time = 0; time < 2; time++) {
      for (let number = 0; number < 3000; number++) {
        const ipv4 = `10.1.${number >> 8}.${number & 255}`;
        expect(client(ipv4)).toBe(ipv4);
        expect(client(`2001:db8:${number.toString(16)}::1`, 48)).toBe(
          number === 0 ? "2001:db8::/48" : `2001:db8:${number.toString(16)}::/48`,
        );
      }
    }
  });

  it("is the zone for Workers of other zones, which all share one address", () => {
    const from = (zone: string) => client("2a06:98c0:3600::103", 64, { "cf-worker": zone });
    expect(from("a.example")).toBe("worker:a.example");
    expect(from("B.example")).toBe("worker:b.example");
    expect(from("b.example.")).toBe("worker:b.example");
    expect(client("203.0.113.7", 64, { "cf-worker": "a.example" })).toBe("203.0.113.7");
  });

  it.each([undefined, "", "a.example, b.example", "a b", "a/b"])(
    "is the same for all Workers whose zone is unclear: %j",
    (zone) => {
      const sent = zone === undefined ? {} : { "cf-worker": zone };
      expect(client("2a06:98c0:3600:0::103", 64, sent)).toBe("worker:");
    },
  );
});
