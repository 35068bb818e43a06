import type { LogFacts, LogRequest } from "../../../cli/logs/log-request.ts";
import { ReplayEngine, type ReplayedRequest } from "../../../cli/replay/engine.ts";
import { type ConfigInput, defineConfig } from "../../../src/config/index.ts";

/** Midnight of 2026-01-01 UTC. */
export const START = Date.UTC(2026, 0, 1);

/** The facts that a log in Combined Log Format states. */
export const COMBINED: LogFacts = new Set([
  ...["ip", "status", "header:user-agent", "header:referer"],
]);

/** A log that states everything. */
export const ALL: LogFacts = Object.assign(new Set<string>(), { has: () => true });

/** Returns a request that arrives some seconds after {@link START}. */
export function logged(second: number, fields: Partial<LogRequest> = {}): LogRequest {
  return {
    at: START + second * 1000,
    method: "GET",
    target: "/",
    host: undefined,
    ip: "203.0.113.7",
    status: 200,
    headers: undefined,
    responseHeaders: undefined,
    cf: undefined,
    ...fields,
  };
}

export function engineOf(
  config: ConfigInput,
  facts: LogFacts = COMBINED,
  missingAsAbsent = false,
): ReplayEngine {
  return new ReplayEngine(defineConfig(config), facts, missingAsAbsent);
}

/** Decides requests, and returns the verdicts in the order of the requests. */
export function decide(engine: ReplayEngine, requests: readonly LogRequest[]): ReplayedRequest[] {
  const decided: ReplayedRequest[] = [];
  for (const [index, request] of requests.entries()) {
    engine.decide(request, (each) => {
      decided[index] = each;
    });
  }
  engine.end();
  return decided;
}
