import type { ComputedCost } from "../../src/config/cost.ts";
import { type Conditions, splitRoute } from "../../src/config/match.ts";
import type { Rule, Window } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import { shardQuota } from "../../src/limiter/counters.ts";
import type { LocalFinding } from "../finding.ts";
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
  const warning = (message: string, fields: string): LocalFinding => ({
    code: "cost-without-max",
    severity: "warning",
    path,
    message: `In the rule "${name}", ${message}`,
    cure: `Write cost: { ${fields}, max: … } with the highest cost of a request`,
  });
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
  const warning = (message: string, cure: string): LocalFinding => ({
    code: "low-default",
    severity: "warning",
    path: `${path}.default`,
    message: `In the rule "${name}", ${message}`,
    cure,
  });
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

/** The two groups in `custom` with functions for costs. */
type Group = "costs" | "settle";

/** A function of `edge-weir/llm`, and its place in the configuration. */
interface LlmFunction {
  readonly name: "llmReserve" | "llmUsage";
  readonly group: Group;
  /** What the function reads. */
  readonly reads: "requests" | "responses";
  /** The field of `cost` that names the function. */
  readonly field: "reserve" | "settle";
}

const RESERVE: LlmFunction = {
  name: "llmReserve",
  group: "costs",
  reads: "requests",
  field: "reserve",
};
const USAGE: LlmFunction = {
  name: "llmUsage",
  group: "settle",
  reads: "responses",
  field: "settle",
};

/** Returns the faults of functions of `edge-weir/llm` that are in the wrong group or that are not called. */
export function llmFunctionFindings({ custom }: Config): LocalFinding[] {
  return (["costs", "settle"] as const).flatMap((group) =>
    [...(custom?.[group] ?? [])].flatMap(([name, given]) => findingsOf(group, name, given)),
  );
}

function findingsOf(group: Group, name: string, given: unknown): LocalFinding[] {
  const called = [RESERVE, USAGE].find((each) => isResultOf(each, given));
  const used = called ?? [RESERVE, USAGE].find((each) => isItself(each, given));
  if (!used || (called && used.group === group)) return [];
  const path = `custom.${group}.${name}`;
  const finding = { code: "llm-function", severity: "fault", path } as const;
  if (used.group !== group) {
    const other = used === RESERVE ? USAGE : RESERVE;
    return [
      {
        ...finding,
        message: `${path} is ${used.name}(), which reads ${used.reads}, but this function gets ${other.reads}`,
        cure: `Write ${other.name}() here, and ${used.name}() in custom.${used.group}, which ${used.field} of a cost names`,
      },
    ];
  }
  return [
    {
      ...finding,
      message: `${path} is ${used.name} itself, which returns a function and no cost`,
      cure: `Call it: write ${used.name}()`,
    },
  ];
}

function isResultOf({ name }: LlmFunction, given: unknown): boolean {
  return typeof given === "function" && given.name === `${name}Cost`;
}

/** Whether a function is the one that `edge-weir/llm` exports, and not a user's function of the same name. */
function isItself({ name }: LlmFunction, given: unknown): boolean {
  return (
    typeof given === "function" && given.name === name && String(given).includes(`${name}Cost`)
  );
}

/** Warns of `response: { body: "custom:page" }`: clients get this text, and no function is called. */
export function responseBodyWarnings({ name, response }: Rule, place: string): LocalFinding[] {
  const body = response && "body" in response ? response.body : undefined;
  const [, custom] = /^\s*custom:\s*(\w+)\s*$/.exec(typeof body === "string" ? body : "") ?? [];
  if (custom === undefined) return [];
  return [
    {
      code: "body-names-function",
      severity: "warning",
      path: `${place}.response.body`,
      message: `Clients that the rule "${name}" denies get the text custom:${custom}, because body is no notation for a function`,
      cure: `Write response: "custom:${custom}", and return the status and the body from custom.responses.${custom}`,
    },
  ];
}

/** The segment that replaces `*` or a parameter. */
const ANY_SEGMENT = "0";

/** Sample paths that match a rule. `/v1/*` gives `/v1`, `/v1/0` and `/v1/0/0`. */
export function pathsOf({ paths = ["/"] }: Conditions): string[] {
  return paths.flatMap((route) => {
    const segments = splitRoute(route);
    const last = segments.at(-1) ?? "";
    const whole = segments.map((segment) => (/^[:*]/.test(segment) ? ANY_SEGMENT : segment));
    const without = whole.slice(0, -1);
    if (last === "*") return [without, whole, [...whole, ANY_SEGMENT]].map(toPath);
    return (last.endsWith("?") ? [without, whole] : [whole]).map(toPath);
  });
}

function toPath(segments: readonly string[]): string {
  return `/${segments.map((segment) => segment.replace(/^\//, "")).join("/")}`;
}
