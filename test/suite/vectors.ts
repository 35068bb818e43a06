import { calendarOf } from "../../src/config/calendar.ts";
import { calendarFor } from "./calendar-cases.ts";
import { bans } from "./counters.ts";
import { no, type Vector, yes } from "./vector.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 52 * 7 * DAY;
const MAX = Number.MAX_SAFE_INTEGER;
const BAN = 10 * MINUTE;
/** Days in a time zone without summer time. Each day begins at 18:15 UTC. */
const DAY_IN_NEPAL = calendarOf("day", "Asia/Kathmandu", {});

const basic: Vector[] = [
  {
    name: "a plain counter admits its limit, denies the next request, and admits in the next window",
    counter: { limit: 2 },
    steps: [
      { at: 0, expect: yes(1, MINUTE) },
      { at: 30_000, expect: yes(0, 30_000) },
      { at: 59_999, expect: no(0, 1) },
      { at: 60_000, expect: yes(1, MINUTE) },
    ],
  },
  {
    name: "a cost of 1 is admitted after a cost of 5 was denied",
    counter: { limit: 5 },
    steps: [
      { at: 0, expect: yes(4, MINUTE) },
      { at: 1, cost: 5, expect: no(4, 59_999) },
      { at: 2, cost: 1, expect: yes(3, 59_998) },
    ],
  },
  {
    name: "a cost of 0 is admitted by a counter without quota left, and charges nothing",
    counter: { limit: 1 },
    steps: [
      { at: 0, cost: 0, expect: yes(1, MINUTE) },
      { at: 0, expect: yes(0, MINUTE) },
      { at: 0, cost: 0, expect: yes(0, MINUTE) },
    ],
  },
  {
    name: "10 a minute: a denied cost of 10 waits for the next window",
    counter: { limit: 10, rollsOver: true },
    steps: [
      { at: 0, cost: 5, expect: yes(5, MINUTE) },
      { at: MINUTE, cost: 6, expect: yes(4, MINUTE) },
      { at: MINUTE, cost: 10, expect: no(4, MINUTE) },
    ],
  },
  {
    name: "a denied cost waits until enough windows have repaid it",
    counter: { limit: 10, capacity: 40, rollsOver: true },
    steps: [
      { at: 0, cost: 40, expect: yes(0, MINUTE) },
      { at: 15_000, cost: 10, expect: no(0, 45_000, { retryMs: 45_000 }) },
      { at: 15_000, cost: 11, expect: no(0, 45_000, { retryMs: 105_000 }) },
      { at: 15_000, cost: 40, expect: no(0, 45_000, { retryMs: 225_000 }) },
      { at: 240_000, cost: 40, expect: yes(0, MINUTE) },
    ],
  },
  {
    name: "10 a minute: a reservation waits until later windows have repaid it",
    counter: { limit: 10, rollsOver: true },
    steps: [
      { at: 0, cost: 5, reserve: 100, expect: yes(5, MINUTE) },
      {
        at: MINUTE,
        cost: 16,
        reserve: 100,
        expect: yes(-6, MINUTE, { reservationDelayMs: MINUTE }),
      },
      {
        at: 90_000,
        cost: 5,
        reserve: 100,
        expect: yes(-11, 30_000, { reservationDelayMs: 90_000 }),
      },
    ],
  },
  {
    name: "a limit of 2^53 - 1 is counted exactly",
    counter: { limit: MAX },
    steps: [
      { at: 0, cost: MAX - 1, expect: yes(1, MINUTE) },
      { at: 0, cost: 1, expect: yes(0, MINUTE) },
      { at: 0, cost: 1, expect: no(0, MINUTE) },
      { at: 0, cost: MAX, expect: no(0, MINUTE) },
    ],
  },
  {
    name: "a denial by a small limit does not change a count of 2^53 - 1",
    counter: { limit: 5 },
    steps: [
      { at: 0, op: "adjust", cost: MAX, expect: { value: 5 - MAX, resetMs: MINUTE } },
      { at: 0, expect: no(5 - MAX, MINUTE) },
      { at: 0, cost: 0, expect: no(5 - MAX, MINUTE) },
    ],
  },
  {
    name: "a refund returns at most what was used",
    counter: { limit: 5 },
    steps: [
      { at: 0, cost: 4, expect: yes(1, MINUTE) },
      { at: 0, op: "adjust", cost: -3, expect: { value: 4, resetMs: MINUTE } },
      { at: 0, op: "adjust", cost: -3, expect: { value: 5, resetMs: MINUTE } },
      { at: 0, cost: 5, expect: yes(0, MINUTE) },
      { at: 0, expect: no(0, MINUTE) },
    ],
  },
  {
    name: "several windows repay a charge above the capacity",
    counter: { limit: 5, capacity: 6, rollsOver: true },
    steps: [
      { at: 0, op: "adjust", cost: 17, expect: { value: -11, resetMs: MINUTE } },
      { at: 0, expect: no(-11, MINUTE, { retryMs: 3 * MINUTE }) },
      { at: 2 * MINUTE, expect: no(-1, MINUTE) },
      { at: 3 * MINUTE, expect: yes(3, MINUTE) },
    ],
  },
  {
    name: "a reset empties a plain counter",
    counter: { limit: 3 },
    steps: [
      { at: 0, cost: 3, expect: yes(0, MINUTE) },
      { at: 1, op: "reset" },
      { at: 2, cost: 3, expect: yes(0, 59_998) },
    ],
  },
  {
    name: "a reset ends a ban",
    counter: { limit: 1, ban: bans(BAN) },
    steps: [
      { at: 0, expect: yes(0, MINUTE) },
      { at: 0, expect: no(0, MINUTE, { banMs: BAN, retryMs: BAN }) },
      { at: 0, op: "reset" },
      { at: 0, expect: yes(0, MINUTE) },
    ],
  },
  {
    name: "a ban is not extended by requests, and denies a cost of 0",
    counter: { limit: 1, ban: bans(BAN) },
    steps: [
      { at: 0, cost: 2, expect: no(1, MINUTE, { banMs: BAN, retryMs: BAN }) },
      { at: 1000, cost: 1, expect: no(1, 59_000, { banMs: 599_000, retryMs: 599_000 }) },
      { at: 2000, cost: 0, expect: no(1, 58_000, { banMs: 598_000, retryMs: 598_000 }) },
    ],
  },
  {
    name: "the first of several lengths of a ban",
    counter: {
      limit: 0,
      ban: { lengthsMs: [BAN, 2 * BAN], forgetAfterMs: MINUTE },
    },
    steps: [
      { at: 0, expect: no(0, MINUTE, { banMs: BAN, retryMs: BAN }) },
      { at: 0, expect: no(0, MINUTE, { banMs: BAN, retryMs: BAN }) },
      { at: 0, op: "reset" },
      { at: 0, cost: 0, expect: yes(0, MINUTE) },
    ],
  },
  {
    name: "a day of a time zone: a refund, and a denial",
    counter: { limit: 2, calendar: DAY_IN_NEPAL },
    steps: [
      { at: DAY - MINUTE, cost: 2, expect: yes(0, MINUTE) },
      { at: DAY - MINUTE, expect: no(0, MINUTE) },
      { at: DAY - MINUTE, op: "adjust", cost: -1, expect: { value: 1, resetMs: MINUTE } },
      { at: DAY - MINUTE, expect: yes(0, MINUTE) },
    ],
  },
  {
    name: "a day of a time zone ends at its midnight",
    counter: { limit: 2, calendar: DAY_IN_NEPAL },
    steps: [
      { at: DAY - MINUTE, cost: 2, expect: yes(0, MINUTE) },
      { at: DAY - 1, expect: no(0, 1) },
      { at: DAY, cost: 0, expect: yes(2, DAY) },
    ],
  },
];

