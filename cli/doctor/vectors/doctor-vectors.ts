import { calendarOf } from "../../../src/config/calendar.ts";
import { no, type Vector, yes } from "./vector.ts";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const BAN = 10 * MINUTE;
const MAX = Number.MAX_SAFE_INTEGER;
/** Days in a time zone without summer time. Each day begins at 18:15 UTC. */
const DAY_IN_NEPAL = calendarOf("day", "Asia/Kathmandu", {});

/**
 * The vectors that `weir doctor` runs on a live database. They are few, because each step is a call
 * that takes time and is billed. Their windows and bans are short, so that their keys expire soon
 * even if the doctor cannot remove them.
 */
export const DOCTOR_VECTORS: readonly Vector[] = [
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
    counter: { limit: 1, banMs: BAN },
    steps: [
      { at: 0, expect: yes(0, MINUTE) },
      { at: 0, expect: no(0, MINUTE, { banMs: BAN, retryMs: BAN }) },
      { at: 0, op: "reset" },
      { at: 0, expect: yes(0, MINUTE) },
    ],
  },
  {
    name: "a ban is not extended by requests, and denies a cost of 0",
    counter: { limit: 1, banMs: BAN },
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
      banMs: BAN,
      escalation: { lengthsMs: [BAN, 2 * BAN], forgetAfterMs: MINUTE },
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
