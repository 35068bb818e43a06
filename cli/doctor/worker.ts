import { checkTokenForm, isReadableOnTheWay } from "./access.ts";
import { type Finding, finding, quoted } from "./finding.ts";
import type { Subject } from "./report.ts";
import { AnswerTooLarge, networkError, readBounded } from "./rest-answer.ts";
import type { Setting } from "./settings.ts";
import { workerFindings } from "./worker-report.ts";

export interface WorkerOptions {
  /** A URL of the Worker. Its path is ignored. */
  readonly at: string;
  /** The name of the token: that for all rights, or that for reading. */
  readonly name: string;
  readonly token: Setting;
  readonly stop: AbortSignal;
}

const PATH = "/_weir/doctor";
const MAX_ANSWER_BYTES = 64 * 1024;
/** The deadline of the call, in milliseconds. It is longer than the longest run in the Worker. */
const CALL_TIMEOUT_MS = 75_000;

/** Calls the endpoint of a deployed Worker, which examines its own store. */
export async function examineWorker(
  options: WorkerOptions,
): Promise<{ subject: Subject; findings: Finding[] }> {
  const { at, name, token } = options;
  const url = /^https?:\/\//i.test(at) ? URL.parse(PATH, at) : null;
  const place = url?.origin ?? "(not a URL)";
  const subject: Subject = {
    noun: "The Worker's store",
    headline: `Worker at ${place} (${name} from ${token.source}).`,
    fields: { worker: place, tokenSource: token.source },
    secrets: [token.value],
  };
  const faults = faultsOf(url, options);
  return {
    subject,
    findings: url && faults.length === 0 ? await callWorker(url, options) : faults,
  };
}

/**
 * Checks the URL and the token without a call. The URL is not printed, because it may have a
 * password.
 */
function faultsOf(url: URL | null, { at, name, token }: WorkerOptions): Finding[] {
  if (!url) return [finding("worker-url-invalid", "--at is not an http or https URL")];
  const { username, password } = new URL(at);
  if (username || password) {
    return [finding("worker-url-invalid", "the URL has a user or a password")];
  }
  if (isReadableOnTheWay(url)) return [finding("worker-url-not-https", `http to ${url.host}`)];
  const malformed = checkTokenForm(name, token.value);
  return malformed ? [malformed] : [];
}

async function callWorker(url: URL, { token, stop }: WorkerOptions): Promise<Finding[]> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(CALL_TIMEOUT_MS)]);
  try {
    const response = await fetch(url, {
      method: "POST",
      // A redirect would send the token to another server.
      redirect: "manual",
      headers: { authorization: `Bearer ${token.value}` },
      signal,
    });
    return workerFindings(response.status, await readBounded(response, MAX_ANSWER_BYTES));
  } catch (error) {
    if (error instanceof AnswerTooLarge) return [finding("worker-no-doctor", error.message)];
    if (stop.aborted) return [finding("not-finished", String(stop.reason))];
    if (signal.aborted) {
      return [finding("worker-no-answer", `no complete answer within ${CALL_TIMEOUT_MS} ms`)];
    }
    return [finding("worker-unreachable", quoted(networkError(error), [token.value]))];
  }
}
