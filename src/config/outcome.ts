import * as v from "valibot";
import { type BanInput, BanSchema } from "./ban.ts";
import type { DurationInput } from "./duration.ts";
import { faultText } from "./fault-text.ts";
import { boolean, oneOf } from "./fields.ts";
import { Duration } from "./limits.ts";
import { type CustomResponseInput, type ResponseInput, ResponseSchema } from "./response.ts";

/**
 * What a rule does with requests over the limit: it denies them, only logs them, or lets them pass
 * and marks them for the origin.
 */
export type Mode = "enforce" | "shadow" | "mark";

/** The fields of a rule that determine what happens to requests over the limit, or undecided. */
export interface OutcomeFields {
  /**
   * How long a client is denied after it exceeds the limit, written like `window`; or a list of
   * such lengths, for bans that become longer. Cannot be set together with `shards` above 1.
   *
   * @default none: a client is admitted again when a window gives it quota
   * @example "15m"
   * @example ["1m", "10m", "1h"]
   */
  readonly ban?: BanInput | undefined;
  /**
   * `"enforce"`: the rule denies requests over the limit. `"shadow"`: the rule decides and logs,
   * but never denies a request, and clients do not see the rule. `"mark"`: requests over the limit
   * pass, and the origin gets the rule's name in the request header `Weir-Over`.
   *
   * @default "enforce"
   */
  readonly mode?: Mode | undefined;
  /**
   * Whether the origin gets the client's remaining quota in the request header `Weir-Remaining`.
   * Cannot be set together with `mode: "shadow"`.
   *
   * @default false
   */
  readonly tellOrigin?: boolean | undefined;
  /**
   * What happens to a request that the store cannot decide. `"open"`: the request passes.
   * `"closed"`: the request gets 503. `"local"`: each isolate counts in its memory, and admits the
   * share `localShare` of each limit.
   *
   * @default "open"
   */
  readonly onError?: "open" | "closed" | "local" | undefined;
  /**
   * The share of each limit that one isolate admits with `onError: "local"`: a number that is above
   * 0 and not above 1. Can be set only together with `onError: "local"`.
   *
   * @default 0.25
   */
  readonly localShare?: number | undefined;
  /**
   * The largest random delay that Weir adds to Retry-After, so that denied clients do not all
   * return at the same moment. It is written like `window`.
   *
   * @default none
   * @example "10s"
   */
  readonly retryJitter?: DurationInput | undefined;
  /**
   * The status, body and header fields of a denial, or `"custom:NAME"`: the function
   * `custom.responses.NAME` creates the response.
   *
   * @default 429 with application/problem+json
   * @example { status: 503, body: "Slow down." }
   * @example "custom:page"
   */
  readonly response?: ResponseInput | CustomResponseInput | undefined;
}

const SHARE = faultText("a number above 0, at most 1");
const LocalShare = v.custom<number>(
  (value) => typeof value === "number" && value > 0 && value <= 1,
  SHARE,
);

/** The schema of {@link OutcomeFields}. */
export const outcomeFields = {
  ban: v.optional(BanSchema),
  mode: v.optional(oneOf("enforce", "shadow", "mark"), "enforce"),
  tellOrigin: v.optional(boolean(), false),
  onError: v.optional(oneOf("open", "closed", "local"), "open"),
  localShare: v.optional(LocalShare),
  retryJitter: v.optional(Duration),
  response: v.optional(ResponseSchema),
};
