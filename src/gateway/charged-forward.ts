import { waitUntil } from "cloudflare:workers";
import type { CustomContext, CustomSettle, SettleContext } from "../config/custom.ts";
import type { Config } from "../config/schema.ts";
import {
  isBrotli,
  isEmptyEncoded,
  type TeedResponse,
  type TeeOptions,
  teeResponse,
} from "../http/body-tee.ts";
import type { Forwarded, ResponseUse } from "../http/forward.ts";
import { withQuotaHeaders } from "../http/response-headers.ts";
import {
  type CostOf,
  causeOf,
  costOfHead,
  type FinalCost,
  hasSettleFunction,
  settleFunctionOf,
  withCause,
} from "../limiter/cost.ts";
import {
  type Allowed,
  knownQuotas,
  mayBeCharged,
  type Quota,
  reservedBy,
  toUndecided,
} from "../limiter/decision.ts";
import type { HeldSlots } from "../limiter/held-slots.ts";
import type { Limiter } from "../limiter/limiter.ts";
import { isCost } from "../request/custom-calls.ts";
import { withTimeout } from "../request/timeout.ts";
import { logUndecided, logUnreadableCost } from "./log.ts";

/**
 * Calls the functions for `settle: "custom:NAME"`, each at most once.
 *
 * A function has time until the end of the body, and `timeoutMs` more. If it returns no cost, the reason for the
 * unknown cost is determined after the end of the body, because the body may break off.
 *
 * @param names the names of the functions to call
 * @returns the response for the client, its end, and a promise of the final costs by the functions' names, which never
 * rejects
 */
