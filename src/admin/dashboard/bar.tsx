/** The kinds of values in charts and bars. Each has a colour and a shape of its own in the style sheet. */
export type Tone =
  | "allowed"
  | "limited"
  | "shadow"
  | "undecided"
  | "refused"
  | "unmatched"
  | "memory";

interface BarProps {
  /** The part of the whole that the bar fills, from 0 to 1. */
  readonly share: number;
  readonly tone: Tone;
}

/** A horizontal bar. Screen readers skip it, because the same value stands beside it as text. */
export function Bar({ share, tone }: BarProps) {
  const width = Math.round(1000 * Math.min(1, Math.max(0, share))) / 10;
  return (
    <svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect class="bar-whole" width="100" height="8" />
      <rect class={`fill-${tone}`} width={share > 0 ? Math.max(width, 1) : 0} height="8" />
    </svg>
  );
}

/** The sign of a kind of values: shapes differ as well as colours. */
export function Sign({ tone }: { tone: Tone }) {
  return (
    <svg class={`sign fill-${tone}`} viewBox="0 0 12 12" aria-hidden="true">
      <path d={SHAPES[tone]} />
    </svg>
  );
}

const SHAPES: Readonly<Record<Tone, string>> = {
  allowed: "M6 1a5 5 0 1 1 0 10a5 5 0 1 1 0-10z",
  limited: "M6 0.5L11.8 11H0.2z",
  shadow: "M6 0.5L11.5 6L6 11.5L0.5 6z",
  undecided: "M1.5 1.5h9v9h-9z",
  refused: "M2.5 0.5L6 4l3.5-3.5l2 2L8 6l3.5 3.5l-2 2L6 8l-3.5 3.5l-2-2L4 6L0.5 2.5z",
  unmatched: "M1 4.2h10v3.6H1z",
  memory: "M4 1h4v3h3v4H8v3H4V8H1V4h3z",
};
