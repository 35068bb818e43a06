import { KEY_SECRET, MODE_VAR, PREFIX_VAR, secretEffects } from "../../src/config/binding-names.ts";
import { type ResolvedBindings, resolveBindings } from "../../src/config/bindings.ts";
import type { KeyExpression } from "../../src/config/key-expression.ts";
import type { Config } from "../../src/config/schema.ts";
import { DescriptionError } from "../../src/explain/described-request.ts";
import { explain as explanationOf } from "../../src/explain/explain.ts";
import type { DescribedRequest, Explanation } from "../../src/explain/explanation.ts";
import { readClients } from "../../src/limiter/clients.ts";
import { createMemoryStore } from "../../src/stores/memory-store.ts";
import { AdminError, EXIT, wrongOptions } from "../admin/admin-error.ts";
import { printable } from "../doctor/finding.ts";
import { readSettings, type Settings, SettingsError } from "../doctor/settings.ts";
import { loadConfig } from "../load-config.ts";
import { explainLoadError } from "../load-error.ts";
import { jsonText } from "../print/json-text.ts";
import { textError } from "../report-error.ts";
import { runGuarded } from "../run-guarded.ts";
import type { DefaultHost } from "./request-url.ts";

/** The host of a path without a host, if no rule depends on the host. */
const ANY_HOST = "example.com";

/** The files with the configuration and the bindings. */
export interface LocalOptions {
  readonly config: string;
  readonly env?: string | undefined;
  readonly wrangler?: string | undefined;
  readonly json?: true;
}

/** An explanation without counters, and what was assumed. */
export interface LocalExplanation {
  readonly explanation: Explanation;
  readonly notes: readonly string[];
}

/** @throws {AdminError} if the file has no valid configuration */
export async function readConfig({ config: file, json }: LocalOptions): Promise<Config> {
  const loaded = await loadConfig(file, json ? "json" : "text", EXIT.unavailable);
  if (loaded.kind === "valid") return loaded.config;
  throw new AdminError(
    EXIT.unavailable,
    loaded.kind === "unreadable"
      ? textError(file, loaded.error)
      : `${file} could not be used. It has faults; weir check prints them.`,
  );
}

/** Returns the host for a path. @throws {AdminError} if a rule depends on the host */
export function hostFor({ rules }: Config): DefaultHost {
  const rule = rules.find(({ match, key, tiers }) => {
    const hasHosts = [match, match.except ?? {}].some(
      ({ hosts, headers = [] }) => hosts || headers.some(({ name }) => name === "host"),
    );
    return hasHosts || readsHost(key) || (tiers && readsHost(tiers.by));
  });
  if (rule) {
    throw wrongOptions(
      `The path needs a host, because the rule ${rule.name} depends on it. Write --host api.example.com, or the whole URL.`,
    );
  }
  return {
    host: ANY_HOST,
    note: `The path has no host, so ${ANY_HOST} was assumed. No rule names the host.`,
  };
}

function readsHost(key: KeyExpression): boolean {
  return key
    .flat()
    .some((part) => part.kind === "host" || (part.kind === "header" && part.name === "host"));
}

/**
 * Explains a request by a configuration, with empty counters.
 *
 * @param now the time, in milliseconds since the Unix epoch
 * @throws {AdminError} if the request or the bindings cannot be used
 */
export async function explainLocally(
  request: DescribedRequest,
  config: Config,
  options: LocalOptions,
  now: number,
): Promise<LocalExplanation> {
  const settings = await settingsOf(options);
  const { bindings, notes } = bindingsOf(config, settings);
  const store = createMemoryStore();
  try {
    const explain = () =>
      explanationOf(request, {
        config,
        bindings,
        read: (applied) => readClients(store, applied, bindings.prefix, now),
        custom: {
          env: environmentOf(settings),
          ctx: { waitUntil: (task) => void task.catch(() => {}) },
        },
        now: () => now,
      });
    const explanation = await withoutHarm(explain, options);
    const hasClients = explanation.rules.some(({ client }) => client !== undefined);
    const onlyLocal = bindings.keySecret === undefined ? [NO_COUNTERS, NO_SECRET] : [NO_COUNTERS];
    return { explanation, notes: [...(hasClients ? onlyLocal : []), ...notes] };
  } catch (error) {
    if (!(error instanceof DescriptionError)) throw error;
    throw wrongOptions(`The request cannot be explained: its ${error.field} ${error.message}`);
  }
}

