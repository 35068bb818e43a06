import { type Examination, newKey } from "./examination.ts";
import { type Finding, finding } from "./finding.ts";
import type { Answer } from "./rest-client.ts";

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
  if (url.protocol === "http:" && !LOOPBACK.test(url.hostname)) {
    return finding("url-not-https", `http to ${url.host}`);
  }
  return finding("url-ok", `${url.protocol}//${url.host}`);
}

/** Checks that the token may write. It writes one key, which expires after a minute. */
export async function checkToken(examination: Examination): Promise<Finding> {
  const key = newKey(examination, "write");
  const answer = await examination.rest.run(["SET", key, "1", "PX", 60_000]);
  if ("reply" in answer) return finding("token-ok", "the token may read and write");
  return refusedWrite(answer.error);
}

function refusedWrite(error: string): Finding {
  if (/^(?:NOPERM|READONLY)\b/.test(error)) return finding("token-read-only", error);
  if (/capacity quota exceeded|^OOM\b/i.test(error)) return finding("database-full", error);
  return finding("write-refused", error);
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
export async function readInfo({ rest }: Examination): Promise<Map<string, string>> {
  const answer: Answer = await rest.run(["INFO"]);
  const fields = new Map<string, string>();
  if ("error" in answer || typeof answer.reply !== "string") return fields;
  for (const line of answer.reply.split(/\r?\n/)) {
    const at = line.indexOf(":");
    if (at > 0) fields.set(line.slice(0, at), line.slice(at + 1).trim());
  }
  return fields;
}
