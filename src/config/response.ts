import * as v from "valibot";
import { fields, integer, isRecord } from "./fields.ts";

/** RFC 9110 token: a field's name. */
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** RFC 9110 field value in ASCII: a control character could end the field and begin another. */
const FIELD_VALUE = /^[\t\x20-\x7e]*$/;
/**
 * Fields that Weir or the transport sets, and those that would make a cache keep a denial: it must
 * not be cached, and says when to retry.
 */
const RESERVED =
  /^(retry-after|.*cache-control|surrogate-control|expires|vary|ratelimit.*|x-ratelimit-.*|access-control-.*|content-length|transfer-encoding|connection)$/i;

const HEADERS = "an object of header names and values";
const NAME = "the name of a header: letters, digits and -";
const UNRESERVED =
  "any header but those that are set anyway: Retry-After, Cache-Control and its like, Surrogate-Control, Expires, Vary, RateLimit-*, X-RateLimit-*, Access-Control-*, Content-Length, Transfer-Encoding, Connection";
const VALUE = "a text of ASCII without line breaks";
const BODY = "a text, or an object that can be written as JSON";

/** How a denial looks, where it is to differ from 429 with problem+json. */
export const ResponseSchema = fields({
  status: v.optional(integer(400, 599)),
  body: v.optional(
    v.union(
      [v.string(), v.custom<Record<string, unknown>>((body) => isRecord(body) && isJson(body))],
      BODY,
    ),
  ),
  headers: v.optional(
    v.pipe(
      v.custom<Record<string, string>>(isRecord, HEADERS),
      v.record(
        v.pipe(v.string(), v.regex(FIELD_NAME, NAME), v.check(isUnreserved, UNRESERVED)),
        v.pipe(v.string(VALUE), v.regex(FIELD_VALUE, VALUE)),
        HEADERS,
      ),
    ),
  ),
});

function isUnreserved(name: string): boolean {
  return !RESERVED.test(name);
}

/** Not so a bigint, nor an object that holds itself. */
function isJson(value: unknown): boolean {
  try {
    return JSON.stringify(value) !== undefined;
  } catch {
    return false;
  }
}

export type DenialResponse = v.InferOutput<typeof ResponseSchema>;
