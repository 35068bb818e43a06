import {
  CollectorCount,
  isHub,
  MAX_COLLECTORS,
  maxNewIsolatesOf,
  neededInLocation,
} from "./fan-in.ts";
import { GatheredSums } from "./gathered-sums.ts";
import { OverrideChanges } from "./override-changes.ts";
import type { HandOver, HandOverAnswer } from "./protocol.ts";
import { SEEN_MS, Sources } from "./sources.ts";

/**
 * Sums are passed on at most once in this time. Overrides pass two objects on their way to an isolate, and
 * at each they may be this old.
 */
export const PASS_ON_INTERVAL_MS = 2500;

/** A call to the parent that takes longer has failed, although its sums may have arrived. */
const PASS_ON_TIMEOUT_MS = 5000;

/**
 * An object that collects the sums of isolates, or of other collectors, and passes them on. It keeps
 * everything in memory: if it is lost, so are the sums of the last seconds.
 */
export class Collector {
  readonly #callParent: (handOver: HandOver) => Promise<HandOverAnswer>;
  readonly #isHub: boolean;
  /**
   * If more isolates than this have started since the last call to the parent, the parent's number of
   * collectors is too small.
   */
  readonly #maxNewIsolates: number;
  readonly #source = crypto.randomUUID();
  readonly #sources = new Sources();
  readonly #gathered = new GatheredSums();
  readonly #overrides = new OverrideChanges(0);
  /** The sums of a call to the parent that has not succeeded yet. They keep their sequence number. */
  #unconfirmed: Pick<HandOver, "sequence" | "minutes" | "clients"> | undefined;
  #sequence = 0;
  /** When the last call to the parent began, and when the last call began that succeeded. */
  #calledAt = Number.NEGATIVE_INFINITY;
  #loadedAt = Number.NEGATIVE_INFINITY;
  /** How old the overrides were when they arrived. */
  #parentAgeMs = 0;
  #call: Promise<void> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The parent's answer: the number of collectors that isolates should use. */
  #collectors = 0;
  /** What the location needs of them, in a hub; undefined if isolates call the global object. */
  #needed: CollectorCount | undefined;
  /** The number of new isolates since the last call to the parent that succeeded. */
  #newIsolates = 0;
  #growsUntil = Number.NEGATIVE_INFINITY;

  /**
   * @param name the name of this object: see fan-in.ts
   * @param callParent calls the object to which this object passes on
   */
  constructor(name: string, callParent: (handOver: HandOver) => Promise<HandOverAnswer>) {
    this.#callParent = callParent;
    this.#isHub = isHub(name);
    this.#maxNewIsolates = maxNewIsolatesOf(name);
  }

  /**
   * Adds sums to those that are passed on next.
   *
   * @throws {Error} if there are no overrides to answer with, because the parent has never answered. The
   *   caller repeats the hand-over, and its sums are not added again
   */
  async handOver(handOver: HandOver): Promise<HandOverAnswer> {
    const now = Date.now();
    this.#newIsolates += handOver.newIsolates ?? 0;
    if (this.#sources.see(handOver, now)) {
      this.#gathered.add(handOver.minutes, handOver.clients, now);
    }
    const isStale = now - this.#loadedAt >= PASS_ON_INTERVAL_MS;
    if (isStale) await this.#passOn(now);
    else if (!this.#gathered.isEmpty) this.#passOnLater(now);
    return this.#answer(handOver.overridesVersion, Date.now());
  }

  #answer(version: number, now: number): HandOverAnswer {
    if (this.#overrides.version === 0) {
      throw new Error("The collector cannot reach the global control object.");
    }
    this.#overrides.removeEnded(now);
    const collectors = this.#collectorsAt(now);
    const overridesAgeMs = now - this.#loadedAt + this.#parentAgeMs;
    // An isolate that has called the global object itself may have a newer version.
    if (version >= this.#overrides.version) return { collectors, overridesAgeMs };
    return { collectors, overridesAgeMs, overrides: this.#overrides.since(version) };
  }

  /**
   * Returns the number of collectors that isolates should use.
   *
   * If many isolates start at once, the global object learns of them some seconds later. Until then, its
   * number is too small, and all these isolates would call a few objects. So while many isolates start,
   * they keep to the collectors that they have chosen at first.
   */
  #collectorsAt(now: number): number {
    if (this.#newIsolates > this.#maxNewIsolates) this.#growsUntil = now + SEEN_MS;
    if (now < this.#growsUntil) return MAX_COLLECTORS;
    const needed = this.#needed?.update(this.#sources.running(now).isolates, now);
    return Math.min(this.#collectors, needed ?? MAX_COLLECTORS);
  }

  #passOnLater(now: number): void {
    this.#timer ??= setTimeout(
      () => {
        this.#timer = undefined;
        void this.#passOn(Date.now());
      },
      Math.max(this.#calledAt + PASS_ON_INTERVAL_MS - now, 0),
    );
  }

  /** Calls the parent, unless it was called a short time ago. Never rejects. */
  #passOn(now: number): Promise<void> {
    if (this.#call) return this.#call;
    if (now - this.#calledAt < PASS_ON_INTERVAL_MS) {
      this.#passOnLater(now);
      return Promise.resolve();
    }
    this.#calledAt = now;
    const call = this.#callOnce(now).finally(() => {
      this.#call = undefined;
      // Sums that arrived during the call, or that the parent did not confirm, wait for the next call.
      if (this.#unconfirmed || !this.#gathered.isEmpty) this.#passOnLater(Date.now());
    });
    this.#call = call;
    return call;
  }

  async #callOnce(now: number): Promise<void> {
    if (!this.#unconfirmed && !this.#gathered.isEmpty) {
      this.#unconfirmed = { sequence: ++this.#sequence, ...this.#gathered.take() };
    }
    const sums = this.#unconfirmed ?? { sequence: this.#sequence, minutes: [], clients: [] };
    const newIsolates = this.#newIsolates;
    const { isolates, openBreakers } = this.#sources.running(now);
    const handOver: HandOver = {
      ...sums,
      source: this.#source,
      isolates,
      newIsolates,
      openBreakers,
      breakerOpen: openBreakers > 0,
      overridesVersion: this.#overrides.version,
    };
    try {
      const answer = await withTimeout(this.#callParent(handOver));
      this.#unconfirmed = undefined;
      this.#newIsolates -= newIsolates;
      this.#collectors = answer.collectors;
      this.#needed = this.#neededAfter(answer.collectors, now);
      this.#loadedAt = now;
      this.#parentAgeMs = answer.overridesAgeMs ?? 0;
      if (answer.overrides) this.#overrides.apply(answer.overrides);
    } catch {
      // The isolates see the age of the overrides, and log that they are old.
    }
  }

  /**
   * A hub that has just started, or whose isolates have just begun to use collectors, does not know its
   * isolates. So it begins with the parent's number, which does not shrink at once.
   */
  #neededAfter(collectors: number, now: number): CollectorCount | undefined {
    if (!this.#isHub || collectors === 0) return undefined;
    return this.#needed ?? new CollectorCount(collectors, now, neededInLocation);
  }
}

async function withTimeout<Value>(promise: Promise<Value>): Promise<Value> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("No answer")), PASS_ON_TIMEOUT_MS);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    if (timer !== undefined) clearTimeout(timer);
  }
}
