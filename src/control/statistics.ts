import { ClientSketch } from "../statistics/client-sketch.ts";
import { MINUTE_MS, noRuleSums, type RuleSums } from "../statistics/sums.ts";
import type {
  Bucket,
  Resolution,
  StatisticsQuery,
  StatisticsReport,
  StatisticsUpload,
  Totals,
} from "./protocol.ts";
import {
  addHead,
  BUCKET_MS,
  BucketTables,
  bucketAt,
  emptyRow,
  RETENTION_MS,
  RULE_BYTES,
  RuleArray,
  RuleSlots,
  readClients,
  type SumsRow,
  TotalsRow,
} from "./statistics-tables.ts";
import { GatheredSums, Sources } from "./uploads.ts";

/** The maximum number of clients of a report. */
const MAX_CLIENTS = 100;

/** Rows of one table in a range of time. */
interface Range {
  readonly resolution: Resolution;
  readonly from: number;
  readonly until: number;
}

/** Reads and adds up the rows that a query asks for. */
export function readReport(
  sql: SqlStorage,
  slots: RuleSlots,
  { resolution, from, until, rule }: StatisticsQuery,
  now: number,
): Omit<StatisticsReport, "isolates" | "openBreakers"> {
  const range = {
    resolution,
    // Older rows of this table may be removed, while those of hours or days still have their sums.
    from: bucketAt(resolution, Math.max(from, now - RETENTION_MS[resolution])),
    until: bucketAt(resolution, until - 1) + BUCKET_MS[resolution],
  };
  const rows = sql.exec<{ at: number; head: string }>(
    `SELECT at, head FROM ${resolution}s WHERE at >= ? AND at < ? ORDER BY at`,
    range.from,
    range.until,
  );
  const buckets = rows
    .toArray()
    .map(({ at, head }): Bucket => ({ at, ...(JSON.parse(head) as Omit<Bucket, "at">) }));
  const sums = new RuleArray();
  for (const { resolution: part, from: start, until: end } of coarsest(range)) {
    const stored = sql.exec<{ rules: ArrayBuffer }>(
      `SELECT rules FROM ${part}s WHERE at >= ? AND at < ?`,
      start,
      end,
    );
    for (const each of stored) sums.addAll(new RuleArray(each.rules));
  }
  const rules = Object.entries(readRules(sums, slots));
  const clientRange = clientRangeOf(range);
  return {
    resolution,
    buckets,
    rules: Object.fromEntries(rules.filter(([name]) => rule === undefined || name === rule)),
    ...(rule !== undefined && { ruleBuckets: readRuleBuckets(sql, range, slots.find(rule)) }),
    clients: readTopClients(sql, clientRange, rule),
    clientsFrom: clientRange.from,
  };
}

/** Returns the sums of one rule in each bucket. Reads only the rule's part of each row. */
function readRuleBuckets(
  sql: SqlStorage,
  { resolution, from, until }: Range,
  slot: number | undefined,
): RuleSums[] {
  const rows = sql.exec<{ rules: ArrayBuffer | null }>(
    `SELECT substr(rules, ?, ?) AS rules FROM ${resolution}s WHERE at >= ? AND at < ? ORDER BY at`,
    slot === undefined ? 1 : slot * RULE_BYTES + 1,
    slot === undefined ? 0 : RULE_BYTES,
    from,
    until,
  );
  return rows.toArray().map(({ rules }) => new RuleArray(rules).read(0) ?? noRuleSums());
}

/** Returns the rows that have the clients of a range. Rows of minutes have none, so their hours are read. */
function clientRangeOf(range: Range): Range {
  if (range.resolution !== "minute") return range;
  return { ...range, resolution: "hour", from: bucketAt("hour", range.from) };
}

function readTopClients(sql: SqlStorage, range: Range, rule: string | undefined) {
  const sums = new ClientSketch([], Number.POSITIVE_INFINITY);
  for (const { resolution, from, until } of coarsest(range)) {
    const rows = sql.exec<{ clients: string | null }>(
      `SELECT clients FROM ${resolution}s WHERE at >= ? AND at < ?`,
      from,
      until,
    );
    for (const { clients } of rows) {
      for (const client of readClients(clients)) {
        if (rule === undefined || client.rule === rule) sums.add(client);
      }
    }
  }
  return sums.top(MAX_CLIENTS);
}

const COARSER = { minute: "hour", hour: "day", day: undefined } as const;

/**
 * Covers a range with as few rows as possible: a day's row in place of the rows of its hours, and an
 * hour's row in place of the rows of its minutes.
 */
function coarsest({ resolution, from, until }: Range): Range[] {
  const coarser = COARSER[resolution];
  if (from >= until) return [];
  if (!coarser) return [{ resolution, from, until }];
  const start = bucketAt(coarser, from + BUCKET_MS[coarser] - 1);
  const end = bucketAt(coarser, until);
  if (start >= end) return [{ resolution, from, until }];
  return [
    ...coarsest({ resolution, from, until: start }),
    ...coarsest({ resolution: coarser, from: start, until: end }),
    ...coarsest({ resolution, from: end, until }),
  ];
}

/** Returns the sums of all rules that have any, by their names. */
function readRules(sums: RuleArray, slots: RuleSlots): Record<string, RuleSums> {
  const rules = [...slots.all()].flatMap(([name, slot]): [string, RuleSums][] => {
    const ruleSums = sums.read(slot);
    return ruleSums ? [[name, ruleSums]] : [];
  });
  // Unlike an assignment, fromEntries creates a field also for the name __proto__.
  return Object.fromEntries(rules);
}

/** Sums are written at most once in this time, because every written row is billed. */
const WRITE_INTERVAL_MS = 1000;
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
    return {
      since,
      requests: { ...sums.requests },
      store: { ...sums.store, latency: [...sums.store.latency] },
      rules: readRules(sums.rules, this.#slots),
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
            sums.rules.add(this.#slots.slotFor(name), ruleSums);
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
}
