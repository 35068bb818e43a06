import type { RuleVerdict } from "./groups.ts";
import type { WorstWindow } from "./report.ts";

const REPORTED = 10;

interface CountedWindow extends Pick<RuleVerdict, "policy" | "windowStart" | "windowEnd"> {
  requests: number;
  denied: number;
}

/** Counts the requests of each window of a rule, over all clients, and keeps the windows with the most denials. */
export class WorstWindows {
  /** The current window of each policy. */
  readonly #current = new Map<string, CountedWindow>();
  #worst: CountedWindow[] = [];

  /** The verdicts come in the order of their times. */
  add({ policy, windowStart, windowEnd, denied }: RuleVerdict): void {
    let window = this.#current.get(policy);
    if (window?.windowStart !== windowStart) {
      if (window) this.#worst = worst([...this.#worst, window]);
      window = { policy, windowStart, windowEnd, requests: 0, denied: 0 };
      this.#current.set(policy, window);
    }
    window.requests++;
    if (denied) window.denied++;
  }

  /** Returns the windows with the most denied requests, the worst first. */
  top(): WorstWindow[] {
    // Each verdict names one window, although the windows of the rule's other limits count the request too.
    const isComplete = this.#current.size === 1;
    return worst([...this.#worst, ...this.#current.values()]).map(
      ({ policy, windowStart, windowEnd, requests, denied }) => ({
        policy,
        start: new Date(windowStart).toISOString(),
        end: new Date(windowEnd).toISOString(),
        requests: isComplete ? requests : undefined,
        denied,
      }),
    );
  }
}

function worst(windows: readonly CountedWindow[]): CountedWindow[] {
  return windows
    .filter(({ denied }) => denied > 0)
    .sort((one, other) => other.denied - one.denied || one.windowStart - other.windowStart)
    .slice(0, REPORTED);
}
