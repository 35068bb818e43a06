import { ownText } from "../logs/log-request.ts";
import type { RuleVerdict } from "./groups.ts";
import type { WorstWindow } from "./report.ts";

/** How many windows of a rule are reported. */
const REPORTED = 10;
/**
 * How long a window stays open after its end, in milliseconds of the log's clock, because isolates may decide a
 * request later.
 */
const OPEN_AFTER_END_MS = 60_000;
/** More windows of one policy are open at the same time only if each client has windows of its own. */
const MAX_OPEN = 256;

interface OpenWindow {
  start: number;
  end: number;
  requests: number;
  denied: number;
}

/** The windows of one policy. */
interface PolicyWindows {
  readonly policy: string;
  open: Map<number, OpenWindow>;
  latest: OpenWindow | undefined;
  /** Whether windows are counted from multiples of their length, because each client has windows of its own. */
  isSpread: boolean;
}

/** A window that has ended, or is read at the end. */
interface ClosedWindow extends OpenWindow {
  readonly policy: string;
}

/** Counts the requests of each window of a rule, over all clients, and keeps the windows with the most denials. */
export class WorstWindows {
  readonly #policies: PolicyWindows[] = [];
  #latest: PolicyWindows | undefined;
  #worst: ClosedWindow[] = [];

  /** The number of windows in memory that have not ended. */
  get openWindows(): number {
    return this.#policies.reduce((sum, { open }) => sum + open.size, 0);
  }

  /** @param at the time of the request, in milliseconds since the Unix epoch */
  add({ policy, windowStart, windowEnd, denied }: RuleVerdict, at: number): void {
    // Most requests belong to the same policy as the request before.
    if (this.#latest?.policy !== policy) this.#latest = this.#policy(policy);
    const windows = this.#latest;
    const length = windowEnd - windowStart;
    const start = windows.isSpread ? aligned(at, length) : windowStart;
    let window = windows.latest;
    if (window?.start !== start) {
      window = windows.open.get(start) ?? this.#openWindow(windows, start, start + length, at);
      windows.latest = window;
    }
    window.requests++;
    if (denied) window.denied++;
  }

  /** Returns the windows with the most denied requests, the worst first. */
  top(): WorstWindow[] {
    const open = this.#policies.flatMap(({ policy, open }) => closed(policy, open.values()));
    // Each verdict names one window. If a rule has several limits, the others have counted the request too.
    const isComplete = this.#policies.length === 1;
    return worst([...this.#worst, ...open]).map(({ policy, start, end, requests, denied }) => ({
      policy,
      start: new Date(start).toISOString(),
      end: new Date(end).toISOString(),
      requests: isComplete ? requests : undefined,
      denied,
    }));
  }

  #policy(policy: string): PolicyWindows {
    const existing = this.#policies.find((each) => each.policy === policy);
    if (existing) return existing;
    const windows: PolicyWindows = {
      policy: ownText(policy),
      open: new Map(),
      latest: undefined,
      isSpread: false,
    };
    this.#policies.push(windows);
    return windows;
  }

  #openWindow(windows: PolicyWindows, start: number, end: number, at: number): OpenWindow {
    this.#close(windows, at);
    let from = start;
    if (windows.open.size >= MAX_OPEN) {
      spread(windows);
      from = aligned(at, end - start);
    }
    const existing = windows.open.get(from);
    if (existing) return existing;
    const window = { start: from, end: from + end - start, requests: 0, denied: 0 };
    windows.open.set(from, window);
    return window;
  }

  /** Takes the windows that have ended out of the open ones. */
  #close({ policy, open }: PolicyWindows, at: number): void {
    const ended = [...open.values()].filter(({ end }) => end + OPEN_AFTER_END_MS <= at);
    for (const { start } of ended) open.delete(start);
    const denying = closed(policy, ended);
    if (denying.length > 0) this.#worst = worst([...this.#worst, ...denying]);
  }
}

/** Counts open windows from now on as windows that begin at multiples of their length. */
function spread(windows: PolicyWindows): void {
  const before = windows.open.values();
  windows.isSpread = true;
  windows.open = new Map();
  for (const { start, end, requests, denied } of before) {
    const length = end - start;
    const from = aligned(start, length);
    const window = windows.open.get(from);
    if (window) {
      window.requests += requests;
      window.denied += denied;
    } else {
      windows.open.set(from, { start: from, end: from + length, requests, denied });
    }
  }
}

function aligned(at: number, length: number): number {
  return Math.floor(at / length) * length;
}

function closed(policy: string, windows: Iterable<OpenWindow>): ClosedWindow[] {
  return [...windows].filter(({ denied }) => denied > 0).map((window) => ({ policy, ...window }));
}

function worst(windows: readonly ClosedWindow[]): ClosedWindow[] {
  return windows
    .toSorted((one, other) => other.denied - one.denied || one.start - other.start)
    .slice(0, REPORTED);
}
