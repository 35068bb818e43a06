import { randomBytes } from "node:crypto";
import { parseOriginUrl } from "../../src/config/origin.ts";
import { checkQuota, checkToken, checkTokenForm, checkUrl, readInfo } from "./access.ts";
import { checkVectors } from "./check-vectors.ts";
import { cleanUp } from "./clean-up.ts";
import { checkCommands } from "./commands.ts";
import type { Examination } from "./examination.ts";
import { type Finding, finding } from "./finding.ts";
import { checkKeys } from "./keys.ts";
import { checkMemory } from "./memory.ts";
import { CallFailure } from "./rest-answer.ts";
import { createRestClient } from "./rest-client.ts";
import { checkTiming } from "./timing.ts";

export type ExamineOptions = Pick<Examination, "url" | "token" | "config" | "stop">;

/** The findings after which no other check can succeed. */
const FATAL: ReadonlySet<string> = new Set([
  "token-read-only",
  "keys-not-permitted",
  "write-refused",
  "database-full",
  "scripts-refused",
  "command-missing",
]);

/**
 * Checks a database. It reads keys, and writes only keys that begin with a random name, which it removes
 * even if a check fails or the run is stopped. A failure of the database is a finding, not an error.
 */
export async function examine(options: ExamineOptions): Promise<Finding[]> {
  const { token, config, stop } = options;
  const address = checkUrl(options.url);
  // The Worker uses the URL in this form too.
  const url = parseOriginUrl(options.url);
  if (address.code === "url-invalid" || url === undefined) return [address];
  const malformed = checkTokenForm("UPSTASH_REDIS_REST_TOKEN", token);
  if (malformed) return [address, malformed];
  const callTimeoutMs = Math.min(10_000, Math.max(1000, 3 * config.timeoutMs));
  const examination: Examination = {
    ...options,
    url,
    rest: createRestClient({ url, token, callTimeoutMs, stop }),
    ownPrefix: `${config.prefix}:doctor-${randomBytes(4).toString("hex")}`,
    writtenKeys: new Set(),
  };
  const findings = [address];
  try {
    await runChecks(examination, findings);
  } catch (error) {
    if (!(error instanceof CallFailure)) throw error;
    findings.push(finding(error.code, error.message));
  } finally {
    if (examination.writtenKeys.size > 0) findings.push(await cleanUp(examination));
  }
  return findings;
}

/** @param findings each check adds its findings, so that they are kept if a later check throws */
async function runChecks(examination: Examination, findings: Finding[]): Promise<void> {
  // The first call also opens the connection, so it is not part of the round trips.
  await examination.rest.run(["PING"]);
  const access = await checkToken(examination);
  findings.push(access, ...(await checkTiming(examination)));
  const info = await readInfo(examination);
  findings.push(checkQuota(info), ...checkMemory(info), ...(await checkKeys(examination)));
  if (FATAL.has(access.code)) return;
  const { findings: commands, acceptsFlag } = await checkCommands(examination);
  findings.push(...commands);
  if (commands.some(({ code }) => FATAL.has(code))) return;
  findings.push(...(await checkVectors(examination, acceptsFlag)));
}
