import * as v from "valibot";
import { fields, integer } from "./fields.ts";

/** RFC 9110 token: a field's name. */
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** RFC 9110 field value in ASCII: a control character could end the field and begin another. */
const FIELD_VALUE = /^[\t\x20-\x7e]*$/;
/** Fields that Weir or the transport sets: a denial must not be cached, and says when to retry. */
const RESERVED =
  /^(retry-after|cache-control|ratelimit.*|x-ratelimit-.*|content-length|transfer-encoding|connection|access-control-.*|vary)$/i;

const HEADERS =
  "an object of header names and ASCII values, without line breaks and without what Weir sets itself (Retry-After, Cache-Control, Vary, RateLimit-*, X-RateLimit-*, Access-Control-*) or the transport does (Content-Length, Transfer-Encoding, Connection)";

/** How a denial looks, where it is to differ from 429 with problem+json. */
export const ResponseSchema = fields({
  status: v.optional(integer(400, 599)),
  body: v.optional(
    v.union(
      [v.string(), v.record(v.string(), v.unknown())],
      "a text, or an object to be sent as JSON",
    ),
  ),
  headers: v.optional(
    v.record(
      v.pipe(
        v.string(HEADERS),
        v.check((name) => FIELD_NAME.test(name) && !RESERVED.test(name), HEADERS),
      ),
      v.pipe(v.string(HEADERS), v.regex(FIELD_VALUE, HEADERS)),
      HEADERS,
    ),
  ),
});

export type DenialResponse = v.InferOutput<typeof ResponseSchema>;
