import { counted, countText, percentText } from "../../src/admin/dashboard/format.ts";
import type { Comparison, ReplayReport, TotalReport } from "../replay/report.ts";
import { estimateText } from "./texts.ts";

export interface Headline {
  readonly title: string;
  /** Sentences below the title. */
  readonly lead: readonly string[];
}

/** The answer that a reader looks for first: whom would these rules have denied? */
export function headlineOf({ total, comparison, rules }: ReplayReport): Headline {
  if (total.requests === 0) {
    return {
      title: "No request was replayed",
      lead: ["The logs have no request in this range of time. The numbers below are all 0."],
    };
  }
  const lead = [...(comparison ? comparedLead(comparison) : []), ...deniedLead(total)];
  if (rules.some(({ mode, denied }) => mode !== "enforce" && denied > 0)) {
    lead.push("Rules in the mode shadow or mark deny nothing, so these numbers leave them out.");
  }
  return { title: comparison ? comparedTitle(comparison) : deniedTitle(total), lead };
}

function deniedTitle({ clients, clientsDenied, isEstimate }: TotalReport): string {
  if (clientsDenied === 0) return "No client would have been denied";
  const denied = estimateText(clientsDenied, isEstimate);
  const title = `${denied} of ${estimateText(clients, isEstimate)} clients would have been denied`;
  return title.charAt(0).toUpperCase() + title.slice(1);
}

function deniedLead({ requests, denied, deniedSucceeded }: TotalReport): string[] {
  if (denied === 0) return [`All ${counted(requests, "request")} would have passed.`];
  const share = percentText(denied, requests);
  return [
    `${countText(denied)} of ${counted(requests, "request")} would have been denied (${share}).`,
    deniedSucceeded > 0
      ? `${countText(deniedSucceeded)} of the denied requests had succeeded, with a status below 400: their clients may be customers.`
      : "None of the denied requests had a status below 400.",
  ];
}

function comparedTitle({ clients }: Comparison): string {
  if (clients.newlyDenied === 0) return "No client would be newly denied";
  const count = estimateText(clients.newlyDenied, clients.isEstimate);
  const title = `${count} ${clients.newlyDenied === 1 ? "client" : "clients"} would be newly denied`;
  return title.charAt(0).toUpperCase() + title.slice(1);
}

function comparedLead({ requests, clients }: Comparison): string[] {
  const lead: string[] = [];
  if (requests.newlyDenied > 0) {
    lead.push(
      `${counted(requests.newlyDenied, "request")} would be newly denied; ${countText(requests.newlyDeniedSucceeded)} of them had succeeded, with a status below 400.`,
    );
  }
  if (clients.noLongerDenied > 0) {
    const count = estimateText(clients.noLongerDenied, clients.isEstimate);
    lead.push(`Clients that would no longer be denied: ${count}.`);
  }
  return lead;
}
