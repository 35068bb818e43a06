import type { ConfigInput } from "../../../src/config/index.ts";

/** The deadline of all chaos: short, so that the breaker opens soon. */
export const TIMEOUT_MS = 300;

/** What each client has in a window, by each rule; few enough that none of it is leased. */
export const LIMIT = 8;

/** What one isolate grants of it by itself where the rule is local. */
export const LOCAL_SHARE = 2;

/** A path, and what its rules say together about undecided requests. */
export const PATHS = {
  open: "/open",
  closed: "/closed",
  local: "/local",
  closedOverLocal: "/closed-over-local",
  localOverOpen: "/local-over-open",
  free: "/free",
} as const;

/** In a window so long that none ends while a fault is watched. */
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
