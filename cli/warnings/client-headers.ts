import type { Conditions } from "../../src/config/conditions.ts";
import type { KeyPart } from "../../src/config/key-expression.ts";
import type { LocalFinding } from "../finding.ts";

/** Why a condition should not read a header field, and what to write instead. */
interface ClientHeader {
  readonly reason: string;
  readonly cure: string;
}

const ADDRESS: ClientHeader = {
  reason: "and so as a text, not as an address or a network",
  cure: 'Write ips with addresses and networks, such as ips: ["198.51.100.0/24"]',
};
const SENT_ADDRESS: ClientHeader = {
  reason: "which every client can send with any value",
  cure: ADDRESS.cure,
};

/** Header fields with data about the client. A Map, because a header may be named `constructor`. */
const CLIENT_HEADERS: ReadonlyMap<string, ClientHeader> = new Map([
  [
    "cf-ipcountry",
    {
      reason: "which is missing if IP Geolocation is off in the zone",
      cure: 'Write countries, such as countries: ["DE"]',
    },
  ],
  ["cf-connecting-ip", ADDRESS],
  ["cf-connecting-ipv6", ADDRESS],
  ["true-client-ip", SENT_ADDRESS],
  ["x-client-ip", SENT_ADDRESS],
  ["x-forwarded-for", SENT_ADDRESS],
  ["x-real-ip", SENT_ADDRESS],
  ["forwarded", SENT_ADDRESS],
  [
    "cf-ray",
    {
      reason: "which is different for each request",
      cure: "Remove it: no condition reads the data center, but a function for a key custom:NAME can return request.cf.colo",
    },
  ],
  [
    "cf-visitor",
    {
      reason: 'which is JSON, such as {"scheme":"https"}',
      cure: "Remove it. If no client shall use plain HTTP, turn on Always Use HTTPS in the zone",
    },
  ],
]);

/** Whether a header field has data about the client that Weir reads from Cloudflare itself. */
export function isClientHeader(name: string): boolean {
  return CLIENT_HEADERS.has(name);
}

/**
 * Warns of conditions on header fields with the client's address or country, and on other fields of
 * Cloudflare.
 *
 * @param rule the name of the rule
 * @param place the path of the conditions
 */
export function clientHeaderWarnings(
  rule: string,
  { headers = [] }: Conditions,
  place: string,
): LocalFinding[] {
  return headers.flatMap(({ name }): LocalFinding[] => {
    const header = CLIENT_HEADERS.get(name);
    if (!header) return [];
    return [
      {
        code: "client-header",
        severity: "warning",
        path: `${place}.headers[${JSON.stringify(name)}]`,
        message: `The rule "${rule}" compares the header ${name}, ${header.reason}`,
        cure: header.cure,
      },
    ];
  });
}

/**
 * Returns the warning about a key that reads a header field of Cloudflare; undefined if the key also
 * reads a value that clients choose.
 *
 * @param parts the parts of the key that are values of header fields, cookies or parameters
 */
export function cloudflareKeyWarning(
  rule: string,
  parts: readonly KeyPart[],
  place: string,
): LocalFinding | undefined {
  const names = parts.map((part) => (part.kind === "header" ? part.name : ""));
  const [first] = names;
  const key = FIELD_KEYS.get(first ?? "");
  if (!key || names.some((name) => name !== first)) return undefined;
  return {
    code: "client-header",
    severity: "warning",
    path: `${place}.key`,
    message: `The key of the rule "${rule}" is the header ${first}, ${CLIENT_HEADERS.get(first ?? "")?.reason}`,
    cure: `Write key: "${key}"`,
  };
}

/** The keys to write instead of header fields that only Cloudflare sets. */
const FIELD_KEYS: ReadonlyMap<string, string> = new Map([
  ["cf-ipcountry", "country"],
  ["cf-ray", "ip"],
]);
