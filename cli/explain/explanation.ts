import {
  KEY_SECRET,
  MODE_VAR,
  PREFIX_VAR,
  type ResolvedBindings,
  resolveBindings,
  secretEffects,
} from "../../src/config/bindings.ts";
import { parseIsoTime } from "../../src/config/calendar.ts";
import type { KeyExpression } from "../../src/config/key.ts";
import type { Config } from "../../src/config/schema.ts";
import { DescriptionError } from "../../src/explain/described-request.ts";
import { explain as explanationOf } from "../../src/explain/explain.ts";
import type { DescribedRequest, Explanation } from "../../src/explain/explanation.ts";
import { readClients } from "../../src/limiter/clients.ts";
import { createMemoryStore } from "../../src/stores/memory-store.ts";
import { connect, EXIT, otherForm, wrongOptions } from "../admin/connection.ts";
import { CommandFailure } from "../command-failure.ts";
import { readSettings, type Settings } from "../doctor/settings.ts";
import { requireConfig } from "../load-config.ts";
import { explainLoadError } from "../load-error.ts";
import { jsonText } from "../print/text.ts";
import { runGuarded } from "../process.ts";
import { explanationText } from "./explanation-text.ts";
import { type DefaultHost, describeRequest, type RequestOptions } from "./request.ts";

/** The host for a request without one, if no rule depends on the host. */
const ANY_HOST = "example.com";

/** The files with the configuration and the bindings. */
interface LocalOptions {
  readonly config: string;
  readonly env?: string | undefined;
  readonly wrangler?: string | undefined;
  readonly json?: true;
}

/** Returns the host for a path. @throws {CommandFailure} if a rule depends on the host */
function hostFor({ rules }: Config): DefaultHost {
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
 * @throws {CommandFailure} if the request or the bindings cannot be used
 */
async function explainLocally(
  request: DescribedRequest,
  config: Config,
  options: LocalOptions,
  now: number,
): Promise<Explained> {
  const settings = await readSettings(options.config, options.env, options.wrangler);
  const { bindings, notes } = bindingsOf(config, settings);
  const store = createMemoryStore();
  const missing = new Set<string>();
  try {
    const explain = () =>
      explanationOf(request, {
        config,
        bindings,
        read: (applied) => readClients(store, applied, bindings.prefix, now),
        custom: {
          env: environmentOf(settings, missing),
          ctx: { waitUntil: (task) => void task.catch(() => {}) },
        },
        now: () => now,
      });
    const explanation = await withoutHarm(explain);
    const hasClients = explanation.rules.some(({ client }) => client !== undefined);
    const onlyLocal = bindings.keySecret === undefined ? [NO_COUNTERS, NO_SECRET] : [NO_COUNTERS];
    if (missing.size > 0) notes.push(noBindings([...missing]));
    return { explanation, notes: [...(hasClients ? onlyLocal : []), ...notes] };
  } catch (error) {
    if (!(error instanceof DescriptionError)) throw error;
    throw wrongOptions(`The request cannot be explained: its ${error.field} ${error.message}`);
  }
}

/** The longest time that an explanation may take, in milliseconds. A function in `custom` has its own timeout. */
const TIMEOUT_MS = 10_000;

/**
 * Runs an explanation, and guards against the functions in `custom`.
 *
 * @throws {CommandFailure} if a function ends the process, or throws an error that nothing catches
 */
async function withoutHarm<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await runGuarded(run, {
      subject: "A function of the configuration",
      unsettled: "A function of the configuration awaits a promise that does not settle.",
      timeoutMs: TIMEOUT_MS,
    });
  } catch (error) {
    if (error instanceof DescriptionError) throw error;
    throw new CommandFailure(
      EXIT.unavailable,
      `The request cannot be explained, because code of the configuration failed.\n${explainLoadError(error).split("\n", 2).join("\n")}`,
    );
  }
}

const NO_COUNTERS =
  "All counts are 0 here, because no store was read. --against https://… shows the live counters and overrides of a Worker.";
const NO_SECRET = `${KEY_SECRET} is not set here. If the Worker has it, its identities and stored keys differ from these.`;

