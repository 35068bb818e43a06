import * as v from "valibot";
import { fields, parsed } from "./fields.ts";

/** What may stand in `origin.url` and in the var `ORIGIN_URL`. */
export const ORIGIN_URL =
  'an absolute http or https URL, such as "https://origin.example.com" or "https://example.com/base", without credentials, query or fragment';
const BINDING = "the name of a service binding in wrangler.toml";
const ORIGIN = 'either { url: "https://origin.example.com" } or { binding: "NAME" }';

/**
 * Reads an origin's base URL.
 *
 * @returns it without a trailing slash, so that a request's path can follow, or undefined
 */
export function parseOriginUrl(text: string): string | undefined {
  const url = /^https?:\/\/[^\s\\?#]+$/i.test(text) ? URL.parse(text) : null;
  if (!url || url.username || url.password) return undefined;
  return url.href.replace(/\/+$/, "");
}

export const OriginSchema = v.pipe(
  fields(
    {
      url: v.optional(parsed(parseOriginUrl, ORIGIN_URL)),
      binding: v.optional(
        parsed((text) => (/^[A-Za-z_]\w*$/.test(text) ? text : undefined), BINDING),
      ),
    },
    ORIGIN,
  ),
  v.check(({ url, binding }) => (url === undefined) !== (binding === undefined), ORIGIN),
);