function callSettleFunctions(
  functions: ReadonlyMap<string, CustomSettle> | undefined,
  names: readonly string[],
  response: Response,
  context: SettleContext,
  options: TeeOptions & Pick<ChargeConfig, "timeoutMs">,
) {
  const teed = teeResponse(response, names.length, options);
  if (!teed) {
    const costs = new Map<string, FinalCost>(names.map((name) => [name, "no-response"]));
    return { ...UNREAD, response, costs: Promise.resolve(costs) };
  }
  const calls = names.map(async (name, index): Promise<[string, FinalCost]> => {
    const call = teed.started.then(() =>
      readCost(functions?.get(name), teed.copies[index] as Response, { ...context }),
    );
    const timeout = teed.ended.then(() =>
      withTimeout(call, options.timeoutMs, () => "timeout" as const),
    );
    const cost = await Promise.race([call, timeout]);
    const isKnown = typeof cost === "number" || ((await teed.ended) && !teed.hasFault());
    return [name, isKnown ? cost : withCause(cost, "broken-off")];
  });
  const costs = Promise.all(calls).then((each) => new Map(each));
  return { ...teed, costs };
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

/**
 * Forwards a request to the origin or to an app.
 *
 * @param quotas the quotas of the decision; empty if no enforced rule applies, or if the request is undecided
 * @param use the use of an origin's body; undefined if Weir does not read it
 */
export type ForwardWithQuotas = (
  request: Request,
  quotas: readonly Quota[],
  use?: ResponseUse,
) => Promise<Forwarded>;

type ChargeConfig = Pick<Config, "custom" | "headers" | "timeoutMs">;

/** Undefined if the cost will be known later. */
type Cost = FinalCost | undefined;

interface AdmittedRequest {
  readonly request: Request;
  readonly context: CustomContext;
  readonly decision: Allowed;
  /** The duration of the decision in milliseconds. */
  readonly decidedInMs: number;
  /**
   * Whether a server sends the response, so that Content-Length is the length of its body. An app or another Worker
   * may state a wrong length, which the runtime ignores.
   */
  readonly isLengthExact: boolean;
  /** Aborted when the client hangs up, with the compatibility flag `enable_request_signal`. */
  readonly signal: AbortSignal;
}

/** The end of a response. */
type Ending = Pick<TeedResponse, "cancel" | "isRead" | "offered"> & {
  readonly ended: Promise<unknown>;
};

/** The end of a response that Weir does not read. */
const NO_BODY = Promise.resolve();
const UNREAD: Ending = { ended: NO_BODY, offered: NO_BODY, isRead: () => true, cancel: () => {} };

/** The time in milliseconds after which the client of an unread response has hung up. */
const UNREAD_MS = 10_000;

/** Forwards admitted requests, and charges the rules whose cost depends on the response. */
export class ChargedForward {
  readonly #config: ChargeConfig;
  readonly #limiter: Limiter;
  /** Whether an origin has sent Brotli although Weir had asked for gzip. After that, no body is raw. */
  #sendsBrotli = false;

  constructor(config: ChargeConfig, limiter: Limiter) {
    this.#config = config;
    this.#limiter = limiter;
  }

  async send(admitted: AdmittedRequest, forward: ForwardWithQuotas): Promise<Response> {
    const { slots } = admitted.decision;
    slots?.keep();
    try {
      return await this.#send(admitted, forward);
    } catch (error) {
      slots?.release();
      throw error;
    }
  }

  async #send(admitted: AdmittedRequest, forward: ForwardWithQuotas): Promise<Response> {
    const { request, decision } = admitted;
    const charged = decision.verdicts.filter(mayBeCharged).map(({ appliedRule: { rule } }) => rule);
    const use = this.#useOf(admitted, charged.some(hasSettleFunction));
    let forwarded: Forwarded;
    try {
      forwarded = await forward(request, decision.quotas, use);
    } catch (error) {
      // The app has thrown an error, and frameworks and the runtime answer with 500. The request is charged, because
      // otherwise a client that makes the app fail would have no limit.
      const failure = { status: 500, headers: new Headers() };
      await this.#chargeInTime(admitted, (each) =>
        withoutResponse(costOfHead(each, failure) ?? "no-response"),
      );
      throw error;
    }
    const { response, isOwn } = forwarded;
    const final = isOwn ? withoutResponse : (cost: Cost) => cost;
    // If settle functions determine all costs, the first byte waits for no charge.
    const isChargedNow = charged.some((rule) => !settleFunctionOf(rule, response.status));
    const quotas = isChargedNow
      ? await this.#chargeInTime(admitted, (each) => final(costOfHead(each, response)))
      : knownQuotas(decision);
    const policies = decision.ahead?.policies();
    const answer = withQuotaHeaders(request, response, quotas, this.#config.headers, policies);
    return this.#settleByBody(admitted, { response: answer, isOwn }, final, use);
  }

  #useOf({ decision, isLengthExact, signal }: AdmittedRequest, isRead: boolean) {
    if (isRead) return { body: isLengthExact && !this.#sendsBrotli ? "raw" : "decoded" } as const;
    return decision.slots && isLengthExact ? ({ body: "end", signal } as const) : undefined;
  }

  /**
   * Gives the slots back at the end of the response, or when the client has hung up. If the client hangs up before
   * the response, the runtime never reads the body. Without the compatibility flag `enable_request_signal`, nothing
   * else shows this.
   */
  #releaseAtEnd(slots: HeldSlots, signal: AbortSignal, ending: Ending): void {
    const { offered, ended, cancel, isRead } = ending;
    if (signal.aborted) cancel();
    else signal.addEventListener("abort", cancel);
    let unread: ReturnType<typeof setTimeout> | undefined;
    offered.then(() => {
      unread = setTimeout(() => {
        if (!isRead()) cancel();
      }, UNREAD_MS);
    });
    const released = ended.then(() => {
      clearTimeout(unread as ReturnType<typeof setTimeout>);
      signal.removeEventListener("abort", cancel);
      slots.release();
    });
    waitUntil(released);
  }

  /**
   * Calls the settle functions. Their costs are charged when all of them are known, possibly after the end of the
   * body. Gives the slots back at the end of the body.
   */
  async #settleByBody(
    { request, context, isLengthExact, signal, ...admitted }: AdmittedRequest,
    { response, isOwn }: Forwarded,
    final: (cost: Cost) => Cost,
    use: ResponseUse | undefined,
  ): Promise<Response> {
    const { slots } = admitted.decision;
    const names = new Set<string>();
    let reserved = 0;
    for (const verdict of admitted.decision.verdicts.filter(mayBeCharged)) {
      const name = settleFunctionOf(verdict.appliedRule.rule, response.status);
      if (name === undefined) continue;
      names.add(name);
      reserved = Math.max(reserved, reservedBy(verdict));
    }
    if (names.size === 0) {
      if (!slots) return response;
      if (request.method === "HEAD" || isOwn) {
        // Such a response has no body from the origin, and an app framework may drop the body of a HEAD.
        slots.release();
        return response;
      }
    }
    const isRaw = use !== undefined && use.body !== "decoded";
    if (use?.body === "raw" && isBrotli(response.headers) && !isEmptyEncoded(response))
      this.#sendsBrotli = true;
    const { custom, timeoutMs } = this.#config;
    const settled = callSettleFunctions(
      custom?.settle,
      [...names],
      response,
      { ...context, request, reserved },
      { timeoutMs, isLengthExact, isRaw },
    );
    if (slots) this.#releaseAtEnd(slots, signal, settled);
    if (names.size === 0) return settled.response;
    // The charge must also be made if the client hangs up.
    waitUntil(
      settled.costs.then((costs) =>
        this.#charge(admitted.decision, ({ rule }) => {
          const name = settleFunctionOf(rule, response.status);
          return name === undefined ? undefined : final(costs.get(name));
        }),
      ),
    );
    return settled.response;
  }

  /** Charges the rules, and returns the quotas. The quotas include the charge if it is in time. */
  async #chargeInTime(
    { decision, decidedInMs }: Pick<AdmittedRequest, "decision" | "decidedInMs">,
    costOf: CostOf,
  ): Promise<readonly Quota[]> {
    const charge = this.#charge(decision, costOf);
    // The charge may take the store's whole deadline, even if the decision was slow. But together, the decision and
    // the charge delay the response by at most one deadline.
    waitUntil(charge);
    // A request that has passed ahead waits for no answer and for no charge.
    if (decision.ahead) return knownQuotas(decision);
    const { quotas } = decision;
    const restMs = Math.max(0, this.#config.timeoutMs - decidedInMs);
    const updatedQuotas = await withTimeout(charge, restMs, (): Quota[] => []);
    return quotas.map(
      (quota) => updatedQuotas.find(({ policy }) => policy === quota.policy) ?? quota,
    );
  }

  /** Charges the rules, and returns the updated quotas. Logs a failure and never rejects. */
  #charge(decision: Allowed, costOf: CostOf): Promise<Quota[]> {
    return this.#limiter.chargeResponse(decision, withLog(costOf)).catch((error): Quota[] => {
      logUndecided(toUndecided(error, []));
      return [];
    });
  }
}

/** Gives an unknown cost the reason `no-response`, because no response of the origin could state the cost. */
function withoutResponse(cost: Cost): Cost {
  return cost === undefined ? undefined : withCause(cost, "no-response");
}

/** Logs each unknown cost. */
function withLog(costOf: CostOf): CostOf {
  return (appliedRule) => {
    const cost = costOf(appliedRule);
    const cause = cost === undefined ? undefined : causeOf(cost);
    if (cause !== undefined) {
      const { rule } = appliedRule;
      const source = typeof rule.cost === "number" ? undefined : rule.cost.settle;
      if (source) logUnreadableCost(rule.name, `${source.kind}:${source.name}`, cause);
    }
    return cost;
  };
}
