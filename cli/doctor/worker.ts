import { quoted } from "../print/text.ts";
import { clockFinding, roundTripFinding } from "./database.ts";
import { type DoctorFinding, finding, type Subject } from "./findings.ts";
import { AnswerTooLarge, networkError, readBounded } from "./rest.ts";
import type { Setting } from "./settings.ts";

/** The JSON that the Worker returns; see src/entry/doctor.ts. */
interface WorkerReport {
  readonly weir: "doctor";
  readonly store: string;
  /** The mode of the deployment. A Worker with an older version of Weir does not report it. */
  readonly mode?: unknown;
  readonly colo?: unknown;
  readonly timeoutMs: number;
  readonly decisionsMs: readonly number[];
  readonly skewMs?: number;
  readonly faults: readonly string[];
  readonly error?: unknown;
}

/** Reads the answer of the doctor's endpoint, or of any other server. */
function workerFindings(status: number, text: string): DoctorFinding[] {
  const report = reportIn(text);
  if (report) return findingsOf(report);
  const isBusy = status === 503 && text.includes('"busy"');
  return [finding(isBusy ? "worker-busy" : "worker-no-doctor", `HTTP ${status}`)];
}

function reportIn(text: string): WorkerReport | undefined {
  try {
    const value = JSON.parse(text);
    const { weir, store, decisionsMs, faults, timeoutMs, skewMs } = value;
    const isReport =
      weir === "doctor" &&
      typeof store === "string" &&
      typeof timeoutMs === "number" &&
      ["number", "undefined"].includes(typeof skewMs) &&
      isListOf("number", decisionsMs) &&
      isListOf("string", faults);
    return isReport ? value : undefined;
  } catch {
    return undefined;
  }
}

function isListOf(type: "number" | "string", value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === type);
}

function findingsOf(report: WorkerReport): DoctorFinding[] {
  const { store, mode, colo, timeoutMs, decisionsMs, skewMs, faults, error } = report;
  const place = typeof colo === "string" ? `, in Cloudflare's location ${quoted(colo)}` : "";
  const findings = [finding("worker-ok", `the store is ${quoted(store)}${place}`)];
  if (mode === "shadow" || mode === "off") {
    findings.push(finding("worker-mode", `WEIR_MODE is "${mode}"`));
  }
  findings.push(...faults.map((fault) => finding("worker-binding", quoted(fault))));
  if (typeof error === "string") findings.push(finding("worker-store-failed", quoted(error)));
  if (decisionsMs.length === 0) {
    const isExplained = typeof error === "string";
    if (!isExplained) findings.push(finding("worker-store-failed", "the Worker made no decision"));
    return findings;
  }
  findings.push(roundTripFinding(decisionsMs, timeoutMs));
  if (skewMs !== undefined) {
    findings.push(clockFinding([{ tookMs: Math.min(...decisionsMs), skewMs }]));
  }
  return findings;
}

const PATH = "/_weir/doctor";
const MAX_ANSWER_BYTES = 64 * 1024;
/** The deadline of the call, in milliseconds. It is longer than the longest run in the Worker. */
const CALL_TIMEOUT_MS = 75_000;

/**
 * Calls the endpoint of a deployed Worker, which examines its own store.
 *
 * @param at a URL of the Worker. Its path is ignored
 * @param token the token with all rights, or the token for reading
 */
export async function examineWorker(
  at: URL,
  token: Setting,
  stop: AbortSignal,
): Promise<{ subject: Subject; findings: DoctorFinding[] }> {
  const subject: Subject = {
    noun: "The Worker's store",
    headline: `Worker at ${at.origin} (token from ${token.source}).`,
    fields: { worker: at.origin, tokenSource: token.source },
    secrets: [token.value],
  };
  return { subject, findings: await callWorker(new URL(PATH, at), token, stop) };
}

async function callWorker(url: URL, token: Setting, stop: AbortSignal): Promise<DoctorFinding[]> {
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
