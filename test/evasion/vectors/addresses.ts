import { CLIENT, type Vector, type VectorClass } from "../vector.ts";

/**
 * Creates a request with this address in CF-Connecting-IP. If `address` is empty, the request does
 * not have this field.
 */
function from(name: string, address: string, client: string, ...fields: string[]): Vector {
  const lines = ["GET /ip HTTP/1.1", "Host: api.example.com", ...fields, "Connection: close"];
  const sent = address === "" ? lines : [...lines, `CF-Connecting-IP: ${address}`];
  return { name, lines: sent, counted: { ip: client, exempt: client } };
}

const FORGED = [
  "X-Forwarded-For: 198.51.100.1",
  "X-Forwarded-For: 198.51.100.1, 203.0.113.7",
  "X-Real-IP: 198.51.100.1",
  "True-Client-IP: 198.51.100.1",
  "X-Client-IP: 198.51.100.1",
  "X-Cluster-Client-IP: 198.51.100.1",
  "X-Originating-IP: 198.51.100.1",
  "X-Remote-Addr: 198.51.100.1",
  "Fastly-Client-IP: 198.51.100.1",
  "CF-Connecting-IPv6: 2001:db8::1",
  "CF-Pseudo-IPv4: 198.51.100.1",
  "Forwarded: for=198.51.100.1",
  "Via: 1.1 198.51.100.1",
  "CF-Worker: one.example",
];

export const addresses: VectorClass = {
  about: "The client's address: forged, rotated, or in another form",
  vectors: [
    from("the client", CLIENT, "v4"),
    from("another client", "203.0.113.8", "other v4"),
    ...FORGED.map((field) => from(`forged ${field}`, CLIENT, "v4", field)),
    ...FORGED.slice(0, 3).map((field) => from(`without an address, ${field}`, "", "none", field)),
    from("without an address", "", "none"),
    from("a text that is not an address", "nonsense", "none"),
    from("two addresses in one field", "203.0.113.7, 198.51.100.1", "none"),
    from("two fields", CLIENT, "none", "CF-Connecting-IP: 198.51.100.1"),
    from("two fields in the other order", "198.51.100.1", "none", `CF-Connecting-IP: ${CLIENT}`),
    from("IPv4 in octal", "0313.0.0161.07", "none"),
    from("IPv4 in hexadecimal", "0xcb.0x0.0x71.0x7", "none"),
    from("IPv4 as one number", "3405803783", "none"),
    from("IPv4 with a port", "203.0.113.7:80", "none"),
    from("IPv4 with white space around it", "\t 203.0.113.7 \t", "v4"),
    from("IPv4 mapped into IPv6", "::ffff:203.0.113.7", "v4"),
    from("IPv4 mapped into IPv6, in hexadecimal", "::ffff:cb00:7107", "v4"),
    from("IPv4 mapped into IPv6, written out", "0000:0000:0000:0000:0000:FFFF:CB00:7107", "v4"),
    from("IPv4 in the compatible notation", "::203.0.113.7", "v4"),
    from("IPv4 in the compatible notation, in hexadecimal", "::cb00:7107", "v4"),
    from("IPv4 translated", "::ffff:0:203.0.113.7", "v4"),
    from("IPv4 behind NAT64", "64:ff9b::cb00:7107", "v4"),
    from("IPv4 behind NAT64 for local use", "64:ff9b:1::cb00:7107", "v4"),
    from("IPv4 behind NAT64 for local use, in another network", "64:ff9b:1:ffff::cb00:7107", "v4"),
    from("IPv4 through 6to4", "2002:cb00:7107::1", "v4"),
    from("IPv4 through 6to4, in another network", "2002:cb00:7107:ffff:1:2:3:4", "v4"),
    from("IPv4 through Teredo", "2001:0:4136:e378:8000:63bf:34ff:8ef8", "v4"),
    from(
      "IPv4 through Teredo, with another server and port",
      "2001:0:5ef5:79fd:0:1234:34ff:8ef8",
      "v4",
    ),
    from("IPv6", "2001:db8:1:2::1", "v6"),
    from("another IPv6 address in the /64", "2001:db8:1:2:ffff:ffff:ffff:ffff", "v6"),
    from(
      "the same /64 in capitals and with leading zeros",
      "2001:0DB8:0001:0002:0000:0000:0000:0001",
      "v6",
    ),
    from("the same /64 with other zeros compressed", "2001:db8:1:2:0::9", "v6"),
    from("the same /64 with IPv4 at the end", "2001:db8:1:2::203.0.113.7", "v6"),
    from("the same /64 with a zone", "2001:db8:1:2::1%eth0", "v6"),
    from("the same /64 with another zone", "2001:db8:1:2::1%25eth1", "v6"),
    from("the same /64 with an ISATAP address", "2001:db8:1:2:0:5efe:203.0.113.9", "v6"),
    from("the next /64", "2001:db8:1:3::1", "next v6"),
    from("IPv6 in brackets", "[2001:db8:1:2::1]", "none"),
    from("a Worker of another zone", "2a06:98c0:3600::103", "worker", "CF-Worker: w.example"),
    from(
      "a Worker of another zone, in capitals",
      "2A06:98C0:3600:0::103",
      "worker",
      "CF-Worker: W.Example.",
    ),
    from("a Worker of a third zone", "2a06:98c0:3600::103", "other worker", "CF-Worker: x.example"),
    from(
      "a Worker that sends a second zone itself",
      "2a06:98c0:3600::103",
      "workers",
      "CF-Worker: w.example",
      "CF-Worker: 1.example",
    ),
    from(
      "a Worker that sends two zones in one field",
      "2a06:98c0:3600::103",
      "workers",
      "CF-Worker: w.example, 2.example",
    ),
    from("a Worker without a zone", "2a06:98c0:3600::103", "workers"),
  ],
};
