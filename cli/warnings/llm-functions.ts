import type { Config } from "../../src/config/schema.ts";
import type { LocalFinding } from "../finding.ts";

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
