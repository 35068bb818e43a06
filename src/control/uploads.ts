import { isIdentity } from "../request/identity.ts";
import { ClientSketch } from "../statistics/client-sketch.ts";
import { DenialList } from "../statistics/denials.ts";
import { MINUTE_MS, MinuteRecord, type MinuteSums } from "../statistics/sums.ts";
import { MAX_UPLOAD_INTERVAL_MS, type StatisticsUpload, UPLOAD_INTERVAL_MS } from "./protocol.ts";

// The uploads of isolates in the memory of the control object. All isolates call this one object, and each answer
// says when to call again. `npm run simulate:fan-in` shows the number of calls and the age of overrides.

/** The maximum number of calls that isolates plan for one second, unless there are too many isolates. */
const CALLS_PER_SECOND = 90;

/**
 * Spreads the calls of isolates evenly over time, whenever the isolates start. With more than 2,250 isolates, the
 * longest interval is too short for {@link CALLS_PER_SECOND}.
 */
export class CallSlots {
  #lastAt = Number.NEGATIVE_INFINITY;

  /** Returns the milliseconds until a free time for the next call of an isolate. */
  take(now: number): number {
    const latest = now + MAX_UPLOAD_INTERVAL_MS;
    // If the last slot is later than `latest`, the clock has gone back.
    const next = this.#lastAt > latest ? now : this.#lastAt + 1000 / CALLS_PER_SECOND;
    this.#lastAt = Math.min(Math.max(next, now + UPLOAD_INTERVAL_MS), latest);
    return this.#lastAt - now;
  }
}

/** The time in milliseconds for which an isolate counts as running after a call. */
const SEEN_MS = MAX_UPLOAD_INTERVAL_MS + UPLOAD_INTERVAL_MS;

/** The maximum number of remembered sources. Above it, the source seen longest ago is forgotten. */
const MAX_SOURCES = 20_000;

/**
 * The maximum number of stored sources. The uploads of these sources are not added again after the object was removed
 * from memory.
 */
const MAX_STORED = 1000;

/** The isolates that have called recently, in the order of their last call. */
export class Sources {
  readonly #sources = new Map<string, Source>();

  constructor(stored: readonly StoredSource[] = []) {
    for (const [source, sequence] of stored) {
      this.#sources.set(source, { sequence, at: Number.NEGATIVE_INFINITY, breakerOpen: false });
    }
  }

  /**
   * Remembers an upload.
   *
   * @returns whether its sums must be added: false if they were added before, or if the upload has no sums
   */
  see(upload: StatisticsUpload, now: number): boolean {
    const { source, sequence, minutes, clients } = upload;
    const before = this.#sources.get(source)?.sequence ?? Number.NEGATIVE_INFINITY;
    const isNew = (minutes.length > 0 || clients.length > 0) && sequence > before;
    this.#sources.delete(source);
    this.#sources.set(source, {
      sequence: isNew ? sequence : before,
      at: now,
      breakerOpen: upload.breakerOpen,
    });
    if (this.#sources.size > MAX_SOURCES) {
      for (const first of this.#sources.keys()) {
        this.#sources.delete(first);
        break;
      }
    }
    return isNew;
  }

  /** Returns the number of running isolates, and the number of these isolates with an open breaker. */
  running(now: number): { readonly isolates: number; readonly openBreakers: number } {
    let [isolates, openBreakers] = [0, 0];
    for (const { at, breakerOpen } of [...this.#sources.values()].reverse()) {
      if (now - at > SEEN_MS) break;
      isolates += 1;
      if (breakerOpen) openBreakers += 1;
    }
    return { isolates, openBreakers };
  }

  /** Returns the sequence numbers of the sources that called last. */
  toStored(): StoredSource[] {
    return [...this.#sources]
      .filter(([, { sequence }]) => Number.isFinite(sequence))
      .slice(-MAX_STORED)
      .map(([source, { sequence }]) => [source, sequence]);
  }
}

export type StoredSource = readonly [source: string, sequence: number];

interface Source {
  /** The number of the last upload whose sums were added. */
  readonly sequence: number;
  readonly at: number;
  readonly breakerOpen: boolean;
}

/** The maximum age of a minute, in milliseconds. Older sums are added to the oldest accepted minute. */
const MAX_AGE_MS = 24 * 60 * MINUTE_MS;
/** The maximum time by which a minute is ahead, by a fast clock. Later sums are added to the last accepted minute. */
const MAX_AHEAD_MS = MINUTE_MS;

/** The maximum number of entries about denials in the control object: of one minute, and of all minutes. */
export const MAX_KEPT_DENIALS = 2000;

/** The sums of an upload. */
type Sums = Pick<StatisticsUpload, "minutes" | "clients" | "denials">;

/** Sums that the control object has received but not yet stored. */
export class GatheredSums {
  readonly #minutes = new Map<number, MinuteRecord>();
  readonly #clients = new ClientSketch();
  readonly #denials = new DenialList(MAX_KEPT_DENIALS);

  get isEmpty(): boolean {
    return this.#minutes.size === 0 && this.#clients.isEmpty;
  }

  add({ minutes, clients, denials = [] }: Sums, now: number): void {
    const first = Math.floor((now - MAX_AGE_MS) / MINUTE_MS);
    const last = Math.floor((now + MAX_AHEAD_MS) / MINUTE_MS);
    for (const each of minutes) {
      this.#addMinute(Math.min(Math.max(each.minute, first), last), each);
    }
    for (const each of clients) {
      const lastAt = Math.min(Math.max(each.lastAt, now - MAX_AGE_MS), now + MAX_AHEAD_MS);
      this.#clients.add({ ...each, lastAt });
    }
    for (const each of denials) {
      // No address and no key of a client is stored, even if a caller has not checked this.
      if (!isIdentity(each.client) || !Number.isFinite(each.lastAt)) continue;
      const lastAt = Math.min(Math.max(each.lastAt, now - MAX_AGE_MS), now + MAX_AHEAD_MS);
      const startsAt = lastAt - (lastAt % MINUTE_MS);
      const firstAt = Math.min(Math.max(each.firstAt, startsAt), lastAt);
      this.#denials.add({ ...each, lastAt, firstAt });
    }
  }

  /** Returns all sums, and removes them from this object. */
  take(): Required<Sums> {
    const minutes = [...this.#minutes.values()].map((record) => record.toSums());
    this.#minutes.clear();
    return { minutes, clients: this.#clients.take(), denials: this.#denials.take() };
  }

  #addMinute(minute: number, sums: MinuteSums): void {
    let record = this.#minutes.get(minute);
    if (!record) {
      record = new MinuteRecord(minute);
      this.#minutes.set(minute, record);
    }
    record.add(sums);
  }
}
