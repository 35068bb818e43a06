import { count } from "../admin/text.ts";
import { counted } from "../print/numbers.ts";
import type { HistogramBar, Suggestion } from "./suggestion.ts";

/** Formats the range of a bar: `3-4`. */
export function rangeText({ from, to }: HistogramBar): string {
  return from === to ? count(from) : `${count(from)} - ${count(to)}`;
}

/** Formats the share of a limit: 0.001 → `0.1 %`. */
export function shareText(share: number): string {
  return `${Number((share * 100).toPrecision(12))} %`;
}

/** Formats a number of clients, which may be an estimate. */
export function clientsText(clients: number, isEstimate: boolean): string {
  return `${isEstimate ? "about " : ""}${counted(clients, "client")}`;
}

/** Returns what users paste: for a rule that exists already, only its limits. */
export function pasted({ config }: Pick<Suggestion, "config">): string {
  return config === undefined ? "The rule" : "The limits";
}
