import { canPrintUnicode } from "./unicode.ts";

const BLOCKS = "▁▂▃▄▅▆▇█";
/** The same for terminals without Unicode. The first character stands for a value near 0. */
const ASCII = "_.-=+*#@";

/**
 * Returns a line with one bar for each value, with a space for 0. The highest value has the highest bar.
 *
 * @param width the maximum number of bars; neighbouring values are added up
 */
export function barChart(
  values: readonly number[],
  width: number,
  levels = canPrintUnicode() ? BLOCKS : ASCII,
): string {
  const bars = addedUp(values, width);
  const max = Math.max(...bars, 0);
  return bars
    .map((value) => {
      // Any value above 0 has a visible bar.
      const level = Math.max(1, Math.ceil((value / max) * levels.length));
      return value === 0 ? " " : levels[level - 1];
    })
    .join("");
}

/** How many neighbouring values one bar stands for. */
export function valuesPerBar(count: number, width: number): number {
  return Math.max(1, Math.ceil(count / width));
}

/** Adds up neighbouring values, so that at most `width` sums remain. */
export function addedUp(values: readonly number[], width: number): number[] {
  const size = valuesPerBar(values.length, width);
  const sums: number[] = [];
  for (const [at, value] of values.entries()) {
    const bar = Math.floor(at / size);
    sums[bar] = (sums[bar] ?? 0) + value;
  }
  return sums;
}
