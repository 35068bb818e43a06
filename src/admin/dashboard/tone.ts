/** The kinds of values in charts and bars. Each has a colour and a shape of its own in the style sheet. */
export type Tone =
  | "allowed"
  | "limited"
  | "shadow"
  | "undecided"
  | "refused"
  | "unmatched"
  | "memory";

/** The signs of the kinds, as paths in a square of 12 by 12. */
export const SIGNS: Readonly<Record<Tone, string>> = {
  allowed: "M6 1a5 5 0 1 1 0 10a5 5 0 1 1 0-10z",
  limited: "M6 0.5L11.8 11H0.2z",
  shadow: "M6 0.5L11.5 6L6 11.5L0.5 6z",
  undecided: "M1.5 1.5h9v9h-9z",
  refused: "M2.5 0.5L6 4l3.5-3.5l2 2L8 6l3.5 3.5l-2 2L6 8l-3.5 3.5l-2-2L4 6L0.5 2.5z",
  unmatched: "M1 4.2h10v3.6H1z",
  memory: "M4 1h4v3h3v4H8v3H4V8H1V4h3z",
};

/** Returns the width of a bar of 100. A small share that is not 0 is still visible. */
export function barWidth(share: number): number {
  if (!(share > 0)) return 0;
  return Math.max(1, Math.round(1000 * Math.min(1, share)) / 10);
}
