import { type Finding, finding, quoted } from "./finding.ts";
import type { Subject } from "./report.ts";
import { CallFailure, networkError, readBounded } from "./rest-client.ts";
import type { Setting } from "./settings.ts";
import { clockFinding, roundTripFinding } from "./timing.ts";

export interface WorkerOptions {
  /** A URL of the Worker. Its path is ignored. */
  readonly at: string;
  readonly token: Setting;
  readonly stop: AbortSignal;
}

/** The JSON that the Worker returns; see src/doctor.ts. */
interface WorkerReport {
  readonly weir: "doctor";
  readonly store: string;
  readonly colo?: string;
  readonly timeoutMs: number;
  readonly decisionsMs: readonly number[];
  readonly skewMs?: number;
  readonly faults: readonly string[];
  readonly error?: string;
}

const PATH = "/_weir/doctor";
const MAX_ANSWER_BYTES = 64 * 1024;
/** Longer than the longest run in the Worker. */
const CALL_TIMEOUT_MS = 45_000;

/** Calls the endpoint of a deployed Worker, which examines its own store. */
export async function examineWorker({
  at,
  token,
  stop,
}: WorkerOptions): Promise<{ subject: Subject; findings: Finding[] }> {
  const url = new URL(PATH, at);
  const subject: Subject = {
    noun: "The Worker's store",
    headline: `Worker at ${url.origin} (WEIR_ADMIN_TOKEN from ${token.source}).`,
    fields: { worker: url.origin, tokenSource: token.source },
  };
  const signal = AbortSignal.any([stop, AbortSignal.timeout(CALL_TIMEOUT_MS)]);
  let response: Response;
  let text: string;
  try {
    response = await fetch(url, {
      method: "POST",
      // A redirect would send the token to another server.
      redirect: "manual",
      headers: { authorization: `Bearer ${token.value}` },
      signal,
    });
    text = await readBounded(response, MAX_ANSWER_BYTES);
  } catch (error) {
    if (error instanceof CallFailure) {
      return { subject, findings: [finding(error.code, error.message)] };
    }
    const code = signal.aborted ? "no-answer" : "unreachable";
    return { subject, findings: [finding(code, quoted(networkError(error), [token.value]))] };
  }
  const report = reportIn(text);
  if (!report) {
    const isBusy = response.status === 503 && text.includes('"busy"');
    const code = isBusy ? "worker-busy" : "worker-no-doctor";
    return { subject, findings: [finding(code, `HTTP ${response.status}`)] };
  }
  return { subject, findings: findingsOf(report) };
}

function reportIn(text: string): WorkerReport | undefined {
  try {
    const value = JSON.parse(text);
    const { weir, store, decisionsMs, faults, timeoutMs } = value;
    const isReport =
      weir === "doctor" &&
      typeof store === "string" &&
      Number.isFinite(timeoutMs) &&
      isListOf(decisionsMs, "number") &&
      isListOf(faults, "string");
    return isReport ? value : undefined;
  } catch {
    return undefined;
  }
}

function isListOf(value: unknown, type: "number" | "string"): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === type);
}

function findingsOf(report: WorkerReport): Finding[] {
  const { store, colo, timeoutMs, decisionsMs, skewMs, faults, error } = report;
  const place = typeof colo === "string" ? `, in Cloudflare's location ${quoted(colo)}` : "";
  const findings = [finding("worker-ok", `the store is ${quoted(store)}${place}`)];
  findings.push(...faults.map((fault) => finding("worker-binding", quoted(fault))));
  if (typeof error === "string") findings.push(finding("worker-store-failed", quoted(error)));
  if (decisionsMs.length === 0) return findings;
  findings.push(roundTripFinding(decisionsMs, timeoutMs));
  if (typeof skewMs === "number") {
    findings.push(clockFinding([{ tookMs: Math.min(...decisionsMs), skewMs }]));
  }
  return findings;
}
