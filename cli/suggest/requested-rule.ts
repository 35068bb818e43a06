import { type ConfigError, defineConfig } from "../../src/config/define.ts";
import { parseAlternatives } from "../../src/config/key.ts";
import type { MatchInput } from "../../src/config/match.ts";
import type { Rule, RuleInput, Window } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import { MAX_WINDOWS } from "../../src/config/window.ts";
import { METHODS } from "../../src/explain/explanation.ts";
import { CommandFailure } from "../command-failure.ts";
import type { MatchConfig } from "../replay/log-rules.ts";
import { formatKey, formatMatch } from "../rule-table.ts";

const MAX_LENGTH = 64;

/** Returns a name for a rule: the words of its first path, such as `api-login`, or `all-requests`. */
function defaultName(match: MatchInput | undefined): string {
  // JSON may have any value here. `defineConfig` reports a wrong one.
  const [path] = [match?.paths as unknown].flat();
  const name = (typeof path === "string" ? path : "")
    .slice(0, 500)
    .toLowerCase()
    .split("/")
    .filter((segment) => /^[a-z0-9._-]+$/.test(segment))
    .join("-")
    .replace(/[^a-z0-9_-]/g, "-")
    .replace(/^[-_]+/, "")
    .slice(0, MAX_LENGTH);
  if (name !== "") return name;
  return match ? "suggested" : "all-requests";
}

const NOTATION = `Allowed: methods, hosts and paths, such as 'POST /login', 'GET,HEAD api.example.com /search/*' or '/a, /b'; or the JSON of a rule's match.`;

/**
 * Reads the value of `--match`: methods, hosts and paths, separated by spaces or commas, or the JSON of a rule's
 * `match`. Only tells methods, hosts and paths apart; `defineConfig` checks them.
 *
 * @throws {CommandFailure}
 */
export function parseMatch(text: string): MatchInput {
  if (text.trimStart().startsWith("{")) return parseJsonMatch(text);
  const [methods, hosts, paths]: string[][] = [[], [], []];
  for (const word of wordsOf(text)) {
    if (word.startsWith("/")) paths?.push(word);
    else if (METHODS.includes(word.toUpperCase())) methods?.push(word);
    else if (/^[A-Za-z]+$/.test(word) && word !== "localhost")
      throw new CommandFailure(1, wordFault(word));
    else if (word.includes("/")) throw new CommandFailure(1, urlFault(word));
    else hosts?.push(word);
  }
  const lists = Object.entries({ methods, hosts, paths }).filter(([, list]) => list?.length);
  if (lists.length === 0) throw new CommandFailure(1, `--match is empty. ${NOTATION}`);
  return Object.fromEntries(lists);
}

function parseJsonMatch(text: string): MatchInput {
  try {
    // `defineConfig` checks the form.
    return JSON.parse(text);
  } catch {
    throw new CommandFailure(1, `--match begins with { but is not valid JSON. ${NOTATION}`);
  }
}

function wordFault(word: string): string {
  return `--match has ${JSON.stringify(word)}, which is not a method. For a path, write '/${word}'. ${NOTATION}`;
}

function urlFault(word: string): string {
  const [, host = "", path = ""] = /^(?:https?:\/\/)?([^/]*)(\/.*)?$/.exec(word) ?? [];
  const cure = host === "" ? "" : ` Write the host and the path apart: '${host} ${path || "/*"}'.`;
  return `--match has ${JSON.stringify(word)}, which is neither a path nor a host.${cure} ${NOTATION}`;
}

/** Splits at spaces and commas, but not within braces: a path may have a pattern, such as `/:id{[0-9]{1,5}}`. */
function wordsOf(text: string): string[] {
  const words: string[] = [];
  let depth = 0;
  let start = 0;
  for (let index = 0; index <= text.length; index++) {
    const character = text[index];
    if (character === "{") depth++;
    if (character === "}") depth--;
    const isEnd = character === undefined || (depth <= 0 && /[\s,]/.test(character));
    if (!isEnd) continue;
    if (index > start) words.push(text.slice(start, index));
    start = index + 1;
  }
  return words;
}

