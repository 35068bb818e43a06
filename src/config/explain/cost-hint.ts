import { isRecord } from "../fields.ts";
import { parseHeaderName } from "../key-expression.ts";
import { numberHint } from "./number-hint.ts";

/** Other names for the length of the body. */
const BODY =
  /^(?:request\.?)?(?:body(?:[.:_-]?(?:bytes|length|size))?|bytes|content[-\s]?length|size)$/i;

/**
 * Suggests a number or a notation for a cost.
 *
 * @param field the name of the faulty field: `cost`, or a field of the object
 */
export function costHint(field: string, given: unknown, allowed: string): string | undefined {
  if (typeof given === "function") return functionHint(field);
  const isBefore = field === "from" || field === "reserve";
  if (isRecord(given)) return objectHint(given, isBefore);
  if (typeof given !== "string") return numberHint(given, allowed);
  const [, prefix = "", rest = ""] = /^((?:[a-z.]+[\s:.=]+)?)(.*)$/is.exec(given.trim()) ?? [];
  const isResponse = field === "settle";
  if (!isResponse && BODY.test(given.trim().replace(/^headers?[\s:.=]+/i, ""))) {
    return 'write "body:bytes"';
  }
  if (/^(?:custom|function|fn|costs?|settle)[\s:.=]+$/i.test(prefix) && /^\w+$/.test(rest)) {
    return `write "custom:${rest}"`;
  }
  const number = numberHint(given, allowed);
  if (number) return number;
  return isBefore ? beforeHint(given) : headerHint(given);
}

/** Suggests the field of the response that holds the cost. */
function headerHint(given: string): string | undefined {
  const name = given.trim().replace(/^(?:(?:response\.)?headers?|cookie|query)[\s:.=]*/i, "");
  if (name === "") return 'write "header:x-cost" with the name of your header';
  const header = /^[A-Za-z][\w-]*$/.test(name) ? parseHeaderName(name) : undefined;
  return header && `write "header:${header}"`;
}

/** If a cost before the response names a header field, suggests `settle` or a function. */
function beforeHint(given: string): string | undefined {
  return /^headers?\b/i.test(given.trim())
    ? 'for a header field of the response, write settle; for one of the request, write "custom:NAME" with a function in custom.costs'
    : undefined;
}

/** Suggests where to move a function that was written as the cost. */
function functionHint(field: string): string {
  if (field === "settle") {
    return 'move it into custom: { settle: { usage: … } } beside rules, and write "custom:usage"';
  }
  return field === "reserve"
    ? 'move it into custom: { costs: { estimate: … } } beside rules, and write "custom:estimate"'
    : 'move it into custom: { costs: { weight: … } } beside rules, and write "custom:weight"; or write "header:NAME" for a header field of the response';
}

/** Suggests the short form for an object such as `{ header: "x-cost" }`. */
function objectHint(
  given: Readonly<Record<string, unknown>>,
  isBefore: boolean,
): string | undefined {
  const [[kind = "", name] = [], ...others] = Object.entries(given);
  if (typeof name !== "string" || others.length > 0 || !/^\w[\w-]*$/.test(name)) return undefined;
  if (/^headers?$/i.test(kind)) {
    return isBefore ? beforeHint(kind) : `write "header:${name.toLowerCase()}"`;
  }
  if (/^(custom|function)$/i.test(kind)) return `write "custom:${name}"`;
  return kind === "body" ? 'write "body:bytes"' : undefined;
}