const plain: Vector[] = [
  {
    name: "a plain counter keeps no quota of unused windows",
    counter: { limit: 3 },
    steps: [
      { at: 0, cost: 2, expect: yes(1, MINUTE) },
      { at: 10 * MINUTE, cost: 3, expect: yes(0, MINUTE) },
      { at: 10 * MINUTE + 1, expect: no(0, 59_999) },
    ],
  },
  {
    name: "a cost of 0 is denied while more than the limit is used",
    counter: { limit: 2 },
    steps: [
      { at: 0, op: "adjust", cost: 3, expect: { value: -1, resetMs: MINUTE } },
      { at: 0, cost: 0, expect: no(-1, MINUTE) },
      { at: MINUTE, cost: 0, expect: yes(2, MINUTE) },
    ],
  },
  {
    name: "a cost above the limit is always denied",
    counter: { limit: 4 },
    steps: [
      { at: 0, cost: 5, expect: no(4, MINUTE) },
      { at: MINUTE, cost: 5, expect: no(4, MINUTE) },
      { at: MINUTE, cost: 4, expect: yes(0, MINUTE) },
    ],
  },
  {
    name: "a limit of 0 admits only a cost of 0",
    counter: { limit: 0 },
    steps: [
      { at: 0, expect: no(0, MINUTE) },
      { at: 0, cost: 0, expect: yes(0, MINUTE) },
      { at: MINUTE, expect: no(0, MINUTE) },
    ],
  },
];

