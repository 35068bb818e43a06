import type { Env } from "../config/bindings.ts";
import type { DurationInput } from "../config/duration.ts";
import type { Config } from "../config/schema.ts";
import type { ControlApi, OverrideChange } from "../control/protocol.ts";
import { controlObject, sharedLimiter } from "../entry/isolate.ts";
import {
  type ClientEffect,
  MAX_OVERRIDES,
  type Override,
  overrideId,
  type RuleEffect,
} from "../overrides/override.ts";
import { checkOverride, describeFaults, readReason } from "../overrides/override-input.ts";
import { isIdentity } from "../request/identity.ts";
import { identityOfLimitKey, type LimitKey } from "../request/limit-key.ts";
import { checkOptions } from "./options.ts";
import { findRule } from "./rule.ts";

/** Selects one client: by the values of the rule's key, as in `limit`, or by its identity. */
type OverriddenClient =
  | { readonly key: LimitKey; readonly client?: undefined }
  | {
      /** The client's identity: the field `client` of an override, of a log line or of the dashboard. */
      readonly client: string;
      readonly key?: undefined;
    };

/** Selects all clients of a rule. */
interface AllClients {
  readonly key?: undefined;
  readonly client?: undefined;
}

/** The end of an override: after a length of time, or at a time. */
type OverrideExpiry =
  | {
      /** The override ends after this length of time, from 1 second to 365 days. @example "2h" */
      readonly expiresIn: DurationInput;
      readonly expiresAt?: undefined;
    }
  | {
      /**
       * The override ends at this time, at least 1 second and at most 365 days from now: a text with the
       * time zone, a `Date`, or milliseconds since the Unix epoch.
       */
      readonly expiresAt: string | number | Date;
      readonly expiresIn?: undefined;
    };

interface Reason {
  /** The reason, for the list of changes: 1 to 500 characters. */
  readonly reason: string;
}

/**
 * Options of the method `override` of `WeirService`. With `key` or `client`, the override is for one client;
 * otherwise for all clients of the rule.
 */
export type OverrideOptions = OverrideExpiry &
  Reason &
  (
    | (OverriddenClient & { readonly effect: ClientEffect })
    | (AllClients & { readonly effect: RuleEffect })
  );

/** Options of the method `removeOverride` of `WeirService`. */
export type RemoveOverrideOptions = Reason & (OverriddenClient | AllClients);

/** The author of the changes, in the list of changes. */
const ACTOR = "rpc";

const CLIENT_OPTIONS = { key: "any", client: "string", reason: "any" } as const;
const OVERRIDE_OPTIONS = {
  ...CLIENT_OPTIONS,
  effect: "any",
  expiresIn: "any",
  expiresAt: "any",
} as const;

/** Sets an override. Replaces an override of the same rule and client. */
export async function setOverride(
  config: Config,
  env: Env,
  rule: string,
  options: OverrideOptions,
): Promise<Override> {
  checkOptions(options, OVERRIDE_OPTIONS);
  findRule(config, rule);
  const control = requireControl(env);
  const { key, client: identity, ...input } = options;
  const check = checkOverride(
    { rule, ...input },
    {
      isForClient: key !== undefined || identity !== undefined,
      rules: config.rules,
      now: Date.now(),
    },
  );
  if (!check.ok) throw new TypeError(describeFaults(check.faults));
  const client = await clientIdentity(config, env, rule, options);
  const { isForClient: _, ...change } = check.override;
  const result = await control.setOverride({ ...change, client } as OverrideChange, ACTOR);
  if (!result.ok) {
    throw new Error(
      `There are ${MAX_OVERRIDES} overrides already, which is the maximum. Remove some of them first.`,
    );
  }
  await loadHere(config, env);
  return result.override;
}

/** Removes an override. @returns the removed override; undefined if there was none */
export async function removeOverride(
  config: Config,
  env: Env,
  rule: string,
  options: RemoveOverrideOptions,
): Promise<Override | undefined> {
  checkOptions(options, CLIENT_OPTIONS);
  const control = requireControl(env);
  const faults: Parameters<typeof readReason>[1] = [];
  const reason = readReason(options.reason, faults);
  if (reason === undefined) throw new TypeError(describeFaults(faults));
  const client = await clientIdentity(config, env, rule, options);
  const id = overrideId({ rule, client });
  const removed = await control.removeOverride(id, ACTOR, reason);
  // A rule that a deploy has removed may have an override. Without an override, its name is unknown.
  if (!removed) findRule(config, rule);
  await loadHere(config, env);
  return removed;
}

/** Returns all overrides that have not ended, the newest first. */
export async function listOverrides(env: Env): Promise<readonly Override[]> {
  return requireControl(env).overrides();
}

/**
 * Loads the overrides after a change, so that the next call in this isolate finds the change. The answer to the
 * change is not enough: it may be late, and another program may have changed the override since.
 */
async function loadHere(config: Config, env: Env): Promise<void> {
  await sharedLimiter(config, env).control?.loadNewest();
}

/** @throws {Error} if the Worker has no binding for the control object */
function requireControl(env: Env): ControlApi {
  const control = controlObject(env);
  if (control) return control;
  throw new Error(
    'There are no overrides without the control object. Add to wrangler.toml: [[durable_objects.bindings]] name = "WEIR_CONTROL", class_name = "ControlObject"; and to its table exports: ControlObject = { type = "durable-object", storage = "sqlite" }. Add to the Worker: export { ControlObject } from "edge-weir";',
  );
}

/** Returns the client's identity; undefined for an override of all clients. */
async function clientIdentity(
  config: Config,
  env: Env,
  name: string,
  { key, client }: { readonly key?: LimitKey | undefined; readonly client?: string | undefined },
): Promise<string | undefined> {
  if (key !== undefined && client !== undefined) {
    throw new TypeError("The options key and client both name a client. Leave one of them out.");
  }
  if (client !== undefined && !isIdentity(client)) {
    throw new TypeError(
      "The option client must be an identity of 22 characters of A-Z, a-z, 0-9, - and _. To name a client by its address or key, use the option key.",
    );
  }
  if (key === undefined) return client;
  const { keySecret } = sharedLimiter(config, env);
  return identityOfLimitKey(findRule(config, name), key, config, keySecret);
}
