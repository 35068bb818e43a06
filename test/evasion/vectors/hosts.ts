import { lines, type Vector, type VectorClass } from "../vector.ts";

/** A request for /host with these Host fields. */
function host(name: string, fields: readonly string[], counted: Record<string, string>): Vector {
  return { name, lines: lines("GET /host HTTP/1.1", ...fields), counted };
}

function refused(name: string, ...fields: string[]): Vector {
  return { name, lines: lines("GET /host HTTP/1.1", ...fields), status: 400 };
}

const api = { host: "client", "by-host": "api.example.com" };

/** Spellings of one host. */
const SPELLINGS = [
  "api.example.com",
  "API.Example.COM",
  "api.example.com.",
  "api.example.com..",
  "api.example.com:80",
  "api.example.com:8443",
  "api.example.com.:443",
  "api%2eexample.com",
  "%61pi.example.com",
];

/**
 * Invalid hosts. In a URL, some of them would change the path, so that no rule for the path would
 * match.
 */
const INVALID = [
  "api.example.com#",
  "api.example.com?",
  "api.example.com\\",
  "api.example.com\\x",
  "#",
  "user@api.example.com",
  "user:password@api.example.com",
  "api.example.com other.example",
  "api.example.com, other.example",
  "api.example.com:99999",
  "api.example.com:x",
  "[::1",
  "::1",
  "999.999.999.999",
  "%",
  "%00",
  "api.example.com%2f",
  "a\tb",
  "b\xfccher.example",
  "",
  " ",
];

export const hosts: VectorClass = {
  about: "The host: case, dots, ports, and invalid hosts",
  vectors: [
    ...SPELLINGS.map((name) => host(`Host: ${name}`, [`Host: ${name}`], api)),
    host("white space around the host", ["Host: \t api.example.com \t"], api),
    host("X-Forwarded-Host", ["Host: api.example.com", "X-Forwarded-Host: other.example"], api),
    host("another host", ["Host: other.example"], { "by-host": "other.example" }),
    host("another host with the same ending", ["Host: myapi.example.com"], { "by-host": "my" }),
    host("a subdomain of the wildcard", ["Host: a.b.wild.example"], {
      below: "client",
      "by-host": "a.b",
    }),
    host("a subdomain in capitals with a dot", ["Host: A.B.WILD.example."], {
      below: "client",
      "by-host": "a.b",
    }),
    host("the domain of the wildcard", ["Host: wild.example"], { "by-host": "wild" }),
    host("another host with the ending of the wildcard", ["Host: mywild.example"], {
      "by-host": "mywild",
    }),
    host("an empty label", ["Host: api..example.com"], { "by-host": "api..example.com" }),
    host("an IP address", ["Host: 192.0.2.1"], { "by-host": "192.0.2.1" }),
    host("an IP address in hexadecimal", ["Host: 0xc0.0.2.1"], { "by-host": "192.0.2.1" }),
    host("an IP address as one number", ["Host: 3221225985"], { "by-host": "192.0.2.1" }),
    host("an IPv6 address", ["Host: [2001:db8::1]"], { "by-host": "[2001:db8::1]" }),
    host("an IPv6 address written out", ["Host: [2001:DB8:0:0:0:0:0:1]:80"], {
      "by-host": "[2001:db8::1]",
    }),
    host("the workers.dev host", ["Host: weir.me.workers.dev"], { "by-host": "workers.dev" }),
    {
      name: "a path in the host, which Weir and the origin read before the target",
      lines: lines("GET /host HTTP/1.1", "Host: api.example.com/login?"),
      counted: { login: "client", path: "login" },
    },
    {
      name: "another host in the target, which Weir ignores",
      lines: lines("GET http://other.example/host HTTP/1.1", "Host: api.example.com"),
      counted: api,
    },
    ...INVALID.map((name) => refused(`Host: ${JSON.stringify(name)}`, `Host: ${name}`)),
    refused("two Host fields", "Host: api.example.com", "Host: other.example"),
    refused("no Host field"),
    refused("a Host field with a space before its colon", "Host : api.example.com"),
    { name: "HTTP/1.0 without a Host", lines: lines("GET /host HTTP/1.0"), status: 400 },
  ],
};
