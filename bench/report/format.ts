import { markdownTable } from "markdown-table";

/** Stands where there is no figure. */
export const NONE = "–";

/** A number with so many decimals, and thousands apart. */
export function figure(value: number | undefined, decimals: number): string {
  if (value === undefined) return NONE;
  const fixed = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  const text = value.toLocaleString("en-US", fixed);
  return /^-[0.]+$/.test(text) ? text.slice(1) : text;
}

/** A Markdown table: the first column to the left, figures to the right. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const align = head.map((_, column) => (column === 0 ? "l" : "r"));
  return markdownTable([[...head], ...rows.map((row) => [...row])], { align });
}
