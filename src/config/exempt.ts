import * as v from "valibot";
import { differentNames } from "./different-names.ts";
import { faultText } from "./fault-text.ts";
import { BINDING_NAME, bindingName, fields, isRecord, mapOf } from "./fields.ts";
import { parseHeaderName } from "./key-expression.ts";
import { NetworkSet, networks } from "./network-set.ts";
import { HeaderName, SAME_HEADER } from "./value-condition.ts";

const EXEMPT = faultText("at least one of ips, headers");
const HEADERS = faultText("an object of header names and values, at least one");
const VALUE = faultText(
  'a text of ASCII without line breaks or spaces at its ends, or { secret: "NAME" }, a secret of the Worker',
);

/** Requests that a rule does not count: those that match any entry of `ips` or `headers`. */
export interface ExemptInput {
  /**
   * Addresses and networks of exempt clients. Write IPv4 addresses in IPv4 notation. They also
   * match clients whose IPv4 address is embedded in an IPv6 address.
   *
   * @default none
   * @example ["198.51.100.0/24", "2001:db8::/32"]
   */
  readonly ips?: readonly string[] | undefined;
  /**
   * Header fields that exempt a request, each with the value that it must have: an ASCII text, or
   * `{ secret: "NAME" }` for the value of that secret of the Worker. Prefer a secret, because
   * everyone who can read the configuration can send a text that is written in it.
   *
   * @default none
   * @example { "x-internal": { secret: "INTERNAL_TOKEN" } }
   */
  readonly headers?: Readonly<Record<string, ExpectedValue>> | undefined;
}

/** The value that a header must have: a text, or the name of the Worker's secret that holds it. */
export type ExpectedValue = string | { readonly secret: string };

/** The name of a secret in a configuration. */
export const SecretName = bindingName(faultText("the name of a secret or var of the Worker"));

/**
 * Matches conventional names of secrets. Each word of a name must be short, so that few secret
 * values match by mistake.
 */
const CONVENTIONAL = /^(?=.{1,64}$)[A-Z][A-Z0-9]{0,19}(_[A-Z0-9]{0,19})*$/;

/**
 * Returns the name of a secret, for logs. A name that is not conventional is cut to its first three
 * characters, because it may be the secret itself, written by mistake in place of its name.
 */
export function printableSecretName(name: string): string {
  return CONVENTIONAL.test(name) ? name : `${name.slice(0, 3)}…`;
}

// A header arrives without white space at its ends, so a text with such space never matches.
const TEXT = /^[\x21-\x7e]([\t\x20-\x7e]*[\x21-\x7e])?$/;

const Value = v.custom<ExpectedValue>((value) => {
  if (typeof value === "string") return TEXT.test(value);
  if (!isRecord(value) || Object.keys(value).length !== 1) return false;
  return typeof value.secret === "string" && BINDING_NAME.test(value.secret);
}, VALUE);

const NO_NETWORKS = new NetworkSet([], []);

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
  v.transform(
    ({ ips = NO_NETWORKS, headers = new Map<string, ExpectedValue>() }): Exempt => ({
      networks: ips,
      headers: [...headers].map(
        ([name, value]): ExemptHeader => ({
          name: parseHeaderName(name) as string,
          value,
        }),
      ),
    }),
  ),
);

/** A header that exempts a request if it has the expected value. */
export interface ExemptHeader {
  /** In lower case. */
  readonly name: string;
  readonly value: ExpectedValue;
}

/** {@link ExemptInput}, parsed. */
export interface Exempt {
  readonly networks: NetworkSet;
  readonly headers: readonly ExemptHeader[];
}