const windows: Vector[] = [
  {
    name: "a window of a second",
    counter: { limit: 1, windowMs: SECOND },
    steps: [
      { at: 0, expect: yes(0, 1000) },
      { at: 999, expect: no(0, 1) },
      { at: 1000, expect: yes(0, 1000) },
    ],
  },
  {
    name: "a window of 52 weeks",
    counter: { limit: 1, windowMs: YEAR },
    steps: [
      { at: 1, expect: yes(0, 31_449_599_999) },
      { at: YEAR - 1, expect: no(0, 1) },
      { at: YEAR, expect: yes(0, 31_449_600_000) },
    ],
  },
  {
    name: "a day that begins at 17:00",
    counter: { limit: 1, windowMs: DAY, offsetMs: 17 * HOUR },
    steps: [
      { at: 16 * HOUR, expect: yes(0, HOUR) },
      { at: 17 * HOUR - 1, expect: no(0, 1) },
      { at: 17 * HOUR, expect: yes(0, DAY) },
    ],
  },
  {
    name: "windows with negative numbers",
    counter: { limit: 2, zeroAt: 2 * MINUTE },
    steps: [
      { at: 0, expect: yes(1, MINUTE) },
      { at: 59_999, cost: 2, expect: no(1, 1) },
      { at: 60_000, cost: 2, expect: yes(0, MINUTE) },
      { at: 120_000, cost: 2, expect: yes(0, MINUTE) },
    ],
  },
  {
    name: "windows that roll over from negative numbers to 0",
    counter: { limit: 2, capacity: 4, zeroAt: 2 * MINUTE, rollsOver: true },
    steps: [
      { at: 0, cost: 4, expect: yes(0, MINUTE) },
      { at: 60_000, cost: 1, expect: yes(1, MINUTE) },
      { at: 120_000, cost: 3, expect: yes(0, MINUTE) },
    ],
  },
  {
    name: "an offset with windows that roll over",
    counter: { limit: 10, capacity: 15, offsetMs: 20_000, rollsOver: true },
    steps: [
      { at: 19_999, cost: 15, expect: yes(0, 1) },
      { at: 20_000, cost: 5, expect: yes(5, MINUTE) },
      { at: 80_000, cost: 15, expect: yes(0, MINUTE) },
    ],
  },
];

