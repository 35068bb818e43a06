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

/**
 * Whether a browser says that a page of another site has sent a request. `same-site` is another host of the
 * same domain, which can belong to somebody else.
 */
export function isOfOtherSite(headers: Headers): boolean {
  const site = headers.get("sec-fetch-site");
  return site === "cross-site" || site === "same-site";
}

/** Whether a browser opens a page, which the page with the link cannot read. */
export function isNavigation({ method, headers }: Request): boolean {
  return method === "GET" && headers.get("sec-fetch-dest") === "document";
}
