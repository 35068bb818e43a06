/** What became of the requests of each client. */
export type Admissions = {
  record(client: string, status: number): void;
  summary(limit: number): AdmissionSummary;
};

export type AdmissionSummary = {
  offered: number;
  admitted: number;
  /** Requests admitted beyond the limit, of all clients together. */
  over: number;
  /** Requests denied although the limit had room for them, of all clients together. */
  under: number;
  /** Requests that were neither forwarded nor denied: the limiter or the bench failed. */
  failed: number;
};

type Client = { offered: number; admitted: number };

/** Over and under are summed apart, since one client's excess is no amends for another's lack. */
export function createAdmissions(): Admissions {
  const clients = new Map<string, Client>();
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
      const summary = { offered: 0, admitted: 0, over: 0, under: 0, failed };
      for (const { offered, admitted } of clients.values()) {
        const excess = admitted - Math.min(offered, limit);
        summary.offered += offered;
        summary.admitted += admitted;
        if (excess > 0) summary.over += excess;
        else summary.under -= excess;
      }
      return summary;
    },
  };
}