const calendars: Vector[] = [
  {
    name: "months that begin on the 31st, and on the last day of shorter months",
    counter: { limit: 5, calendar: calendarFor("month", "UTC", "31") },
    base: Date.UTC(2044, 0, 31),
    steps: [
      { at: 0, cost: 5, expect: yes(0, 29 * DAY) },
      { at: 29 * DAY - 1, expect: no(0, 1) },
      { at: 29 * DAY, cost: 4, expect: yes(1, 31 * DAY) },
      { at: 60 * DAY - 1, cost: 2, expect: no(1, 1) },
      { at: 60 * DAY, cost: 2, expect: yes(3, 30 * DAY) },
      { at: 60 * DAY, op: "reset" },
      { at: 60 * DAY, cost: 5, expect: yes(0, 30 * DAY) },
    ],
  },
  {
    name: "a denied cost waits for months of different lengths",
    counter: { limit: 10, capacity: 40, rollsOver: true, calendar: calendarFor("month", "UTC") },
    base: Date.UTC(2044, 0, 1),
    steps: [
      { at: 0, cost: 40, expect: yes(0, 31 * DAY) },
      { at: 30 * DAY, cost: 10, expect: no(0, DAY) },
      { at: 30 * DAY, cost: 11, expect: no(0, DAY, { retryMs: 30 * DAY }) },
      { at: 30 * DAY, cost: 40, expect: no(0, DAY, { retryMs: 91 * DAY }) },
      { at: 60 * DAY, cost: 20, expect: yes(0, 31 * DAY) },
      { at: 121 * DAY, cost: 0, expect: yes(20, 31 * DAY) },
    ],
  },
  {
    name: "a reservation waits for months of different lengths",
    counter: { limit: 10, rollsOver: true, calendar: calendarFor("month", "UTC") },
    base: Date.UTC(2044, 0, 1),
    steps: [
      { at: 0, cost: 10, expect: yes(0, 31 * DAY) },
      {
        at: 0,
        cost: 20,
        reserve: 100,
        expect: yes(-20, 31 * DAY, { reservationDelayMs: 60 * DAY }),
      },
      { at: 31 * DAY, op: "adjust", cost: -15, expect: { value: 5, resetMs: 29 * DAY } },
    ],
  },
  {
    name: "a clock that steps back into a month does not add its limit twice",
    counter: { limit: 1, capacity: 2, rollsOver: true, calendar: calendarFor("month", "UTC") },
    base: Date.UTC(2044, 1, 1),
    steps: [
      { at: 0, cost: 2, expect: yes(0, 29 * DAY) },
      { at: -HOUR, cost: 0, expect: yes(0, 29 * DAY + HOUR) },
      { at: -1, expect: no(0, 29 * DAY + 1) },
      { at: 29 * DAY, expect: yes(0, 31 * DAY) },
    ],
  },
  {
    name: "a limit that a deploy changes within a month",
    counter: { limit: 5, calendar: calendarFor("month", "Europe/Berlin") },
    base: Date.UTC(2044, 1, 29, 23) - MINUTE,
    steps: [
      { at: 0, cost: 5, expect: yes(0, MINUTE) },
      { at: 0, limit: 9, expect: yes(3, MINUTE) },
      { at: 0, limit: 3, cost: 0, expect: no(-3, MINUTE) },
      // The clocks are changed on 27 March.
      { at: MINUTE, limit: 3, expect: yes(2, 31 * DAY - HOUR) },
    ],
  },
  {
    name: "a ban that lasts until after the end of the month",
    counter: { limit: 1, ban: bans(HOUR), calendar: calendarFor("month", "UTC") },
    base: Date.UTC(2044, 1, 29, 23, 59),
    steps: [
      { at: 0, expect: yes(0, MINUTE) },
      { at: 0, expect: no(0, MINUTE, { banMs: HOUR, retryMs: HOUR }) },
    ],
  },
];

const rollover: Vector[] = [
  {
    name: "100 an hour up to 150: each hour adds to the quota left, up to the capacity",
    counter: { limit: 100, capacity: 150, windowMs: HOUR, rollsOver: true },
    steps: [
      { at: 0, cost: 80, expect: yes(70, HOUR) },
      { at: HOUR, cost: 0, expect: yes(150, HOUR) },
      { at: 1.5 * HOUR, cost: 30, expect: yes(120, 0.5 * HOUR) },
      { at: 2 * HOUR, cost: 0, expect: yes(150, HOUR) },
    ],
  },
  {
    name: "1 a second up to 3: three at once, and the fourth a second later",
    counter: { limit: 1, capacity: 3, windowMs: SECOND, rollsOver: true },
    steps: [
      { at: 0, cost: 4, expect: no(3, 1000) },
      { at: 0, cost: 3, expect: yes(0, 1000) },
      { at: 0, expect: no(0, 1000) },
    ],
  },
  {
    name: "each unused window adds its limit, up to the capacity",
    counter: { limit: 3, capacity: 10, rollsOver: true },
    steps: [
      { at: 0, cost: 10, expect: yes(0, MINUTE) },
      { at: 2 * MINUTE, cost: 1, expect: yes(5, MINUTE) },
      { at: 3 * MINUTE, cost: 8, expect: yes(0, MINUTE) },
      { at: 99 * MINUTE, cost: 0, expect: yes(10, MINUTE) },
    ],
  },
];

