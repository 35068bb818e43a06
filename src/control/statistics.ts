import { MINUTE_MS, type RuleSums } from "../statistics/sums.ts";
import type { StatisticsQuery, StatisticsReport, StatisticsUpload, Totals } from "./protocol.ts";
import { readReport } from "./report.ts";
import {
  addHead,
  BucketTables,
  emptyRow,
  RuleSlots,
  type SumsRow,
  TotalsRow,
} from "./statistics-tables.ts";
import { GatheredSums, Sources } from "./uploads.ts";

/** Sums are written at most once in this time, because every written row is billed. */
export const WRITE_INTERVAL_MS = 1000;
/** How often rows that are too old are removed. */
const PRUNE_INTERVAL_MS = 60 * MINUTE_MS;

/** The statistics of the global object: sums in memory that are written once a second, and tables. */
export class Statistics {
  readonly #storage: DurableObjectStorage;
  readonly #buckets: BucketTables;
  #slots: RuleSlots;
  readonly #sources: Sources;
  #totals: TotalsRow;
  readonly #gathered = new GatheredSums();
  #writtenAt = Number.NEGATIVE_INFINITY;
  #prunedAt = Number.NEGATIVE_INFINITY;
  /** The next write, for which calls wait; undefined if no sums wait. */
  #nextWrite: Promise<void> | undefined;

  constructor(storage: DurableObjectStorage, now: number) {
    this.#storage = storage;
    this.#buckets = new BucketTables(storage.sql);
    this.#slots = new RuleSlots(storage.sql);
    this.#totals = new TotalsRow(storage.sql, now);
    this.#sources = new Sources(this.#totals.sources);
  }

  /**
   * Adds the sums of an upload, unless it is a repetition.
   *
   * @returns a promise that resolves when the sums are written. If the object is lost before, the
   *   source gets no answer, and repeats the upload
   */
  async add(upload: StatisticsUpload, now: number): Promise<void> {
    const isNew = this.#sources.see(upload, now);
    if (isNew) this.#gathered.add(upload.minutes, upload.clients, now);
    // A call without sums only loads the overrides for a request, so it must not wait for the next write.
    const hasSums = upload.minutes.length > 0 || upload.clients.length > 0;
    if (hasSums && !this.#gathered.isEmpty) await this.#writeSoon(now);
  }

  read(query: StatisticsQuery, now: number): StatisticsReport {
    this.#write(now);
    const report = readReport(this.#storage.sql, this.#slots, query, now);
    return { ...report, ...this.#sources.running(now) };
  }

  totals(now: number): Omit<Totals, "overrides"> {
    // Numbers that have been read must not decrease if the object is lost, so they are written first.
    this.#write(now);
    const { since, sums } = this.#totals;
    const rules = [...this.#slots.all()].flatMap(({ slot, name }): [string, RuleSums][] => {
      const ruleSums = sums.rules.read(slot);
      return ruleSums ? [[name, ruleSums]] : [];
    });
    return {
      since,
      requests: { ...sums.requests },
      store: { ...sums.store, latency: [...sums.store.latency] },
      rules: Object.fromEntries(rules),
      ...this.#sources.running(now),
    };
  }

  #writeSoon(now: number): Promise<void> {
    if (this.#nextWrite) return this.#nextWrite;
    const waitMs = this.#writtenAt + WRITE_INTERVAL_MS - now;
    // A clock that was set back must not delay the write for longer than the interval.
    if (waitMs <= 0 || waitMs > WRITE_INTERVAL_MS) {
      this.#write(now);
      return Promise.resolve();
    }
    const wait = new Promise((resolve) => setTimeout(resolve, waitMs));
    this.#nextWrite = wait.then(() => {
      this.#nextWrite = undefined;
      this.#write(Date.now());
    });
    return this.#nextWrite;
  }

  #write(now: number): void {
    if (this.#gathered.isEmpty) return;
    this.#writtenAt = now;
    const { minutes, clients } = this.#gathered.take();
    try {
      this.#storage.transactionSync(() => {
        for (const { minute, rules, ...head } of minutes) {
          const sums = emptyRow();
          addHead(sums, head);
          for (const [name, ruleSums] of Object.entries(rules)) {
            sums.rules.add(this.#slotFor(name, now), ruleSums);
          }
          this.#buckets.add(minute * MINUTE_MS, sums);
          this.#addToTotals(sums);
        }
        this.#buckets.addClients(clients);
        this.#totals.write(this.#sources.toStored());
      });
    } catch (error) {
      // The transaction has changed nothing, so the sums wait for the next write.
      this.#totals = new TotalsRow(this.#storage.sql, now);
      this.#slots = new RuleSlots(this.#storage.sql);
      this.#gathered.add(minutes, clients, now);
      throw error;
    }
    if (now - this.#prunedAt > PRUNE_INTERVAL_MS) {
      this.#prunedAt = now;
      this.#buckets.prune(now);
    }
  }

  #addToTotals(sums: SumsRow): void {
    addHead(this.#totals.sums, sums);
    this.#totals.sums.rules.addAll(sums.rules);
  }

  #slotFor(name: string, now: number): number {
    return this.#slots.slotFor(name, now, (slot) => this.#totals.sums.rules.clear(slot));
  }
}
