import { noRuleSums, type RuleSums } from "../statistics/sums.ts";
import { ClientSums } from "./limited-clients.ts";
import type { Resolution, StatisticsQuery, StatisticsReport } from "./protocol.ts";
import {
  BUCKET_MS,
  bucketAt,
  PEAK_BYTES,
  RETENTION_MS,
  RULE_BYTES,
  RuleArray,
  type RuleSlots,
  readHeads,
  type StoredRules,
} from "./statistics-tables.ts";

/** The maximum number of clients of a report. */
const MAX_CLIENTS = 100;

/** Of all rows of a report together, about this number of clients are read: the most limited ones. */
const MAX_READ_CLIENTS = 12_000;
const MIN_READ_CLIENTS = 32;

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
  const found = rows.toArray();
  const heads = readHeads(found.map(({ head }) => head));
  const buckets = found.flatMap(({ at }, i) => {
    const sums = heads[i];
    return sums ? [{ at, requests: sums.requests, store: sums.store }] : [];
  });
  const sums = new RuleArray();
  for (const { resolution: part, from: start, until: end } of coarsest(range)) {
    const rows = sql.exec<StoredRules>(
      `SELECT rules, peaks FROM ${part}s WHERE at >= ? AND at < ?`,
      start,
      end,
    );
    for (const row of rows) sums.addAll(new RuleArray(row));
  }
  const named = rule === undefined ? [...slots.all()] : [{ name: rule, slot: slots.find(rule) }];
  const rules = named.flatMap(({ name, slot }): [string, RuleSums][] => {
    const ruleSums = slot === undefined ? undefined : sums.read(slot);
    return ruleSums ? [[name, ruleSums]] : [];
  });
  const clientRange = clientRangeOf(range);
  return {
    resolution,
    buckets,
    rules: Object.fromEntries(rules),
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
  const part = (bytes: number) => (slot === undefined ? [1, 0] : [slot * bytes + 1, bytes]);
  const rows = sql.exec<StoredRules>(
    `SELECT substr(rules, ?, ?) AS rules, substr(peaks, ?, ?) AS peaks FROM ${resolution}s WHERE at >= ? AND at < ? ORDER BY at`,
    ...part(RULE_BYTES),
    ...part(PEAK_BYTES),
    from,
    until,
  );
  return rows.toArray().map((row) => new RuleArray(row).read(0) ?? noRuleSums());
}

/** Returns the rows that have the clients of a range. Rows of minutes have none, so their hours are read. */
function clientRangeOf(range: Range): Range {
  if (range.resolution !== "minute") return range;
  return { ...range, resolution: "hour", from: bucketAt("hour", range.from) };
}

function readTopClients(sql: SqlStorage, range: Range, rule: string | undefined) {
  const ranges = coarsest(range);
  const rowCount = ranges.reduce(
    (sum, { resolution, from, until }) => sum + (until - from) / BUCKET_MS[resolution],
    0,
  );
  const sums = new ClientSums(Math.max(Math.floor(MAX_READ_CLIENTS / rowCount), MIN_READ_CLIENTS));
  for (const { resolution, from, until } of ranges) {
    const rows = sql.exec<{ clients: string }>(
      `SELECT substr(clients, 1, ?) AS clients FROM ${resolution}s WHERE at >= ? AND at < ? AND clients IS NOT NULL`,
      sums.length,
      from,
      until,
    );
    for (const { clients } of rows) sums.add(clients, rule);
  }
  return sums.top(MAX_CLIENTS);
}

const COARSER = { minute: "hour", hour: "day", day: undefined } as const;

/**
 * Covers a range with as few rows as possible: a day's row in place of the rows of its hours, and an
 * hour's row in place of the rows of its minutes.
 */
export function coarsest({ resolution, from, until }: Range): Range[] {
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
