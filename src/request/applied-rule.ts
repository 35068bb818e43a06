import type { ResolvedBindings } from "../config/bindings.ts";
import type { KeyExpression } from "../config/key-expression.ts";
import type { Rule, Window } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import type { CanonicalRequest } from "./canonical-request.ts";
import type { Claims } from "./claims.ts";
import { type CustomKeys, customKey } from "./custom-key.ts";
import { isExempt } from "./exempt.ts";
import {
  identityNow,
  identityOf,
  type KeyContext,
  keyValue,
  type RequestContext,
} from "./identity.ts";
import type { RuleMatch } from "./matcher.ts";
import { createClaimsReader } from "./token.ts";

/** A rule that a request falls under, who is counted by it, and which quotas they have. */
export interface AppliedRule {
  readonly rule: Rule;
  /** The rule's own, or those of the client's tier. */
  readonly windows: readonly Window[];
  readonly identity: string;
  /**
   * Of a rule in shadow mode that is not known in time: the subject that it turns out to be, or none.
   * Until then there are no windows, and the identity means nothing.
   */
  readonly later?: Promise<readonly AppliedRule[]>;
}

/**
 * How long rules in shadow mode are waited for once those that are enforced are known, in
 * milliseconds: time enough to hash a key, but not for a key function that calls somebody.
 */
const SHADOW_GRACE_MS = 2;

/** Of the rules that a request matches, those that count it, in their order. */
export type Identifier = (
  canonical: CanonicalRequest,
  original: Request,
  matches: readonly RuleMatch[],
) => AppliedRule[] | Promise<AppliedRule[]>;

/**
 * Prepares the step from match to key: exemptions, identities and tiers.
 *
 * Whatever takes work is done at most once for a request, however many rules ask: a token is
 * verified, a custom function called, an identity hashed. What it keeps between requests are the
 * issuer's keys alone.
 *
 * @param keys the functions behind the keys `custom:NAME`
 */
export function createIdentifier(
  { jwt, ipv6Prefix, timeoutMs }: Pick<Config, "jwt" | "ipv6Prefix" | "timeoutMs">,
  { secrets, keySecret }: Pick<ResolvedBindings, "secrets" | "keySecret">,
  keys: CustomKeys = {},
): Identifier {
  const texts = new WeakMap<KeyExpression, string>();
  const settings = { ipv6Prefix, keySecret };
  const readClaims = jwt ? createClaimsReader(jwt, secrets, timeoutMs) : async () => undefined;

  async function identifyLater(
    canonical: CanonicalRequest,
    original: Request,
    matches: readonly RuleMatch[],
  ): Promise<AppliedRule[]> {
    const tokens = remembering<Claims | undefined>();
    const customs = remembering<string | undefined>();
    const identities = remembering<string>();
    const shared = {
      request: canonical,
      keySecret,
      ipv6Prefix,
      claims: () => tokens("", () => readClaims(canonical.headers)),
      custom: (name: string) => customs(name, () => customKey(keys, name, original)),
    };

    async function subjectOf({ rule, path, params }: RuleMatch): Promise<AppliedRule[]> {
      if (rule.exempt && (await isExempt(rule.exempt, canonical, secrets))) return [];
      const context = { ...shared, path, params };
      const identity = await identities(textOfKey(rule.key, context, texts), () =>
        identityOf(rule.key, context),
      );
      return [{ rule, windows: await windowsFor(rule, context), identity }];
    }

    const found = matches.map(subjectOf);
    if (matches.every(({ rule }) => rule.mode === "enforce")) {
      return (await Promise.all(found)).flat();
    }
    return withoutWaiting(matches, found);
  }

  return function identify(canonical, original, matches) {
    const subjects = subjectsNow(canonical, matches, settings);
    return subjects ?? identifyLater(canonical, original, matches);
  };
}

/** The subjects, where rules in shadow mode neither delay nor fail those that are enforced. */
async function withoutWaiting(
  matches: readonly RuleMatch[],
  found: readonly Promise<AppliedRule[]>[],
): Promise<AppliedRule[]> {
  const isShadow = (index: number) => matches[index]?.rule.mode === "shadow";
  const known: AppliedRule[][] = [];
  const trial = found.map(async (subjects, index) => {
    if (isShadow(index)) known[index] = await subjects;
  });
  const allTrial = Promise.allSettled(trial);
  const enforced = await Promise.all(found.map((each, index) => (isShadow(index) ? [] : each)));
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, SHADOW_GRACE_MS);
  await Promise.race([allTrial, late]);
  clearTimeout(timer);
  return matches.flatMap(({ rule }, index) => {
    if (!isShadow(index)) return enforced[index] as AppliedRule[];
    const later = found[index] as Promise<AppliedRule[]>;
    return known[index] ?? { rule, windows: [], identity: "", later };
  });
}

/**
 * The subjects of a request whose keys take no work and have been hashed before, as most have:
 * nothing is waited for, and nothing prepared for several rules to share.
 *
 * @returns undefined where any key does, or a rule has exemptions or tiers
 */
function subjectsNow(
  request: CanonicalRequest,
  matches: readonly RuleMatch[],
  settings: Pick<RequestContext, "ipv6Prefix" | "keySecret">,
): AppliedRule[] | undefined {
  const subjects: AppliedRule[] = [];
  for (const { rule, path, params } of matches) {
    if (rule.exempt || rule.tiers) return undefined;
    const identity = identityNow(rule.key, { request, path, params, ...settings });
    if (identity === undefined) return undefined;
    subjects.push({ rule, windows: rule.windows, identity });
  }
  return subjects;
}

/** The quotas of the client's tier; the rule's own when it names none that there is. */
async function windowsFor(rule: Rule, context: KeyContext): Promise<readonly Window[]> {
  if (!rule.tiers) return rule.windows;
  const tier = await keyValue(rule.tiers.by, context);
  return (tier !== undefined && rule.tiers.windows.get(tier)) || rule.windows;
}

/**
 * Two keys with one text have one identity. The path and its parameters differ from rule to rule.
 *
 * @param texts those of keys that were asked for before: a key is written out once, not per request
 */
function textOfKey(
  key: KeyExpression,
  { path, params }: Pick<RuleMatch, "path" | "params">,
  texts: WeakMap<KeyExpression, string>,
): string {
  let text = texts.get(key);
  if (text === undefined) {
    text = JSON.stringify(key);
    texts.set(key, text);
  }
  const readsPath = key.some((parts) =>
    parts.some(({ kind }) => kind === "param" || kind === "path"),
  );
  return readsPath ? text + JSON.stringify([path, params]) : text;
}

/** Starts what a text stands for once, whoever asks. For one request, never for two. */
function remembering<Result>(): (text: string, start: () => Promise<Result>) => Promise<Result> {
  const started = new Map<string, Promise<Result>>();
  return (text, start) => {
    const result = started.get(text) ?? start();
    started.set(text, result);
    return result;
  };
}
