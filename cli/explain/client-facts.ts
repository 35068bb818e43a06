import { parseAddress } from "../../src/config/address.ts";
import { wrongOptions } from "../admin/admin-error.ts";
import { quoted } from "../doctor/finding.ts";

/** Cloudflare's data about a client, in the form of `request.cf`. */
export type ClientFacts = Readonly<Record<string, unknown>>;

interface Fact {
  /** The value that is allowed, for messages. */
  readonly allowed: string;
  /** Returns undefined for a value that is not allowed. */
  parse(text: string): unknown;
}

const FACTS: Readonly<Record<string, Fact>> = {
  country: {
    allowed: "two letters such as DE, T1 for Tor, or XX for an unknown country",
    parse: (text) => (/^(?:[a-z]{2}|t1)$/i.test(text) ? text.toUpperCase() : undefined),
  },
  asn: {
    allowed: "a number such as 64496",
    parse: (text) => {
      const [, digits] = /^(?:as)?(\d{1,10})$/i.exec(text) ?? [];
      return digits !== undefined && Number(digits) < 2 ** 32 ? Number(digits) : undefined;
    },
  },
  verifiedBotCategory: {
    allowed: 'a category such as "Search Engine Crawler"; an empty text for any other client',
    parse: (text) => (text.length <= 64 ? text : undefined),
  },
  "botManagement.ja4": {
    allowed: "a fingerprint of letters, digits and underscores",
    parse: (text) => (/^\w{1,64}$/.test(text) ? text : undefined),
  },
  "botManagement.verifiedBot": {
    allowed: "true or false",
    parse: (text) => (/^(?:true|false)$/.test(text) ? text === "true" : undefined),
  },
};

/**
 * Reads the options `--cf name=value`.
 *
 * @returns undefined without options
 * @throws {AdminError} for another name or value
 */
export function readFacts(options: readonly string[] = []): ClientFacts | undefined {
  const facts: Record<string, unknown> = {};
  const bots: Record<string, unknown> = {};
  for (const option of options) {
    const equals = option.indexOf("=");
    const given = option.slice(0, equals === -1 ? undefined : equals).trim();
    const name = Object.keys(FACTS).find((each) => each.toLowerCase() === given.toLowerCase());
    const fact = name === undefined ? undefined : FACTS[name];
    if (name === undefined || !fact) {
      throw wrongOptions(
        `--cf has the name "${quoted(given).slice(0, 40)}". Allowed: ${Object.keys(FACTS).join(", ")}.`,
      );
    }
    const value = equals === -1 ? undefined : fact.parse(option.slice(equals + 1).trim());
    if (value === undefined) {
      throw wrongOptions(`--cf ${name}= must be ${fact.allowed}.`);
    }
    const [first, second] = name.split(".");
    const target = second === undefined ? facts : bots;
    const field = second ?? first ?? name;
    if (Object.hasOwn(target, field)) throw wrongOptions(`--cf ${name} is given twice.`);
    target[field] = value;
  }
  if (Object.keys(bots).length > 0) facts.botManagement = bots;
  return Object.keys(facts).length === 0 ? undefined : facts;
}

/** Checks the option `--ip`. @throws {AdminError} if it is no address */
export function readIp(ip: string): string {
  const text = ip.trim();
  if (parseAddress(text)) return text;
  // The value is not printed: a key that was written here by mistake would be in logs.
  throw wrongOptions(
    "--ip is not an IP address. Allowed: an address without a port and without a prefix length, such as 203.0.113.7 or 2001:db8::7.",
  );
}