const reservations: Vector[] = [
  {
    name: "1 a second, one below zero: the next request waits two seconds",
    counter: { limit: 1, windowMs: SECOND, rollsOver: true },
    steps: [
      { at: 0, cost: 2, reserve: 1, expect: yes(-1, 1000, { reservationDelayMs: 1000 }) },
      { at: 0, expect: no(-1, 1000, { retryMs: 2000 }) },
      { at: 0, reserve: 1, expect: no(-1, 1000, { retryMs: 2000 }) },
    ],
  },
  {
    name: "1 a second, at most two reserved: a cost of 4 is denied",
    counter: { limit: 1, windowMs: SECOND, rollsOver: true },
    steps: [
      { at: 0, cost: 4, reserve: 2, expect: no(1, 1000, { retryMs: 3000 }) },
      { at: 0, cost: 3, reserve: 2, expect: yes(-2, 1000, { reservationDelayMs: 2000 }) },
    ],
  },
  {
    name: "reservations take at most the allowed quota, and each window repays its limit",
    counter: { limit: 10, capacity: 12, rollsOver: true },
    steps: [
      { at: 0, cost: 22, reserve: 15, expect: yes(-10, MINUTE, { reservationDelayMs: MINUTE }) },
      {
        at: 20_000,
        cost: 5,
        reserve: 15,
        expect: yes(-15, 40_000, { reservationDelayMs: 100_000 }),
      },
      { at: 20_000, cost: 1, reserve: 15, expect: no(-15, 40_000, { retryMs: 100_000 }) },
      { at: MINUTE, cost: 1, expect: no(-5, MINUTE, { retryMs: MINUTE }) },
      { at: 2 * MINUTE, cost: 5, expect: yes(0, MINUTE) },
      { at: 4 * MINUTE, cost: 12, expect: yes(0, MINUTE) },
    ],
  },
];

const clocks: Vector[] = [
  {
    name: "a clock that steps back into a window finds its count",
    counter: { limit: 2 },
    steps: [
      { at: 59_900, cost: 2, expect: yes(0, 100) },
      { at: 60_100, expect: yes(1, 59_900) },
      { at: 59_950, expect: no(0, 50) },
      { at: 60_200, expect: yes(0, 59_800) },
    ],
  },
  {
    name: "a clock that steps back does not add a window's limit twice",
    counter: { limit: 1, capacity: 2, rollsOver: true },
    steps: [
      { at: 59_900, cost: 2, expect: yes(0, 100) },
      { at: 60_100, expect: yes(0, 59_900) },
      { at: 59_950, cost: 0, expect: yes(0, 60_050) },
      { at: 59_950, expect: no(0, 60_050) },
      { at: 60_200, expect: no(0, 59_800) },
      { at: 120_000, expect: yes(0, MINUTE) },
    ],
  },
  {
    name: "an adjustment after the clock has stepped back applies to the latest window",
    counter: { limit: 1, capacity: 2, rollsOver: true },
    steps: [
      { at: 60_100, cost: 2, expect: yes(0, 59_900) },
      { at: 59_950, op: "adjust", cost: -1, expect: { value: 1, resetMs: 60_050 } },
      { at: 60_200, cost: 1, expect: yes(0, 59_800) },
      { at: 60_200, cost: 1, expect: no(0, 59_800) },
    ],
  },
  {
    name: "an adjustment by 0 does not move the counter to a later window",
    counter: { limit: 10, capacity: 20, rollsOver: true },
    steps: [
      { at: 59_900, cost: 15, expect: yes(5, 100) },
      { at: 60_100, op: "adjust", cost: 0, expect: { value: 15, resetMs: 59_900 } },
      { at: 60_100, cost: 0, expect: yes(15, 59_900) },
      { at: 59_950, cost: 0, expect: yes(5, 50) },
    ],
  },
];

