import { withTimeout } from "../request/timeout.ts";
import {
  addRequests,
  addRuleSums,
  addStoreSums,
  type LimitedClient,
  MINUTE_MS,
  type MinuteSums,
  noRequests,
  noRuleSums,
  noStoreSums,
  type RuleSums,
} from "../statistics/sums.ts";
import { ClientSketch } from "./client-sketch.ts";
import { OverrideChanges } from "./override-changes.ts";
import type { HandOver, HandOverAnswer } from "./protocol.ts";
import { MAX_RULES } from "./valid-hand-over.ts";

// Which object an isolate hands its sums over to. Isolates call the global object or, if there are
// many isolates, collectors of their location. Collectors pass sums on to the hub of their location, and
// hubs to the global object. So no object gets more than about 100 calls a second, even if 10,000
// isolates of one location start within five seconds. `npm run simulate:fan-in` shows the calls.

/** The name of the object with all statistics, the overrides and the audit list. */
export const GLOBAL_OBJECT = "global";

/** The maximum number of collectors of a location. New isolates choose one of that many. */
const MAX_COLLECTORS = 64;

/** The number of isolates that one collector serves. Each calls once in five seconds. */
const ISOLATES_PER_COLLECTOR = 200;

/** With more isolates than this, isolates call collectors in place of the global object. */
const MAX_DIRECT_ISOLATES = 100;

/** Once collectors are in use, isolates call the global object again below this number. */
const MIN_COLLECTED_ISOLATES = 50;

/** The number of collectors changes at most once in this time, unless it grows much. */
const SETTLING_MS = 20_000;

/** The location of isolates whose continent is unknown. */
const UNKNOWN_LOCATION = "XX";

/** Returns an isolate's location, from the continent of the first request that it has handled. */
export function locationOf(continent: unknown): string {
  return typeof continent === "string" && /^[A-Z]{2}$/.test(continent)
    ? continent
    : UNKNOWN_LOCATION;
}

/**
 * Returns the name of the object that an isolate calls.
 *
 * An isolate chooses again only if an answer has another number of collectors than the answer before.
 * It repeats a failed hand-over at the same object, because only this object knows whether it has
 * added the sums already.
 *
 * @param collectors the number of the last answer; undefined for the first call of an isolate
 * @param random returns a number from 0 to less than 1
 */
export function objectNameFor(
  location: string,
  collectors: number | undefined,
  random: () => number = Math.random,
): string {
  if (collectors === 0) return GLOBAL_OBJECT;
  const count = Math.min(collectors ?? MAX_COLLECTORS, MAX_COLLECTORS);
  return `${location}:${Math.floor(random() * count)}`;
}

/**
 * Returns the name of the object to which an object passes on sums: the hub of the location, such as
 * `EU` for the collector `EU:17`, and the global object for a hub.
 *
 * @returns undefined for the global object
 */
export function parentOf(name: string | undefined): string | undefined {
  if (name === undefined || name === GLOBAL_OBJECT) return undefined;
  const [location, index] = name.split(":");
  return index === undefined ? GLOBAL_OBJECT : location;
}

/** Whether an object passes on the sums of all collectors of its location. */
function isHub(name: string): boolean {
  return name !== GLOBAL_OBJECT && !name.includes(":");
}

/**
 * Returns the number of isolates that may start between two calls of an object to its parent. If more
 * isolates start, they keep to the collectors that they have chosen at first, because the number of
 * collectors takes account of them only some seconds later.
 */
function maxNewIsolatesOf(name: string): number {
  return isHub(name) ? 6 : 0;
}

/**
 * The number of collectors that isolates should use. The global object decides it for all locations, and
 * each hub reduces it to what its location needs.
 */
export class CollectorCount {
  #count: number;
  /** The number that was needed when it was changed last. */
  #neededBefore: number;
  #changedAt = Number.NEGATIVE_INFINITY;
  readonly #startedAt: number;
  readonly #neededFor: (isolates: number, count: number) => number;

  /**
   * @param count the number that was stored; 0 if the object is new
   * @param neededFor returns the number that isolates need
   */
  constructor(count: number, now: number, neededFor = neededEverywhere) {
    this.#count = count;
    this.#neededBefore = count;
    this.#startedAt = now;
    this.#neededFor = neededFor;
  }

  get count(): number {
    return this.#count;
  }

  /**
   * Decides anew. The number of the global object is enough if all isolates are in one location.
   *
   * After a change, isolates choose other objects, and are counted twice for as long as the object that
   * they called before remembers them. So for some time, only a need of more than twice the number at the
   * last change counts. The number does not shrink at once either, because an object that has just
   * started does not know all isolates.
   *
   * @param isolates the number of isolates that were seen lately
   */
  update(isolates: number, now: number): number {
    const needed = this.#neededFor(isolates, this.#count);
    const isSettled = now - this.#changedAt >= SETTLING_MS;
    const grows = needed > this.#count && (isSettled || needed > 2 * this.#neededBefore);
    const shrinks = needed < this.#count / 2 && isSettled && now - this.#startedAt >= SETTLING_MS;
    if (grows || shrinks) {
      this.#count = needed;
      this.#neededBefore = needed;
      this.#changedAt = now;
    }
    return this.#count;
  }
}

function neededEverywhere(isolates: number, count: number): number {
  const isFew = count === 0 ? isolates <= MAX_DIRECT_ISOLATES : isolates < MIN_COLLECTED_ISOLATES;
  return isFew ? 0 : neededInLocation(isolates);
}

