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
  request: LogRequest | undefined;

  get(name: string): string | null {
    const { request } = this;
    switch (name) {
      case "cf-connecting-ip":
        return request?.ip ?? null;
      case "host":
        return request?.host ?? null;
      default:
        return request?.headers?.get(name) ?? null;
    }
  }

  has(name: string): boolean {
    return this.get(name) !== null;
  }

  keys(): Iterable<string> {
    const names = [...NOT_IN_HEADERS, ...(this.request?.headers?.keys() ?? [])];
    return names.filter((name) => this.has(name));
  }
}

const NOT_IN_HEADERS = ["cf-connecting-ip", "host"];

/**
 * The logged request that is being decided, in the form that the Worker's rules read. One object serves
 * all requests, one after the other, because a replay decides millions.
 */
export class LoggedRequest implements CanonicalRequest {
  readonly #showsPreflights: boolean;
  readonly #fields = new LoggedFields();
  #request: LogRequest = NO_REQUEST;
  #place: Place = NO_PLACE;
  readonly #names: SentNames | undefined;
  #sent: SentValues | undefined;

  /**
   * @param showsPreflights if false, all OPTIONS requests count as preflights
   * @param names the cookies and query parameters that the rules read
   */
  constructor(showsPreflights: boolean, names?: SentNames) {
    this.#showsPreflights = showsPreflights;
    this.#names = names;
  }

  set(request: LogRequest, place: Place): void {
    this.#request = request;
    this.#place = place;
    this.#fields.request = request;
    this.#sent = undefined;
  }

  get sent(): SentValues {
    this.#sent ??= new SentValues(this, this.#names);
    return this.#sent;
  }

  /** When the request arrived, in milliseconds since the Unix epoch. */
  get at(): number {
    return this.#request.at;
  }

  get path(): string {
    return this.#place.path;
  }

  get isUnambiguous(): boolean {
    return this.#place.isUnambiguous;
  }

  get variants(): readonly string[] {
    return this.#place.variants;
  }

  get unstrippedVariants(): readonly string[] {
    return this.#place.unstrippedVariants;
  }

  /** An empty text if the host is unknown. No condition matches it, and in keys it counts as absent. */
  get host(): string {
    return this.#request.host === undefined ? "" : this.#place.host;
  }

  get method(): string {
    const { sentMethod } = this;
    return sentMethod === "HEAD" ? "GET" : sentMethod;
  }

  get sentMethod(): string {
    return this.#request.method.toUpperCase();
  }

  get isPreflight(): boolean {
    const { sentMethod } = this;
    if (!this.#showsPreflights) return sentMethod === "OPTIONS";
    return isPreflight(sentMethod, {
      headers: this.#fields,
      body: this.hasBody ? this.#request : null,
    });
  }

  get search(): string {
    return new URL(urlOf(this.#request.host, this.#request.target)).search;
  }

  get hasHiddenQuery(): boolean {
    return hasHiddenQuery(urlOf(this.#request.host, this.#request.target));
  }

  get headers(): ReadonlyHeaders {
    return this.#fields;
  }

  get hasBody(): boolean {
    return Number(this.#fields.get("content-length")) > 0;
  }

  get cf(): ClientFacts | undefined {
    return this.#request.cf;
  }
}

const NO_PLACE: Place = {
  path: "/",
  isUnambiguous: true,
  variants: ["/"],
  unstrippedVariants: [],
  host: "",
};

/** The request of a reader that has read no line yet. */
export const NO_REQUEST: LogRequest = {
  at: 0,
  method: "GET",
  target: "/",
  host: undefined,
  ip: undefined,
  status: undefined,
  headers: undefined,
};
