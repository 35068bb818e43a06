import fc from "fast-check";
import type { KeyExpression } from "../../src/config/key-expression.ts";
import { canonicalPath } from "../../src/request/canonical-path.ts";
import { hashOf, identityOf, type KeyContext, type Present } from "../../src/request/identity.ts";
import { asyncProperty } from "../property.ts";

/** Lists that are remembered, to be compared with those that come later. */
const REMEMBERED = 50_000;
/** A value of fewer characters may be in a hash by chance. */
const LONG = 8;
const IP = "203.0.113.7";

/** What keys are put together with elsewhere, lengths as hashOf writes them, and few letters. */
const TRICKS = ["a", "b", ":", "|", "#", "1:", "2:", "11:", "0:", "ip", "global", "1", "\0", " "];

const value = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .array(fc.constantFrom(...TRICKS), { maxLength: 4 })
      .map((parts) => parts.join("")),
  },
  { weight: 2, arbitrary: fc.string({ unit: "binary", maxLength: 12 }) },
  // Half of a surrogate pair is no text, but JSON can write it.
  { weight: 1, arbitrary: fc.constantFrom("\ud800", "\udc00", "\ufffd", "x\ud83d") },
  { weight: 1, arbitrary: fc.nat(2048).map((length) => "v".repeat(length)) },
);
const name = fc.constantFrom("a", "b", "ab", "a:1", "1:a");

const lists = fc.array(fc.record({ name, value }), { minLength: 1, maxLength: 4 });

/** What each identity was made of, as text. */
const seen = new Map<string, string>();

/** Who is counted: an identity for each list of parts, and no part to be seen in it. */
export const keysTarget = asyncProperty(
  "keys",
  "no two keys have one identity, and none shows what it was made of",
  lists,
  async (parts) => {
    await refuseClash(parts, await hashOf(parts));
    const key: KeyExpression = parts.map((_, index) => [{ kind: "custom", name: `k${index}` }]);
    const counted = parts.map(({ value }, index) =>
      value === "" ? { name: "ip", value: IP } : { name: `custom:k${index}`, value },
    );
    await refuseClash(counted, await identityOf(key, contextOf(parts)));
  },
);

async function refuseClash(parts: readonly Present[], identity: string): Promise<void> {
  if (!/^[\w-]{22}$/.test(identity)) throw new Error(`"${identity}" is not 22 of base64url`);
  // What is not text cannot be hashed but as text.
  const wellFormed = parts.map(({ name, value }) => [name, value.toWellFormed()]);
  const text = JSON.stringify(wellFormed);
  const other = seen.get(identity);
  if (other !== undefined && other !== text) throw new Error(`${other} and ${text} are one`);
  if (seen.size >= REMEMBERED) seen.clear();
  seen.set(identity, text);
  const shown = parts.find(({ value }) => value.length >= LONG && identity.includes(value));
  if (shown) throw new Error("a value is part of its identity");
}

/** A request whose custom keys hold these values. */
function contextOf(parts: readonly Present[]): KeyContext {
  return {
    request: {
      ...canonicalPath("/", false),
      method: "GET",
      sentMethod: "GET",
      preflight: false,
      host: "host",
      search: "",
      headers: HEADERS,
      cf: undefined,
    },
    path: "/",
    params: {},
    ipv6Prefix: 64,
    claims: async () => undefined,
    custom: async (name) => parts[Number(name.slice(1))]?.value,
  };
}

const HEADERS = new Headers({ "cf-connecting-ip": IP });
