import type { CalendarUnit } from "./calendar.ts";

/** The quota of one policy for one client, after a decision. A policy is one window of a rule. */
export interface Quota {
  /**
   * The policy's name in the RateLimit fields. It is the rule's name, with the window appended if
   * the rule has several windows, such as `search/1m`.
   */
  readonly policy: string;
  /** The quota that each window grants. */
  readonly limit: number;
  /**
   * The length of a window, in milliseconds. Calendar windows have different lengths, so for these
   * it is the length of the current window.
   */
  readonly windowMs: number;
  /** The unit of the calendar, if the window is a calendar window. */
  readonly calendar?: CalendarUnit;
  /** Quota left in the current window, including quota that rolled over; never below 0. */
  readonly remaining: number;
  /** Milliseconds until the current window ends; more than 0. */
  readonly resetMs: number;
  /**
   * The time at which the current window ends, in milliseconds since the Unix epoch. The store's
   * clock determines this time; after a refund, and with `clock: "edge"`, the Worker's clock does.
   */
  readonly resetAt: number;
  /**
   * Whether the request exceeds this quota. It is then denied or, if the rule has the mode `mark`,
   * marked.
   */
  readonly violated: boolean;
  /**
   * Milliseconds until the same request may fit into this quota; 0 if it fits now. A cost above the
   * capacity never fits.
   */
  readonly retryAfterMs: number;
  /**
   * Milliseconds until the start of the window whose quota covers the whole reservation; 0 if no
   * quota is reserved. A check returns the time for the quota that it would reserve.
   */
  readonly reservationDelayMs: number;
}
