import * as v from "valibot";
import { DURATION, Duration, type DurationInput, parseDuration } from "./duration.ts";
import { faultText } from "./faults.ts";
import { checkListOf, checkOf, fields, isRecord, listUpTo, parsed } from "./fields.ts";

/** The maximum number of lengths of a ban. */
const MAX_LENGTHS = 10;

const LENGTHS = faultText('a list of 1 to 10 lengths of time, such as ["1m", "10m", "1h"]');
const BAN = faultText(() => `${DURATION}; or ${LENGTHS}; or { lengths, forgetAfter }`);

/**
 * The length of a ban. For bans that become longer: a list of lengths, or an object that also sets the time after
 * which a client's next ban has the first length again.
 */
export type BanInput = DurationInput | readonly DurationInput[] | EscalatingBanInput;

/** Bans that become longer each time. */
export interface EscalatingBanInput {
  /**
   * The lengths of a client's first ban, second ban and so on: 1 to 10 lengths of time, none shorter than the length
   * before it. The last length repeats.
   *
   * @example ["1m", "10m", "1h"]
   */
  readonly lengths: readonly DurationInput[];
  /**
   * The time for which Weir remembers a client's bans after the end of the last ban. After this time, the next ban
   * has the first length again. Written like `window`. Needs at least two lengths.
   *
   * @default the last of the lengths
   * @example "1d"
   */
  readonly forgetAfter?: DurationInput | undefined;
}

/**
 * The bans of a rule, parsed. If there are several lengths, each ban is a strike. The store counts a client's strikes,
 * and their number determines the length of the next ban.
 */
export interface Ban {
  /**
   * The lengths of the first ban, second ban and so on, in milliseconds: at least one, none shorter than the length
   * before it. The last length repeats.
   */
  readonly lengthsMs: readonly number[];
  /** The time for which the store keeps the strikes after the end of the last ban, in milliseconds. */
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
  checkListOf((lengths, refuse) => {
    for (const [index, length] of lengths.entries()) {
      const before = lengths[index - 1];
      if (typeof length !== "number" || typeof before !== "number" || length >= before) continue;
      refuse("conflict", faultText("no ban can be shorter than the one before it"), index);
    }
  }),
);

const EscalatingBan = v.pipe(
  fields({ lengths: Lengths, forgetAfter: v.optional(Duration) }, BAN),
  checkOf(({ lengths, forgetAfter }, refuse) => {
    if (forgetAfter === undefined || !Array.isArray(lengths) || lengths.length !== 1) return;
    refuse(
      "needs",
      faultText("remove forgetAfter, or write at least two lengths: all bans have one length"),
      "forgetAfter",
    );
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
 * The schema of `ban`. The type of the input selects the schema, so that each fault has the path of its field. An
 * object without the fields of {@link EscalatingBanInput} gets the messages for a length, because it is probably a
 * length of time in another notation.
 */
export const BanSchema = v.lazy<v.GenericSchema<BanInput, Ban>>((input) => {
  if (Array.isArray(input)) return LengthsAlone as v.GenericSchema<BanInput, Ban>;
  const isEscalating = isRecord(input) && ("lengths" in input || "forgetAfter" in input);
  return (isEscalating ? EscalatingBan : OneLength) as v.GenericSchema<BanInput, Ban>;
});

/** @param lengths in seconds, at least one */
function toBan(lengths: readonly number[], forgetAfter = lengths.at(-1) as number): Ban {
  return {
    lengthsMs: lengths.map((seconds) => seconds * 1000),
    forgetAfterMs: forgetAfter * 1000,
  };
}
