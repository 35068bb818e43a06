import type { IncomingMessage } from "node:http";

/**
 * What a request asks for, as it came. Parsing it as a URL would resolve `/../`, take `//name` for
 * a host, and throw at others.
 */
export function requestTarget(request: IncomingMessage): { path: string; query: URLSearchParams } {
  const target = request.url ?? "/";
  const mark = target.indexOf("?");
  if (mark === -1) return { path: target, query: new URLSearchParams() };
  return { path: target.slice(0, mark), query: new URLSearchParams(target.slice(mark + 1)) };
}
