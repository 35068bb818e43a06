import { formatDuration } from "../../src/config/duration.ts";
import type { Rule, Window } from "../../src/config/rule.ts";
import { shardQuota } from "../../src/limiter/shards.ts";
import type { LocalFinding } from "../finding.ts";

/** Findings about the limits of one rule. */
export function limitFindings(rule: Rule, place: string): LocalFinding[] {
  return [...unusedLimits(rule, place), ...costFindings(rule, place), ...banWarnings(rule, place)];
}

/**
 * Whether a limit can never deny a request, because another limit for the same requests denies earlier.
 * The calculation is exact if windows begin at the same time. Otherwise the result is true only if it
 * is certain.
 *
 * @param spread whether each client's windows begin at a time of their own
 */
export function neverBinds(idle: Window, other: Window, spread: boolean): boolean {
  // Reservations in the idle limit may use up quota of a window before it begins.
  if (idle.maxReserved > 0) return false;
  const [length, otherLength] = [idle.windowMs, other.windowMs];
  // All windows of a rule begin at multiples of their length after one start. With spread windows,
  // the two starts may differ by any number of milliseconds.
  const step = spread ? 1 : gcd(length, otherLength);
  const overlapping = Math.ceil((length + otherLength - step) / otherLength);
  // The first overlapping window may begin with saved quota, and the last one may reserve some.
  const admitted =
    BigInt(other.capacity) +
    BigInt(overlapping - 1) * BigInt(other.limit) +
    BigInt(other.maxReserved);
  return admitted <= BigInt(idle.limit);
}

function unusedLimits({ name, windows, tiers, spread }: Rule, place: string): LocalFinding[] {
  const groups = [windows, ...(tiers?.windows.values() ?? [])];
  return groups.flatMap((group, index) =>
    group.flatMap((idle) => {
      const other = group.find((each) => each !== idle && neverBinds(idle, each, spread));
      if (!other || other.limit === 0) return [];
      const where = index === 0 ? `${place}.limits` : `${place}.tiers.limits`;
      return [
        {
          code: "limit-never-binds",
          severity: "warning",
          path: `${where}[${group.indexOf(idle)}]`.replace(/tiers\.limits\[\d+\]/, "tiers.limits"),
          message: `In the rule "${name}", the limit ${formatLimit(idle)} denies no request, because ${formatLimit(other)} denies earlier`,
          cure: `Make the first limit lower or the second one higher, or remove ${formatLimit(idle)}`,
        },
      ];
    }),
  );
}

function costFindings(rule: Rule, place: string): LocalFinding[] {
  const { name, cost, countStatus, windows, tiers, shards } = rule;
  // A rule that counts by status charges the response, and a charge may exceed the quota left.
  if (typeof cost !== "number" || countStatus) return [];
  const all = [...windows, ...[...(tiers?.windows.values() ?? [])].flat()];
  const small = all.find(({ limit, capacity, maxReserved }) => {
    // A limit of 0 denies everything on purpose.
    return limit > 0 && cost > largestShare(capacity, shards) + largestShare(maxReserved, shards);
  });
  if (!small) return [];
  const share = shards > 1 ? ` in each of ${shards} shards` : "";
  return [
    {
      code: "cost-above-limit",
      severity: "fault",
      path: `${place}.cost`,
      message: `The rule "${name}" denies every request, because a request costs ${cost}, and ${formatLimit(small)} has ${largestShare(small.capacity, shards)}${share}`,
      cure: "Make the limit at least as high as the cost",
    },
  ];
}

/** Returns the largest quota that one shard has. */
function largestShare(quota: number, shards: number): number {
  return shards === 1 ? quota : shardQuota(quota, shards, 0);
}

function banWarnings({ name, banMs, windows }: Rule, place: string): LocalFinding[] {
  const shortest = Math.min(...windows.map(({ windowMs }) => windowMs));
  if (banMs === undefined || banMs >= shortest) return [];
  return [
    {
      code: "ban-shorter-than-window",
      severity: "warning",
      path: `${place}.ban`,
      message: `In the rule "${name}", a ban of ${formatDuration(banMs / 1000)} usually ends before the window of ${formatDuration(shortest / 1000)}, so it changes little`,
      cure: "Make the ban longer than the window, or remove it",
    },
  ];
}

/** Formats a limit: `33 per 1m`. */
export function formatLimit({ limit, windowMs }: Window): string {
  return `${limit} per ${formatDuration(windowMs / 1000)}`;
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}
