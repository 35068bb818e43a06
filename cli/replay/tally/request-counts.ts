import type { Counts } from "../report.ts";
import type { CountsOfClients } from "./client-counts.ts";

/** Numbers of requests. */
export class RequestCounts {
  #requests = 0;
  #denied = 0;
  #deniedSucceeded = 0;

  /** @param hasSucceeded whether the request is denied, and had succeeded when it was logged */
  add(isDenied: boolean, hasSucceeded: boolean): void {
    this.#requests++;
    if (isDenied) this.#denied++;
    if (hasSucceeded) this.#deniedSucceeded++;
  }

  report(clients: CountsOfClients): Counts {
    const [requests, denied] = [this.#requests, this.#denied];
    return {
      requests,
      allowed: requests - denied,
      denied,
      deniedShare: requests === 0 ? 0 : denied / requests,
      deniedSucceeded: this.#deniedSucceeded,
      ...clients,
    };
  }
}
