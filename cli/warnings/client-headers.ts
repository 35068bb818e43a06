import type { Conditions } from "../../src/config/conditions.ts";
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
