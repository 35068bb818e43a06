import type { CustomContext, CustomFunctions } from "../config/custom.ts";
import type { KeyExpression } from "../config/key.ts";
import type { LimitSource } from "../config/limit-source.ts";
import type { Window } from "../config/rule.ts";
import { keyPartName, type NamedValue } from "./identity.ts";
import { LruCache } from "./lru-cache.ts";
import { type SharedPromise, sharedPromise } from "./shared-promise.ts";
import { withTimeout } from "./timeout.ts";

/** Returns the sources in windows, each once. */
export function sourcesIn(windows: readonly Window[]): LimitSource[] {
  const all = windows.flatMap(({ from }) => [from?.limit ?? [], from?.capacity ?? []].flat());
  return [...new Set(all)];
}

/**
 * Returns the windows of a client with its own numbers. If unused quota rolls over for other clients, it does for this
 * one, because otherwise the client would have another counter.
 *
 * @param numberOf returns the client's number; undefined if it has none
 */
export async function windowsOfClient(
  windows: readonly Window[],
  numberOf: (source: LimitSource) => Promise<number | undefined>,
): Promise<readonly Window[]> {
  const numbers = new Map<LimitSource | undefined, number>();
  await Promise.all(
    sourcesIn(windows).map(async (source) => {
      const number = (await numberOf(source)) ?? source.default;
      numbers.set(source, Math.min(number, source.max));
    }),
  );
  return numbers.size === 0 ? windows : replaceNumbers(windows, numbers);
}

/** @param numbers the number of each source */
function replaceNumbers(
  windows: readonly Window[],
  numbers: ReadonlyMap<LimitSource | undefined, number>,
): readonly Window[] {
  return windows.map((window) => {
    const limit = numbers.get(window.from?.limit) ?? window.limit;
    if (limit === 0) return { ...window, limit, capacity: 0, maxReserved: 0 };
    const capacity = numbers.get(window.from?.capacity) ?? window.capacity;
    if (window.capacity === window.limit) return { ...window, limit, capacity: limit };
    return { ...window, limit, capacity: Math.max(limit, capacity), rollsOver: true };
  });
}

/** The reason why a client's number is unknown. */
export type LimitFailure = "timeout" | "threw" | "missing" | "invalid";

/**
 * Reports that a number could not be read. Does not pass the number.
 *
 * @param source such as `custom:quota`
 */
export type OnUnreadableLimit = (source: string, cause: LimitFailure, identity: string) => void;

/** A part of an applied rule. */
interface Numbered {
  readonly windows: readonly Window[];
  /** See `AppliedRule`. */
  readonly declared?: readonly Window[];
}

/** A client for which a function is asked. */
export interface AskedClient {
  readonly identity: string;
  /** The value of each element of the rule's key. */
  readonly keys: readonly string[];
  readonly request?: Request;
}

/** What a function has said about a client. */
interface Known {
  /** The last number; undefined if the function has returned none. */
  number: number | undefined;
  /** The reason why the last call has returned none. */
  failure?: LimitFailure;
  /** When the function was asked, in milliseconds since the Unix epoch. */
  readonly askedAt: number;
  /** The call that has not ended, and when requests stop waiting for it. */
  call: (SharedPromise<void> & { readonly waitUntil: number }) | undefined;
}

/** What a function has answered. */
interface Answered {
  /** Undefined if the client has no number. */
  readonly number: number | undefined;
  readonly isFresh: boolean;
}

/** @returns undefined during the first call */
function answeredBy(known: Known | undefined, { cacheMs }: LimitSource): Answered | undefined {
  if (!known) return undefined;
  const { number, askedAt, call } = known;
  const now = Date.now();
  if (number === undefined && call && now < call.waitUntil) return undefined;
  // If the clock has gone back, the age is unknown.
  return { number, isFresh: now >= askedAt && now - askedAt < cacheMs };
}

/** The maximum number of clients that an isolate remembers, each for one function. They take about 1 MB. */
export const MAX_KNOWN = 4096;

interface ClientLimitsOptions {
  readonly timeoutMs: number;
  /** Keeps the invocation alive until a task has ended. */
  readonly background: (task: Promise<void>) => void;
  readonly onUnreadable: OnUnreadableLimit;
}

/** The numbers that the functions in `custom.limits` have returned in this isolate. */
export class ClientLimits {
  readonly onUnreadable: OnUnreadableLimit;
  readonly #functions: CustomFunctions["limits"];
  readonly #options: ClientLimitsOptions;
  readonly #known = new LruCache<Known>(MAX_KNOWN);

  constructor(functions: CustomFunctions["limits"], options: ClientLimitsOptions) {
    this.#functions = functions;
    this.#options = options;
    this.onUnreadable = options.onUnreadable;
  }

