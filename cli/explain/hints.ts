import type { Explanation } from "../../src/explain/explanation.ts";

/** Returns how to complete the description of a request that lacks what rules depend on, as sentences. */
export function hintsFor({ request, rules }: Explanation): string[] {
  const hints: string[] = [];
  if (request.client === "unknown") {
    hints.push(
      "The client's address is unknown: add --ip 203.0.113.7. Weir reads it only from CF-Connecting-IP, never from X-Forwarded-For.",
    );
  }
  const isUnknown = (name: RegExp) =>
    rules.some(({ conditions }) =>
      conditions.some(({ field, result }) => result === "unknown" && name.test(field)),
    );
  const facts = [
    isUnknown(/countries$/) && "--cf country=DE",
    isUnknown(/asns$/) && "--cf asn=64496",
    isUnknown(/bots$/) && '--cf verifiedBotCategory="Search Engine Crawler" (or empty)',
  ].filter(Boolean);
  if (facts.length > 0) {
    hints.push(`Cloudflare's data about the client is unknown: add ${facts.join(", ")}.`);
  }
  return hints;
}
