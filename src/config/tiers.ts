import * as v from "valibot";
import { NetworkSet, networks } from "./address.ts";
import { faultText } from "./faults.ts";
import {
  BINDING_NAME,
  bindingName,
  checkOf,
  differentNames,
  fields,
  isMap,
  isRecord,
  mapOf,
  parsedText,
  textMatching,
} from "./fields.ts";
import {
  ALLOWED_KEYS,
  type KeyExpression,
  type KeyInput,
  type KeyPart,
  parseAlternatives,
  parseHeaderName,
  partsOf,
} from "./key.ts";
import { HeaderName, parseHost, SAME_HEADER } from "./match.ts";
import { checkLimitExtras, checkLimitFields, type LimitFields, limitFields } from "./window.ts";

const BY = faultText(() => `${ALLOWED_KEYS}; "a | b" for the first one present`);
const TIERS = faultText("an object of tiers, each { limit, window }, at least one");
const TIER_NAME_PATTERN = /^[A-Za-z0-9._-]{1,64}$/;
const TIER_NAME = faultText("1 to 64 characters of A-Z, a-z, 0-9, ., _ and -");

/** Different limits for some clients. */
export interface TiersInput {
  /**
   * The value that names a client's tier, written like the `key` of a rule, but not as a list. Use a value that
   * clients cannot choose, such as a verified claim. If a claim is a list, such as a list of roles, the client is in
   * the first tier of `limits` whose name is in the list.
   *
   * @example "jwt:plan"
   * @example "jwt:/app_metadata/roles"
   */
  readonly by: KeyInput;
  /**
   * The tiers, at least one. The name of a tier has 1 to 64 characters of `A-Z a-z 0-9 . _ -`. Its limits are written
   * like those of a rule. A client without a tier has the rule's own limits.
   *
   * @example { pro: { limit: 5000, window: "1m" } }
   */
  readonly limits: Readonly<Record<string, LimitFields>>;
}

export const TiersSchema = v.pipe(
  fields({
    by: parsedText(parseBy, BY),
    limits: mapOf(
      textMatching(TIER_NAME_PATTERN, TIER_NAME),
      v.pipe(
        fields(limitFields, faultText("{ limit, window }")),
        checkLimitFields(),
        checkLimitExtras(),
      ),
      TIERS,
    ),
  }),
  checkHosts(),
);
function parseBy(text: string): KeyExpression | undefined {
  const alternatives = parseAlternatives(text);
  return alternatives && [alternatives];
}

/**
 * If hosts select the tiers, checks that the name of each tier is a canonical host. Otherwise no client would belong
 * to the tier.
 */
function checkHosts<Output>() {
  return checkOf<Output>(({ by, limits }, refuse) => {
    const parts = partsOf(by);
    if (!isMap(limits) || parts.length === 0 || parts.some(({ kind }) => kind !== "host")) return;
    for (const name of limits.keys()) {
      const host = parseHost(name);
      if (host === name || !TIER_NAME_PATTERN.test(name)) continue;
      refuse(
        "not-allowed",
        faultText(() => {
          const cure = host ? JSON.stringify(host) : "a host name";
          return `no request has the host ${name}, so no client belongs to the tier; write ${cure}`;
        }),
        "limits",
        name,
      );
    }
  });
}

/** The kinds of key whose value may be a client's credential. */
const FROM_REQUEST = new Set(["header", "cookie", "query", "param"]);

/**
 * Matches the names of headers and parameters that hold a plan or a similar value, instead of a credential. Cookies
 * are not included, because a cookie of any name may hold a session.
 */
const HARMLESS =
  /^(x-)?((user|account|customer|client|api)[-_])?(plan|tier|level|role|region|country|locale|lang(uage)?|version|product|edition)$/i;

/**
 * Whether the names of tiers could be credentials, because a client gets its tier by sending the tier's name. Weir
 * neither prints nor logs such names.
 */
