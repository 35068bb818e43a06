import { parseDuration } from "../../config/duration.ts";
import type { OverrideChange } from "../../control/protocol.ts";
import type { ClientEffect, RuleEffect } from "../../overrides/override.ts";
import { OperationError } from "../operations.ts";
import type { DashboardContext } from "./context.ts";

/** The fields of a form. */
export interface FormFields {
  readonly all: Readonly<Record<string, string>>;
  /** Returns the value of a field without spaces around it; an empty text if it is missing. */
  text(name: string): string;
}

/** Reads the fields of the form that a request has sent. Files are left out. */
export async function readFields(c: DashboardContext): Promise<FormFields> {
  const all: Record<string, string> = Object.create(null);
  for (const [name, value] of Object.entries(await c.req.parseBody())) {
    if (typeof value === "string") all[name] = value.trim();
  }
  return { all, text: (name) => all[name] ?? "" };
}

/**
 * Reads the fields of the forms that set overrides.
 *
 * @throws {OperationError} if a field has a value that is not allowed
 */
export function readOverrideChange(fields: FormFields, now: number): OverrideChange {
  const seconds = parseDuration(fields.text("expiresIn"));
  if (seconds === undefined) throw invalid("Choose after which time the override ends.");
  const reason = fields.text("reason");
  if (reason === "") throw invalid("Enter a reason. The audit list shows it.");
  const rule = fields.text("rule");
  const common = { rule, reason, expiresAt: now + seconds * 1000 };
  if (fields.text("target") === "rule") return { ...common, effect: readRuleEffect(fields) };
  return { ...common, client: fields.text("client"), effect: readClientEffect(fields) };
}

const MODES = ["enforce", "shadow", "off"] as const;

function readRuleEffect(fields: FormFields): RuleEffect {
  const mode = MODES.find((each) => each === fields.text("mode"));
  const factor = readFactor(fields);
  if (mode === undefined && factor === undefined)
    throw invalid("Choose a mode, or enter a factor.");
  return { ...(mode && { mode }), ...(factor !== undefined && { factor }) };
}

function readClientEffect(fields: FormFields): ClientEffect {
  const kind = fields.text("kind");
  switch (kind) {
    case "unlimited":
    case "blocked":
      return { kind };
    case "factor": {
      const factor = readFactor(fields);
      if (factor === undefined) throw invalid("Enter a factor, such as 2.");
      return { kind, factor };
    }
    case "limits":
      return { kind, limits: readLimits(fields) };
    default:
      throw invalid("Choose what changes for this client.");
  }
}

const LIMIT_FIELD = "limit:";

function readLimits({ all }: FormFields): Record<string, number> {
  const limits: Record<string, number> = {};
  for (const [name, text] of Object.entries(all)) {
    if (!name.startsWith(LIMIT_FIELD) || text === "") continue;
    const policy = name.slice(LIMIT_FIELD.length);
    const limit = Number(text);
    if (!Number.isSafeInteger(limit) || limit < 0) {
      throw invalid(`The limit of ${policy} must be a whole number from 0.`);
    }
    limits[policy] = limit;
  }
  if (Object.keys(limits).length === 0) throw invalid("Enter a new limit.");
  return limits;
}

function readFactor(fields: FormFields): number | undefined {
  const text = fields.text("factor");
  if (text === "") return undefined;
  const factor = Number(text);
  if (!Number.isFinite(factor) || factor < 0) throw invalid("A factor is a number from 0.");
  return factor;
}

/**
 * Returns why a change needs a confirmation: it stops a limit for all clients, or denies requests that would
 * pass. Undefined if it needs none.
 */
export function dangerOf(change: OverrideChange): string | undefined {
  if (change.client !== undefined) {
    const { effect } = change;
    const denies =
      effect.kind === "blocked" ||
      (effect.kind === "factor" && effect.factor === 0) ||
      (effect.kind === "limits" && Object.values(effect.limits).includes(0));
    return denies
      ? "Every request of this client to which the rule applies will be denied."
      : undefined;
  }
  const { mode, factor = 1 } = change.effect;
  if (mode === "off") return "The rule will not apply to any request.";
  if (mode === "shadow") return "The rule will deny nothing.";
  if (mode === "enforce") return "The rule will deny requests that are over its limit.";
  if (factor < 1) return "The rule will deny requests that pass today.";
  return undefined;
}

function invalid(message: string): OperationError {
  return new OperationError("invalid", message);
}
