import { type Demand, type UnusedQuota, windowAt } from "../../src/engine/counter.ts";
import type { Answer } from "../../src/stores/store.ts";
import type { Isolate } from "./fleet.ts";
import type { NetworkRecorder } from "./network.ts";
import { type Request, requestOf } from "./request.ts";

/** The quota of one client's window that was charged to one isolate. */
export interface Share {
  /** The quota charged, minus the quota returned, minus the requests admitted. */
  unspent: number;
  /** The true time at which the isolate last received a request of the client. */
  usedAt: number;
}

/**
 * The requests and the quota of one client in one window. The store's clock determines the window.
 */
export interface Account {
  readonly client: number;
  readonly endsAt: number;
  /** Requests admitted or denied. */
  decided: number;
  admitted: number;
  /** The count that the store should have. */
  charged: number;
  readonly shares: Map<Isolate, Share>;
}

/** Keeps its own record of every charge and every admission, to check the store's counts later. */
export class Ledger implements NetworkRecorder {
  readonly #accounts = new Map<string, Account>();
  readonly #counter: Pick<Demand, "windowMs" | "offsetMs">;
  /** Calls to the store, including calls that fetch blocks in the background. */
  calls = 0;
  /** The number of leases whose unused quota isolates have returned to the store. */
  returnedLeases = 0;
  returnedQuota = 0;
  /** Requests admitted from a lease after the end of its window, by the true time. */
  afterWindow = 0;
  /** How late the latest request in `afterWindow` was, in milliseconds after the window's end. */
  mostAfterWindowMs = 0;
  /** Requests decided without an answer from the store. */
  fromMemory = 0;

  constructor(counter: Pick<Demand, "windowMs" | "offsetMs">) {
    this.#counter = counter;
  }

  get accounts(): Iterable<Account> {
    return this.#accounts.values();
  }

  recordCall(unused: readonly UnusedQuota[]): void {
    this.calls++;
    this.returnedLeases += unused.length;
  }

  /** Records the quota that the store has charged and taken back in a call. */
  recordCharges(
    isolate: Isolate,
    groups: readonly (readonly Demand[])[],
    answers: readonly Answer[],
    unused: readonly UnusedQuota[],
  ): void {
    const now = answers[0]?.now ?? Date.now();
    const { index } = windowAt(now, this.#counter);
    for (const { counter, quota, window } of unused) {
      // The store ignores quota that is returned after the end of its window.
      if (window !== index) continue;
      this.#charge(isolate, requestOf(counter).client, now, -quota);
      this.returnedQuota += quota;
    }
    for (const [place, group] of groups.entries()) {
      const answer = answers[place];
      if (!answer?.admitted) continue;
      for (const [index, counter] of group.entries()) {
        const { charged = counter.cost } = answer.tallies[index] ?? {};
        this.#charge(isolate, requestOf(counter).client, now, charged);
      }
    }
  }

  /** Keeps each request's last answer of the store. */
  recordAnswer(groups: readonly (readonly Demand[])[], answers: readonly Answer[]): void {
    for (const [index, group] of groups.entries()) {
      const { admitted, now } = answers[index] as Answer;
      requestOf(group[0] as Demand).answer = { decidedAt: now, admitted };
    }
  }

  /** Records a decision for the window in which the request was charged. */
  recordDecision(request: Request, decided: Answer, now: number): void {
    const { admitted, tallies } = decided;
    const { answer, client, isolate } = request;
    if (!answer) this.fromMemory++;
    let at = answer ? answer.decidedAt : Math.floor(now);
    if (admitted && !answer?.admitted) {
      // The request was admitted from a lease. The tally's resetMs gives the end of the lease's window.
      const endsAt = decided.now + (tallies[0]?.resetMs ?? 0);
      at = endsAt - 1;
      if (now >= endsAt) {
        this.afterWindow++;
        this.mostAfterWindowMs = Math.max(this.mostAfterWindowMs, now - endsAt);
      }
    }
    const account = this.#accountOf(client, at);
    account.decided++;
    const share = shareOf(account, isolate);
    share.usedAt = now;
    if (!admitted) return;
    account.admitted++;
    share.unspent--;
  }

  #charge(isolate: Isolate, client: number, at: number, quota: number): void {
    const account = this.#accountOf(client, at);
    account.charged += quota;
    shareOf(account, isolate).unspent += quota;
  }

  #accountOf(client: number, at: number): Account {
    const { index, endsAt } = windowAt(at, this.#counter);
    const key = `${client}:${index}`;
    let account = this.#accounts.get(key);
    if (!account) {
      account = { client, endsAt, decided: 0, admitted: 0, charged: 0, shares: new Map() };
      this.#accounts.set(key, account);
    }
    return account;
  }
}

function shareOf({ shares }: Account, isolate: Isolate): Share {
  let share = shares.get(isolate);
  if (!share) {
    share = { unspent: 0, usedAt: Number.NEGATIVE_INFINITY };
    shares.set(isolate, share);
  }
  return share;
}
