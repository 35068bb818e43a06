import { MAX_CHARACTERS, MAX_SEGMENTS } from "../request/path.ts";
import { ALLOWED_METHODS, type DescribedRequest, METHODS } from "./explanation.ts";

/** The maximum length of the URL of a described request, in characters. Cloudflare accepts no longer URLs. */
export const MAX_URL = 16 * 1024;

/** The maximum length of the body of a described request, in bytes. The admin API reads no more. */
export const MAX_BODY = 64 * 1024;

/** The methods of requests without a body, as the constructor of a request requires. */
export const BODYLESS: readonly string[] = ["GET", "HEAD", "TRACE"];

/** Thrown if a description is not a request. The message contains no values of the description. */
export class DescriptionError extends Error {
  override readonly name = "DescriptionError";
  /** The faulty field. */
  readonly field: keyof DescribedRequest;

  /** @param allowed the allowed values; the text continues a sentence that begins with the field */
  constructor(field: keyof DescribedRequest, allowed: string) {
    super(allowed);
    this.field = field;
  }
}

/** @throws {DescriptionError} if a Worker would receive no such request */
export function readRequest(described: DescribedRequest): Request {
  const method = described.method.toUpperCase();
  if (!METHODS.includes(method))
    throw new DescriptionError("method", `must be ${ALLOWED_METHODS}.`);
  const url = readUrl(described.url);
  const headers = readHeaders(described.headers);
  // Each real request has this header, and its URL has the same host.
  headers.set("host", url.host);
  const request = createRequest(url, method, headers, readBody(described.body, method));
  const { cf } = described;
  // Only workerd's requests have `cf`. Their constructor accepts only some of the fields.
  return cf ? Object.defineProperty(request, "cf", { value: cf, enumerable: true }) : request;
}

/** Thrown if a request is too long for rules. */
export function pathTooLong(): DescriptionError {
  return new DescriptionError(
    "url",
    `is matched by no rule, because its path has more than ${MAX_CHARACTERS} characters or ${MAX_SEGMENTS} slashes. With WEIR_MODE: "enforce", Weir answers 414.`,
  );
}

function readUrl(text: string): URL {
  const url = URL.parse(text);
  if (text.length > MAX_URL || (url && url.href.length > MAX_URL)) {
    throw new DescriptionError("url", `must have at most ${MAX_URL} characters.`);
  }
  if (!url || !/^https?:\/\//i.test(text)) {
    throw new DescriptionError("url", "must be an absolute URL of http or https.");
  }
  if (url.username || url.password) {
    throw new DescriptionError(
      "url",
      "must have no user and no password. Clients send them in the header authorization.",
    );
  }
  return url;
}

function readHeaders(fields: DescribedRequest["headers"]): Headers {
  try {
    return new Headers(fields);
  } catch {
    throw new DescriptionError("headers", "must have valid names and values of headers.");
  }
}

/** Returns a blob, because a text would add the header content-type to the request. */
function readBody(text: string | undefined, method: string): Blob | undefined {
  if (text === undefined) return undefined;
  if (BODYLESS.includes(method)) {
    throw new DescriptionError("body", `must be left out with ${BODYLESS.join(", ")}.`);
  }
  const body = new Blob([text]);
  if (body.size <= MAX_BODY) return body;
  throw new DescriptionError("body", `must have at most ${MAX_BODY} bytes.`);
}

function createRequest(
  url: URL,
  method: string,
  headers: Headers,
  body: Blob | undefined,
): Request {
  // The constructor refuses TRACE, because programs cannot send it, but other clients can.
  if (method !== "TRACE") {
    return new Request(url, { method, headers, ...(body && { body }) });
  }
  return Object.defineProperty(new Request(url, { headers }), "method", { value: method });
}
