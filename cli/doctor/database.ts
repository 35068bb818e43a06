import { createHash } from "node:crypto";
import { formatCount } from "../../src/admin/format.ts";
import { parseOriginUrl } from "../../src/config/origin.ts";
import { quoted } from "../print/text.ts";
import { type Examination, newKey } from "./examination.ts";
import { type Finding, finding, isText, refusal } from "./findings.ts";
import { type Answer, AnswerTooLarge, type Command, type RestClient } from "./rest.ts";

/** Hosts that only this machine can reach, so http is safe. */
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

/** Checks the form of the database's URL without a call. */
export function checkUrl(text: string): Finding {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return finding("url-invalid", "UPSTASH_REDIS_REST_URL is not a URL");
  }
  // The URL itself is not printed, because users paste redis://default:PASSWORD@host here.
  if (!/^https?:$/.test(url.protocol)) {
    return finding("url-invalid", `the URL begins with ${url.protocol}`);
  }
  if (url.username || url.password || url.search || url.hash) {
    return finding("url-invalid", "the URL has a user, a password, a query or a fragment");
  }
  if (parseOriginUrl(text) === undefined) {
    return finding("url-invalid", "the URL has an empty query, an empty fragment, or a backslash");
  }
  if (isReadableOnTheWay(url)) {
    return finding("url-not-https", `http to ${url.host}`);
  }
  return finding("url-ok", `${url.protocol}//${url.host}`);
}

/** Whether a URL sends a token without encryption to another machine. */
export function isReadableOnTheWay({ protocol, hostname }: URL): boolean {
  return protocol === "http:" && !LOOPBACK.test(hostname);
}

/**
 * Checks the form of a token without a call.
 *
 * @param name the name of the setting
 */
export function checkTokenForm(name: string, token: string): Finding | undefined {
  if (/^[\x21-\x7e]+$/.test(token)) return undefined;
  return finding(
    "token-malformed",
    `${name} has white space or characters other than printable ASCII`,
  );
}

/** Checks that the token may write. It writes one key, which expires after a minute. */
export async function checkToken(examination: Examination): Promise<Finding> {
  const key = newKey(examination, "write");
  const answer = await examination.rest.run(["SET", key, "1", "PX", 60_000]);
  if ("reply" in answer) return finding("token-ok", "the token may read and write");
  // The key was never written, so it needs no removal. Such a token could not remove it anyway.
  examination.writtenKeys.delete(key);
  return refusal(answer.error) ?? finding("write-refused", answer.error);
}

/**
 * Reports the number of commands that the server has run. It is not the usage that the provider
 * bills, so it is only a hint.
 *
 * @param info the fields of INFO
 */
export function checkQuota(info: ReadonlyMap<string, string>): Finding {
  const commands = info.get("total_commands_processed");
  const hint =
    commands === undefined || !/^\d{1,20}$/.test(commands)
      ? "INFO has no number of commands"
      : `INFO counts ${commands} commands, which is not the usage that is billed`;
  return finding("quota-unknown", `not used up; ${hint}`);
}

/** Returns the fields of INFO; an empty map if the database does not answer this command. */
export async function readInfo({ rest, token }: Examination): Promise<Map<string, string>> {
  const answer: Answer = await rest.run(["INFO"]);
  const fields = new Map<string, string>();
  if ("error" in answer || typeof answer.reply !== "string") return fields;
  for (const line of answer.reply.replaceAll(token, "…").split(/\r?\n/)) {
    const at = line.indexOf(":");
    if (at > 0) fields.set(line.slice(0, at), line.slice(at + 1).trim());
  }
  return fields;
}

/**
 * Calls each command that Weir's scripts use. The reply is a list of texts: the name of a command,
 * followed by "ok" or by the error. The key expires after a minute.
 */
