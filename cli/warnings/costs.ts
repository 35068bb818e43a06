import type { ComputedCost } from "../../src/config/cost.ts";
import type { Rule, Window } from "../../src/config/rule.ts";
import { shardQuota } from "../../src/limiter/counters.ts";
import type { LocalFinding } from "../finding.ts";
import { formatLimit } from "./limits.ts";
import { unknownCostWarnings } from "./unknown-costs.ts";

/** Findings about the cost of the requests that one rule counts. */
export function costFindings(rule: Rule, place: string): LocalFinding[] {
  const { cost, count } = rule;
  if (typeof cost === "object") {
    return [...computedFindings(rule, cost, place), ...unknownCostWarnings(rule, cost, place)];
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
    {
      code: "max-cost-above-limit",
      severity: "warning",
      path: `${place}.cost.max`,
      message: `The rule "${rule.name}" denies every request that costs ${max}${unstated}, because ${quotaOf(rule, small)}`,
      cure: "Make the limit at least as high as max, or max lower",
    },
  ];
}

function deniedByCost(rule: Rule, cost: number, path: string): LocalFinding[] {
  const small = windowBelow(rule, cost);
  if (!small) return [];
  return [
    {
      code: "cost-above-limit",
      severity: "fault",
      path,
      message: `The rule "${rule.name}" denies every request, because a request costs ${cost}, and ${quotaOf(rule, small)}`,
      cure: "Make the limit at least as high as the cost",
    },
  ];
}

/** Returns a window, of the rule or of a tier, that never admits a request with this cost. */
function windowBelow({ windows, tiers, shards }: Rule, cost: number): Window | undefined {
  const all = [...windows, ...[...(tiers?.windows.values() ?? [])].flat()];
  return all.find(({ limit, capacity, maxReserved }) => {
    // A limit of 0 denies all requests on purpose, so a warning about it would not help.
    return limit > 0 && cost > largestShare(capacity, shards) + largestShare(maxReserved, shards);
  });
}

function quotaOf({ shards }: Rule, window: Window): string {
  const share = shards > 1 ? ` in each of ${shards} shards` : "";
  return `${formatLimit(window)} has ${largestShare(window.capacity, shards)}${share}`;
}

/** Returns the largest quota that one shard has. */
function largestShare(quota: number, shards: number): number {
  return shards === 1 ? quota : shardQuota(quota, shards, 0);
}
