import { formatTime } from "../../src/admin/format.ts";
import { parseIsoTime } from "../../src/config/calendar.ts";
import { parseDuration } from "../../src/config/duration.ts";
import { styled } from "../print/text.ts";
import { type ConnectionOptions, connect, type Printed, wrongOptions } from "./connection.ts";
import { denialTable, fetchDenials } from "./denial-table.ts";
import { findRule, readSelector, type SelectorOptions } from "./selector.ts";

export interface DenialsOptions extends ConnectionOptions, SelectorOptions {
  readonly rule?: string;
  readonly since?: string;
  readonly until?: string;
  readonly limit: number;
}

const DAY_MS = 86_400_000;
const TIME_OF_DAY = /^([01]\d|2[0-3]):([0-5]\d)$/;

/** Shows when, and by which policy, clients were denied. */
export async function denials(options: DenialsOptions): Promise<Printed> {
  const { rule, limit } = options;
  const since = options.since === undefined ? undefined : timeOf("--since", options.since);
  const after = TIME_OF_DAY.test(options.since ?? "") ? since : undefined;
  const until = options.until === undefined ? undefined : timeOf("--until", options.until, after);
  if (since !== undefined && until !== undefined && until < since) {
    throw wrongOptions(`--until, ${formatTime(until)}, is before --since, ${formatTime(since)}.`);
  }
  const selector = await readSelector(options);
  const api = await connect(options);
  if (rule !== undefined) await findRule(api, rule);
  const query = new URLSearchParams({
    limit: `${limit}`,
    ...(rule !== undefined && { rule }),
    ...(since !== undefined && { since: `${since}` }),
    ...(until !== undefined && { until: `${until}` }),
  });
  const json = await fetchDenials(api, query, selector);
  const found = json.denials;
  const start = since === undefined ? "" : ` from ${formatTime(since)}`;
  const end = until === undefined ? "" : ` until ${formatTime(until)}`;
  const all =
    found.length < limit
      ? `All that are kept${start}${end}.`
      : "There may be older ones: see --limit.";
  const others =
    selector && "known" in selector
      ? `Only denials of rules that counted the client by ${Object.keys(selector.known).join(", ")}. `
      : "";
  const note = `${others}${all} Isolates upload them every 5 to 25 seconds.`;
  if (found.length === 0) return { json, text: `No denials${start}${end}. ${styled("dim", note)}` };
  return { json, text: `${denialTable(found)}\n\n${styled("dim", note)}` };
}

/**
 * Reads a time: how long ago, a time of day in UTC, or a time with its zone.
 *
 * @param after the time before the time of day; undefined for the last such time before now
 * @throws {CommandFailure} for any other text
 */
function timeOf(option: string, text: string, after?: number): number {
  const now = Date.now();
  const seconds = parseDuration(text);
  if (seconds !== undefined) return now - seconds * 1000;
  const [, hour, minute] = TIME_OF_DAY.exec(text) ?? [];
  if (hour !== undefined) {
    const from = after ?? now - DAY_MS;
    const at = Math.floor(from / DAY_MS) * DAY_MS + (Number(hour) * 60 + Number(minute)) * 60_000;
    return at > from ? at : at + DAY_MS;
  }
  // Weir prints times as 2026-12-01 12:00:00 UTC.
  const iso = text.replace(/^([\d-]{10}) ([\d:]{5,8})( UTC)?$/, "$1T$2Z");
  const isTime = /^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)$/.test(iso);
  const at = isTime ? parseIsoTime(iso) : Number.NaN;
  if (!Number.isNaN(at)) return at;
  throw wrongOptions(
    `${option} is "${text}". Allowed: how long ago, such as 15m or 2h, a time of day in UTC, such as 12:00, or a time with its zone, such as 2026-12-01T12:00:00Z.`,
  );
}