/** Reads the vars and secrets that change an explanation. */
function bindingsOf(
  config: Config,
  settings: Settings,
): { bindings: ResolvedBindings; notes: string[] } {
  const names = [PREFIX_VAR, MODE_VAR, KEY_SECRET, ...secretEffects(config).keys()];
  const env = Object.fromEntries(names.map((name) => [name, settings.raw(name)?.value]));
  const { nativeLimiter: _, usage: _usage, ...others } = config;
  const bindings = resolveBindings({ ...others, store: "memory" }, env);
  if (bindings.store.kind === "misconfigured") {
    throw new CommandFailure(
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

/**
 * The bindings that functions in `custom` can read: vars and secrets, which are looked up when they are read.
 *
 * @param missing receives the names that a function has read and that are not there
 */
function environmentOf(settings: Settings, missing: Set<string>): Record<string, unknown> {
  const get = (_: object, name: string | symbol) => {
    if (typeof name !== "string") return undefined;
    const found = settings.raw(name);
    if (!found) missing.add(name);
    return found?.value;
  };
  return new Proxy<Record<string, unknown>>({}, { get });
}

function noBindings(names: readonly string[]): string {
  const read = names.map((name) => `env.${name}`).join(", ");
  return `A function of the configuration has read ${read}, without a value here: only vars and secrets have one. With --against https://…, the Worker calls the function with its bindings.`;
}

/**
 * Lets a Worker explain a request by its own counters and overrides. Takes no quota.
 *
 * @throws {CommandFailure} if the Worker cannot be called, or refuses the request
 */
async function explainLive(
  request: DescribedRequest,
  { against = "", env, wrangler }: ExplainOptions,
): Promise<Explanation> {
  const api = await connect({
    at: against,
    atOption: "--against",
    ...(env !== undefined && { env }),
    ...(wrangler !== undefined && { wrangler }),
  });
  return await api.call<Explanation>("POST", "explain", "outcome", request);
}

/** The options of the command `explain`. */
export interface ExplainOptions extends RequestOptions, LocalOptions {
  readonly atTime?: string;
  readonly against?: string;
  readonly verbose?: true;
}

/** An explanation, with sentences about assumptions and omissions. */
interface Explained {
  readonly explanation: Explanation;
  readonly notes: readonly string[];
}

/**
 * Explains a request, and prints the explanation.
 *
 * @throws {CommandFailure} with the exit code 1 for wrong input, and 2 if there is no explanation
 */
export async function runExplain(options: ExplainOptions): Promise<void> {
  const now = timeOf(options);
  const explained = await (options.against === undefined ? byConfig : byWorker)(options, now);
  console.log(printed(explained, options, now));
}

async function byConfig(options: ExplainOptions, now: number): Promise<Explained> {
  // The request is read first, so that its faults are found sooner. Only a path without a host needs the configuration.
  let config: Promise<Config> | undefined;
  const load = () => {
    config ??= requireConfig(options.config);
    return config;
  };
  const { request, notes } = await describeRequest(options, async () => hostFor(await load()));
  const local = await explainLocally(request, await load(), options, now);
  return { ...local, notes: [...notes, ...local.notes] };
}

async function byWorker(options: ExplainOptions): Promise<Explained> {
  const { request, notes } = await describeRequest(options, async () => hostOf(options.against));
  return { explanation: await explainLive(request, options), notes };
}

function timeOf({ atTime, against }: ExplainOptions): number {
  if (atTime === undefined) return Date.now();
  if (against !== undefined) {
    throw wrongOptions("--at-time works only without --against: a Worker uses its own clock.");
  }
  const form = /^\d{4}-\d\d-\d\dT[\d:.]{5,12}(?:Z|[+-]\d\d:\d\d)$/i;
  const time = form.test(atTime) ? parseIsoTime(atTime) : Number.NaN;
  if (!Number.isNaN(time)) return time;
  throw wrongOptions("--at-time must be a time with its zone, such as 2026-12-01T08:00:00Z.");
}

/** A path without a host gets the host of the Worker that explains it. */
function hostOf(against = ""): DefaultHost {
  const url = URL.parse(against);
  if (!url?.hostname) {
    throw wrongOptions("--against must be the URL of a Worker, such as https://api.example.com.");
  }
  const { hostname: host } = url;
  return { host, note: `The path has no host, so that of --against was taken: ${host}.` };
}

function printed(explained: Explained, options: ExplainOptions, now: number): string {
  const { json, verbose, against } = options;
  const { explanation } = explained;
  try {
    const notes = [...explained.notes, ...hintsFor(explanation)];
    if (json) return jsonText({ ...explanation, notes });
    return explanationText(explanation, { isVerbose: verbose === true, now, notes });
  } catch (error) {
    // If an answer lacks a field, formatting the answer throws one of these errors.
    const isMissing = error instanceof TypeError || error instanceof RangeError;
    throw isMissing && against !== undefined ? otherForm() : error;
  }
}

/** Returns sentences with the options that supply missing facts about the client. */
function hintsFor({ request, rules }: Explanation): string[] {
  const hints: string[] = [];
  if (request.client === "unknown") {
    hints.push(
      "The client's address is unknown: add --ip 203.0.113.7. Weir reads it only from CF-Connecting-IP, never from X-Forwarded-For.",
    );
  }
  const isUnknown = (name: RegExp) =>
    rules.some(({ conditions }) =>
      conditions.some(({ field, result }) => result === "unknown" && name.test(field)),
    );
  const facts = [
    isUnknown(/countries$/) && "--cf country=DE",
    isUnknown(/asns$/) && "--cf asn=64496",
    isUnknown(/bots$/) && '--cf verifiedBotCategory="Search Engine Crawler" (or empty)',
  ].filter(Boolean);
  if (facts.length > 0) {
    hints.push(`Cloudflare's data about the client is unknown: add ${facts.join(", ")}.`);
  }
  return hints;
}
