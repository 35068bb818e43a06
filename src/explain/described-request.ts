import { type CanonicalRequest, canonicalRequest } from "../request/canonical-request.ts";
import type { DescribedRequest } from "./explanation.ts";

/** A described request is no request. The message contains none of its values. */
export class DescriptionError extends Error {
  override readonly name = "DescriptionError";
  /** The field that is wrong. */
  readonly field: keyof DescribedRequest;

  /** @param allowed what is allowed; it continues a sentence that begins with the field */
  constructor(field: keyof DescribedRequest, allowed: string) {
    super(allowed);
    this.field = field;
  }
}

/** A described request, as the gateway would receive it. */
interface ReadRequest {
  readonly request: Request;
  readonly canonical: CanonicalRequest;
}

/** @throws {DescriptionError} if the description is no request that the gateway would decide */
export function readRequest(
  { method, url, headers, cf }: DescribedRequest,
  caseSensitivePaths: boolean,
): ReadRequest {
  let request: Request;
  try {
    request = new Request(url, { method, ...(headers && { headers }) });
  } catch {
    throw new DescriptionError(
      "url",
      "must be an absolute URL, with a valid method and valid header fields.",
    );
  }
  // Only the requests of workerd have `cf`, and its constructor accepts only some of the fields.
  if (cf) Object.defineProperty(request, "cf", { value: cf, enumerable: true });
  const canonical = canonicalRequest(request, caseSensitivePaths);
  if (canonical) return { request, canonical };
  throw new DescriptionError("url", "must have a host, and a path of at most 16 KiB.");
}