const SCRIPT = `local key, reply = KEYS[1], {}
local function try(name, isRight, ...)
  local result = redis.pcall(...)
  local state = 'ok'
  if type(result) == 'table' and result.err then
    state = result.err
  elseif not isRight(result) then
    state = 'the result is wrong'
  end
  reply[#reply + 1] = name
  reply[#reply + 1] = state
end
local function any()
  return true
end
local function overflows(result)
  return type(result) == 'table' and result[1] and not result[2]
end
local function saturates(result)
  return type(result) == 'table' and result[1] == 255
end
try('TIME', function(result)
  return type(result) == 'table' and tonumber(result[1])
end, 'TIME')
try('DEL', any, 'DEL', key)
try('BITFIELD OVERFLOW FAIL', overflows, 'BITFIELD', key, 'OVERFLOW', 'FAIL',
  'INCRBY', 'u63', 0, '9223372036854775807', 'INCRBY', 'u63', 0, 1)
try('PEXPIRE', any, 'PEXPIRE', key, 60000)
try('BITFIELD OVERFLOW SAT', saturates, 'BITFIELD', key, 'OVERFLOW', 'SAT',
  'INCRBY', 'u8', 64, 300)
try('BITFIELD_RO', any, 'BITFIELD_RO', key, 'GET', 'u63', 0)
try('PTTL', any, 'PTTL', key)
try('SET PX', any, 'SET', key, '1', 'PX', 60000)
try('GET', function(result)
  return result == '1'
end, 'GET', key)
try('MGET', function(result)
  return result[1] == '1'
end, 'MGET', key)
return reply
`;

const FLAG = "#!lua flags=allow-key-locking\n";

/** The result of the check, and whether the server accepts Upstash's flag for scripts. */
interface CommandResult {
  readonly findings: readonly Finding[];
  readonly acceptsFlag: boolean;
}

/** Checks that the database runs scripts with all commands that Weir uses. */
export async function checkCommands(examination: Examination): Promise<CommandResult> {
  const { rest, config } = examination;
  const key = newKey(examination, "commands");
  const answer = await rest.run(["EVAL", SCRIPT, 1, key]);
  if ("error" in answer) {
    return { findings: [finding("scripts-refused", answer.error)], acceptsFlag: false };
  }
  const findings = [commandFinding(answer.reply)];
  const cached = await rest.run(["EVALSHA", sha1(SCRIPT), 1, key]);
  if ("error" in cached) {
    const code = cached.error.startsWith("NOSCRIPT") ? "script-cache-off" : "scripts-refused";
    findings.push(finding(code, cached.error));
  }
  const flagged = await rest.run(["EVAL", `${FLAG}return 1`, 1, key]);
  const acceptsFlag = "reply" in flagged;
  if ("error" in flagged && config.clock === "edge") {
    findings.push(finding("script-flag-refused", flagged.error));
  }
  return { findings, acceptsFlag };
}

function commandFinding(reply: unknown): Finding {
  const texts = Array.isArray(reply) && reply.every(isText) ? reply.map(String) : [];
  const states = texts.flatMap((name, index) =>
    index % 2 === 0 ? [{ name, state: texts[index + 1] ?? "" }] : [],
  );
  if (states.length === 0)
    return finding("scripts-refused", "the script returned no list of texts");
  const missing = states.filter(({ state }) => state !== "ok");
  if (missing.length === 0) {
    return finding("commands-ok", states.map(({ name }) => name).join(", "));
  }
  const list = missing.map(({ name, state }) => `${quoted(name)}: ${quoted(state)}`).join("; ");
  return finding("command-missing", `${formatCount(missing.length, "command")}: ${list}`);
}

function sha1(text: string): string {
  return createHash("sha1").update(text).digest("hex");
}

/** Above this share of the maximum, the memory counts as low. */
const LOW_SHARE = 0.8;

/** Fields of INFO: the used size and its maximum. Upstash has the first pair, Redis the second. */
const SIZES = [
  ["total_data_size", "max_data_size"],
  ["used_memory", "maxmemory"],
] as const;

