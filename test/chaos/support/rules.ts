import type { ConfigInput } from "../../../src/config/index.ts";

/**
 * The deadline of all chaos tests, in milliseconds. It is short, so that the breaker opens early.
 */
export const TIMEOUT_MS = 300;

/** The limit of each rule for each client. It is too small for leases. */
export const LIMIT = 8;

/**
 * The number of requests that one isolate admits for a `local` rule while the store fails. It is a
 * quarter of the limit.
 */
export const LOCAL_SHARE = 2;

/** The paths of the requests, named after the `onError` of their rules. No rule matches `free`. */
export const PATHS = {
  open: "/open",
  closed: "/closed",
  local: "/local",
  closedOverLocal: "/closed-over-local",
  localOverOpen: "/local-over-open",
  free: "/free",
} as const;

/** The window is so long that it does not end during a test. */
const QUOTA = { limit: LIMIT, window: "52w" } as const;

export const CONFIG: ConfigInput = {
  timeoutMs: TIMEOUT_MS,
  rules: [
    { name: "open", match: { paths: [PATHS.open, PATHS.localOverOpen] }, ...QUOTA },
    {
      name: "closed",
      match: { paths: [PATHS.closed, PATHS.closedOverLocal] },
      ...QUOTA,
      onError: "closed",
    },
    {
      name: "local",
      match: { paths: [PATHS.local, PATHS.closedOverLocal, PATHS.localOverOpen] },
      ...QUOTA,
      onError: "local",
    },
  ],
};
