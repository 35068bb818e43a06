import { count } from "../admin/text.ts";

/** Formats a share: 0.041 → `4.1 %`. Only 0 becomes `0 %`, and only 1 becomes `100 %`. */
export function percent(share: number): string {
  if (share === 0 || share === 1) return `${share * 100} %`;
  const value = share * 100;
  if (value < 0.01) return "< 0.01 %";
  if (value >= 99.9) return "> 99.9 %";
  return `${value < 1 ? value.toFixed(2) : value.toFixed(1)} %`;
}

/** Returns a number that is undefined if the log does not state it. */
export function knownCount(value: number | undefined): string {
  return value === undefined ? "unknown" : count(value);
}

/** Formats a number of clients, which may be an estimate. */
export function estimated(value: number, isEstimate: boolean): string {
  return isEstimate ? `about ${count(value)}` : count(value);
}

/** Formats a count with its noun: `1 request`, `2 000 requests`. */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** Formats dollars: `$12.50`. */
export function dollars(value: number): string {
  if (value > 0 && value < 0.0001) return "less than $0.0001";
  return `$${value.toFixed(value < 0.1 && value > 0 ? 4 : 2)}`;
}
