import type { Suggestion, WindowSuggestion } from "../../../cli/suggest/suggestion.ts";
import { addressOf, EMPTY_LOG, EMPTY_TIMELINE, iso, LOG, timelineOf } from "./fixtures.ts";

function windowOf(window: string, scale: number): WindowSuggestion {
  const limits = [0.01, 0.001, 0.0001].map((share, index) => ({
    share,
    limit: Math.round(30 * scale * 2.6 ** index),
    clientsDenied: Math.round(51_204 * share),
    requestsDenied: Math.round(40_000 / 5 ** index),
  }));
  const histogram = Array.from({ length: 12 }, (_, index) => ({
    from: 2 ** index,
    to: 2 ** (index + 1) - 1,
    clients: Math.floor(38_000 / 2.6 ** index),
  }));
  const [median, p95, p99, max] = [2, 14, 31, 2900].map((count) => Math.round(count * scale));
  return {
    window,
    clientWindows: 1_204_512,
    median: median ?? 0,
    p95: p95 ?? 0,
    p99: p99 ?? 0,
    max: max ?? 0,
    limits,
    proposed: { limit: 80 * scale, clientsDenied: 50, requestsDenied: 7_900 },
    histogram,
  };
}

export const SUGGESTION: Suggestion = {
  version: 1,
  log: LOG,
  name: "search",
  match: "GET /search",
  key: "header:x-api-key | ip",
  notes: [
    {
      code: "key-not-logged",
      text: "The log does not state x-api-key. Clients count by their addresses.",
    },
  ],
  requests: 884_212,
  clients: 51_204,
  isEstimate: false,
  windows: [windowOf("1m", 1), windowOf("1h", 6), windowOf("1d", 40)],
  bots: [
    { category: "Search Engine Crawler", requests: 40_211, busiest: 212 },
    { category: "Monitoring & Analytics", requests: 2_880, busiest: 1 },
  ],
  loudest: Array.from({ length: 10 }, (_, index) => ({
    client: addressOf(index),
    requests: Math.round(40_000 / (index + 1)),
    busiest: Math.round(2900 / (index + 1)),
    busiestStart: iso(108_000 + index * 60),
    ...(index === 2 && { claimsToBe: "Googlebot" }),
    succeeded: Math.round(36_000 / (index + 1)),
    userAgents: [
      { text: "python-requests/2.33.0", count: Math.round(39_000 / (index + 1)) },
      { text: "curl/8.16.0", count: Math.round(1000 / (index + 1)) },
    ],
    paths: [{ text: "GET /search", count: Math.round(40_000 / (index + 1)) }],
  })),
  timeline: { ...timelineOf(900), denied: [] },
  rule: `{
  name: "search",
  match: { methods: ["GET"], paths: ["/search"] },
  key: "header:x-api-key | ip",
  limits: [
    { limit: 80, window: "1m" },
    { limit: 470, window: "1h" },
  ],
  mode: "shadow",
},
`,
};

export const EMPTY_SUGGESTION: Suggestion = {
  ...SUGGESTION,
  log: EMPTY_LOG,
  notes: [],
  requests: 0,
  clients: 0,
  windows: [],
  bots: [],
  loudest: [],
  timeline: EMPTY_TIMELINE,
  rule: undefined,
};
