import type { LogFacts, LogRequest } from "../../../cli/logs/log-request.ts";
import { ReplayEngine } from "../../../cli/replay/engine.ts";
import type { ReplayedRequest } from "../../../cli/replay/groups.ts";
import { type ConfigInput, defineConfig } from "../../../src/config/index.ts";

/** Midnight of 2026-01-01 UTC. */
export const START = Date.UTC(2026, 0, 1);

/** What a log in Combined Log Format states. */
export const COMBINED: LogFacts = {
  ip: true,
  host: false,
  status: true,
  country: false,
  asn: false,
  bots: false,
  ja4: false,
  bodyBytes: false,
  headers: new Set(["user-agent", "referer"]),
  responseHeaders: new Set(),
};

/** The names of all headers. */
const EVERY_NAME: ReadonlySet<string> = Object.assign(new Set<string>(), { has: () => true });

/** A log that states everything. */
export const ALL: LogFacts = {
  ...{ ip: true, host: true, status: true, country: true, asn: true, bots: true, ja4: true },
  ...{ bodyBytes: true, headers: EVERY_NAME, responseHeaders: EVERY_NAME },
};

/** Returns a request that arrives some seconds after {@link START}. */
export function logged(second: number, fields: Partial<LogRequest> = {}): LogRequest {
  return {
    at: START + second * 1000,
    method: "GET",
    target: "/",
    host: undefined,
    ip: "203.0.113.7",
    status: 200,
    userAgent: undefined,
    headers: undefined,
    responseHeaders: undefined,
    cf: undefined,
    bodyBytes: undefined,
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

export function decide(engine: ReplayEngine, requests: readonly LogRequest[]): ReplayedRequest[] {
  return requests.map((request) => engine.decide(request));
}
