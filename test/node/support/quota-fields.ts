import type { IncomingHttpHeaders } from "node:http";
import { isInnerList, parseList } from "structured-headers";

/** An item of `RateLimit-Policy` or `RateLimit`: a policy's name, and its parameters. */
export type QuotaItem = { name: unknown } & Record<string, unknown>;

/** Reads `RateLimit-Policy` as any client would that knows RFC 9651 and nothing of Weir. */
export function policiesOf(headers: IncomingHttpHeaders): QuotaItem[] {
  return itemsOf(headers["ratelimit-policy"]);
}

/** Reads `RateLimit` likewise. */
export function limitsOf(headers: IncomingHttpHeaders): QuotaItem[] {
  return itemsOf(headers.ratelimit);
}

function itemsOf(field: string | string[] | undefined): QuotaItem[] {
  return parseList([field ?? []].flat().join(", ")).map((item) => {
    if (isInnerList(item)) throw new Error("a list within the list of policies");
    const [name, parameters] = item;
    return { name, ...Object.fromEntries(parameters) };
  });
}
