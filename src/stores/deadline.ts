import { StoreError } from "./store.ts";

/** The number of short waits in a deadline. After each wait, the caller can check whether to go on waiting. */
export const CHECKS_PER_DEADLINE = 10;

/** The minimum lateness of a timer, in milliseconds, that shows that the isolate was busy. */
const MIN_BUSY_MS = 50;

/**
 * A deadline that counts only the time in which the isolate was able to read answers. While code keeps the isolate
 * busy, for example a slow function of a user, answers wait unread, and timers fire late.
 *
 * So the deadline consists of {@link CHECKS_PER_DEADLINE} short waits. However late its timer fires, a wait counts
 * only with its own length. During the next wait, the isolate can read the answers. A wait is repeated if its timer
 * is late by more than its length and {@link MIN_BUSY_MS}. There are at most ten repeats, so the deadline passes
 * after twenty timers at the latest. This also holds in production, where the clock advances only with I/O.
 */
export class Deadline {
  readonly #timeoutMs: number;
  readonly #onPassed: (wasBusy: boolean) => void;
  readonly #onCheck: () => void;
  /** The time left at the end of the current wait. */
  #leftMs: number;
  #waitMs = 0;
  #startedAt = 0;
  /** The total lateness of the timers. */
  #busyMs = 0;
  #repeatsLeft = CHECKS_PER_DEADLINE;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /**
   * @param onPassed called once at the deadline. `wasBusy` means that the isolate was busy, so the store may be
   * healthy
   * @param onCheck called after each short wait before the deadline
   */
  constructor(
    timeoutMs: number,
    onPassed: (wasBusy: boolean) => void,
    onCheck: () => void = () => {},
  ) {
    this.#timeoutMs = timeoutMs;
    this.#onPassed = onPassed;
    this.#onCheck = onCheck;
    this.#leftMs = timeoutMs;
    this.#wait();
  }

  /** Milliseconds left; 0 at the deadline. */
  get timeLeftMs(): number {
    return this.#leftMs + Math.max(0, this.#waitMs - this.#elapsedMs());
  }

  clear(): void {
    clearTimeout(this.#timer as ReturnType<typeof setTimeout>);
  }

  #wait(): void {
    this.#startedAt = Date.now();
    this.#waitMs = Math.min(Math.ceil(this.#timeoutMs / CHECKS_PER_DEADLINE), this.#leftMs);
    this.#leftMs -= this.#waitMs;
    this.#timer = setTimeout(() => this.#endWait(), this.#waitMs);
  }

  #endWait(): void {
    const lateMs = this.#elapsedMs() - this.#waitMs;
    this.#busyMs += Math.max(0, lateMs);
    if (lateMs > Math.max(MIN_BUSY_MS, this.#waitMs) && this.#repeatsLeft > 0) {
      this.#repeatsLeft -= 1;
      this.#leftMs += this.#waitMs;
    }
    if (this.#leftMs > 0) {
      this.#wait();
      this.#onCheck();
    } else this.#onPassed(this.#busyMs >= Math.max(MIN_BUSY_MS, this.#timeoutMs / 2));
  }

  #elapsedMs(): number {
    return Date.now() - this.#startedAt;
  }
}

/**
 * Runs a call that fails with `timeout` at a {@link Deadline}. The store may still carry out the call afterwards.
 */
export async function inTime<Result>(
  call: () => Promise<Result>,
  timeoutMs: number,
): Promise<Result> {
  let deadline: Deadline | undefined;
  // `weir doctor` loads this file in Node 20, which has no Promise.withResolvers.
  const timeout = new Promise<never>((_, reject) => {
    deadline = new Deadline(timeoutMs, (wasBusy) => reject(timedOut(timeoutMs, wasBusy)));
  });
  try {
    return await Promise.race([call(), timeout]);
  } finally {
    deadline?.clear();
  }
}

/** The error of a call or a decision at its deadline. */
export function timedOut(timeoutMs: number, wasBusy: boolean): StoreError {
  return new StoreError("timeout", `no decision within ${timeoutMs} ms`, { wasBusy });
}
