import type { KeyExpression } from "./key-expression.ts";

/** Kinds of key whose value a client may have to keep to itself. */
const CARRIED = new Set(["header", "cookie", "query", "param"]);

/** What names a plan and no credential. A cookie of any name may be a session. */
const HARMLESS =
  /^(x-)?((user|account|customer|client|api)[-_])?(plan|tier|level|role|region|country|locale|lang(uage)?|version|product|edition)$/i;

/**
 * Whether the names of tiers may be credentials: they are what a client must send. Such names are
 * neither printed nor logged.
 */
export function areTierNamesSecret(by: KeyExpression): boolean {
  return by
    .flat()
    .some(
      (part) =>
        "name" in part &&
        CARRIED.has(part.kind) &&
        (part.kind === "cookie" || !HARMLESS.test(part.name)),
    );
}
