import type { ResolvedBindings } from "../config/bindings.ts";
import type { CustomContext } from "../config/custom.ts";
import type { Rule } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import { type CanonicalRequest, canonicalRequest } from "./canonical-request.ts";
import type { ClientLimits } from "./client-limits.ts";
import { CustomCalls, type CustomFailure, type OnUnreadableCost } from "./custom-calls.ts";
import { createMatcher, type MatchTrace, type RuleMatch } from "./matcher.ts";
import {
  type AppliedRule,
  type ApplyTrace,
  applyFromCache,
  type DenialOf,
  RuleApplier,
} from "./rule-applier.ts";
import { sentNamesOf } from "./sent-values.ts";
import { type Claims, createClaimsReader } from "./token.ts";

interface IdentifyParts {
  /** With the rules that requests may match, in the deployment's mode. */
  readonly config: Pick<
    Config,
    "rules" | "caseSensitivePaths" | "ipv6Prefix" | "jwt" | "custom" | "timeoutMs"
  >;
  readonly bindings: Pick<ResolvedBindings, "secrets" | "keySecret">;
  /** What operators have changed: see `LiveOverrides`. */
  readonly overrides: {
    matchesOf(matches: readonly RuleMatch[]): readonly RuleMatch[];
    needsNoNumbers(rule: Rule, client: string): boolean;
    clientsOf(appliedRules: readonly AppliedRule[]): readonly AppliedRule[];
  };
  /** Keeps the invocation alive until a task has ended. */
  readonly background: (task: Promise<void>) => void;
  readonly onKeyFailure: (name: string, cause: CustomFailure) => void;
  readonly onUnreadableCost: OnUnreadableCost;
  readonly limits: ClientLimits;
  /** Reports each step, for an explanation. */
  readonly trace?: {
    readonly onCondition: MatchTrace;
    readonly onClient: ApplyTrace;
    readonly onToken: (claims: Claims | undefined, error?: unknown) => void;
  };
}

interface IdentifyOptions<Denial> {
  /** The second argument of the functions in `custom`. */
  readonly context: CustomContext;
  /** When the request arrived, in milliseconds since the Unix epoch. */
  readonly arrivedAt: number;
  /** The path by which an app has routed the request; undefined if no app routes requests. */
  readonly routedPath?: string | undefined;
  /** Replaces the matches. */
  readonly choose?: ((matches: readonly RuleMatch[]) => readonly RuleMatch[]) | undefined;
  readonly denialOf?: DenialOf<Denial>;
  /** Whether rules certainly admit the request without a call to the store. @default never */
  readonly isCovered?: (known: readonly AppliedRule[]) => boolean;
}

/** The rules that count a request. Rules that exempt it are missing. */
export interface Identified<Denial = unknown> {
  readonly canonical: CanonicalRequest;
  /** The rules of the configuration that match. */
  readonly found: readonly RuleMatch[];
  /** The matching rules with their overrides. */
  readonly matches: readonly RuleMatch[];
  /** The applied rules without the overrides of their clients. */
  readonly clients: readonly AppliedRule[];
  /** The applied rules with all overrides. */
  readonly appliedRules: readonly AppliedRule[];
  /** The denial because of which other rules are missing. */
  readonly denial?: Denial | undefined;
  /**
   * The milliseconds in functions of `custom`, and in which enforced rules waited for rules with the mode `mark`. They
   * must not shorten a deadline. Otherwise a client could leave its request undecided: by making a function slow, or by
   * a token with an unknown key.
   */
  readonly foreignMs: number;
  /** Must be called when the request is decided: see `CustomCalls`. */
  readonly close: () => void;
}

/** @returns undefined if the request names no host and path, or if the path is too long */
export type Identify = <Denial>(
  request: Request,
  options: IdentifyOptions<Denial>,
) => Promise<Identified<Denial> | undefined>;

/**
 * Returns a function that finds the rules that match a request, and its client for each of them. The gateway decides
 * by its result, and an explanation shows it.
 */
export function createIdentify({
  config,
  bindings,
  overrides,
  trace,
  ...parts
}: IdentifyParts): Identify {
  const { rules, caseSensitivePaths, custom, jwt, timeoutMs, ipv6Prefix } = config;
  const { onUnreadableCost, onKeyFailure, background, limits } = parts;
  const { secrets, keySecret } = bindings;
  const names = sentNamesOf(rules);
  const match = createMatcher(rules, caseSensitivePaths);
  const readClaims = jwt
    ? createClaimsReader(jwt, secrets, timeoutMs, background, trace?.onToken)
    : async () => undefined;
  const shared = {
    ipv6Prefix,
    keySecret,
    secrets,
    readClaims,
    onUnreadableCost,
    trace: trace?.onClient,
    costs: custom?.costs,
    limits,
    needsNoNumbers: (rule: Rule, identity: string) => overrides.needsNoNumbers(rule, identity),
  };

  return async function identify(request, options) {
    const { routedPath, choose, denialOf, isCovered } = options;
    const canonical = canonicalRequest(request, caseSensitivePaths, routedPath, names);
    if (!canonical) return undefined;
    const found = match(canonical, trace?.onCondition);
    const changed = overrides.matchesOf(found);
    const matches = choose?.(changed) ?? changed;
    const waitMs = Math.max(0, ...matches.map(({ rule }) => rule.waitMs));
    const calls =
      (custom?.keys || custom?.costs || custom?.limits) &&
      new CustomCalls({ ...options, functions: custom, request, timeoutMs, waitMs, onKeyFailure });
    const close = () => calls?.close();
    try {
      const cached = !trace && applyFromCache(canonical, matches, shared);
      // Most identities are cached. Awaiting them would cost a microtask.
      const applied = cached
        ? { rules: cached, waitedMs: 0 }
        : await new RuleApplier(shared, canonical, matches, calls).apply(
            (known) => denialOf?.(overrides.clientsOf(known)),
            (known) => isCovered?.(overrides.clientsOf(known)) === true,
          );
      const { rules: clients, denial, waitedMs } = applied;
      const appliedRules = overrides.clientsOf(clients);
      const foreignMs = (calls?.spentMs ?? 0) + waitedMs;
      return { canonical, found, matches, clients, appliedRules, denial, foreignMs, close };
    } catch (error) {
      close();
      throw error;
    }
  };
}