  /**
   * Returns the last number of a client that sends requests, whatever its age.
   *
   * @returns undefined if the function has not answered about the client
   */
  knownOf(source: LimitSource, identity: string): Answered | undefined {
    return answeredBy(this.#known.get(idOf(source, identity)), source);
  }

  /**
   * Returns the number of a client. If it is not fresh, asks the function, and waits for it for at most `ms`
   * milliseconds. Without a request, a function may answer something else, so requests never get this answer.
   *
   * @returns undefined if the client has no number
   */
  async numberFor(
    source: LimitSource,
    client: AskedClient,
    context: CustomContext,
    ms: number,
  ): Promise<number | undefined> {
    const { identity, request } = client;
    const ofRequests = this.knownOf(source, identity);
    if (ofRequests?.isFresh) return ofRequests.number;
    const id = request ? idOf(source, identity) : idWithoutRequest(source, identity);
    let known = this.#known.get(id);
    if (!answeredBy(known, source)?.isFresh) {
      // Meanwhile, the table may forget the client.
      known = this.#ask(source, id, client, context);
      const late = () => this.#unreadable(source, "timeout", client);
      if (known.call) await withTimeout(known.call.promise, ms, late);
    }
    return known?.number ?? (request ? undefined : ofRequests?.number);
  }

  /** Returns an applied rule with the numbers that functions have returned since. Asks no function. */
  current<Applied extends Numbered & { readonly identity: string }>(applied: Applied): Applied {
    // Without `declared`, the numbers had no effect when the rule was applied.
    const { windows, declared = windows, identity } = applied;
    if (sourcesIn(declared).length === 0) return applied;
    const numbers = new Map<LimitSource, number>();
    for (const [at, { from }] of declared.entries()) {
      for (const field of ["limit", "capacity"] as const) {
        const source = from?.[field];
        if (!source) continue;
        const { kind } = source.from;
        const known = kind === "custom" ? this.#known.get(idOf(source, identity)) : undefined;
        const before = known?.failure ? source.default : windows[at]?.[field];
        const number = known?.number ?? before ?? source.default;
        numbers.set(source, Math.min(number, source.max));
      }
    }
    return { ...applied, windows: replaceNumbers(declared, numbers) };
  }

  /** Returns what a function has said about a client; undefined if it was not asked. */
  answerOf(source: LimitSource, identity: string): number | LimitFailure | undefined {
    const known = source.from.kind === "custom" && this.#lastOf(source, identity);
    return known ? (known.number ?? known.failure ?? "timeout") : undefined;
  }

  /** Returns what determines the number of a client without a request. */
  #lastOf(source: LimitSource, identity: string): Known | undefined {
    const ofRequests = this.#known.get(idOf(source, identity));
    const other = this.#known.get(idWithoutRequest(source, identity));
    const isNewer = other && !answeredBy(ofRequests, source)?.isFresh;
    const hasNumber = other?.number !== undefined || ofRequests?.number === undefined;
    return isNewer && hasNumber ? other : ofRequests;
  }

  /** Returns an applied rule with the numbers of a client without claims. Asks no function if `keys` is undefined. */
  async withNumbers<Applied extends Numbered>(
    applied: Applied,
    { identity, keys }: { readonly identity: string; readonly keys: readonly string[] | undefined },
    context: CustomContext,
  ): Promise<Applied> {
    const windows = await windowsOfClient(applied.windows, async (source) => {
      if (source.from.kind === "jwt") return undefined;
      if (!keys) return this.#lastOf(source, identity)?.number;
      return this.numberFor(source, { identity, keys }, context, this.#options.timeoutMs);
    });
    return windows === applied.windows
      ? applied
      : { ...applied, windows, declared: applied.windows };
  }

  /**
   * Asks a function about a client, unless it is being asked. The function runs to its end even if the request ends.
   *
   * @returns what is known of the client, and the call, which never rejects
   */
  #ask(source: LimitSource, id: string, client: AskedClient, context: CustomContext): Known {
    const now = Date.now();
    const before = this.#known.get(id);
    if (before?.call && now < before.call.waitUntil) return before;
    const call = { ...sharedPromise<void>(), waitUntil: now + this.#options.timeoutMs };
    const known: Known = { number: before?.number, askedAt: now, call };
    this.#known.set(id, known);
    this.#options.background(
      this.#numberFrom(source, client, context).then((answer) => {
        if (typeof answer === "number") known.number = answer;
        else {
          known.failure = answer;
          this.#unreadable(source, answer, client);
          if (answer !== "threw") known.number = undefined;
        }
        known.call = undefined;
        call.resolve();
      }),
    );
    return known;
  }

  #unreadable({ from }: LimitSource, cause: LimitFailure, { identity }: AskedClient): void {
    this.onUnreadable(`custom:${from.name}`, cause, identity);
  }

  async #numberFrom(
    { from }: LimitSource,
    { keys, request }: AskedClient,
    context: CustomContext,
  ): Promise<number | LimitFailure> {
    try {
      // The function must not read the body, which belongs to the origin.
      const head = request && new Request(request.url, headOf(request));
      const client = { key: keys[0] ?? "", keys, request: head };
      const value: unknown = await this.#functions?.get(from.name)?.(client, context);
      if (value === undefined || value === null) return "missing";
      return isNumber(value) ? Math.abs(value) : "invalid";
    } catch {
      return "threw";
    }
  }
}

/**
 * Returns the values of a key that identify a client. If one of them is missing, the client is unknown: the address in
 * its place is no value of the key.
 */
export function keysOf(key: KeyExpression, values: readonly NamedValue[]): string[] | undefined {
  const isOwn = ({ name }: NamedValue, index: number) =>
    key[index]?.some((part) => keyPartName(part) === name);
  return values.every(isOwn) ? values.map(({ value }) => value) : undefined;
}

function idOf({ from }: LimitSource, identity: string): string {
  return `${identity}${from.name}`;
}

/** The id of what a function says without a request: for a program, or for an operator. */
function idWithoutRequest(source: LimitSource, identity: string): string {
  return `${idOf(source, identity)} without request`;
}

function headOf({ method, headers, cf }: Request): RequestInit {
  return { method, headers, ...(cf && { cf: cf as RequestInitCfProperties }) };
}

function isNumber(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0;
}
