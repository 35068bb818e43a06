import type { ComputedCost } from "../../src/config/cost.ts";
import type { Rule, Window } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import { shardQuota } from "../../src/limiter/counters.ts";
import { found, type LocalFinding } from "../finding.ts";
import { formatLimit } from "./limits.ts";

/** Warnings about requests whose cost is unknown, if a client can cause this and then pays less. */
function unknownCostWarnings(rule: Rule, cost: ComputedCost, place: string): LocalFinding[] {
  if (rule.for === "programs") return [];
  return [
    ...unboundedWarnings(rule.name, cost, `${place}.cost`),
    ...defaultWarnings(rule.name, cost, `${place}.cost`),
  ];
}

/** Warns of costs without a `max`, which is the cost if a client makes the true cost unknown. */
function unboundedWarnings(name: string, cost: ComputedCost, path: string): LocalFinding[] {
  const { before, settle, max, default: standard = 1 } = cost;
  if (max !== undefined) return [];
  const given = sourceOf(cost);
  const warning = (message: string, fields: string): LocalFinding =>
    found(
      "cost-without-max",
      path,
      `In the rule "${name}", ${message}`,
      `Write cost: { ${fields}, max: … } with the highest cost of a request`,
    );
  if (typeof before === "object") {
    const message =
      before.kind === "body"
        ? "a request whose body has no stated length costs the whole smallest limit"
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

/** Warns of a `default` that has no effect, or that a client can choose to pay instead of more. */
function defaultWarnings(name: string, cost: ComputedCost, path: string): LocalFinding[] {
  const { before, settle, max, default: standard } = cost;
  const warning = (message: string, cure: string): LocalFinding =>
    found("low-default", `${path}.default`, `In the rule "${name}", ${message}`, cure);
  if (!settle) {
    if (standard === undefined || max === undefined || standard === max) return [];
    const message = `a request of unknown cost costs max, ${max}, and not default, ${standard}, because a client can make the cost unknown`;
    return [warning(message, "Remove default")];
  }
  // The origin alone decides whether a response has a header field.
  if (settle.kind === "header") return [];
  const unknown = `a complete response for which the function custom.settle.${settle.name} returns no cost`;
  const chosen =
    "A client may be able to cause this, for example by leaving out a field of its request";
  if (before === undefined) {
    if (max === undefined || (standard ?? 1) === max) return [];
    const message = `${unknown} costs ${standard ?? 1}, not max, ${max}. ${chosen}`;
    return [warning(message, `Write default: ${max}, or a reserve without default`)];
  }
  const reserve = typeof before === "number" ? before : (max ?? Number.POSITIVE_INFINITY);
  if (standard === undefined || standard >= reserve) return [];
  const message = `${unknown} costs ${standard}, which can be less than its reserve. ${chosen}`;
  return [warning(message, "Remove default, so that the reserve stays charged")];
}

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
    found(
      "max-cost-above-limit",
      `${place}.cost.max`,
      `The rule "${rule.name}" denies every request that costs ${max}${unstated}, because ${quotaOf(rule, small)}`,
      "Make the limit at least as high as max, or max lower",
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
      `The rule "${rule.name}" denies every request, because a request costs ${cost}, and ${quotaOf(rule, small)}`,
      "Make the limit at least as high as the cost",
    ),
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

/** The functions of `edge-weir/llm`: the group of `custom` and the field of a cost that each of them is for. */
const LLM_FUNCTIONS = [
  { name: "llmReserve", group: "costs", field: "reserve" },
  { name: "llmUsage", group: "settle", field: "settle" },
] as const;

/** Returns the faults of functions of `edge-weir/llm` that are in the wrong group or that are not called. */
export function llmFunctionFindings({ custom }: Config): LocalFinding[] {
  return (["costs", "settle"] as const).flatMap((group) =>
    [...(custom?.[group] ?? [])].flatMap(([name, given]: [string, unknown]) => {
      if (typeof given !== "function") return [];
      // The exported function contains the name of its result. A user's function of the same name does not.
      const used = LLM_FUNCTIONS.find(
        (each) =>
          given.name === `${each.name}Cost` ||
          (given.name === each.name && String(given).includes(`${each.name}Cost`)),
      );
      const isCalled = used !== undefined && given.name !== used.name;
      if (!used || (isCalled && used.group === group)) return [];
      const path = `custom.${group}.${name}`;
      const own = LLM_FUNCTIONS.find((each) => each.group === group)?.name;
      return [
        used.group === group
          ? found(
              "llm-function",
              path,
              `${path} is ${used.name} itself, which returns a function and no cost`,
              `Call it: write ${used.name}()`,
            )
          : found(
              "llm-function",
              path,
              `${path} is ${used.name}, which cannot read the argument of this function`,
              `Write ${own}() here, and ${used.name}() in custom.${used.group}, which ${used.field} of a cost names`,
            ),
      ];
    }),
  );
}

/** Warns of `response: { body: "custom:page" }`: clients get this text, and no function is called. */
export function responseBodyWarnings({ name, response }: Rule, place: string): LocalFinding[] {
  const body = response && "body" in response ? response.body : undefined;
  const [, custom] = /^\s*custom:\s*(\w+)\s*$/.exec(typeof body === "string" ? body : "") ?? [];
  if (custom === undefined) return [];
  return [
    found(
      "body-names-function",
      `${place}.response.body`,
      `Clients that the rule "${name}" denies get the text custom:${custom}, because body is no notation for a function`,
      `Write response: "custom:${custom}", and return the status and the body from custom.responses.${custom}`,
    ),
  ];
}
