import type { LogFacts, LogRequest } from "../../../cli/logs/log-request.ts";
import type { LogSummary } from "../../../cli/logs/progress.ts";
import { buildSuggestion, SuggestTally } from "../../../cli/suggest/build-suggestion.ts";
import type { RequestClient } from "../../../cli/suggest/client-reader.ts";
import { requestedRule } from "../../../cli/suggest/requested-rule.ts";
import type { Suggestion } from "../../../cli/suggest/suggestion.ts";
import { ClientHash } from "../../../cli/tally/client-ranking.ts";

/** The start of a minute, an hour and a day. */
export const START = Date.UTC(2026, 10, 22);

export const LOG: LogSummary = {
  ...{ files: ["access.log"], formats: ["combined"] },
  ...{ lines: 0, requests: 0, broken: 0, brokenLines: [], late: 0, outside: 0, ignored: 0 },
};

/** The facts of a log in combined format. */
export const FACTS: LogFacts = {
  ...{ ip: true, host: false, status: true, country: false, asn: false },
  ...{ bots: false, ja4: false, bodyBytes: false },
  headers: new Set(["user-agent", "referer"]),
  responseHeaders: new Set(),
};

/** A request of a client at a time, in milliseconds after {@link START}. */
export function requestAt(ms: number, ip: string, others: Partial<LogRequest> = {}): LogRequest {
  return {
    ...{ at: START + ms, method: "GET", target: "/", host: undefined, ip, status: 200 },
    ...{ userAgent: undefined, headers: undefined, responseHeaders: undefined, cf: undefined },
    ...{ bodyBytes: undefined, durationMs: undefined },
    ...others,
  };
}

export interface CountOptions {
  readonly windows?: readonly string[];
  /** A power of 2. */
  readonly maxClients?: number;
}

/** Counts requests by their addresses. */
export function suggestionFor(
  requests: readonly LogRequest[],
  { windows = ["1m"], maxClients }: CountOptions = {},
): Suggestion {
  const requested = requestedRule({ window: windows });
  const tally = new SuggestTally(requested.windows, {
    separateBots: true,
    ...(maxClients !== undefined && { maxClients }),
  });
  for (const request of requests) {
    tally.add(request, clientNamed(request.ip ?? ""));
  }
  return buildSuggestion(requested, tally, LOG);
}

export function clientNamed(identity: string, shown = identity): RequestClient {
  return { identity, hash: new ClientHash().set(identity), shown: () => shown };
}
