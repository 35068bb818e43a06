import { parseOriginUrl } from "../../src/config/origin.ts";
import { type Examination, newKey } from "./examination.ts";
import { type Finding, finding } from "./finding.ts";
import { refusal } from "./refusal.ts";
import type { Answer } from "./rest-answer.ts";

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
