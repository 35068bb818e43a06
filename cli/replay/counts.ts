import type { Counts } from "./report.ts";

/** Numbers of requests that are counted one by one. */
export class RequestCounts {
  requests = 0;
  denied = 0;
  deniedSucceeded = 0;

  /** @returns the counts for a report */
  report(clients: Pick<Counts, "clients" | "clientsDenied" | "isEstimate">): Counts {
    const { requests, denied, deniedSucceeded } = this;
    const deniedShare = requests === 0 ? 0 : denied / requests;
    return {
      requests,
      allowed: requests - denied,
      denied,
      deniedShare,
      deniedSucceeded,
      ...clients,
    };
  }
}
