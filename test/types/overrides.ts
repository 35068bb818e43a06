// `npm run types` compiles this file; nothing runs it. Each @ts-expect-error line is an assertion: without an error in
// the next line, the compiler reports the comment.
import {
  type ClientEffect,
  type Override,
  type OverrideOptions,
  type RemoveOverrideOptions,
  type RuleEffect,
  WeirService,
} from "edge-weir";
import { defineConfig } from "edge-weir/config";

const config = defineConfig({
  rules: [
    { name: "login", key: "ip", limit: 5, window: "1m" },
    { name: "api", key: "header:x-api-key | ip", limit: 100, window: "1m" },
  ],
});

class Limits extends WeirService<typeof config> {
  readonly config = config;
}

/** The bindings of another Worker. */
interface CallerEnv {
  readonly LIMITS: Service<Limits>;
}

const ABOUT = { expiresIn: "2h", reason: "A sale" } as const;
const FACTOR: ClientEffect = { kind: "factor", factor: 5 };
const OFF: RuleEffect = { mode: "off" };

/** An override for a client has a key or an identity; an override for a rule has neither. */
export async function acceptsOverridesOfClientsAndRules({ LIMITS }: CallerEnv) {
  const override: Override = await LIMITS.override("login", {
    key: "203.0.113.7",
    effect: FACTOR,
    ...ABOUT,
  });
  LIMITS.override("login", { client: override.client ?? "", effect: FACTOR, ...ABOUT });
  LIMITS.override("login", { effect: OFF, expiresAt: new Date(), reason: "An incident" });
  LIMITS.override("login", { effect: { mode: "shadow", factor: 2 }, ...ABOUT });
  // @ts-expect-error there is no such rule
  LIMITS.override("typo", { effect: OFF, ...ABOUT });
  // @ts-expect-error a rule has other effects than a client
  LIMITS.override("login", { effect: FACTOR, ...ABOUT });
  // @ts-expect-error a client has other effects than a rule
  LIMITS.override("login", { key: "203.0.113.7", effect: OFF, ...ABOUT });
  // @ts-expect-error the key and the identity both name a client
  LIMITS.override("login", { key: "203.0.113.7", client: "x", effect: FACTOR, ...ABOUT });
  // @ts-expect-error an override has an end
  LIMITS.override("login", { effect: OFF, reason: "An incident" });
  // @ts-expect-error an override has only one end
  LIMITS.override("login", { effect: OFF, ...ABOUT, expiresAt: 1 });
  // @ts-expect-error an override has a reason
  LIMITS.override("login", { effect: OFF, expiresIn: "2h" });
}

/** The snippets of docs/programs.md. */
export async function acceptsTheSnippetsOfTheDocumentation(env: CallerEnv, apiKey: string) {
  await env.LIMITS.override("api", {
    key: { "header:x-api-key": apiKey },
    effect: { kind: "factor", factor: 5 },
    expiresIn: "2h",
    reason: "A customer imports data",
  });
  const effect = { mode: "shadow" } as const;
  await env.LIMITS.override("api", { effect, expiresIn: "1h", reason: "Too strict" });
  await env.LIMITS.override("api", {
    key: { ip: "203.0.113.7" },
    effect: { kind: "blocked" },
    expiresAt: "2026-12-01T08:00:00Z",
    reason: "Scraping",
  });
}

export async function acceptsRemovals({ LIMITS }: CallerEnv) {
  const removed: Override | undefined = await LIMITS.removeOverride("login", { reason: "Over" });
  LIMITS.removeOverride("login", { key: { ip: "203.0.113.7" }, reason: "Over" });
  // @ts-expect-error there is no such rule
  LIMITS.removeOverride("typo", { reason: "Over" });
  // @ts-expect-error a removal has a reason
  LIMITS.removeOverride("login", {});
  const all: readonly Override[] = await LIMITS.overrides();
  return [...all, removed];
}

/** Programs can name the types of the options. */
export const OPTIONS: readonly (OverrideOptions | RemoveOverrideOptions)[] = [
  { key: "203.0.113.7", effect: { kind: "limits", limits: { login: 9 } }, ...ABOUT },
  { reason: "Over" },
];