/** The options that describe a rule. */
export interface RuleOptions {
  readonly match?: string;
  readonly key?: readonly string[];
  readonly window?: readonly string[];
  readonly name?: string;
}

/** The rule for which limits are wanted. */
export interface RequestedRule {
  readonly name: string;
  /** The match as a text, for reports. */
  readonly match: string;
  readonly key: string;
  /** The rule with its windows. Its limits mean nothing. */
  readonly rule: Rule;
  /** The shortest window first. */
  readonly windows: readonly [Window, ...Window[]];
  readonly config: MatchConfig;
  /** The fields of the rule, as a configuration has them. */
  readonly input: Pick<RuleInput, "name" | "match" | "key">;
}

const DEFAULT_WINDOWS = ["1m", "1h"];

/**
 * Returns the rule that the options describe. `defineConfig` checks this rule, so each value of a configuration is
 * allowed here.
 *
 * @throws {CommandFailure}
 */
export function requestedRule({ match, key = ["ip"], window, name }: RuleOptions): RequestedRule {
  for (const element of key) checkKey(element);
  const matchInput = match === undefined ? undefined : parseMatch(match);
  const input = {
    name: name ?? defaultName(matchInput),
    ...(matchInput && { match: matchInput }),
    key: key.length === 1 ? (key[0] as string) : key,
  };
  const config = checkedConfig({ ...input, limits: limitsOf(window ?? DEFAULT_WINDOWS) });
  const rule = config.rules[0] as Rule;
  const windows = rule.windows.toSorted((one, other) => one.windowMs - other.windowMs);
  return {
    name: rule.name,
    match: formatMatch(rule.match),
    key: formatKey(rule.key),
    rule,
    windows: windows as [Window, ...Window[]],
    config,
    input,
  };
}

/** Returns `limits` with the given windows. A limit of 1 is allowed for every rule. */
function limitsOf(windows: readonly string[]): RuleInput["limits"] {
  if (windows.length > MAX_WINDOWS) {
    throw new CommandFailure(
      1,
      `--window has ${windows.length} windows. Allowed: at most ${MAX_WINDOWS}.`,
    );
  }
  return windows.map((window) => ({
    limit: 1,
    window: /^\d{1,15}$/.test(window) ? Number(window) : window,
  }));
}

/** A log has no tokens to verify, and no function can run on its requests. */
function checkKey(element: string): void {
  const part = parseAlternatives(element)?.find(({ kind }) => kind === "jwt" || kind === "custom");
  if (!part || !("name" in part)) return;
  throw new CommandFailure(
    1,
    `--key: a log does not state ${part.kind}:${part.name}. Name something that it states, such as ip or header:x-api-key.`,
  );
}

/** @throws {CommandFailure} with the faults of the options */
function checkedConfig(rule: RuleInput): Config {
  try {
    return defineConfig({ rules: [rule] });
  } catch (error) {
    if (!(error instanceof Error) || error.name !== "ConfigError") throw error;
    throw new CommandFailure(1, (error as ConfigError).faults.map(optionFault).join("\n"));
  }
}

/** The options for the fields of a rule. */
const OPTIONS: Readonly<Record<string, string>> = {
  match: "--match",
  key: "--key",
  limits: "--window",
  name: "--name",
};

function optionFault({
  path,
  message,
}: {
  readonly path: string;
  readonly message: string;
}): string {
  const [, field = "", rest = ""] = /^rules\[0\]\.(\w+)(.*)$/s.exec(path) ?? [];
  const option = OPTIONS[field];
  if (!option) return `${path}: ${message}`;
  if (message.includes("has the same window")) return "--window: two windows have the same length";
  const place = field === "match" ? rest.replace(/^\./, "") : "";
  return `${option}${place && ` (${place})`}: ${message}`;
}
