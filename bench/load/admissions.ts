/** Counts the admitted and denied requests of each client. */
export interface Admissions {
  record(client: string, status: number): void;
  summary(limit: number): AdmissionSummary;
}

export interface AdmissionSummary {
  readonly offered: number;
  readonly admitted: number;
  /** Requests admitted beyond the limit, summed over all clients. */
  readonly over: number;
  /** The highest number of requests admitted beyond the limit of one client. */
  readonly mostOver: number;
  /** Requests denied although the client's limit had quota left, summed over all clients. */
  readonly under: number;
  /** Requests that were neither forwarded nor denied, because the limiter or the bench failed. */
  readonly failed: number;
}

interface ClientCounts {
  offered: number;
  admitted: number;
}

/**
 * The summary has separate sums for `over` and `under`, because in a single sum the wrong admissions
 * of one client and the wrong denials of a second client would cancel out.
 */
export function createAdmissions(): Admissions {
  const clients = new Map<string, ClientCounts>();
  let failed = 0;

  return {
    record(name, status) {
      let client = clients.get(name);
      if (client === undefined) {
        client = { offered: 0, admitted: 0 };
        clients.set(name, client);
      }
      client.offered += 1;
      if (status === 200) client.admitted += 1;
      else if (status !== 429) failed += 1;
    },

    summary(limit) {
      const summary = { offered: 0, admitted: 0, over: 0, mostOver: 0, under: 0, failed };
      for (const { offered, admitted } of clients.values()) {
        const excess = admitted - Math.min(offered, limit);
        summary.offered += offered;
        summary.admitted += admitted;
        summary.mostOver = Math.max(summary.mostOver, excess);
        if (excess > 0) summary.over += excess;
        else summary.under -= excess;
      }
      return summary;
    },
  };
}
