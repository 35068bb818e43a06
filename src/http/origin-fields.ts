import { isViolated, type Quota } from "../limiter/decision.ts";
import type { AppliedRule } from "../request/applied-rule.ts";
import { fieldsNamed, namePattern } from "../request/header-fields.ts";
import { limitItem } from "./rate-limit-headers.ts";

const OVER = "Weir-Over";
const REMAINING = "Weir-Remaining";

const FORGEABLE = namePattern(OVER.toLowerCase(), REMAINING.toLowerCase());

/** The items of the request header fields that tell the origin about quotas. */
interface OriginFields {
  /** The policies with `mode: "mark"` that the request exceeds. */
  readonly over: readonly string[];
  readonly remaining: readonly string[];
}

/**
 * The fields of each request that `withOriginFields` has created. If an app applies several
 * configurations or rules one after the other, the later ones keep the fields of the earlier ones.
 * All other requests come from clients, so such fields in them are forged.
 */
const created = new WeakMap<Request, OriginFields>();

/**
 * Returns the request with the fields that tell the origin about quotas, and without such fields
 * from the client. If no field changes, the result is the given object. Otherwise it is a new
 * request, which has taken over the body.
 *
 * @param quotas the quotas of an admitted request; empty if the request is undecided
 */
export function withOriginFields(
  request: Request,
  appliedRules: readonly AppliedRule[],
  quotas: readonly Quota[],
): Request {
  const before = created.get(request);
  const forged = before ? [] : fieldsNamed(FORGEABLE, request.headers);
  const own = originFieldsOf(appliedRules, quotas);
  if (forged.length + own.over.length + own.remaining.length === 0) return request;
  const fields: OriginFields = {
    over: [...(before?.over ?? []), ...own.over],
    remaining: [...(before?.remaining ?? []), ...own.remaining],
  };
  const copy = copyOf(request);
  for (const name of forged) copy.headers.delete(name);
  if (fields.over.length > 0) copy.headers.set(OVER, fields.over.join(", "));
  if (fields.remaining.length > 0) copy.headers.set(REMAINING, fields.remaining.join(", "));
  created.set(copy, fields);
  return copy;
}

function originFieldsOf(
  appliedRules: readonly AppliedRule[],
  quotas: readonly Quota[],
): OriginFields {
  const showsRemaining = ({ policy }: Quota) =>
    appliedRules.some(
      ({ rule, windows }) => rule.tellOrigin && windows.some((window) => window.policy === policy),
    );
  return {
    over: quotas.filter(isViolated).map(({ policy }) => policy),
    remaining: quotas.filter(showsRemaining).map(limitItem),
  };
}

/** Returns a copy of a request, which has taken over the body. */
export function copyOf(request: Request): Request {
  try {
    return new Request(request);
  } catch {
    // The app has read the body already, so the copy has none. Hono keeps a body that it has read.
    const { url, method, headers, redirect, signal, cf } = request;
    return new Request(url, {
      method,
      headers,
      redirect,
      signal,
      ...(cf && { cf }),
    } as RequestInit);
  }
}
