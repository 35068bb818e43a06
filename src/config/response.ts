import * as v from "valibot";
import { faultText } from "./faults.ts";
import { anyMapOf, fields, integer, isRecord, parsed, textMatching } from "./fields.ts";

/** A token of RFC 9110: the name of a header. */
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** The value of a header (RFC 9110) in ASCII. A control character could end the header and begin another one. */
const FIELD_VALUE = /^[\t\x20-\x7e]*$/;
/**
 * Headers that Weir or the transport sets, and headers that would let a cache keep a denial. A cached denial would
 * outlast its Retry-After and reach other clients.
 */
const RESERVED =
  /^(retry-after|.*cache-control|surrogate-control|edge-control|x-accel-expires|expires|etag|last-modified|vary|ratelimit.*|x-ratelimit-.*|access-control-.*|content-length|transfer-encoding|connection)$/i;

const HEADERS = faultText("an object of header names and values");
const NAME = faultText("the name of a header: letters, digits and -");
const UNRESERVED = faultText(
  "any header except those that Weir or the transport controls: Retry-After, *Cache-Control, Surrogate-Control, Edge-Control, X-Accel-Expires, Expires, ETag, Last-Modified, Vary, RateLimit-*, X-RateLimit-*, Access-Control-*, Content-Length, Transfer-Encoding, Connection",
);
const VALUE = faultText("a text of ASCII without line breaks");
const RESPONSE = faultText(
  'an object with status, body, headers, or "custom:NAME" for the function custom.responses.NAME',
);
const BODY = faultText("a text, or an object that can be written as JSON");

/** The differences of a denial from the default response, 429 with application/problem+json. */
export interface ResponseInput {
  /**
   * The HTTP status of a denial: 400 to 599.
   *
   * @default 429
   */
  readonly status?: number | undefined;
  /**
   * The body of a denial: a text, or an object that is sent as JSON.
   *
   * @default a problem document (RFC 9457)
   * @example { error: "Too many requests" }
   */
  readonly body?: string | Readonly<Record<string, unknown>> | undefined;
  /**
   * Headers of a denial. Values are ASCII texts without line breaks. Headers that Weir or the transport controls are
   * refused, such as Retry-After, Cache-Control, Vary, RateLimit-* and Content-Length.
   *
   * @default none
   * @example { "content-type": "text/html" }
   */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** The function `custom.responses.NAME`, which creates the response to a denied request. */
export type CustomResponseInput = `custom:${string}`;

const FixedResponse = fields(
  {
    status: v.optional(integer(400, 599)),
    body: v.optional(
      v.custom<string | Readonly<Record<string, unknown>>>(
        (body) => typeof body === "string" || (isRecord(body) && isJson(body)),
        BODY,
      ),
    ),
    headers: v.optional(
      v.pipe(
        anyMapOf(
          v.pipe(textMatching(FIELD_NAME, NAME), v.check(isUnreserved, UNRESERVED)),
          textMatching(FIELD_VALUE, VALUE),
          HEADERS,
        ),
        v.transform((headers): Readonly<Record<string, string>> => Object.fromEntries(headers)),
      ),
    ),
  },
  RESPONSE,
);

const NamedResponse = parsed<CustomResponseInput, CustomDenial>(parseName, RESPONSE);

/** The type of the input selects the schema, so that faults have the path of the faulty field. */
export const ResponseSchema = v.lazy<
  v.GenericSchema<ResponseInput | CustomResponseInput, DenialResponse | CustomDenial>
>((input) => (typeof input === "string" ? NamedResponse : FixedResponse));

function parseName(value: unknown): CustomDenial | undefined {
  const [, custom] = /^custom:(\w+)$/.exec(String(value)) ?? [];
  return custom === undefined ? undefined : { custom };
}

/** Whether Weir or the transport sets a header of a denial, so that rules and functions cannot set it. */
export function isReserved(name: string): boolean {
  return RESERVED.test(name);
}

function isUnreserved(name: string): boolean {
  return !isReserved(name);
}

/**
 * Whether a value can be written as JSON without a loss. This is false for a bigint, for a function, and for an
 * object that contains itself.
 */
function isJson(value: unknown): boolean {
  let hasFunction = false;
  try {
    const text = JSON.stringify(value, (_, each: unknown) => {
      hasFunction ||= typeof each === "function";
      return each;
    });
    return text !== undefined && !hasFunction;
  } catch {
    return false;
  }
}

/** The name of the function in `custom.responses` that creates the response. */
export interface CustomDenial {
  readonly custom: string;
}

/** {@link ResponseInput}, checked. */
export type DenialResponse = Readonly<v.InferOutput<typeof FixedResponse>>;
