import type { IncomingMessage } from "node:http";

/**
 * Returns the path and the query of a request unchanged. A URL parser would resolve `/../`, read
 * `//name` as a host, and throw an error for some other targets.
 */
export function requestTarget(request: IncomingMessage): { path: string; query: URLSearchParams } {
  const target = request.url ?? "/";
  const mark = target.indexOf("?");
  if (mark === -1) return { path: target, query: new URLSearchParams() };
  return { path: target.slice(0, mark), query: new URLSearchParams(target.slice(mark + 1)) };
}
