import { type Exempt, printableSecretName } from "../config/exempt.ts";
import { NetworkSet } from "../config/network-set.ts";
import type { CanonicalRequest } from "../request/canonical-request.ts";
import { isExempt } from "../request/rule-applier.ts";
import { shownAddress, shownNetworks } from "./condition-texts.ts";
import type { ExplainedCondition } from "./explanation.ts";

const NO_NETWORKS = new NetworkSet([], []);

/**
 * Tests each entry of `exempt` on its own, up to the first that exempts the request. The texts contain no
 * secret.
 */
export async function testExemptions(
  { networks, headers }: Exempt,
  request: CanonicalRequest,
  secrets: ReadonlyMap<string, string>,
): Promise<ExplainedCondition[]> {
  const tested: ExplainedCondition[] = [];
  const test = async (exempt: Exempt, texts: Omit<ExplainedCondition, "result">) => {
    const holds = await isExempt(exempt, request, secrets, isEqual);
    tested.push({ ...texts, result: holds ? "holds" : "fails" });
    return holds;
  };
  if (networks.size > 0) {
    const actual = shownAddress(request.headers);
    const texts = { field: "exempt.ips", actual, expected: shownNetworks(networks) };
    if (await test({ networks, headers: [] }, texts)) return tested;
  }
  for (const header of headers) {
    const { name, value } = header;
    const actual = request.headers.has(name) ? "a value" : "absent";
    const expected =
      typeof value === "string" ? "a text (not shown)" : shownSecret(value.secret, secrets);
    const texts = { field: `exempt.headers.${name}`, actual, expected };
    if (await test({ networks: NO_NETWORKS, headers: [header] }, texts)) return tested;
  }
  return tested;
}

function shownSecret(name: string, secrets: ReadonlyMap<string, string>): string {
  const shown = printableSecretName(name);
  return secrets.has(name)
    ? `the value of the secret ${shown}`
    : `the value of the secret ${shown}, which is not set`;
}

/**
 * Compares the digests of two texts in a time that does not depend on them. Node has no `timingSafeEqual`
 * in `crypto.subtle`.
 */
async function isEqual(one: string, other: string): Promise<boolean> {
  const [first, second] = await Promise.all([digest(one), digest(other)]);
  let difference = 0;
  for (const [index, byte] of first.entries()) difference |= byte ^ (second[index] ?? 0);
  return difference === 0;
}

async function digest(text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
}