/**
 * Checks the eviction policy and the memory left. Both come from INFO, because CONFIG GET returns
 * neither of them on Upstash.
 *
 * @param info the fields of INFO; empty if the database does not answer this command
 */
export function checkMemory(info: ReadonlyMap<string, string>): Finding[] {
  return [evictionFinding(info), memoryFinding(info)];
}

function evictionFinding(info: ReadonlyMap<string, string>): Finding {
  const policy = info.get("maxmemory_policy");
  if (!policy) return finding("eviction-unknown", "INFO has no maxmemory_policy");
  const evicted = numberIn(info, "evicted_keys");
  const count = evicted ? `; ${evicted} keys were evicted since the server started` : "";
  const value = `maxmemory_policy is ${quoted(policy)}${count}`;
  return finding(policy === "noeviction" ? "eviction-off" : "eviction-on", value, {
    policy: quoted(policy),
  });
}

function memoryFinding(info: ReadonlyMap<string, string>): Finding {
  for (const [usedField, maxField] of SIZES) {
    const [usedBytes, maxBytes] = [numberIn(info, usedField), numberIn(info, maxField)];
    if (usedBytes === undefined || maxBytes === undefined) continue;
    if (maxBytes === 0) {
      return finding("memory-ok", `${megabytes(usedBytes)} used; ${maxField} sets no maximum`, {
        usedBytes,
      });
    }
    const share = usedBytes / maxBytes;
    const percent = Math.floor(share * 100);
    const value = `${megabytes(usedBytes)} of ${megabytes(maxBytes)} used (${percent}%)`;
    const code = share > LOW_SHARE ? "memory-low" : "memory-ok";
    return finding(code, value, { usedBytes, maxBytes });
  }
  return finding("memory-unknown", "INFO has no size and maximum");
}

