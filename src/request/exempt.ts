import type { Exempt, ExpectedValue } from "../config/exempt.ts";
import { MAX_KEY_LENGTH } from "../config/key-expression.ts";
import { isExemptAddress } from "./exempt-address.ts";
import type { HeaderFields } from "./header-fields.ts";

/**
 * Whether a rule does not count a request, because the client's address or one of the headers
 * matches `exempt`.
 *
 * The networks are compared with the client's full address, and not with the first `ipv6Prefix`
 * bits of it. Workers of other zones share one address, so an address never exempts them.
 *
 * @param secrets the values of the Worker's secrets, by their names. A header whose secret is
 * missing exempts no request
 * @param isEqual compares two texts in a time that does not reveal the second one
 */
export async function isExempt(
  { networks, headers }: Exempt,
  request: { readonly headers: HeaderFields },
  secrets: ReadonlyMap<string, string>,
  isEqual = isEqualInConstantTime,
): Promise<boolean> {
  if (isExemptAddress(networks, request.headers)) return true;
  for (const { name, value } of headers) {
    const sent = request.headers.get(name);
    const expected = resolveExpected(value, secrets);
    // No secret is that long, and hashing a field of 64 KiB for each rule would take long.
    if (!sent || sent.length > MAX_KEY_LENGTH) continue;
    if (expected && (await isEqual(sent, expected))) return true;
  }
  return false;
}

function resolveExpected(
  value: ExpectedValue,
  secrets: ReadonlyMap<string, string>,
): string | undefined {
  return typeof value === "string" ? value : secrets.get(value.secret);
}

/**
 * Compares two texts in a time that does not reveal how many characters of a guess are right. It
 * compares digests and not the texts, because `timingSafeEqual` needs equal lengths, and the length
 * of the secret must stay unknown.
 */
async function isEqualInConstantTime(sent: string, expected: string): Promise<boolean> {
  const digests = await Promise.all([sha256(sent), sha256(expected)]);
  return crypto.subtle.timingSafeEqual(...digests);
}

function sha256(text: string): Promise<ArrayBuffer> {
  return crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
}
