import type { LogFacts, LogRequest } from "../../../cli/logs/log-request.ts";
import type { LogSummary } from "../../../cli/logs/progress.ts";
import { ClientCounts } from "../../../cli/suggest/counts.ts";
import { requestedRule } from "../../../cli/suggest/requested-rule.ts";
import { buildSuggestion, type Suggestion } from "../../../cli/suggest/suggestion.ts";

/** The start of a minute, an hour and a day. */
export const START = Date.UTC(2026, 10, 22);

export const LOG: LogSummary = {
  ...{ files: ["access.log"], formats: ["combined"] },
  ...{ lines: 0, requests: 0, broken: 0, brokenLines: [], outside: 0, ignored: 0 },
};

/** The facts of a log in combined format. */
export const FACTS: LogFacts = new Set(["ip", "status", "header:user-agent", "header:referer"]);

/** A request of a client at a time, in milliseconds after {@link START}. */
export function requestAt(ms: number, ip: string, others: Partial<LogRequest> = {}): LogRequest {
  return {
    ...{ at: START + ms, method: "GET", target: "/", host: undefined, ip, status: 200 },
    headers: undefined,
    ...others,
  };
}

export interface CountOptions {
  readonly windows?: readonly string[];
  readonly maxClients?: number;
}

/** Counts requests by their addresses. */
export function suggestionFor(
  requests: readonly LogRequest[],
  { windows = ["1m"], maxClients }: CountOptions = {},
): Suggestion {
  const requested = requestedRule({ window: windows });
  const counts = new ClientCounts(requested.windows, maxClients);
  for (const request of requests) {
    const { ip = "" } = request;
    counts.add(request, ip, ip);
  }
  return buildSuggestion(requested, counts, LOG);
}
