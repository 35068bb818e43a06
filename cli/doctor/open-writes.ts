import { setTimeout as delay } from "node:timers/promises";
import { mayHaveRun } from "./rest-answer.ts";

interface OpenWrite {
  readonly ended: Promise<void>;
  readonly closing: AbortController;
}

/**
 * The calls that write keys, and that the database has not answered yet. The database may still run
 * them.
 */
export class OpenWrites {
  readonly #open = new Set<OpenWrite>();
  readonly #unconfirmed: string[] = [];

  /** The number of calls that may still get an answer. */
  get count(): number {
    return this.#open.size;
  }

  /**
   * Adds a call. The call is removed when it has an answer.
   *
   * @param name the name of the command
   * @param closing ends the call
   */
  add(name: string, answer: Promise<unknown>, closing: AbortController): void {
    const ended = answer.then(
      () => {},
      (error: unknown) => {
        if (mayHaveRun(error)) this.#unconfirmed.push(name);
      },
    );
    const write = { ended, closing };
    this.#open.add(write);
    ended.then(() => this.#open.delete(write));
  }

  /**
   * Waits until all calls have an answer, at most for a time in milliseconds, and then ends the
   * calls that have none.
   *
   * @returns the names of the commands that the database has not confirmed
   */
  async settle(maxMs: number): Promise<readonly string[]> {
    const all = () => Promise.all([...this.#open].map(({ ended }) => ended));
    const timer = new AbortController();
    const timeout = delay(maxMs, undefined, { signal: timer.signal }).catch(() => {});
    await Promise.race([all(), timeout]);
    timer.abort();
    for (const { closing } of this.#open) closing.abort();
    await all();
    return this.#unconfirmed;
  }
}
