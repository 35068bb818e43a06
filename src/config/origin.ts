import * as v from "valibot";
import { faultText } from "./faults.ts";
import { bindingName, checkOf, differentNames, fields, mapOf, parsedText } from "./fields.ts";
import { parseHost } from "./match.ts";

/** The allowed values of `origin.url` and of the var `ORIGIN_URL`, for messages. */
export const ORIGIN_URL =
  'an absolute http or https URL, such as "https://origin.example.com" or "https://example.com/base", without credentials, query or fragment';
const BINDING = faultText("the name of a service binding in wrangler.toml");
const HOST = faultText('a host name without a port, such as "api.example.com" or "*.example.com"');
const ORIGINS = faultText(
  'an object of origins by host, such as { "api.example.com": { binding: "API" } }',
);
const ORIGIN = faultText('either { url: "https://origin.example.com" } or { binding: "NAME" }');

/** The origin to which Weir forwards requests: either `url` or `binding`. */
export interface OriginInput {
  /**
   * The URL of the origin: an absolute http or https URL. It may have a base path, but no
   * credentials, query or fragment. If the var `ORIGIN_URL` is set, it replaces this URL. Cannot be
   * set together with `binding`.
   *
   * @example "https://origin.example.com"
   */
  readonly url?: string | undefined;
  /**
   * The name of a service binding in wrangler.toml, if another Worker is the origin. Cannot be set
   * together with `url`.
   *
   * @example "ORIGIN"
   */
  readonly binding?: string | undefined;
}

/**
 * Parses the base URL of an origin.
 *
 * @returns the URL without a trailing slash, so that a request's path can follow; undefined if the text is not an
 * allowed URL
 */
export function parseOriginUrl(text: string): string | undefined {
  const url = /^https?:\/\/[^\s\\?#]+$/i.test(text) ? URL.parse(text) : null;
  if (!url || url.username || url.password) return undefined;
  return url.href.replace(/\/+$/, "");
}

export const OriginSchema = v.pipe(
  fields(
    {
      url: v.optional(parsedText(parseOriginUrl, ORIGIN_URL)),
      binding: v.optional(bindingName(BINDING)),
    },
    ORIGIN,
  ),
  checkOf(({ url, binding }, refuse, hasFaults) => {
    const given = [url, binding].filter((value) => value !== undefined).length;
    // An unknown field is probably `url` or `binding` in another spelling.
    if (given === 1 || (given === 0 && hasFaults)) return;
    refuse(
      given === 0 ? "missing" : "conflict",
      faultText(() => `set ${ORIGIN}`),
    );
  }),
);

/** {@link OriginInput}, parsed. Either `url`, without a trailing slash, or `binding` is set. */
export type OriginConfig = Readonly<v.InferOutput<typeof OriginSchema>>;

/** The origins by host. A name such as `*.example.com` stands for all hosts below `example.com`. */
export type OriginsInput = Readonly<Record<string, OriginInput>>;

/** {@link OriginsInput}, parsed. The hosts are canonical, see {@link parseHost}. */
export type Origins = ReadonlyMap<string, OriginConfig>;

export const OriginsSchema = v.pipe(
  mapOf(
    v.custom<string>((name) => parseHost(String(name)) !== undefined, HOST),
    OriginSchema,
    ORIGINS,
  ),
  differentNames(parseHost, faultText("is the same host. Remove one of the two origins")),
  v.transform(
    (origins): Origins =>
      new Map([...origins].map(([name, origin]) => [parseHost(name) as string, origin])),
  ),
);
