import { ownText, TextCache } from "./text-cache.ts";

/** A method is a token (RFC 9110). Registered methods have at most 17 characters. */
const METHOD = /^[\w!#$%&'*+.^`|~-]{1,32}$/;
const ABSOLUTE = /^https?:\/\/[^/?#]+/i;
const MAX_METHODS = 100;

const SLASH = 47;

/** A request line that no Worker would get, such as that of a proxy. */
const IGNORED = undefined;

/** Splits request lines such as `GET /search?q=1 HTTP/1.1`. The fields are those of the last line. */
export class RequestLine {
  readonly #methods = new TextCache(MAX_METHODS, (text) => (METHOD.test(text) ? text : null));
  method = "";
  target = "";

  /**
   * @returns true for a request; undefined if the line is no request with a path, such as `-` after a timeout;
   * else the reason why it cannot be read
   */
  read(text: string): true | string | undefined {
    const methodEnd = text.indexOf(" ");
    if (methodEnd === -1) {
      return text === "-" || text === "" ? IGNORED : "its request is not HTTP";
    }
    const method = this.#methods.get(text.slice(0, methodEnd));
    if (method === null) return "its request is not HTTP";
    this.method = method;
    // HTTP/0.9 has no version.
    const targetEnd = text.indexOf(" ", methodEnd + 1);
    if (targetEnd !== -1 && !isVersion(text, targetEnd + 1)) {
      return "its request has more than a method, a path and a version";
    }
    return this.#readTarget(text, methodEnd + 1, targetEnd === -1 ? text.length : targetEnd);
  }

  #readTarget(text: string, from: number, to: number): true | string | undefined {
    const target = ownText(text.slice(from, to));
    if (target.charCodeAt(0) === SLASH) {
      this.target = target;
      return true;
    }
    if (target === "*" || this.method === "CONNECT") return IGNORED;
    const authority = ABSOLUTE.exec(target)?.[0];
    if (authority === undefined) return "its request has no path";
    const path = target.slice(authority.length).split("#", 1)[0] ?? "";
    this.target = path.startsWith("/") ? path : `/${path}`;
    return true;
  }
}

/** Whether the rest of a request line is a version, such as `HTTP/1.1`. */
function isVersion(text: string, from: number): boolean {
  return text.startsWith("HTTP/", from) && text.indexOf(" ", from) === -1;
}