function numberIn(info: ReadonlyMap<string, string>, field: string): number | undefined {
  const text = info.get(field);
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

function megabytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

/** Bounds of the scan. SCAN reads the whole database, also the keys of other programs. */
const MAX_SCANS = 50;
const KEYS_PER_SCAN = 1000;
/** If an answer is too large because of long names, the next page is smaller by this factor. */
const SMALLER_PAGE = 10;
/** The number of keys whose type and expiry are read. Each takes two commands. */
const MAX_EXAMINED = 500;
const KEYS_PER_CALL = 100;
const MAX_NAMED = 3;

/**
 * The part of a stored key after the prefix: rule, window, identity, and the number of the window or
 * the name of a ban. docs/storage.md describes it.
 */
const WEIR_KEY =
  /^:[a-z0-9][a-z0-9_-]{0,63}:(?:\d{1,8}[smhdw]|day|week|month|year):[A-Za-z0-9_-]{22}(?:#\d{1,6})?(?::-?\d{1,16}|:(?:shadow-)?(?:ban|strikes))?$/;

/** Matches the keys of this run and of other runs of the doctor. These keys expire. */
const DOCTOR_KEY = /^:doctor-[0-9a-f]{8}:/;

interface ExaminedKey {
  readonly name: string;
  readonly type: string;
  /** -1 if the key never expires. */
  readonly ttlMs: number;
}

/** Looks for keys under Weir's prefix that Weir has not written. It only reads. */
export async function checkKeys(examination: Examination): Promise<Finding[]> {
  const { prefix } = examination.config;
  const scan = await scanKeys(examination, `${escapeGlob(prefix)}:*`);
  if ("error" in scan) return [finding("keys-unknown", `SCAN: ${scan.error}`)];
  const { isComplete } = scan;
  const names = scan.names.filter((name) => !DOCTOR_KEY.test(name.slice(prefix.length)));
  const [own, foreign] = partition(names, (name) => WEIR_KEY.test(name.slice(prefix.length)));
  const examined = await examine(examination, own.slice(0, MAX_EXAMINED));
  if ("error" in examined) return [finding("keys-unknown", `TYPE and PTTL: ${examined.error}`)];
  const wrong = examined.filter(({ type }) => type !== "string" && type !== "none");
  const immortal = examined.filter(({ type, ttlMs }) => type === "string" && ttlMs === -1);
  const findings: Finding[] = [];
  if (foreign.length > 0) findings.push(finding("key-foreign", list(foreign)));
  if (wrong.length > 0) {
    const types = wrong.map(({ name, type }) => `${name} (${type})`);
    findings.push(finding("key-wrong-type", list(types)));
  }
  if (immortal.length > 0) {
    findings.push(finding("key-without-expiry", list(immortal.map(({ name }) => name))));
  }
  if (findings.length > 0) return findings;
  const count = `${formatCount(names.length, "key")} under ${prefix}:`;
  const unread =
    own.length > MAX_EXAMINED ? `, of which the types of ${MAX_EXAMINED} were read` : "";
  return isComplete
    ? [finding("keys-ok", `${count}${unread}`, { keys: names.length })]
    : [finding("keys-partial", `${count} in the part of the database that was scanned${unread}`)];
}

interface ScannedKeys {
  readonly names: readonly string[];
  readonly isComplete: boolean;
}

async function scanKeys(
  { rest }: Examination,
  pattern: string,
): Promise<ScannedKeys | { readonly error: string }> {
  const names = new Set<string>();
  let [cursor, count] = ["0", KEYS_PER_SCAN];
  for (let scans = 0; scans < MAX_SCANS; scans++) {
    const answer = await scanPage(rest, ["SCAN", cursor, "MATCH", pattern, "COUNT", count]);
    if (answer === "too large") {
      if (count < SMALLER_PAGE) break;
      count /= SMALLER_PAGE;
      continue;
    }
    if ("error" in answer) return answer;
    const [next, page] = Array.isArray(answer.reply) ? answer.reply : [];
    const isPage = isText(next) && /^\d+$/.test(`${next}`) && Array.isArray(page);
    if (!isPage || !page.every(isText)) return { error: "the reply is not a cursor and a list" };
    for (const name of page) names.add(`${name}`);
    cursor = `${next}`;
    if (cursor === "0") return { names: [...names], isComplete: true };
  }
  return { names: [...names], isComplete: false };
}

async function scanPage(rest: RestClient, command: Command): Promise<Answer | "too large"> {
  try {
    return await rest.run(command);
  } catch (error) {
    if (error instanceof AnswerTooLarge) return "too large";
    throw error;
  }
}

async function examine(
  { rest }: Examination,
  names: readonly string[],
): Promise<ExaminedKey[] | { readonly error: string }> {
  const keys: ExaminedKey[] = [];
  for (let at = 0; at < names.length; at += KEYS_PER_CALL) {
    const page = names.slice(at, at + KEYS_PER_CALL);
    const commands = page.flatMap((name): Command[] => [
      ["TYPE", name],
      ["PTTL", name],
    ]);
    const answers = await rest.runAll(commands);
    const failed = answers.find((answer) => "error" in answer);
    if (failed && "error" in failed) return failed;
    const replies = answers.map((answer: Answer) => ("reply" in answer ? answer.reply : undefined));
    for (const [index, name] of page.entries()) {
      const [type, ttlMs] = [replies[2 * index], replies[2 * index + 1]];
      if (!isText(type) || !isText(ttlMs)) return { error: "the reply is not a type and a time" };
      keys.push({ name, type: quoted(`${type}`), ttlMs: Number(ttlMs) });
    }
  }
  return keys;
}

/**
 * Returns a list of keys. Other programs chose these names. So the list shows only a few, shortened,
 * and without control characters.
 */
function list(names: readonly string[]): string {
  const shown = names.slice(0, MAX_NAMED).map((name) => quoted(name));
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : "";
  return `${formatCount(names.length, "key")}: ${shown.join(", ")}${more}`;
}

/** Escapes the characters that have a meaning in the pattern of SCAN. */
function escapeGlob(text: string): string {
  return text.replace(/[\\*?[\]^-]/g, "\\$&");
}

function partition<T>(items: readonly T[], test: (item: T) => boolean): [T[], T[]] {
  return [items.filter(test), items.filter((item) => !test(item))];
}

/** One call that returned the time of the store. All values are in milliseconds. */
interface ClockSample {
  /** The duration of the call. */
  readonly tookMs: number;
  /**
   * The clock of the store minus the clock of the caller, assuming that both ways of the call took
   * equally long.
   */
  readonly skewMs: number;
}

const SAMPLES = 7;

/** A skew up to this value is normal, because one second is the grace time of a key. */
const MAX_SKEW_MS = 1000;
/** Above this skew, the store and the caller are in different windows of one minute. */
const WRONG_CLOCK_MS = 60_000;

/** Measures the round trip and the clock with several calls. */
export async function checkTiming(examination: Examination): Promise<Finding[]> {
  const tookMs: number[] = [];
  const samples: ClockSample[] = [];
  for (let call = 0; call < SAMPLES; call++) {
    const startedAt = Date.now();
    const started = performance.now();
    const answer = await examination.rest.run(["TIME"]);
    const took = performance.now() - started;
    tookMs.push(took);
    const time = "reply" in answer ? timeIn(answer.reply) : undefined;
    if (time !== undefined) samples.push({ tookMs: took, skewMs: time - (startedAt + took / 2) });
  }
  return [roundTripFinding(tookMs, examination.config.timeoutMs), clockFinding(samples)];
}

/**
 * Reads the reply of TIME, a list of seconds and microseconds.
 *
 * @returns milliseconds; undefined if the reply has another form
 */
export function timeIn(reply: unknown): number | undefined {
  if (!Array.isArray(reply) || reply.length !== 2) return undefined;
  if (!reply.every((part) => /^\d{1,15}$/.test(isText(part) ? `${part}` : ""))) return undefined;
  return Number(reply[0]) * 1000 + Number(reply[1]) / 1000;
}

/** @param tookMs the durations of calls; at least one */
export function roundTripFinding(tookMs: readonly number[], timeoutMs: number): Finding {
  const sorted = [...tookMs].sort((a, b) => a - b);
  const medianMs = round(sorted[Math.floor(sorted.length / 2)] as number);
  const worstMs = round(sorted.at(-1) as number);
  const value = `median ${medianMs} ms, worst ${worstMs} ms of ${sorted.length} calls; timeoutMs is ${timeoutMs}`;
  const measured = { medianMs, worstMs, timeoutMs, allMs: tookMs.map(round) };
  if (medianMs >= timeoutMs) return finding("round-trip-too-slow", value, measured);
  if (worstMs > timeoutMs / 2) return finding("round-trip-slow", value, measured);
  return finding("round-trip-ok", value, measured);
}

/**
 * Reports the skew of the fastest call, because its uncertainty is the smallest: half of its round
 * trip.
 */
export function clockFinding(samples: readonly ClockSample[]): Finding {
  if (samples.length === 0) return finding("clock-unknown", "the store returned no time");
  const best = samples.reduce((one, other) => (other.tookMs < one.tookMs ? other : one));
  const [skewMs, uncertaintyMs] = [round(best.skewMs), Math.ceil(best.tookMs / 2)];
  const direction = skewMs < 0 ? "behind" : "ahead of";
  const value = `the store is ${Math.abs(skewMs)} ms ${direction} this clock (± ${uncertaintyMs} ms)`;
  const measured = { skewMs, uncertaintyMs };
  const leastMs = Math.abs(skewMs) - uncertaintyMs;
  if (leastMs > WRONG_CLOCK_MS) return finding("clock-wrong", value, measured);
  if (leastMs > MAX_SKEW_MS) return finding("clock-skewed", value, measured);
  if (uncertaintyMs > MAX_SKEW_MS) return finding("clock-unknown", value, measured);
  return finding("clock-ok", value, measured);
}

function round(ms: number): number {
  return Math.round(ms);
}
