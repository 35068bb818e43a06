import type { Conditions } from "../config/conditions.ts";
import type { NetworkSet } from "../config/network-set.ts";
import type { CanonicalRequest, ClientFacts } from "./canonical-request.ts";
import { readClient } from "./client-address.ts";
import { type ConditionTest, headerTest, queryTest } from "./value-conditions.ts";

/**
 * Creates the test for all conditions except hosts, methods and paths.
 *
 * @returns undefined if there are no other conditions, so that most rules need no test
 */
export function createConditionTest(conditions: Conditions): ConditionTest | undefined {
  const { headers = [], query = [], ips, countries, asns, bots } = conditions;
  const factTests = [
    countries && countryTest(new Set(countries)),
    asns && asnTest(new Set(asns)),
    bots && botTest(bots),
  ].filter((test) => test !== undefined);
  const tests: ConditionTest[] = [...headers.map(headerTest), ...query.map(queryTest)];
  if (ips) tests.push((request) => isInNetworks(request, ips));
  // The runtime creates Cloudflare's data again at each access, so this test reads it only once.
  if (factTests.length > 0) tests.push(({ cf = {} }) => allHold(factTests, cf));
  return tests.length === 0 ? undefined : (request) => allHold(tests, request);
}

function allHold<Subject>(
  tests: readonly ((subject: Subject) => boolean | undefined)[],
  subject: Subject,
): boolean | undefined {
  let result: boolean | undefined = true;
  for (const test of tests) {
    const holds = test(subject);
    if (holds === false) return false;
    if (holds === undefined) result = undefined;
  }
  return result;
}

/**
 * Whether the client's address is in a list of networks; undefined if this is unknown. Requests
 * from Workers of other zones all have one address, so such an address does not identify the
 * client.
 */
function isInNetworks({ headers }: CanonicalRequest, networks: NetworkSet): boolean | undefined {
  const client = readClient(headers);
  if (client.kind === "unknown") return undefined;
  const contains = networks.contains(client.address);
  return client.kind === "worker" && contains ? undefined : contains;
}

/** Cloudflare's code for a client whose country it does not know. */
const UNKNOWN_COUNTRY = "XX";
/** Cloudflare's code for Tor, which hides the country of its users. */
const TOR = "T1";

type FactTest = (facts: ClientFacts) => boolean | undefined;

function countryTest(countries: ReadonlySet<string>): FactTest {
  return ({ country }) => {
    if (!country || country === UNKNOWN_COUNTRY) return undefined;
    return countries.has(country) || (country === TOR ? undefined : false);
  };
}

function asnTest(asns: ReadonlySet<number>): FactTest {
  return ({ asn }) => (asn ? asns.has(asn) : undefined);
}

/**
 * Creates the test for bots. On every plan, Cloudflare reports the category of a verified bot, and
 * an empty text for any other client. Only with Bot Management does Cloudflare report
 * `verifiedBot`.
 */
function botTest(bots: NonNullable<Conditions["bots"]>): FactTest {
  return ({ botManagement, verifiedBotCategory: category }) => {
    if (category) return bots === "verified" || bots.includes(category);
    const isVerified = (botManagement as { verifiedBot?: boolean } | null | undefined)?.verifiedBot;
    if (isVerified) return bots === "verified" || undefined;
    return isVerified === false || category === "" ? false : undefined;
  };
}
