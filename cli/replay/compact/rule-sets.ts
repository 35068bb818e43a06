import type { Rule } from "../../../src/config/rule.ts";
import type { Config } from "../../../src/config/schema.ts";
import type { RuleMatch } from "../../../src/request/matcher.ts";
import type { LogRequest } from "../../logs/log-request.ts";
import { LoggedRequest, NO_REQUEST } from "../logged-request.ts";
import { RouteCache } from "../route.ts";
import type { AccessLineScanner } from "./access-line-scanner.ts";
import { ByteCache } from "./byte-cache.ts";
import type { CompactRule, CompactWindow } from "./compact-rules.ts";

/** The number of cached methods and paths. They take 1 MB. */
const CACHED_PATHS = 8192;
const MAX_CACHED_LENGTH = 128;
const CACHED_METHODS = 256;
const MAX_METHOD = 32;
/** In place of an index: the set depends on the path. */
const READS_PATH = -2;
/** Paths of up to this length, in bytes, are never too long for the Worker. */
const NEVER_TOO_LONG = 128;

/** What a method and a path mean for a request. */
export interface RuleSet {
  /** Whether the Worker refuses the request before it reads the rules. */
  readonly isRefused: boolean;
  /** Whether the request counts as a preflight because the log does not show whether it is one. */
  readonly isAssumedPreflight: boolean;
  readonly rules: readonly CompactRule[];
  /** The limits of all enforced rules. */
  readonly enforced: readonly CompactWindow[];
  /** Whether an enforced rule never has quota. */
  readonly isCertainlyDenied: boolean;
  /** The limits of each rule in shadow mode. */
  readonly shadow: readonly (readonly CompactWindow[])[];
}

/** Finds the rules that match requests, as the general engine does. */
export class RuleSets {
  /** All sets. A row refers to one by its index. */
  readonly sets: RuleSet[] = [];
  readonly #byKey = new Map<string, number>();
  readonly #rules: ReadonlyMap<Rule, CompactRule>;
  readonly #routes: RouteCache;
  readonly #methods = new ByteCache(CACHED_METHODS, MAX_METHOD);
  readonly #paths = new ByteCache(CACHED_PATHS, MAX_CACHED_LENGTH);

  constructor(
    rules: readonly CompactRule[],
    { caseSensitivePaths }: Pick<Config, "caseSensitivePaths">,
  ) {
    const plain = rules.map(({ rule }) => rule);
    this.#rules = new Map(rules.map((each) => [each.rule, each]));
    this.#routes = new RouteCache(plain, caseSensitivePaths, false, new LoggedRequest(false));
  }

  /**
   * Returns the index of the set for a line that was scanned.
   *
   * @param host the host of requests whose lines state none: the same for all lines
   */
  ofLine(
    bytes: Buffer,
    { methodAt, methodEnd, pathEnd }: AccessLineScanner,
    host: string | undefined,
  ): number {
    if (pathEnd - methodEnd <= NEVER_TOO_LONG) {
      const ofMethod = this.#ofMethod(bytes, methodAt, methodEnd, host);
      if (ofMethod !== READS_PATH) return ofMethod;
    }
    const known = this.#paths.get(bytes, methodAt, pathEnd);
    if (known !== -1) return known;
    const method = bytes.toString("latin1", methodAt, methodEnd);
    const target = bytes.toString("latin1", methodEnd + 1, pathEnd);
    const found = this.ofRequest({ ...NO_REQUEST, method, target, host });
    this.#paths.set(bytes, methodAt, pathEnd, found);
    return found;
  }

  /** Returns the index of the set for all short paths, if no rule for a method reads the path. */
  #ofMethod(bytes: Buffer, from: number, to: number, host: string | undefined): number {
    const known = this.#methods.get(bytes, from, to);
    if (known !== -1) return known;
    const method = bytes.toString("latin1", from, to);
    const request = { ...NO_REQUEST, method, host };
    const matches = this.#routes.matchesOfAnyPath(request);
    const found = matches ? this.#indexOf(request, matches) : READS_PATH;
    this.#methods.set(bytes, from, to, found);
    return found;
  }

  /** Returns the index of the set for a request. */
  ofRequest(request: LogRequest): number {
    return this.#indexOf(request, this.#routes.matchesOf(request));
  }

  #indexOf(request: LogRequest, matches: readonly RuleMatch[] | undefined): number {
    const isAssumedPreflight = matches !== undefined && request.method.toUpperCase() === "OPTIONS";
    const rules = matches?.map(({ rule }) => this.#rules.get(rule) as CompactRule);
    const key = `${isAssumedPreflight}:${rules?.map(({ index }) => index)}`;
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    const added = this.sets.push(ruleSetOf(rules, isAssumedPreflight)) - 1;
    this.#byKey.set(key, added);
    return added;
  }
}

/** @param rules undefined for requests that the Worker refuses */
function ruleSetOf(
  rules: readonly CompactRule[] | undefined,
  isAssumedPreflight: boolean,
): RuleSet {
  const all = rules ?? [];
  const enforced = all.filter(({ isShadow }) => !isShadow).flatMap(({ windows }) => windows);
  return {
    isRefused: rules === undefined,
    isAssumedPreflight,
    rules: all,
    enforced,
    isCertainlyDenied: enforced.some(({ deniesCertainly }) => deniesCertainly),
    shadow: all.filter(({ isShadow }) => isShadow).map(({ windows }) => windows),
  };
}