const largest: Vector[] = [
  {
    name: "a denial does not change a count between the limit and 2^53 - 1",
    counter: { limit: MAX - 10 },
    steps: [
      { at: 0, op: "adjust", cost: MAX - 5, expect: { value: -5, resetMs: MINUTE } },
      { at: 0, expect: no(-5, MINUTE) },
      { at: 0, op: "adjust", cost: -6, expect: { value: 1, resetMs: MINUTE } },
      { at: 0, expect: yes(0, MINUTE) },
    ],
  },
  {
    name: "counts stay between 0 and 2^53 - 1",
    counter: { limit: 5 },
    steps: [
      { at: 0, op: "adjust", cost: MAX, expect: { value: 5 - MAX, resetMs: MINUTE } },
      { at: 0, op: "adjust", cost: 1, expect: { value: 5 - MAX, resetMs: MINUTE } },
      { at: 0, op: "adjust", cost: -MAX, expect: { value: 5, resetMs: MINUTE } },
      { at: 0, op: "adjust", cost: -1, expect: { value: 5, resetMs: MINUTE } },
    ],
  },
  {
    name: "a limit of 2^52 rolls over up to 2^53 - 1",
    counter: { limit: 2 ** 52, capacity: MAX, rollsOver: true },
    steps: [
      { at: 0, cost: MAX, expect: yes(0, MINUTE) },
      { at: 0, cost: MAX, expect: no(0, MINUTE, { retryMs: 2 * MINUTE }) },
      { at: MINUTE, cost: 2 ** 52, expect: yes(0, MINUTE) },
      { at: 3 * MINUTE, cost: 0, expect: yes(MAX, MINUTE) },
    ],
  },
];

const adjustments: Vector[] = [
  {
    name: "a refund of an unused counter changes nothing",
    counter: { limit: 5, capacity: 8, rollsOver: true },
    steps: [
      { at: 0, op: "adjust", cost: -3, expect: { value: 8, resetMs: MINUTE } },
      { at: 0, cost: 8, expect: yes(0, MINUTE) },
      { at: 0, expect: no(0, MINUTE) },
    ],
  },
  {
    name: "a refund of a reservation frees its quota at once",
    counter: { limit: 10, rollsOver: true },
    steps: [
      {
        at: 0,
        cost: 30,
        reserve: 20,
        expect: yes(-20, MINUTE, { reservationDelayMs: 2 * MINUTE }),
      },
      { at: 0, op: "adjust", cost: -25, expect: { value: 5, resetMs: MINUTE } },
      { at: 0, cost: 5, expect: yes(0, MINUTE) },
    ],
  },
  {
    name: "a plain counter forgets a charge above the limit at the window's end",
    counter: { limit: 5 },
    steps: [
      { at: 0, op: "adjust", cost: 17, expect: { value: -12, resetMs: MINUTE } },
      { at: 0, expect: no(-12, MINUTE) },
      { at: MINUTE, cost: 5, expect: yes(0, MINUTE) },
    ],
  },
  {
    name: "a charge that later windows repay in centuries",
    counter: { limit: 1, windowMs: YEAR, rollsOver: true },
    steps: [
      { at: 0, op: "adjust", cost: 1000, expect: { value: -999, resetMs: YEAR } },
      { at: 0, expect: no(-999, YEAR, { retryMs: 1000 * YEAR }) },
      { at: YEAR, cost: 0, expect: no(-998, YEAR, { retryMs: 998 * YEAR }) },
      { at: YEAR, op: "adjust", cost: -999, expect: { value: 1, resetMs: YEAR } },
      { at: YEAR, expect: yes(0, YEAR) },
    ],
  },
];

