import { hostName } from "./host-name.ts";

/** The path of a request with its query, and the host of an absolute URL. */
export interface RequestTarget {
  readonly target: string;
  readonly host: string | undefined;
}

const ORIGIN = /^https?:\/\/[^/?#]*/i;

/**
 * Reads a path or an absolute URL.
 *
 * @param query the query, if the URL does not have it; with or without its question mark
 * @returns undefined for anything else
 */
export function requestTarget(url: string, query?: string): RequestTarget | undefined {
  const origin = ORIGIN.exec(url)?.[0] ?? "";
  const rest = url.slice(origin.length).split("#", 1)[0] ?? "";
  if (origin === "" && !rest.startsWith("/")) return undefined;
  const path = rest.startsWith("/") ? rest : `/${rest}`;
  const isComplete = query === undefined || path.includes("?");
  const authority = origin.slice(origin.indexOf("//") + 2);
  return {
    target: isComplete ? path : `${path}?${query.startsWith("?") ? query.slice(1) : query}`,
    host: hostName(authority.slice(authority.lastIndexOf("@") + 1)),
  };
}
