import type { KeyExpression, KeyPart } from "./key-expression.ts";

/** Kinds of key whose value may be a client's credential. */
const FROM_REQUEST = new Set(["header", "cookie", "query", "param"]);

/**
 * Matches the names of header fields and parameters that hold a plan or a similar value, and not a
 * credential. Cookies are not included, because a cookie of any name may hold a session.
 */
const HARMLESS =
  /^(x-)?((user|account|customer|client|api)[-_])?(plan|tier|level|role|region|country|locale|lang(uage)?|version|product|edition)$/i;

/**
 * Whether the names of tiers could be credentials. This is so if a client gets its tier by sending
 * the tier's name. Weir neither prints nor logs such names.
 */
export function areTierNamesSecret(by: KeyExpression): boolean {
  return by.flat().some(mayBeCredential);
}

/** Whether the value of a part of a key may be a client's credential. */
export function mayBeCredential(part: KeyPart): boolean {
  return (
    "name" in part &&
    FROM_REQUEST.has(part.kind) &&
    (part.kind === "cookie" || !HARMLESS.test(part.name))
  );
}
