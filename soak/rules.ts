import type { ConfigInput } from "../src/config/index.ts";

/** The number of isolates that run the Worker. They share only the store. */
export const ISOLATES = 2;

const LOCAL = { limit: 40, localShare: 0.25 };

/** The rules count in different ways, because each way of counting can fail differently. */
export const RULES: ConfigInput["rules"] = [
  { name: "leased", match: { paths: ["/leased"] }, limit: 2000, window: "10s" },
  {
    name: "exact",
    match: { paths: ["/exact"] },
    limit: 50,
    window: "10s",
    lease: false,
    onError: "closed",
  },
  {
    name: "windows",
    match: { paths: ["/windows/:id"] },
    limits: [
      { limit: 200, window: "10s" },
      { limit: 700, window: "1m" },
    ],
  },
  { name: "local", match: { paths: ["/local"] }, window: "10s", onError: "local", ...LOCAL },
  { name: "each", match: { paths: ["/shared"] }, limit: 300, window: "10s" },
  {
    name: "all",
    match: { paths: ["/shared"] },
    key: "global",
    limit: 3000,
    window: "10s",
    onError: "closed",
  },
  { name: "abuse", match: { paths: ["/abuse"] }, limit: 5, window: "1m", onError: "closed" },
];

/** A limit that the RateLimit fields name. */
export interface Policy {
  readonly limit: number;
  readonly windowMs: number;
  /** Whether all clients share one counter. */
  readonly isShared: boolean;
}

export const POLICIES: ReadonlyMap<string, Policy> = new Map([
  ["leased", { limit: 2000, windowMs: 10_000, isShared: false }],
  ["exact", { limit: 50, windowMs: 10_000, isShared: false }],
  ["windows/10s", { limit: 200, windowMs: 10_000, isShared: false }],
  ["windows/1m", { limit: 700, windowMs: 60_000, isShared: false }],
  ["local", { limit: LOCAL.limit, windowMs: 10_000, isShared: false }],
  ["each", { limit: 300, windowMs: 10_000, isShared: false }],
  ["all", { limit: 3000, windowMs: 10_000, isShared: true }],
  ["abuse", { limit: 5, windowMs: 60_000, isShared: false }],
]);

/**
 * The policy of a rule with `onError: "local"` while the store fails. Its limit is the number of
 * requests of one client that all isolates may admit in total.
 */
export const LOCAL_POLICY: Policy = {
  limit: LOCAL.limit * LOCAL.localShare * ISOLATES,
  windowMs: 10_000,
  isShared: false,
};

/** The combined `onError` of all rules that apply to a request; "none" if no rule applies to it. */
export type OnError = "open" | "closed" | "local" | "none";