/** Returns the number of collectors that the isolates of a location need, if they use collectors. */
function neededInLocation(isolates: number): number {
  const needed = Math.ceil(isolates / ISOLATES_PER_COLLECTOR);
  return Math.min(Math.max(needed, 1), MAX_COLLECTORS);
}

/** Sums of minutes longer ago than this are added to the oldest accepted minute. */
const MAX_AGE_MS = 24 * 60 * MINUTE_MS;
/** Sums of minutes further ahead than this, by a fast clock, are added to the last accepted minute. */
const MAX_AHEAD_MS = MINUTE_MS;

interface Minute {
  readonly requests: MinuteSums["requests"];
  readonly store: MinuteSums["store"];
  /** By name. Unlike an object, a map also keeps a rule with the name `__proto__`. */
  readonly rules: Map<string, RuleSums>;
}

/** Sums that an object has received and has not yet stored or passed on. */
export class GatheredSums {
  readonly #minutes = new Map<number, Minute>();
  readonly #clients = new ClientSketch();

  get isEmpty(): boolean {
    return this.#minutes.size === 0 && this.#clients.isEmpty;
  }

  add(minutes: readonly MinuteSums[], clients: readonly LimitedClient[], now: number): void {
    const first = Math.floor((now - MAX_AGE_MS) / MINUTE_MS);
    const last = Math.floor((now + MAX_AHEAD_MS) / MINUTE_MS);
    for (const each of minutes) {
      this.#addMinute(Math.min(Math.max(each.minute, first), last), each);
    }
    for (const each of clients) {
      const lastAt = Math.min(Math.max(each.lastAt, now - MAX_AGE_MS), now + MAX_AHEAD_MS);
      this.#clients.add({ ...each, lastAt });
    }
  }

  /** Returns all sums, and removes them from this object. */
  take(): { readonly minutes: MinuteSums[]; readonly clients: readonly LimitedClient[] } {
    const minutes = [...this.#minutes].map(([minute, { rules, ...sums }]) => ({
      minute,
      ...sums,
      rules: Object.fromEntries(rules),
    }));
    this.#minutes.clear();
    return { minutes, clients: this.#clients.take() };
  }

  #addMinute(minute: number, { requests, store, rules }: MinuteSums): void {
    let sums = this.#minutes.get(minute);
    if (!sums) {
      sums = { requests: noRequests(), store: noStoreSums(), rules: new Map() };
      this.#minutes.set(minute, sums);
    }
    addRequests(sums.requests, requests);
    addStoreSums(sums.store, store);
    for (const [name, ruleSums] of Object.entries(rules)) {
      let sum = sums.rules.get(name);
      if (!sum) {
        if (sums.rules.size >= MAX_RULES) continue;
        sum = noRuleSums();
        sums.rules.set(name, sum);
      }
      addRuleSums(sum, ruleSums);
    }
  }
}

/** An isolate counts as running if it has handed over sums in this time. */
const SEEN_MS = 15_000;

/** More sources than this are not remembered; the one seen longest ago is forgotten first. */
const MAX_SOURCES = 20_000;

/** How many sources are stored, so that a hand-over is not added again after the object was evicted. */
const MAX_STORED = 1000;

/** The sources that have handed over sums lately, in the order in which they were last seen. */
export class Sources {
  readonly #sources = new Map<string, Source>();

  constructor(stored: readonly StoredSource[] = []) {
    for (const [source, sequence] of stored) {
      this.#sources.set(source, { sequence, at: 0, isolates: 0, openBreakers: 0 });
    }
  }

  /**
   * Remembers a hand-over.
   *
   * @returns whether its sums must be added: false if they were added before, or if it has none
   */
  see(handOver: HandOver, now: number): boolean {
    const { source, sequence, minutes, clients } = handOver;
    const before = this.#sources.get(source)?.sequence ?? Number.NEGATIVE_INFINITY;
    const isNew = (minutes.length > 0 || clients.length > 0) && sequence > before;
    this.#sources.delete(source);
    this.#sources.set(source, {
      sequence: isNew ? sequence : before,
      at: now,
      isolates: handOver.isolates,
      openBreakers: handOver.openBreakers ?? 0,
    });
    if (this.#sources.size > MAX_SOURCES) {
      for (const first of this.#sources.keys()) {
        this.#sources.delete(first);
        break;
      }
    }
    return isNew;
  }

  /** Returns the number of isolates that were seen lately, and how many of them have an open breaker. */
  running(now: number): { readonly isolates: number; readonly openBreakers: number } {
    let [isolates, openBreakers] = [0, 0];
    for (const source of [...this.#sources.values()].reverse()) {
      if (now - source.at > SEEN_MS) break;
      isolates += source.isolates;
      openBreakers += source.openBreakers;
    }
    return { isolates, openBreakers };
  }

  /** Returns the sequence numbers of the sources that were seen last. */
  toStored(): StoredSource[] {
    return [...this.#sources]
      .slice(-MAX_STORED)
      .filter(([, { sequence }]) => Number.isFinite(sequence))
      .map(([source, { sequence }]) => [source, sequence]);
  }
}

export type StoredSource = readonly [source: string, sequence: number];

interface Source {
  /** The number of the last hand-over whose sums were added. */
  readonly sequence: number;
  readonly at: number;
  readonly isolates: number;
  readonly openBreakers: number;
}

/**
 * Sums are passed on at most once in this time. Overrides pass two objects on their way to an isolate, and
 * at each they may be this old.
 */
const PASS_ON_INTERVAL_MS = 2500;

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
      const answer = await withTimeout(this.#callParent(handOver), PASS_ON_TIMEOUT_MS, noAnswer);
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

function noAnswer(): never {
  throw new Error("No answer");
}
