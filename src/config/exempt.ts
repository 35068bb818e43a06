import * as v from "valibot";
import { fields, listOf, mapOf, parsed } from "./fields.ts";
import { parseHeaderName } from "./key-expression.ts";
import { parseNetwork } from "./network.ts";

const EXEMPT = "at least one of ips, headers";
const IP =
  'an address or a network, such as "198.51.100.0/24" or "2001:db8::/32"; IPv4 in its own notation';
const HEADERS = "an object of header names and values, at least one";
const NAME = "the name of a header";
const VALUE =
  'a text of ASCII without line breaks or spaces at its ends, or { secret: "NAME" }, a secret of the Worker';

/** What a binding of a Worker may be called. */
export const SecretName = parsed(
  (text) => (/^[A-Za-z_]\w*$/.test(text) ? text : undefined),
  "the name of a secret or var of the Worker",
);

/** Conventional names of secrets. The words are short, so that few secrets have the form of a name. */
const CONVENTIONAL = /^(?=.{1,64}$)[A-Z][A-Z0-9]{0,19}(_[A-Z0-9]{0,19})*$/;

/**
 * The name of a secret, for logs. Another than a conventional one is cut to its first characters: it may
 * be the secret, written where its name belongs.
 */
export function shownSecretName(name: string): string {
  return CONVENTIONAL.test(name) ? name : `${name.slice(0, 3)}…`;
}

/** What a header has to hold: a text, or what the Worker's secret of that name holds. */
export type Expected = string | { readonly secret: string };

const Value = v.union(
  [
    // A field's value arrives without white space around it, so a text with some would never match.
    v.pipe(v.string(), v.regex(/^[\x21-\x7e]([\t\x20-\x7e]*[\x21-\x7e])?$/, VALUE)),
    fields({ secret: SecretName }),
  ],
  VALUE,
);

/** Clients that a rule does not count: those for whom any one of these holds. */
export const ExemptSchema = v.pipe(
  fields(
    {
      ips: v.optional(listOf(parsed(parseNetwork, IP), `a list of one or more: ${IP}`)),
      headers: v.optional(mapOf(parsed(parseHeaderName, NAME), Value, HEADERS)),
    },
    EXEMPT,
  ),
  v.check(({ ips, headers }) => ips !== undefined || headers !== undefined, EXEMPT),
  v.transform(({ ips = [], headers = new Map<string, Expected>() }) => ({
    networks: ips,
    headers: [...headers].map(([name, value]): ExemptHeader => ({ name, value })),
  })),
);

export interface ExemptHeader {
  /** In lower case. */
  readonly name: string;
  readonly value: Expected;
}

export type Exempt = v.InferOutput<typeof ExemptSchema>;
