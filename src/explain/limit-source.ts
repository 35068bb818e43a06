import type { LimitSource } from "../config/limit-source.ts";
import type { Window } from "../config/rule.ts";
import { type LimitFailure, sourcesIn } from "../request/client-limits.ts";
import { keyPartName } from "../request/identity.ts";

/** The reasons as parts of sentences. */
const REASONS: Readonly<Record<LimitFailure, string>> = {
  timeout: "the function took too long",
  threw: "the function threw an error",
  missing: "it has none for the client",
  invalid: "its value is no whole number",
};

/** Where a number is that a look-up without a request does not find. */
const WITHOUT_REQUEST: Readonly<Record<LimitSource["from"]["kind"], string>> = {
  jwt: "it is in the client's token, with which weir explain shows it",
  custom: "the function is asked only if you look the client up by the values of its key",
};

/**
 * Says where the numbers of a client come from, for operators.
 *
 * @param answerOf returns what a source has said; undefined if there is no token, or if the function was not asked
 * @param isUnknown whether a source without an answer may have another number than the default
 * @returns undefined if no window has a source
 */
export function limitSourceOf(
  windows: readonly Window[],
  answerOf: (source: LimitSource) => number | LimitFailure | undefined,
  isUnknown: (source: LimitSource) => boolean = () => false,
): string | undefined {
  const texts = sourcesIn(windows).map((source) => {
    const { from, max, default: standard } = source;
    const answer = answerOf(source);
    const name = keyPartName(from);
    if (typeof answer === "number") return `${Math.min(answer, max)} from ${name}`;
    if (isUnknown(source)) return `unknown here: ${WITHOUT_REQUEST[from.kind]}`;
    const nothing = from.kind === "jwt" ? "there is no valid token" : "the function was not asked";
    return `${standard}, the default of ${name}, because ${answer ? REASONS[answer] : nothing}`;
  });
  return texts.length > 0 ? texts.join("; ") : undefined;
}
