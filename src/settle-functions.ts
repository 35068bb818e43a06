import type { CustomSettle, SettleContext } from "./config/custom-functions.ts";
import { type TeeOptions, teeResponse } from "./http/body-tee.ts";
import { type FinalCost, withCause } from "./limiter/cost.ts";
import { isCost } from "./request/request-cost.ts";

/** A response whose body settle functions read while the client receives it. */
export interface SettledResponse {
  /** The response for the client. */
  readonly response: Response;
  /** The final costs, by the names of the functions. Never rejects. */
  readonly costs: Promise<ReadonlyMap<string, FinalCost>>;
}

export interface SettleCallOptions extends Omit<TeeOptions, "maxWaitMs"> {
  readonly timeoutMs: number;
}

/**
 * Calls the functions for `settle: "custom:NAME"`, each at most once.
 *
 * A function may take as long as the body takes. After the end of the body it has `timeoutMs`. If it
 * returns no cost, the reason for the unknown cost is determined after the end of the body, because
 * the body may break off.
 *
 * @param names the names of the functions to call
 */
export async function callSettleFunctions(
  functions: ReadonlyMap<string, CustomSettle> | undefined,
  names: readonly string[],
  response: Response,
  context: SettleContext,
  { timeoutMs, ...options }: SettleCallOptions,
): Promise<SettledResponse> {
  const teed = await teeResponse(response, names.length, {
    ...options,
    maxWaitMs: timeoutMs,
  });
  if (!teed) {
    const costs = new Map(names.map((name) => [name, "no-response"] as const));
    return { response, costs: Promise.resolve(costs) };
  }
  const calls = names.map(async (name, index): Promise<[string, FinalCost]> => {
    const { promise: timeout, resolve } = Promise.withResolvers<"timeout">();
    const call = teed.started.then(() =>
      readCost(functions?.get(name), teed.copies[index] as Response, { ...context }),
    );
    let timer: ReturnType<typeof setTimeout> | null = null;
    let hasReturned = false;
    teed.ended.then(() => {
      if (!hasReturned) timer = setTimeout(() => resolve("timeout"), timeoutMs);
    });
    const cost = await Promise.race([call, timeout]);
    hasReturned = true;
    if (timer !== null) clearTimeout(timer);
    const isKnown = typeof cost === "number" || ((await teed.ended) && !teed.hasFault());
    return [name, isKnown ? cost : withCause(cost, "broken-off")];
  });
  return { response: teed.response, costs: Promise.all(calls).then((costs) => new Map(costs)) };
}

async function readCost(
  settle: CustomSettle | undefined,
  response: Response,
  context: SettleContext,
): Promise<FinalCost> {
  try {
    const cost: unknown = await settle?.(response, context);
    if (cost === undefined) return "missing";
    if (isCost(cost)) return cost;
    const { atLeast } = Object(cost) as { atLeast?: unknown };
    return isCost(atLeast) ? { atLeast, cause: "missing" } : "invalid";
  } catch {
    return "threw";
  }
}
