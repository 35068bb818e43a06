import type { ComputedCost } from "../../src/config/cost.ts";
import type { Rule, Window } from "../../src/config/rule.ts";
import { shardQuota } from "../../src/limiter/counters.ts";
import { found, type LocalFinding } from "../finding.ts";
import { formatLimit } from "./limits.ts";

/** Warns of costs without a `max`, which is the cost if a client makes the true cost unknown. */
function unboundedWarnings(rule: Rule, cost: ComputedCost, path: string): LocalFinding[] {
  const { before, settle, max, default: standard = 1 } = cost;
  if (max !== undefined || rule.for === "programs") return [];
  const given = sourceOf(cost);
  const warning = (message: string, fields: string): LocalFinding =>
    found(
      "cost-without-max",
      path,
      `In the rule "${rule.name}", ${message}`,
      `Write cost: { ${fields}, max: … } with the highest cost of a request`,
    );
  if (typeof before === "object") {
    const message =
      before.kind === "body"
        ? `a request whose body has no stated length costs ${rule.shards > 1 ? "one shard's share of the smallest limit" : "the whole smallest limit"}`
        : `a request costs ${Math.max(1, standard)} if the function custom.costs.${before.name} fails or takes too long, and a client may be able to cause this`;
    return [warning(message, settle ? `reserve: ${given}, settle: …` : `from: ${given}`)];
  }
  if (before !== undefined || settle?.kind !== "custom") return [];
  const message = `a request costs ${standard} if the client hangs up before the function custom.settle.${settle.name} knows the cost`;
  return [warning(message, `reserve: …, settle: ${given}`)];
}

function sourceOf({ before, settle }: ComputedCost): string {
  const source = typeof before === "object" ? before : settle;
  return source?.kind === "body" ? '"body:bytes"' : `"${source?.kind}:${source?.name}"`;
}

/** Findings about the cost of the requests that one rule counts. */
export function costFindings(rule: Rule, place: string): LocalFinding[] {
  const { cost, count } = rule;
  if (typeof cost === "object") {
    return [
      ...computedFindings(rule, cost, place),
      ...unboundedWarnings(rule, cost, `${place}.cost`),
    ];
  }
  // A rule that counts by status charges after the response. Such a charge may exceed the quota
  // left, so a high cost denies no request.
  return count && !count.reserve ? [] : deniedByCost(rule, cost, `${place}.cost`);
}

function computedFindings(rule: Rule, cost: ComputedCost, place: string): LocalFinding[] {
  const { before, max } = cost;
  if (before === undefined) return [];
  if (typeof before === "number") return deniedByCost(rule, before, `${place}.cost.reserve`);
  const small = max === undefined ? undefined : windowBelow(rule, max);
  if (!small) return [];
  const unstated = before.kind === "body" ? ", such as a body of unknown length" : "";
  return [
    found(
      "max-cost-above-limit",
      `${place}.cost.max`,
      `${subjectOf(rule, small)} ${verbOf(rule)} every request that costs ${max}${unstated}, because ${quotaOf(rule, small)}`,
      `${cureFor(rule, small, "max")}, or max lower`,
    ),
  ];
}

function deniedByCost(rule: Rule, cost: number, path: string): LocalFinding[] {
  const small = windowBelow(rule, cost);
  if (!small) return [];
  return [
    found(
      "cost-above-limit",
      path,
      `${subjectOf(rule, small)} ${verbOf(rule)} every request, because a request costs ${cost}, and ${quotaOf(rule, small)}`,
      cureFor(rule, small, "the cost"),
    ),
  ];
}

/** Returns a window, of the rule or of a tier, that never admits a request with this cost. */
function windowBelow(rule: Rule, cost: number): Window | undefined {
  const { windows, tiers, shards } = rule;
  const all = [...windows, ...[...(tiers?.windows.values() ?? [])].flat()];
  return all.find(
    (each) =>
      // A limit of 0 denies all requests on purpose, so a warning about it would not help.
      (each.limit > 0 || each.from) &&
      cost > largestShare(highestCapacity(each), shards) + reservableIn(rule, each),
  );
}

/** Returns the highest capacity that any client can have. */
function highestCapacity({ limit, capacity, from }: Window): number {
  if (capacity > limit) return from?.capacity?.max ?? capacity;
  return from?.limit?.max ?? capacity;
}

/** Returns the most quota of later windows that a request can reserve. Only programs reserve. */
function reservableIn({ for: counts, shards }: Rule, window: Window): number {
  return counts === "programs" ? largestShare(window.maxReserved, shards) : 0;
}

/** @param cost what must not be above the limit */
function cureFor(rule: Rule, window: Window, cost: string): string {
  if (reservableIn(rule, window) === 0) {
    return rule.shards > 1
      ? "Make the limit higher, or the number of shards lower"
      : `Make the limit at least as high as ${cost}`;
  }
  return "Make the limit higher, or maxReserved";
}

/** Returns the subject of a message. With tiers, only some clients have the window. */
function subjectOf({ name, tiers }: Rule, window: Window): string {
  const rule = `rule "${name}"`;
  return tiers ? `For clients with the limit ${formatLimit(window)}, the ${rule}` : `The ${rule}`;
}

/** Returns what a rule does with a request above its limit. */
function verbOf({ mode }: Rule): string {
  return mode === "mark" ? "marks" : "denies";
}

function quotaOf(rule: Rule, window: Window): string {
  const { shards } = rule;
  const share = shards > 1 ? ` in each of ${shards} shards` : "";
  const reservable = reservableIn(rule, window);
  const reserved = reservable > 0 ? ", with reservations" : "";
  return `${formatLimit(window)} has ${window.from ? "at most " : ""}${largestShare(highestCapacity(window), shards) + reservable}${share}${reserved}`;
}

/** Returns the largest quota that one shard has. */
function largestShare(quota: number, shards: number): number {
  return shards === 1 ? quota : shardQuota(quota, shards, 0);
}
