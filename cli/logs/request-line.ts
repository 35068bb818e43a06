import { isHttpMethod } from "./http-method.ts";
import { requestTarget } from "./request-target.ts";
import { ownText, TextCache } from "./text-cache.ts";

const SLASH = 47;

/** Splits request lines such as `GET /search?q=1 HTTP/1.1`. */
export class RequestLine {
  readonly #methods = new TextCache((text) => (isHttpMethod(text) ? text : null));
  /** The method of the last request. */
  method = "";
  /** The path of the last request, with its query. */
  target = "";

  /**
   * Reads a part of a text.
   *
   * @returns true for a request; undefined if it is no request with a path, such as `-` after a timeout; else
   * the reason why it cannot be read
   */
  read(text: string, from: number, to: number): true | string | undefined {
    const methodEnd = text.indexOf(" ", from);
    if (methodEnd === -1 || methodEnd >= to) {
      const isEmpty = from === to || (to === from + 1 && text[from] === "-");
      return isEmpty ? undefined : "its request is not HTTP";
    }
    const method = text.startsWith("GET ", from)
      ? "GET"
      : this.#methods.get(text.slice(from, methodEnd));
    if (method === null) return "its request is not HTTP";
    this.method = method;
    const targetEnd = text.indexOf(" ", methodEnd + 1);
    // HTTP/0.9 has no version.
    if (targetEnd === -1 || targetEnd >= to) return this.#readTarget(text.slice(methodEnd + 1, to));
    if (!isVersion(text, targetEnd + 1, to)) {
      return "its request has more than a method, a path and a version";
    }
    return this.#readTarget(text.slice(methodEnd + 1, targetEnd));
  }

  #readTarget(target: string): true | string | undefined {
    if (target.charCodeAt(0) === SLASH) {
      this.target = ownText(target);
      return true;
    }
    if (target === "*" || this.method === "CONNECT") return undefined;
    const absolute = requestTarget(target);
    if (absolute === undefined) return "its request has no path";
    this.target = ownText(absolute.target);
    return true;
  }
}

/** The length of versions such as `HTTP/1.1`. */
const USUAL_VERSION = 8;

function isVersion(text: string, from: number, to: number): boolean {
  if (!text.startsWith("HTTP/", from)) return false;
  return to - from <= USUAL_VERSION || !text.slice(from, to).includes(" ");
}
