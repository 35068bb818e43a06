import * as v from "valibot";
import { type CostInput, CostSchema, NEEDS_SETTLE } from "./cost.ts";
import { faultText } from "./faults.ts";
import {
  bindingName,
  boolean,
  checkOf,
  type Fields,
  fields,
  integer,
  isRecord,
  listOf,
  listUpTo,
  oneOf,
  parsed,
  pathTo,
  pathToItem,
} from "./fields.ts";
import { type CustomResponseInput, type ResponseInput, ResponseSchema } from "./response.ts";
import { DURATION, Duration, type DurationInput, parseDuration } from "./window.ts";

const COUNT = faultText('"request", or { status: [401, 403] }');
const STATUSES = faultText("a list of HTTP statuses");

/** Which requests are charged, by the HTTP status of their response. */
export interface CountStatusInput {
  /**
   * The HTTP statuses (100 to 599) of the responses whose requests are charged.
   *
   * @example [401, 403]
   */
  readonly status: readonly number[];
  /**
   * `true`: a request is charged before it is forwarded, and gets its quota back if its response
   * has another status. So concurrent requests cannot exceed the limit. `false`: a request is
   * charged after its response arrives.
   *
   * @default false
   */
  readonly reserve?: boolean | undefined;
}

/** Which requests are charged: all, or only those whose response has one of these HTTP statuses. */
export type CountInput = "request" | CountStatusInput;

/** The fields of a rule that determine how much quota a request takes. */
export interface ChargeFields {
  /**
   * How much quota a request takes:
   *
   * - a whole number from 0 to 999999999999999
   * - `"custom:NAME"`: the result of your function `custom.costs.NAME`, a top-level field
   * - `"body:bytes"`: the length of the request's body
   * - `"header:NAME"`: the number in that header field of the origin's response
   * - an object, for bounds, or to charge an estimate before the request and settle it by the
   *   response: see {@link ComputedCostInput}
   *
   * A cost that only the response determines is charged after the response arrives, so concurrent
   * requests can exceed the limit in total.
   *
   * @default 1
   * @example "header:x-tokens-used"
   * @example { from: "custom:depth", max: 100 }
   * @example { reserve: 1200, settle: "header:x-tokens-used" }
   */
  readonly cost?: CostInput | undefined;
  /**
   * Which requests are charged: `"request"` for every request, or only requests whose responses have
   * one of these HTTP statuses (100 to 599). If statuses are set, Weir charges a request after its
   * response arrives, so concurrent requests can exceed the limit in total. With `reserve: true`,
   * Weir charges a request before it is forwarded, and gives the quota back if the response has
   * another status.
   *
   * @default "request"
   * @example { status: [401, 403] }
   */
  readonly count?: CountInput | undefined;
}

/** Which requests are charged, by the HTTP status of their response. */
export interface StatusCount {
  readonly statuses: readonly number[];
  /** Whether a request is charged before it is forwarded. */
  readonly reserve: boolean;
}

const Status = v.pipe(
  fields(
    {
      status: listOf(integer(100, 599), STATUSES),
      reserve: v.optional(boolean(), false),
    },
    COUNT,
  ),
  v.transform(({ status, reserve }): StatusCount => ({ statuses: status, reserve })),
);
const Word = v.pipe(
  v.custom<"request">((value) => value === "request", COUNT),
  v.transform(() => undefined),
);

/** The output is undefined if every request is charged. */
// The type of the input selects the schema. A union is not used, because its message would not
// contain the path of a fault within the object.
const CountSchema = v.lazy<v.GenericSchema<CountInput, StatusCount | undefined>>((input) =>
  isRecord(input) ? Status : Word,
);

/** The schema of {@link ChargeFields}. */
export const chargeFields = {
  cost: v.optional(CostSchema, 1),
  count: v.optional(CountSchema, "request"),
};

/**
 * Checks that a cost with a reserve has `settle`. A rule that only programs use needs no `settle`,
 * because the programs settle the reserve.
 */
export function checkReserve<Output>() {
  return checkOf<Output>(({ for: audience, cost }, refuse) => {
    if (audience !== "all" || !isRecord(cost)) return;
    if (typeof reserveIn(cost) !== "number" || cost.from !== undefined) return;
    if (cost.settle === undefined) refuse(NEEDS_SETTLE, "cost", "settle");
  });
}

/**
 * Returns the reserve of a cost that may have faults. A parsed cost stores the reserve in `before`, and
 * a number there is always a reserve.
 */
export function reserveIn(cost: Fields): unknown {
  return cost.before ?? cost.reserve;
}

/** The maximum number of lengths of a ban. */
const MAX_LENGTHS = 10;

const LENGTHS = faultText('a list of 1 to 10 lengths of time, such as ["1m", "10m", "1h"]');
const BAN = faultText(() => `${DURATION}; or ${LENGTHS}; or { lengths, forgetAfter }`);

/**
 * How long a client is banned: a length of time, or a list of lengths for bans that become longer,
 * or an object that also sets the time after which a client's next ban has the first length again.
 */
