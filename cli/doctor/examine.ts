import { randomBytes } from "node:crypto";
import { formatCount } from "../../src/admin/format.ts";
import { parseOriginUrl } from "../../src/config/origin.ts";
import {
  checkEviction,
  checkTiming,
  checkToken,
  checkTokenForm,
  checkUrl,
  type Examination,
  readInfo,
} from "./database.ts";
import { type DoctorFinding, finding } from "./findings.ts";
import { CallFailure, createRestClient } from "./rest.ts";
import { checkVectors } from "./vectors.ts";

/** The findings after which no decision can succeed. */
const FATAL: ReadonlySet<string> = new Set([
  "token-read-only",
  "keys-not-permitted",
  "write-refused",
  "database-full",
]);

/**
 * Checks a database. Writes only keys with a random prefix, and removes them even if a check fails or the run is
 * stopped. A failure of the database is a finding, not an error.
 */
export async function examine(
  options: Pick<Examination, "url" | "token" | "config" | "stop" | "wait">,
): Promise<DoctorFinding[]> {
  const { token, config, stop, wait } = options;
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
    rest: createRestClient({ url, token, callTimeoutMs, stop, wait }),
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
async function runChecks(examination: Examination, findings: DoctorFinding[]): Promise<void> {
  // The first call also opens the connection, so it is not part of the round trips.
  await examination.rest.run(["PING"]);
  const access = await checkToken(examination);
  findings.push(access, ...(await checkTiming(examination)));
  findings.push(checkEviction(await readInfo(examination)));
  if (!FATAL.has(access.code)) findings.push(...(await checkVectors(examination)));
}

/** The shortest deadline of the call that removes keys, in milliseconds. */
const MIN_REMOVAL_MS = 3000;

/**
 * Removes all keys that the doctor may have written. Never throws. Its own client works even after the run was
 * stopped.
 */
async function cleanUp(examination: Examination): Promise<DoctorFinding> {
  const { url, token, rest, ownPrefix, writtenKeys, wait } = examination;
  const callTimeoutMs = Math.max(MIN_REMOVAL_MS, rest.callTimeoutMs);
  const stop = new AbortController().signal;
  const [key = "", ...keys] = writtenKeys;
  const left = (reason: string) =>
    finding(
      "keys-left",
      `${reason}, so keys may be left under "${ownPrefix}"; they expire within 5 minutes`,
    );
  try {
    const client = createRestClient({ url, token, callTimeoutMs, stop, wait });
    const answer = await client.run(["DEL", key, ...keys]);
    if ("error" in answer) return left(`DEL was refused (${answer.error})`);
  } catch (error) {
    const reason = error instanceof CallFailure ? error.message : "the call failed";
    return left(`DEL was not confirmed (${reason})`);
  }
  const { unconfirmed } = rest;
  return unconfirmed.length === 0
    ? finding("cleaned-up", `no key is left under "${ownPrefix}"`)
    : left(
        `the database did not confirm ${formatCount(unconfirmed.length, "call")} (${unconfirmed.join(", ")})`,
      );
}
