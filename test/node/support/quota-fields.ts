import type { IncomingHttpHeaders } from "node:http";
import { isInnerList, parseList } from "structured-headers";

/** An item of `RateLimit-Policy` or `RateLimit`: the name of a policy and the item's parameters. */
export interface QuotaItem extends Readonly<Record<string, unknown>> {
  readonly name: unknown;
}

/** Parses `RateLimit-Policy` according to RFC 9651, with a parser that is independent of Weir. */
export function policiesOf(headers: IncomingHttpHeaders): QuotaItem[] {
  return itemsOf(headers["ratelimit-policy"]);
}

/** Parses `RateLimit` in the same way as `policiesOf`. */
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