const changedRules: Vector[] = [
  {
    name: "raising the limit within a window adds to the quota left, and lowering it subtracts",
    counter: { limit: 5 },
    steps: [
      { at: 0, cost: 5, expect: yes(0, MINUTE) },
      { at: 0, limit: 7, expect: yes(1, MINUTE) },
      { at: 0, limit: 3, expect: no(-3, MINUTE) },
      { at: 0, limit: 7, expect: yes(0, MINUTE) },
      { at: MINUTE, limit: 3, expect: yes(2, MINUTE) },
    ],
  },
  {
    name: "a lowered limit repays what was used before at the new rate",
    counter: { limit: 5, capacity: 10, rollsOver: true },
    steps: [
      { at: 0, cost: 8, expect: yes(2, MINUTE) },
      { at: 0, limit: 2, capacity: 4, expect: no(-4, MINUTE, { retryMs: 3 * MINUTE }) },
      { at: MINUTE, limit: 2, capacity: 4, expect: no(-2, MINUTE, { retryMs: 2 * MINUTE }) },
      { at: MINUTE, limit: 9, capacity: 10, expect: yes(9, MINUTE) },
    ],
  },
  {
    name: "a ban keeps its length when the rule's ban is shortened",
    counter: { limit: 0, ban: bans(HOUR) },
    steps: [
      { at: 0, expect: no(0, MINUTE, { banMs: HOUR, retryMs: HOUR }) },
      { at: 0, ban: bans(MINUTE), expect: no(0, MINUTE, { banMs: HOUR, retryMs: HOUR }) },
    ],
  },
];

const resets: Vector[] = [
  {
    name: "a reset removes reservations",
    counter: { limit: 3, capacity: 6, rollsOver: true },
    steps: [
      {
        at: 0,
        cost: 16,
        reserve: 10,
        expect: yes(-10, MINUTE, { reservationDelayMs: 4 * MINUTE }),
      },
      { at: 1, op: "reset" },
      { at: 2, cost: 6, expect: yes(0, 59_998) },
    ],
  },
];

/** Bans of 10 seconds, 30 seconds and a minute. They are forgotten after 100 seconds. */
const LONGER = { lengthsMs: [10_000, 30_000, MINUTE], forgetAfterMs: 100_000 };
const oneLength = { ban: bans(20_000) };