/** The longest time that an explanation may take, in milliseconds. A function in `custom` has its own timeout. */
const TIMEOUT_MS = 10_000;

const BLOCKED = `A function of the configuration does not finish within ${TIMEOUT_MS / 1000} seconds. It may contain a loop without an end.`;

/**
 * Runs an explanation, whose functions in `custom` may do anything.
 *
 * @throws {AdminError} if a function ends or blocks the process, or throws an error that nothing catches
 */
async function withoutHarm<T>(run: () => Promise<T>, { json }: LocalOptions): Promise<T> {
  const text = json ? jsonText({ ok: false, error: BLOCKED }) : BLOCKED;
  try {
    return await runGuarded(run, {
      subject: "A function of the configuration",
      unsettled: "A function of the configuration awaits a promise that does not settle.",
      timeoutMs: TIMEOUT_MS,
      blocked: { text, descriptor: json ? 1 : 2, exitCode: EXIT.unavailable },
    });
  } catch (error) {
    if (error instanceof DescriptionError) throw error;
    throw new AdminError(
      EXIT.unavailable,
      `The request cannot be explained, because code of the configuration failed.\n${printableLines(explainLoadError(error))}`,
    );
  }
}

/** Returns the error, and the place where the configuration threw it. */
function printableLines(text: string): string {
  const [error = "", place] = text.split("\n");
  return [error, ...(place === undefined ? [] : [place])].map((line) => printable(line)).join("\n");
}

const NO_COUNTERS =
  "All counts are 0 here, because no store was read. --against https://… shows the live counters and overrides of a Worker.";
const NO_SECRET = `${KEY_SECRET} is not set here. If the Worker has it, its identities and stored keys differ from these.`;

async function settingsOf({ config, env, wrangler }: LocalOptions): Promise<Settings> {
  try {
    return await readSettings(config, env, wrangler);
  } catch (error) {
    if (error instanceof SettingsError) throw new AdminError(EXIT.unavailable, error.message);
    throw error;
  }
}

/** Reads the vars and secrets that change an explanation. */
function bindingsOf(
  config: Config,
  settings: Settings,
): { bindings: ResolvedBindings; notes: string[] } {
  const names = [PREFIX_VAR, MODE_VAR, KEY_SECRET, ...secretEffects(config).keys()];
  const env = Object.fromEntries(names.map((name) => [name, settings.raw(name)?.value]));
  const { nativeLimiter: _, ...others } = config;
  const bindings = resolveBindings({ ...others, store: "memory" }, env);
  if (bindings.store.kind === "misconfigured") {
    throw new AdminError(
      EXIT.unavailable,
      `A Worker with these bindings decides nothing: ${bindings.store.fault}`,
    );
  }
  const notes = [...bindings.limiterFaults, ...bindings.requestFaults].map(
    (fault) => `Here, ${fault}.`,
  );
  if (bindings.mode !== "enforce") {
    notes.push(`${MODE_VAR} is ${bindings.mode} (from ${settings(MODE_VAR)?.source}).`);
  }
  return { bindings, notes };
}

/** The bindings that functions in `custom` can read: vars and secrets, which are looked up when they are read. */
function environmentOf(settings: Settings): Record<string, unknown> {
  return new Proxy<Record<string, unknown>>(
    {},
    { get: (_, name) => (typeof name === "string" ? settings.raw(name)?.value : undefined) },
  );
}
