import { copyOf } from "../http/forward.ts";
import { HEADER } from "./access-token.ts";
import { COOKIE, splitCookies } from "./session.ts";

/** The cookie of Access with the same token as the header field. */
const ACCESS_COOKIE = "CF_Authorization";

/**
 * Matches a field Authorization with a bearer token. workerd joins several fields by commas, and an operator may
 * have forgotten the blank.
 */
const BEARER = /(?:^|,)\s*bearer/i;

/** Whether a request has a field in which Weir looks for credentials. */
export function mayHaveCredential(headers: Headers): boolean {
  return ["authorization", "cookie", HEADER].some((name) => headers.has(name));
}

/**
 * Returns a request that has to continue, without credentials of Weir, so that the origin does not get them. It
 * does not depend on whether a token is right: else the origin's answer could show that.
 *
 * @param hasTokens whether Weir has tokens, so that a bearer token or a session may be meant for Weir
 * @param hasAccessToken whether the request has a valid token of Access. Others are for other applications
 * @returns the same object if it has no such credential; else a copy, which has taken over the body
 */
export function withoutCredentials(
  request: Request,
  hasTokens: boolean,
  hasAccessToken: boolean,
): Request {
  const { headers } = request;
  const cookies = headers.get("cookie");
  const dropped = [...(hasTokens ? [COOKIE] : []), ...(hasAccessToken ? [ACCESS_COOKIE] : [])];
  const kept = cookies && withoutCookies(cookies, dropped);
  const hasBearer = hasTokens && BEARER.test(headers.get("authorization") ?? "");
  const dropsAccess = hasAccessToken && headers.has(HEADER);
  if (kept === cookies && !hasBearer && !dropsAccess) return request;
  const copy = copyOf(request);
  if (hasBearer) copy.headers.delete("authorization");
  if (dropsAccess) copy.headers.delete(HEADER);
  if (kept === "") copy.headers.delete("cookie");
  else if (kept !== null && kept !== cookies) copy.headers.set("cookie", kept);
  return copy;
}

/** Some servers ignore the case of a cookie's name, and blanks after it. */
function withoutCookies(cookies: string, names: readonly string[]): string {
  const all = splitCookies(cookies);
  const dropped = names.map((name) => name.toLowerCase());
  const nameOf = (each: string) => each.split("=", 1)[0]?.trim().toLowerCase() ?? "";
  const kept = all.filter((each) => !dropped.includes(nameOf(each)));
  return kept.length === all.length ? cookies : kept.join(";").trim();
}
