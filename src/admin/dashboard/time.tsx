import { exactTime, relativeTime } from "./format.ts";

interface TimeProps {
  /** In milliseconds since the Unix epoch. */
  readonly at: number;
  readonly now: number;
}

/** A time relative to now. Its tooltip has the exact time. */
export function Time({ at, now }: TimeProps) {
  if (Number.isNaN(new Date(at).getTime())) return <span>unknown</span>;
  return (
    <time datetime={new Date(at).toISOString()} title={exactTime(at)} data-relative>
      {relativeTime(at, now)}
    </time>
  );
}

/** An exact time, and the same time relative to now. */
export function ExactTime({ at, now }: TimeProps) {
  return (
    <span class="exact-time">
      <span class="nowrap">{exactTime(at)}</span>{" "}
      <small>
        <Time at={at} now={now} />
      </small>
    </span>
  );
}
