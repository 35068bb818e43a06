import { formatCount } from "../../src/admin/format.ts";
import { quoted } from "../print/text.ts";
import type { Examination } from "./database.ts";
import { type Finding, finding } from "./findings.ts";
import { AnswerTooLarge, type Command, isText } from "./rest.ts";

/** Bounds of the scan. SCAN reads the whole database, also the keys of other programs. */
const MAX_SCANS = 50;
const KEYS_PER_SCAN = 1000;
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
  const isOwn = (name: string) => WEIR_KEY.test(name.slice(prefix.length));
  const own = names.filter(isOwn);
  const foreign = names.filter((name) => !isOwn(name));
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
  let cursor = "0";
  try {
    for (let scans = 0; scans < MAX_SCANS; scans++) {
      const answer = await rest.run(["SCAN", cursor, "MATCH", pattern, "COUNT", KEYS_PER_SCAN]);
      if ("error" in answer) return answer;
      const [next, page] = Array.isArray(answer.reply) ? answer.reply : [];
      const isPage = isText(next) && /^\d+$/.test(`${next}`) && Array.isArray(page);
      if (!isPage || !page.every(isText)) return { error: "the reply is not a cursor and a list" };
      for (const name of page) names.add(`${name}`);
      cursor = `${next}`;
      if (cursor === "0") return { names: [...names], isComplete: true };
    }
  } catch (error) {
    // Very long names can make a page too large.
    if (!(error instanceof AnswerTooLarge)) throw error;
  }
  return { names: [...names], isComplete: false };
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
    const replies = answers.map((answer) => ("reply" in answer ? answer.reply : undefined));
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
