import type { KeyExpression, KeyPart } from "../../src/config/key-expression.ts";
import type { Rule } from "../../src/config/rule.ts";
import { keyPartName } from "../../src/request/identity.ts";
import { count } from "../admin/text.ts";
import type { LogFacts } from "../logs/log-request.ts";
import { unknownKeyPart } from "./known-facts.ts";
import type { ReplayNote } from "./replay-engine.ts";

// Notes that only the end of a replay shows.

export function refusedNote(number: number): ReplayNote {
  const text = `${requestsHave(number)} an unclear host or path, or a path that is too long. The Worker answers with 400 or 414 and reads no rules. Such requests count as undecided.`;
  return { code: "refused-requests", text };
}

export function preflightNote(number: number): ReplayNote {
  const text = `${requestsHave(number)} the method OPTIONS. The log does not state the header fields of preflights, so such requests count as CORS preflights, which only rules that name OPTIONS count.`;
  return { code: "assumed-preflights", text };
}

export function withoutAddressNote({ name }: Rule, number: number): ReplayNote {
  const text = `${requestsHave(number)} no valid client address in the log. The rule "${name}" does not count such requests.`;
  return { code: "address-not-logged", rule: name, text };
}

export function absentKeyNote({ name }: Rule, part: KeyPart): ReplayNote {
  const text = `No request that the rule "${name}" matches has ${keyPartName(part)}, although the log states it.`;
  return { code: "key-never-occurred", rule: name, text };
}

/** Kinds of key that a log can state, and that requests may lack. */
const OPTIONAL: readonly KeyPart["kind"][] = ["header", "cookie", "query", "country", "asn", "ja4"];

/**
 * Returns the parts of a key that no request had, although the log states them. An alternative after one that
 * requests had is left out, because it was not needed.
 *
 * @param seen the parts whose values were used
 */
export function absentKeyParts(
  key: KeyExpression,
  seen: ReadonlySet<KeyPart>,
  facts: LogFacts,
): KeyPart[] {
  if (seen.size === 0) return [];
  return key.flatMap((alternatives) => {
    const firstSeen = alternatives.findIndex((part) => seen.has(part));
    const absent = firstSeen === -1 ? alternatives : alternatives.slice(0, firstSeen);
    return absent.filter((part) => OPTIONAL.includes(part.kind) && !unknownKeyPart(part, facts));
  });
}

function requestsHave(number: number): string {
  return number === 1 ? "1 request has" : `${count(number)} requests have`;
}
