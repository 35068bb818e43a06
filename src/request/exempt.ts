import type { Exempt, ExpectedValue } from "../config/exempt.ts";
import { holds } from "../config/network.ts";
import { clientOf } from "./client-address.ts";

/**
 * Whether a rule leaves a request uncounted. Any one of what `exempt` lists is enough.
 *
 * An address is compared as the client wrote it, not cut to its network; Workers of other zones,
 * who share one, are never exempt by it.
 *
 * @param secrets what the Worker's secrets hold; one that is not there exempts nobody
 */
export async function isExempt(
  { networks, headers }: Exempt,
  request: { readonly headers: Headers },
  secrets: ReadonlyMap<string, string>,
): Promise<boolean> {
  const client = networks.length > 0 ? clientOf(request.headers) : undefined;
  if (client?.kind === "address" && networks.some((network) => holds(network, client.address))) {
    return true;
  }
  for (const { name, value } of headers) {
    const given = request.headers.get(name);
    const expected = resolve(value, secrets);
    if (given && expected && (await equalInConstantTime(given, expected))) return true;
  }
  return false;
}

function resolve(value: ExpectedValue, secrets: ReadonlyMap<string, string>): string | undefined {
  return typeof value === "string" ? value : secrets.get(value.secret);
}

/**
 * Compares in a time that tells nothing of how much of a guess is right. Digests are compared, not
 * the texts: they have one length, which `timingSafeEqual` needs, and the secret's stays unknown.
 */
async function equalInConstantTime(given: string, expected: string): Promise<boolean> {
  const [one, other] = await Promise.all([digestOf(given), digestOf(expected)]);
  return crypto.subtle.timingSafeEqual(one, other);
}

function digestOf(text: string): Promise<ArrayBuffer> {
  return crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
}
