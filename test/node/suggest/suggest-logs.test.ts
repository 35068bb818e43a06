import { expect, it } from "vitest";
import type { LogRequest } from "../../../cli/logs/log-request.ts";
import type { Logs } from "../../../cli/logs/open-logs.ts";
import { LogCounts } from "../../../cli/logs/progress.ts";
import { requestedRule } from "../../../cli/suggest/requested-rule.ts";
import { suggestFromLogs } from "../../../cli/suggest/run-suggest.ts";
import { FACTS, requestAt, START } from "./counted.ts";

/** Logs with these batches of requests. */
function logsOf(
  batches: readonly (readonly LogRequest[])[],
  facts = FACTS,
  signal?: AbortSignal,
): Logs {
  const progress = Object.assign(new LogCounts(), { firstAt: START, lastAt: START + 1 });
  return {
    ...{ formats: ["combined"], facts, progress },
    async *batches() {
      for (const batch of batches) if (!signal?.aborted) yield batch;
    },
  };
}

const BATCHES = [[requestAt(0, "192.0.2.1")], [requestAt(1, "192.0.2.2")]];

it("reports the requests before an interruption", async () => {
  const stopping = new AbortController();
  const { requests, isPartial, notes } = await suggestFromLogs({
    ...{ files: ["a"], logs: logsOf(BATCHES, FACTS, stopping.signal) },
    requested: requestedRule({}),
    signal: stopping.signal,
    onProgress: () => stopping.abort(),
  });
  expect({ requests, isPartial }).toEqual({ requests: 1, isPartial: true });
  expect(notes.map(({ code }) => code)).toContain("partial");
});

it("says what the log does not state", async () => {
  const logs = logsOf(BATCHES, new Set(["ip", "bot"]));
  const { notes } = await suggestFromLogs({ files: ["a"], logs, requested: requestedRule({}) });
  expect(notes.map(({ code }) => code)).toEqual(["few-clients", "status-not-logged", "short-log"]);
});

it("has exact numbers over batches that end within a window", async () => {
  const batches = Array.from({ length: 50 }, (_, at) => [requestAt(at * 1000, "192.0.2.1")]);
  const requested = requestedRule({ window: ["10s"] });
  const { windows } = await suggestFromLogs({ files: ["a"], logs: logsOf(batches), requested });
  expect(windows[0]?.limits[0]).toMatchObject({ limit: 10, requestsDenied: 0 });
});
