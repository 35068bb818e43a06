import fc from "fast-check";
import type { KeyExpression } from "../../src/config/key.ts";
import {
  hashValues,
  identityOf,
  type KeyContext,
  type NamedValue,
} from "../../src/request/identity.ts";
import { canonicalPath } from "../../src/request/path.ts";
import { SentValues } from "../../src/request/sent-values.ts";
import { createAsyncTarget } from "../property.ts";

/** The maximum number of lists that are kept for comparison with later lists. */
const KEPT_LISTS = 50_000;
/**
 * The minimum length of the values that the target searches for in a hash. A shorter value may
 * occur there by chance.
 */
const MIN_REVEALED = 8;
const IP = "203.0.113.7";

/** Separators of other formats, lengths in the form that `hashValues` writes, and a few letters. */
const PIECES = ["a", "b", ":", "|", "#", "1:", "2:", "11:", "0:", "ip", "global", "1", "\0", " "];

const value = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .array(fc.constantFrom(...PIECES), { maxLength: 4 })
      .map((parts) => parts.join("")),
  },
  { weight: 2, arbitrary: fc.string({ unit: "binary", maxLength: 12 }) },
  // A lone surrogate is not text, but JSON can contain it.
  { weight: 1, arbitrary: fc.constantFrom("\ud800", "\udc00", "\ufffd", "x\ud83d") },
  { weight: 1, arbitrary: fc.nat(2048).map((length) => "v".repeat(length)) },
);
const name = fc.constantFrom("a", "b", "ab", "a:1", "1:a");

const lists = fc.array(fc.record({ name, value }), { minLength: 1, maxLength: 4 });

/** Maps each identity to the list of values from which it was computed, as text. */
const listByIdentity = new Map<string, string>();

/**
 * The target for identities. Different lists of values must have different identities, and an
 * identity must not contain any of its values.
 */
export const keysTarget = createAsyncTarget(
  "keys",
  "two keys never have the same identity, and no identity contains a value of its key",
  lists,
  async (values) => {
    await checkIdentity(values, await hashValues(values));
    const key: KeyExpression = values.map((_, index) => [{ kind: "custom", name: `k${index}` }]);
    const counted = values.map(({ value }, index) =>
      value === "" ? { name: "ip", value: IP } : { name: `custom:k${index}`, value },
    );
    const { identity } = await identityOf(key, contextOf(values));
    await checkIdentity(counted, identity);
  },
);

async function checkIdentity(values: readonly NamedValue[], identity: string): Promise<void> {
  if (!/^[\w-]{22}$/.test(identity))
    throw new Error(`"${identity}" is not 22 characters of base64url`);
  // Lone surrogates become replacement characters before they are hashed.
  const wellFormed = values.map(({ name, value }) => [name, value.toWellFormed()]);
  const text = JSON.stringify(wellFormed);
  const other = listByIdentity.get(identity);
  if (other !== undefined && other !== text)
    throw new Error(`${other} and ${text} have the same identity`);
  if (listByIdentity.size >= KEPT_LISTS) listByIdentity.clear();
  listByIdentity.set(identity, text);
  const revealed = values.find(
    ({ value }) => value.length >= MIN_REVEALED && identity.includes(value),
  );
  if (revealed) throw new Error("the identity contains a value");
}

/** Returns the context of a request whose custom keys have these values. */
function contextOf(values: readonly NamedValue[]): KeyContext {
  return {
    request: {
      ...canonicalPath("/", false),
      method: "GET",
      sentMethod: "GET",
      hasBody: false,
      isPreflight: false,
      host: "host",
      search: "",
      hasHiddenQuery: false,
      headers: HEADERS,
      sent: new SentValues({ headers: HEADERS, search: "", hasHiddenQuery: false }),
      cf: undefined,
    },
    path: "/",
    params: {},
    ipv6Prefix: 64,
    readClaims: async () => undefined,
    computeCustom: async (name) => values[Number(name.slice(1))]?.value,
  };
}

const HEADERS = new Headers({ "cf-connecting-ip": IP });