export type BanInput = DurationInput | readonly DurationInput[] | EscalatingBanInput;

/** Bans that become longer each time. */
export interface EscalatingBanInput {
  /**
   * The lengths of a client's first ban, second ban and so on: 1 to 10 lengths of time. No length
   * may be shorter than the one before it. The last length repeats.
   *
   * @example ["1m", "10m", "1h"]
   */
  readonly lengths: readonly DurationInput[];
  /**
   * How long Weir remembers a client's bans after the last of them has ended. After this time, the
   * next ban has the first length again. It is written like `window`, and needs at least two
   * lengths.
   *
   * @default the last of the lengths
   * @example "1d"
   */
  readonly forgetAfter?: DurationInput | undefined;
}

/** The bans of a rule, parsed. */
export interface Ban {
  /** The length of the first ban, in milliseconds. */
  readonly banMs: number;
  /** Present if later bans are longer. */
  readonly escalation?: Escalation;
}

/**
 * How a client's bans become longer. Each ban is a strike. The store counts a client's strikes, and
 * the number of strikes determines the length of the next ban.
 */
export interface Escalation {
  /**
   * The lengths of the first ban, the second ban and so on, in milliseconds: at least two, none
   * shorter than the one before it. The last length repeats.
   */
  readonly lengthsMs: readonly number[];
  /** How long the store keeps the strikes after the end of the last ban, in milliseconds. */
  readonly forgetAfterMs: number;
}

const Lengths = v.pipe(
  listUpTo(
    MAX_LENGTHS,
    Duration,
    LENGTHS,
    faultText(() => `at most ${MAX_LENGTHS} lengths`),
  ),
  v.check((lengths) => lengths.length > 0, LENGTHS),
  v.rawCheck(({ dataset, addIssue }) => {
    const lengths: unknown = dataset.value;
    // The check also runs if a length has a fault, so that all faults are reported at once.
    if (!Array.isArray(lengths)) return;
    for (const [index, length] of lengths.entries()) {
      const before: unknown = lengths[index - 1];
      if (typeof length !== "number" || typeof before !== "number" || length >= before) continue;
      const path: [v.ArrayPathItem] = [pathToItem(lengths, index)];
      addIssue({
        path,
        input: length,
        message: faultText("no ban can be shorter than the one before it"),
      });
    }
  }),
);

const EscalatingBan = v.pipe(
  fields({ lengths: Lengths, forgetAfter: v.optional(Duration) }, BAN),
  v.rawCheck(({ dataset, addIssue }) => {
    const value: unknown = dataset.value;
    if (!isRecord(value) || value.forgetAfter === undefined) return;
    if (!Array.isArray(value.lengths) || value.lengths.length !== 1) return;
    const message = faultText(
      "remove forgetAfter, or write at least two lengths: all bans have one length",
    );
    addIssue({ path: [pathTo(value, "forgetAfter")], input: value.forgetAfter, message });
  }),
  v.transform(({ lengths, forgetAfter }) => toBan(lengths, forgetAfter)),
);

const LengthsAlone = v.pipe(
  Lengths,
  v.transform((lengths) => toBan(lengths)),
);

const OneLength = parsed<unknown, Ban>((given) => {
  const seconds = parseDuration(given);
  return seconds === undefined ? undefined : toBan([seconds]);
}, BAN);

/**
 * The schema of `ban`. The type of the input selects the schema, so that each fault has the path of
 * its field. An object without the fields of {@link EscalatingBanInput} is probably a length of
 * time in another notation, so it gets the messages for a length.
 */
const BanSchema = v.lazy<v.GenericSchema<BanInput, Ban>>((input) => {
  if (Array.isArray(input)) return LengthsAlone as v.GenericSchema<BanInput, Ban>;
  const isEscalating = isRecord(input) && ("lengths" in input || "forgetAfter" in input);
  return (isEscalating ? EscalatingBan : OneLength) as v.GenericSchema<BanInput, Ban>;
});

/** @param lengths in seconds, at least one */
function toBan(lengths: readonly number[], forgetAfter = lengths.at(-1) as number): Ban {
  const lengthsMs = lengths.map((seconds) => seconds * 1000);
  const ban = { banMs: lengthsMs[0] as number };
  return lengths.length === 1
    ? ban
    : { ...ban, escalation: { lengthsMs, forgetAfterMs: forgetAfter * 1000 } };
}

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

const BINDING = faultText("the name of a ratelimits binding in wrangler.toml");
const NATIVE_LIMITER = faultText('{ binding: "NAME" }');

/**
 * Cloudflare's own rate limiter. Rules with `onError: "local"` also call it while the store fails.
 */
export interface NativeLimiterInput {
  /**
   * The name of a `ratelimits` binding in wrangler.toml.
   *
   * @example "NATIVE_LIMITER"
   */
  readonly binding: string;
}

export const NativeLimiterSchema = fields({ binding: bindingName(BINDING) }, NATIVE_LIMITER);
