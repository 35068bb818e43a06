import { barWidth, SIGNS, type Tone } from "./tone.ts";

interface BarProps {
  /** The part of the whole that the bar fills, from 0 to 1. */
  readonly share: number;
  readonly tone: Tone;
}

/** A horizontal bar. Screen readers skip it, because the same value stands beside it as text. */
export function Bar({ share, tone }: BarProps) {
  return (
    <svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect class="bar-whole" width="100" height="8" />
      <rect class={`fill-${tone}`} width={barWidth(share)} height="8" />
    </svg>
  );
}

/** The sign of a kind of values: shapes differ as well as colours. */
export function Sign({ tone }: { tone: Tone }) {
  return (
    <svg class={`sign fill-${tone}`} viewBox="0 0 12 12" aria-hidden="true">
      <path d={SIGNS[tone]} />
    </svg>
  );
}
