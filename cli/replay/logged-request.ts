import {
  type CanonicalRequest,
  type ClientFacts,
  hasHiddenQuery,
  isPreflight,
  type Place,
} from "../../src/request/canonical-request.ts";
import type { ReadonlyHeaders } from "../../src/request/headers.ts";
import { type SentNames, SentValues } from "../../src/request/sent-values.ts";
import type { LogRequest } from "../logs/log-request.ts";

/** The host in URLs of requests whose host is unknown. No rule sees it. */
const NO_HOST = "host.invalid";

export function urlOf(host: string | undefined, target: string): string {
  return `https://${host ?? NO_HOST}${target}`;
}

class LoggedFields implements ReadonlyHeaders {
  readonly #request: LogRequest;

  constructor(request: LogRequest) {
    this.#request = request;
  }

  get(name: string): string | null {
    const { ip, host, headers } = this.#request;
    if (name === "cf-connecting-ip") return ip ?? null;
    return (name === "host" ? host : headers?.get(name)) ?? null;
  }

  has(name: string): boolean {
    return this.get(name) !== null;
  }

  keys(): Iterable<string> {
    const names = ["cf-connecting-ip", "host", ...(this.#request.headers?.keys() ?? [])];
    return names.filter((name) => this.has(name));
  }
}

/** A logged request, in the form that the Worker's rules read. */
export class LoggedRequest implements CanonicalRequest {
  readonly path: string;
  readonly isUnambiguous: boolean;
  readonly variants: readonly string[];
  readonly unstrippedVariants: readonly string[];
  /** An empty text if the host is unknown. No condition matches it, and in keys it counts as absent. */
  readonly host: string;
  readonly method: string;
  readonly sentMethod: string;
  readonly isPreflight: boolean;
  readonly headers: ReadonlyHeaders;
  readonly hasBody: boolean;
  readonly cf: ClientFacts | undefined;
  readonly #url: string;
  readonly #names: SentNames | undefined;
  #sent: SentValues | undefined;

  /**
   * @param showsPreflights if false, all OPTIONS requests count as preflights
   * @param names the cookies and query parameters that the rules read
   */
  constructor(
    request: LogRequest,
    place: Place,
    showsPreflights: boolean,
    names: SentNames | undefined,
  ) {
    const headers = new LoggedFields(request);
    const sentMethod = request.method.toUpperCase();
    this.path = place.path;
    this.isUnambiguous = place.isUnambiguous;
    this.variants = place.variants;
    this.unstrippedVariants = place.unstrippedVariants;
    this.host = request.host === undefined ? "" : place.host;
    this.method = sentMethod === "HEAD" ? "GET" : sentMethod;
    this.sentMethod = sentMethod;
    this.headers = headers;
    this.hasBody = Number(headers.get("content-length")) > 0;
    this.isPreflight = showsPreflights
      ? isPreflight(sentMethod, { headers, body: this.hasBody ? request : null })
      : sentMethod === "OPTIONS";
    this.cf = request.cf;
    this.#url = urlOf(request.host, request.target);
    this.#names = names;
  }

  get sent(): SentValues {
    this.#sent ??= new SentValues(this, this.#names);
    return this.#sent;
  }

  get search(): string {
    return new URL(this.#url).search;
  }

  get hasHiddenQuery(): boolean {
    return hasHiddenQuery(this.#url);
  }
}
