import type { KeyExpression } from "../config/key-expression.ts";
import type { Rule, Window } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import type { Settings } from "../config/settings.ts";
import type { CanonicalRequest } from "./canonical-request.ts";
import { type CustomKeys, customKey } from "./custom-key.ts";
import { isExempt } from "./exempt.ts";
import { identityOf, type KeyContext, keyValue } from "./identity.ts";
import type { Match } from "./matcher.ts";
import { type Claims, createClaimsReader } from "./token.ts";

/** A rule that a request falls under, who is counted by it, and which quotas they have. */
export interface Subject {
  readonly rule: Rule;
  /** The rule's own, or those of the client's tier. */
  readonly windows: readonly Window[];
  readonly identity: string;
}

/** Of the rules that a request matches, those that count it, in their order. */
export type Identifier = (
  canonical: CanonicalRequest,
  original: Request,
  matches: readonly Match[],
) => Promise<Subject[]>;

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
  { secrets }: Pick<Settings, "secrets">,
  keys: CustomKeys = {},
): Identifier {
  const texts = new WeakMap<KeyExpression, string>();
  const readClaims = jwt ? createClaimsReader(jwt, secrets, timeoutMs) : async () => undefined;

  return async function identify(canonical, original, matches) {
    const tokens = remembering<Claims | undefined>();
    const customs = remembering<string | undefined>();
    const identities = remembering<string>();
    const shared = {
      request: canonical,
      ipv6Prefix,
      claims: () => tokens("", () => readClaims(canonical.headers)),
      custom: (name: string) => customs(name, () => customKey(keys, name, original)),
    };

    const subjects = await Promise.all(
      matches.map(async ({ rule, path, params }): Promise<Subject[]> => {
        if (rule.exempt && (await isExempt(rule.exempt, canonical, secrets))) return [];
        const context = { ...shared, path, params };
        const identity = await identities(textOfKey(rule.key, context, texts), () =>
          identityOf(rule.key, context),
        );
        return [{ rule, windows: await windowsFor(rule, context), identity }];
      }),
    );
    return subjects.flat();
  };
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
  { path, params }: Pick<Match, "path" | "params">,
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
