/**
 * Whether a page of Weir sent a request. Browsers send at least one of both header fields with each request
 * that is not GET or HEAD, and pages cannot change them.
 *
 * @returns undefined if the sender is not a browser
 */
export function isSameOrigin(request: Request): boolean | undefined {
  const site = request.headers.get("sec-fetch-site");
  const origin = request.headers.get("origin");
  if (site === null && origin === null) return undefined;
  if (site !== null && site !== "same-origin") return false;
  return origin === null || origin === URL.parse(request.url)?.origin;
}
