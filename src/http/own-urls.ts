import { changeable } from "./response-headers.ts";

// A server that does not know the client's host names itself in absolute URLs. A client that followed such a URL would
// get around Weir. So Weir turns these URLs back, as nginx does by default (proxy_redirect).

/** An absolute URL of HTTP, or one without a scheme: its scheme, user, host with port, and the rest. */
const URL_TEXT = /^((?:https?:)?\/\/)((?:[^\s/?#\\]*@)?)([^\s/?#\\@]+)([/?#].*)?$/is;

/** Returns a value in which a function has replaced every URL. */
type ReplaceUrls = (value: string, replace: (url: string) => string) => string;

/**
 * The fields whose URLs clients follow. The runtime joins repeated fields by a comma and a space, and no URL contains
 * a space. In `Link`, a quoted text is no URL, whatever it contains.
 */
const FIELDS: Readonly<Record<string, ReplaceUrls>> = {
  location: (value, replace) => value.split(", ").map(replace).join(", "),
  "content-location": (value, replace) => value.split(", ").map(replace).join(", "),
  refresh: (value, replace) =>
    value.replace(
      /^(\s*[\d.]+[\s;,]+(?:url\s*=\s*)?["']?)([^"']*)/i,
      (_, before: string, url: string) => before + replace(url),
    ),
  link: (value, replace) =>
    // A quoted text without an end goes up to the end of the field, so that each character is read once.
    value.replace(/"(?:[^"\\]|\\.)*(?:"|$)|<([^<>]*)>/g, (text, url: string | undefined) =>
      url === undefined ? text : `<${replace(url)}>`,
    ),
};

/**
 * Returns a response in which URLs of the origin are URLs of the host that the client used. Changes nothing else.
 * Returns the same response if it has no such URL, or if its headers cannot be changed. Never throws.
 *
 * @param base the URL of the origin, without a trailing slash. URLs outside its path are not changed, because Weir
 * forwards no request to them
 * @param clientUrl the URL that the client has requested
 */
export function withClientsUrls(response: Response, base: string, clientUrl: string): Response {
  let copy: Response | undefined;
  for (const [name, replaceUrls] of Object.entries(FIELDS)) {
    const value = response.headers.get(name);
    // The runtime replaces bytes that are not UTF-8, so a field with such bytes could not be kept.
    if (value === null || value.includes("\uFFFD")) continue;
    const client = URL.parse(clientUrl);
    if (!client || response.webSocket) return response;
    const turned = replaceUrls(value, (url) => clientsUrl(url, base, client));
    if (turned === value) continue;
    copy ??= changeable(response);
    copy?.headers.set(name, turned);
  }
  return copy ?? response;
}

/** Returns a URL of the origin as a URL of the client's host, and any other text unchanged. */
function clientsUrl(text: string, base: string, client: URL): string {
  const match = URL_TEXT.exec(text.trim());
  if (!match) return text;
  const [, start = "", user = "", host = "", rest = ""] = match;
  const { origin, protocol, pathname } = new URL(base);
  const scheme = start === "//" ? protocol : start.slice(0, -2);
  if (URL.parse(`${scheme}//${host}`)?.origin !== origin) return text;
  const own = (start === "//" ? start : `${client.protocol}//`) + user + client.host;
  if (pathname === "/") return own + rest;
  if (!rest.startsWith(pathname)) return text;
  const path = rest.slice(pathname.length);
  if (path !== "" && !/^[/?#]/.test(path)) return text;
  return own + (path.startsWith("/") ? path : `/${path}`);
}
