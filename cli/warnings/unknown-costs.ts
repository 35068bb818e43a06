import type { ComputedCost } from "../../src/config/cost.ts";
import type { Rule } from "../../src/config/rule.ts";
import type { LocalFinding } from "../finding.ts";

/** Warnings about requests whose cost is unknown, if a client can cause this and then pays less. */
export function unknownCostWarnings(rule: Rule, cost: ComputedCost, place: string): LocalFinding[] {
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