export function areTierNamesSecret(by: KeyExpression): boolean {
  return by.flat().some(mayBeCredential);
}

/** Returns what Weir shows and logs as the names of tiers. */
export function labelsOf({ by, limits }: v.InferOutput<typeof TiersSchema>): Map<string, string> {
  const isSecret = areTierNamesSecret(by);
  return new Map([...limits.keys()].map((tier, at) => [tier, isSecret ? `#${at + 1}` : tier]));
}

/** Whether the value of a part of a key may be a client's credential. */
export function mayBeCredential(part: KeyPart): boolean {
  return (
    "name" in part &&
    FROM_REQUEST.has(part.kind) &&
    (part.kind === "cookie" || !HARMLESS.test(part.name))
  );
}

const EXEMPT = faultText("at least one of ips, headers");
const HEADERS = faultText("an object of header names and values, at least one");
const VALUE = faultText(
  'a text of ASCII without line breaks or spaces at its ends, or { secret: "NAME" }, a secret of the Worker',
);

/** Requests that a rule does not count, because they match any entry of `ips` or `headers`. */
export interface ExemptInput {
  /**
   * Addresses and networks of exempt clients. Write IPv4 addresses in IPv4 notation: these also match clients with an
   * IPv4 address inside an IPv6 address.
   *
   * @default none
   * @example ["198.51.100.0/24", "2001:db8::/32"]
   */
  readonly ips?: readonly string[] | undefined;
  /**
   * Headers that exempt a request, each with the value that it must have: an ASCII text, or `{ secret: "NAME" }` for
   * the value of the Worker's secret NAME. Prefer a secret, because every reader of the configuration can send its
   * texts.
   *
   * @default none
   * @example { "x-internal": { secret: "INTERNAL_TOKEN" } }
   */
  readonly headers?: Readonly<Record<string, ExpectedValue>> | undefined;
}

/** The value that a header must have: a text, or the name of the Worker's secret with this text. */
export type ExpectedValue = string | { readonly secret: string };

/** The name of a secret in a configuration. */
export const SecretName = bindingName(faultText("the name of a secret or var of the Worker"));

/**
 * Matches conventional names of secrets. Each word of a name must be short, so that few secret values match by
 * mistake.
 */
const CONVENTIONAL = /^(?=.{1,64}$)[A-Z][A-Z0-9]{0,19}(_[A-Z0-9]{0,19})*$/;

/**
 * Returns the name of a secret, for logs. Only the first three characters of an unconventional name are shown,
 * because it may be the secret itself, written by mistake in place of its name.
 */
export function printableSecretName(name: string): string {
  return CONVENTIONAL.test(name) ? name : `${name.slice(0, 3)}…`;
}

// A header arrives without white space at its ends, so a text with such white space never matches.
const TEXT = /^[\x21-\x7e]([\t\x20-\x7e]*[\x21-\x7e])?$/;

const Value = v.custom<ExpectedValue>((value) => {
  if (typeof value === "string") return TEXT.test(value);
  if (!isRecord(value) || Object.keys(value).length !== 1) return false;
  return typeof value.secret === "string" && BINDING_NAME.test(value.secret);
}, VALUE);

export const ExemptSchema = v.pipe(
  fields(
    {
      ips: v.optional(networks()),
      headers: v.optional(
        v.pipe(mapOf(HeaderName, Value, HEADERS), differentNames(parseHeaderName, SAME_HEADER)),
      ),
    },
    EXEMPT,
  ),
  v.check(({ ips, headers }) => ips !== undefined || headers !== undefined, EXEMPT),
  v.transform(({ ips = new NetworkSet([], []), headers = new Map<string, ExpectedValue>() }) => ({
    networks: ips,
    headers: [...headers].map(([name, value]) => ({
      name: parseHeaderName(name) as string,
      value,
    })),
  })),
);

/** {@link ExemptInput}, parsed. The names of headers are in lower case. */
export type Exempt = v.InferOutput<typeof ExemptSchema>;