const banned: Vector[] = [
  {
    name: "a ban outlasts windows, and ends to the millisecond",
    counter: { limit: 2, windowMs: 10_000, ban: bans(50_000) },
    endsBan: true,
    steps: [
      { at: 9000, cost: 2, expect: yes(0, 1000) },
      { at: 9000, expect: no(0, 1000, { banMs: 50_000, retryMs: 50_000 }) },
      { at: 20_000, expect: no(2, 10_000, { banMs: 39_000, retryMs: 39_000 }) },
      { at: 58_999, expect: no(2, 1001, { banMs: 1, retryMs: 1 }) },
      { at: 59_000, expect: yes(1, 1000) },
    ],
  },
  {
    name: "a new ban follows one that ends within a used-up window",
    counter: { limit: 1, ban: bans(10_000) },
    endsBan: true,
    steps: [
      { at: 0, expect: yes(0, MINUTE) },
      { at: 1000, expect: no(0, 59_000, { banMs: 10_000 }) },
      { at: 10_999, expect: no(0, 49_001, { banMs: 1 }) },
      { at: 11_000, expect: no(0, 49_000, { banMs: 10_000 }) },
    ],
  },
  {
    name: "bans become longer, and the last length repeats",
    counter: { limit: 1, ban: LONGER },
    endsBan: true,
    steps: [
      { at: 0, expect: yes(0, MINUTE) },
      { at: 1000, expect: no(0, 59_000, { banMs: 10_000 }) },
      { at: 5000, expect: no(0, 55_000, { banMs: 6000 }) },
      { at: 10_999, expect: no(0, 49_001, { banMs: 1 }) },
      { at: 11_000, expect: no(0, 49_000, { banMs: 30_000 }) },
      { at: 40_999, expect: no(0, 19_001, { banMs: 1 }) },
      { at: 41_000, expect: no(0, 19_000, { banMs: MINUTE, retryMs: MINUTE }) },
      { at: 101_000, expect: yes(0, 19_000) },
      { at: 101_000, expect: no(0, 19_000, { banMs: MINUTE, retryMs: MINUTE }) },
      { at: 161_000, expect: yes(0, 19_000) },
    ],
  },
  {
    name: "strikes are remembered until the millisecond in which they are forgotten",
    counter: { limit: 1, ban: LONGER },
    endsBan: true,
    steps: [
      { at: 0, cost: 2, expect: no(1, MINUTE, { banMs: 10_000 }) },
      { at: 109_999, cost: 2, expect: no(1, 10_001, { banMs: 30_000, retryMs: 30_000 }) },
      { at: 239_998, cost: 2, expect: no(1, 2, { banMs: MINUTE, retryMs: MINUTE }) },
      { at: 399_998, cost: 2, expect: no(1, 20_002, { banMs: 10_000 }) },
    ],
  },
  {
    name: "a request that charges nothing begins longer bans too",
    counter: { limit: 0, ban: LONGER },
    endsBan: true,
    steps: [
      { at: 0, expect: no(0, MINUTE, { banMs: 10_000 }) },
      { at: 10_000, cost: 0, expect: yes(0, 50_000) },
      { at: 10_000, expect: no(0, 50_000, { banMs: 30_000 }) },
    ],
  },
  {
    name: "a ban keeps its length when a list of lengths becomes one length, and the other way around",
    counter: { limit: 0, ban: { ...LONGER, lengthsMs: [10_000, HOUR] } },
    endsBan: true,
    steps: [
      { at: 0, expect: no(0, MINUTE, { banMs: 10_000 }) },
      { at: 1000, ...oneLength, expect: no(0, 59_000, { banMs: 9000 }) },
      { at: 10_000, expect: no(0, 50_000, { banMs: HOUR, retryMs: HOUR }) },
      { at: 11_000, ...oneLength, expect: no(0, 49_000, { banMs: 3_599_000, retryMs: 3_599_000 }) },
      // The strikes outlast the ban, but they deny nothing.
      { at: HOUR + 10_000, ...oneLength, cost: 0, expect: yes(0, 50_000) },
      { at: HOUR + 10_000, ...oneLength, expect: no(0, 50_000, { banMs: 20_000 }) },
      { at: HOUR + 11_000, expect: no(0, 49_000, { banMs: 19_000 }) },
      // A ban of one length is no strike, so the two strikes of the list count.
      { at: HOUR + 30_000, expect: no(0, 30_000, { banMs: HOUR, retryMs: HOUR }) },
    ],
  },
  {
    name: "a reset forgets strikes",
    counter: { limit: 0, ban: LONGER },
    endsBan: true,
    steps: [
      { at: 0, expect: no(0, MINUTE, { banMs: 10_000 }) },
      { at: 10_000, expect: no(0, 50_000, { banMs: 30_000 }) },
      { at: 10_000, op: "reset" },
      { at: 10_000, expect: no(0, 50_000, { banMs: 10_000 }) },
    ],
  },
  {
    name: "the first of several lengths",
    counter: {
      limit: 2,
      ban: { lengthsMs: [HOUR, 2 * HOUR], forgetAfterMs: 1 },
    },
    steps: [
      { at: 0, cost: 3, expect: no(2, MINUTE, { banMs: HOUR, retryMs: HOUR }) },
      { at: 0, expect: no(2, MINUTE, { banMs: HOUR, retryMs: HOUR }) },
      { at: 0, op: "adjust", cost: 1, expect: { value: 1, resetMs: MINUTE, banMs: HOUR } },
      { at: 0, op: "reset" },
      { at: 0, expect: yes(1, MINUTE) },
    ],
  },
  {
    name: "a refund does not end a ban",
    counter: { limit: 2, ban: bans(HOUR) },
    steps: [
      { at: 0, cost: 2, expect: yes(0, MINUTE) },
      { at: 0, expect: no(0, MINUTE, { banMs: HOUR, retryMs: HOUR }) },
      { at: 0, op: "adjust", cost: -2, expect: { value: 2, resetMs: MINUTE, banMs: HOUR } },
      { at: 0, expect: no(2, MINUTE, { banMs: HOUR, retryMs: HOUR }) },
    ],
  },
];

export const VECTORS: readonly Vector[] = [
  ...basic,
  ...plain,
  ...windows,
  ...calendars,
  ...rollover,
  ...reservations,
  ...clocks,
  ...largest,
  ...adjustments,
  ...changedRules,
  ...resets,
  ...banned,
];
