import { type Counter, type UnusedQuota, windowAt } from "../../src/engine/counter.ts";
import type { Verdict } from "../../src/stores/store.ts";
import type { Isolate } from "./isolate.ts";
import { type Request, requestOf } from "./request.ts";

/** Quota of one client's window that was charged to one isolate. */
export interface Share {
  /** What was charged, less what was given back and less what was admitted. */
  unspent: number;
  /** When the isolate last had a request of the client; true time. */
  usedAt: number;
}

/** One client's window, by the store's clock. */
export interface Account {
  readonly client: number;
  readonly endsAt: number;
  /** Requests decided, one way or the other. */
  decided: number;
  admitted: number;
  /** What the store has counted, if it has counted right. */
  charged: number;
  readonly shares: Map<Isolate, Share>;
}

/** Who was charged what, and who was admitted: kept beside the store, to see that it fits. */
export class Ledger {
  readonly #accounts = new Map<string, Account>();
  readonly #counter: Pick<Counter, "windowMs" | "offsetMs">;
  calls = 0;
  /** Leases that were given back, with whatever call. */
  givenBack = 0;
  quotaGivenBack = 0;
  /** Requests that were admitted from a lease after the window it was charged in; true time. */
  late = 0;
  /** By how much at most, in milliseconds. */
  latestMs = 0;
  /** Requests decided without a call of their own. */
  fromMemory = 0;

  constructor(counter: Pick<Counter, "windowMs" | "offsetMs">) {
    this.#counter = counter;
  }

  get accounts(): Iterable<Account> {
    return this.#accounts.values();
  }

  called(unused: readonly UnusedQuota[]): void {
    this.calls++;
    this.givenBack += unused.length;
  }

  /** Notes what a call has done in the store. */
  charged(
    isolate: Isolate,
    groups: readonly (readonly Counter[])[],
    { now, groups: answers }: Verdict,
    unused: readonly UnusedQuota[],
  ): void {
    const { index } = windowAt(now, this.#counter);
    for (const { counter, quota, window } of unused) {
      // The store takes nothing off another window.
      if (window !== index) continue;
      this.#charge(isolate, requestOf(counter).client, now, -quota);
      this.quotaGivenBack += quota;
    }
    for (const [place, group] of groups.entries()) {
      const answer = answers[place];
      if (!answer?.admitted) continue;
      for (const [part, counter] of group.entries()) {
        const { charged = counter.cost } = answer.tallies[part] ?? {};
        this.#charge(isolate, requestOf(counter).client, now, charged);
      }
    }
  }

  /** Notes a decision, in the window that the request was charged in. */
  decided(request: Request, verdict: Verdict, now: number): void {
    const { admitted = false, tallies = [] } = verdict.groups[0] ?? {};
    const { call, client, isolate } = request;
    if (!call) this.fromMemory++;
    let at = call ? call.decidedAt : Math.floor(now);
    if (admitted && !call?.admitted) {
      // From a lease. Which window's it is, the answer says, and it had better be this one.
      const endsAt = verdict.now + (tallies[0]?.resetMs ?? 0);
      at = endsAt - 1;
      if (now >= endsAt) {
        this.late++;
        this.latestMs = Math.max(this.latestMs, now - endsAt);
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
