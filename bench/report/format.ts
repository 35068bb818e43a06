import { markdownTable } from "markdown-table";

/** The text of a table cell that has no figure. */
export const NONE = "–";

/** Formats a number with a fixed count of decimals and with thousands separators. */
export function figure(value: number | undefined, decimals: number): string {
  if (value === undefined) return NONE;
  const digits = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  const text = value.toLocaleString("en-US", digits);
  return /^-[0.]+$/.test(text) ? text.slice(1) : text;
}

/** Returns a Markdown table. The first column is aligned left, all other columns right. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const align = head.map((_, column) => (column === 0 ? "l" : "r"));
  return markdownTable([[...head], ...rows.map((row) => [...row])], { align });
}
