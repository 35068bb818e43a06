import { counted, countText, percentText } from "../../src/admin/dashboard/format.ts";
import type { Comparison, ReplayReport, TotalReport } from "../replay/report.ts";
import { hasNoRules } from "../replay/summary.ts";
import { type StatedFacts, statedFacts } from "./stated-facts.ts";
import { estimateText, knownText } from "./texts.ts";

export interface Headline {
  readonly title: string;
  /** Paragraphs below the title. */
  readonly lead: readonly string[];
}

/** The answer that a reader looks for first: whom would these rules have denied? */
export function headlineOf(report: ReplayReport): Headline {
  const { total, comparison, rules } = report;
  const stated = statedFacts(report);
  if (total.requests === 0) {
    return {
      title: "No request was replayed",
      lead: ["The log has no request in this range of time, so all numbers are 0."],
    };
  }
  if (hasNoRules(report)) {
    return {
      title: "No rule could be replayed",
      lead: ["So it is unknown which requests these rules would have denied."],
    };
  }
  const compared = comparison ? [comparedLead(comparison, stated)] : [];
  const sentences = deniedLead(total, stated);
  if (rules.some(({ mode, denied }) => mode !== "enforce" && denied > 0)) {
    sentences.push(
      "Rules in the mode shadow or mark deny nothing, so these numbers leave them out.",
    );
  }
  const title = comparison ? comparedTitle(comparison, stated) : deniedTitle(total, stated);
  return {
    title: title.charAt(0).toUpperCase() + title.slice(1),
    lead: [...compared, sentences.join(" ")],
  };
}

function deniedTitle(total: TotalReport, { addresses }: StatedFacts): string {
  const { requests, denied, clients, clientsDenied, isEstimate, isDeniedEstimate } = total;
  if (denied === 0) return "No client would have been denied";
  if (!addresses) {
    return `${countText(denied)} of ${counted(requests, "request")} would have been denied`;
  }
  const whole = `${estimateText(clients, isEstimate)} client${clients === 1 ? "" : "s"}`;
  return `${estimateText(clientsDenied, isDeniedEstimate)} of ${whole} would have been denied`;
}

function deniedLead(total: TotalReport, { statuses }: StatedFacts): string[] {
  const { requests, denied, deniedSucceeded } = total;
  if (denied === 0) return [`${counted(requests, "request")} would have passed.`];
  const share = percentText(denied, requests);
  return [
    `${countText(denied)} of ${counted(requests, "request")} would have been denied (${share}).`,
    ...(statuses ? [lossText(deniedSucceeded ?? 0)] : []),
  ];
}

function lossText(deniedSucceeded: number): string {
  if (deniedSucceeded === 0) return "None of the denied requests had a status below 400.";
  return `${countText(deniedSucceeded)} of the denied requests had succeeded, with a status below 400: their clients may be customers.`;
}

function comparedTitle({ clients, requests }: Comparison, { addresses }: StatedFacts): string {
  if (!addresses) return `${counted(requests.newlyDenied, "request")} would be newly denied`;
  if (clients.newlyDenied === 0) return "No client would be newly denied";
  const count = estimateText(clients.newlyDenied, clients.isEstimate);
  return `${count} client${clients.newlyDenied === 1 ? "" : "s"} would be newly denied`;
}

function comparedLead({ requests, clients }: Comparison, { statuses }: StatedFacts): string {
  const { newlyDenied, newlyDeniedSucceeded, newlyAllowed } = requests;
  const isLoss = statuses && newlyDenied > 0;
  const loss = isLoss ? ` (${knownText(newlyDeniedSucceeded)} of them had succeeded)` : "";
  const changed = `${counted(newlyDenied, "request")} would be newly denied${loss}, and ${counted(newlyAllowed, "request")} newly allowed.`;
  if (clients.noLongerDenied === 0) return changed;
  const count = estimateText(clients.noLongerDenied, clients.isEstimate);
  return `${changed} Clients that would no longer be denied: ${count}.`;
}
