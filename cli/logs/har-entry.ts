import { clientIp } from "./client-ip.ts";
import { isHttpMethod } from "./http-method.ts";
import type { LogRequest } from "./log-request.ts";
import { recordTime } from "./record-time.ts";
import { requestTarget } from "./request-target.ts";

/** The values of an entry that are read. Others, such as bodies, are never held together in memory. */
export const HAR_PATHS = [
  "startedDateTime",
  "time",
  "_clientIPAddress",
  "request.method",
  "request.url",
  "request.bodySize",
  "request.headers.*",
  "response.status",
  "response.headers.*",
] as const;

/** The maximum length of all header fields of an entry, in characters. */
const MAX_LENGTH = 1024 * 1024;

type Values = Partial<Record<(typeof HAR_PATHS)[number], unknown>>;

/** Collects the values of one entry of a HAR file. */
export class HarEntry {
  readonly #values: Values = {};
  readonly #headers = new Map<string, string>();
  readonly #responseHeaders = new Map<string, string>();
  #length = 0;

  /** Adds a value by its path in the entry. Elements of lists have the path of the list. */
  add(path: string, value: unknown): void {
    if (path === "request.headers") this.#addHeader(this.#headers, value);
    else if (path === "response.headers") this.#addHeader(this.#responseHeaders, value);
    else this.#values[path as keyof Values] = value;
  }

  #addHeader(headers: Map<string, string>, field: unknown): void {
    const { name, value } = (field ?? {}) as { name?: unknown; value?: unknown };
    // HTTP/2 sends the method and the URL in fields that begin with a colon.
    if (typeof name !== "string" || typeof value !== "string" || name.startsWith(":")) return;
    this.#length += name.length + value.length;
    if (this.#length > MAX_LENGTH) return;
    const key = name.toLowerCase();
    const before = headers.get(key);
    const separator = key === "cookie" ? "; " : ", ";
    headers.set(key, before === undefined ? value : before + separator + value);
  }

  /**
   * Returns the request, or why there is none.
   *
   * @param host the host of a URL that has none
   */
  request(host: string | undefined): LogRequest | string {
    const values = this.#values;
    const { "request.method": method, "request.url": url } = values;
    if (typeof method !== "string" || typeof url !== "string")
      return "has no request with method and url";
    if (!isHttpMethod(method)) return "has a method that is not HTTP";
    const target = requestTarget(url);
    if (!target) return "has a URL that begins with neither http nor https";
    const at = recordTime(values.startedDateTime);
    if (Number.isNaN(at)) return "has no time in startedDateTime";
    if (this.#length > MAX_LENGTH) return "has header fields with more than 1 MiB";
    const address = this.#headers.get("cf-connecting-ip") ?? values._clientIPAddress;
    return {
      at,
      method,
      target: target.target,
      host: target.host ?? host,
      ip: typeof address === "string" ? clientIp(address) : undefined,
      status: within(values["response.status"], 100, 999),
      userAgent: this.#headers.get("user-agent"),
      headers: this.#headers,
      responseHeaders: this.#responseHeaders,
      cf: undefined,
      bodyBytes: within(values["request.bodySize"], 0, Number.MAX_SAFE_INTEGER),
      durationMs: within(values.time, 0, Number.MAX_SAFE_INTEGER),
    };
  }

  /** The start of the entry as text, for reports. */
  get text(): string {
    const { "request.method": method, "request.url": url } = this.#values;
    return `${typeof method === "string" ? method : ""} ${typeof url === "string" ? url : ""}`;
  }
}

function within(value: unknown, min: number, max: number): number | undefined {
  return typeof value === "number" && value >= min && value <= max ? value : undefined;
}
