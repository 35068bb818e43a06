import type { Context } from "hono";
import type { Child, JSX } from "hono/jsx";
import type { Fault } from "../../config/faults.ts";
import type { Rule } from "../../config/rule.ts";
import type { OverrideChange } from "../../control/protocol.ts";
import { checkOverride, describeFaults, readReason } from "../../overrides/override-input.ts";
import { IDENTITY_FORM, isIdentity } from "../../request/identity.ts";
import type { AdminEnv } from "../admin-problem.ts";
import { readForm } from "../input.ts";
import { OperationError } from "../operations.ts";

/** Hono's context in the handlers of the dashboard. */
export type DashboardContext = Context<AdminEnv>;

interface FormProps {
  readonly c: DashboardContext;
  readonly action: string;
  readonly class?: string;
  /** Values that the form sends besides its fields. */
  readonly hidden?: Readonly<Record<string, string | undefined>>;
  readonly children?: Child;
}

/** A form that sends a POST with the session's CSRF token. */
export function Form({ c, action, class: className, hidden = {}, children }: FormProps) {
  return (
    <form method="post" action={action} class={className}>
      <input type="hidden" name="csrf" value={c.var.csrf} />
      {Object.entries(hidden).map(
        ([name, value]) => value !== undefined && <input type="hidden" name={name} value={value} />,
      )}
      {children}
    </form>
  );
}

interface TextFieldProps extends Readonly<JSX.IntrinsicElements["input"]> {
  readonly label: string;
  readonly isWide?: boolean;
  readonly children?: Child;
}

/** A field for a text that no browser keeps or corrects, because it may be an address or a key. */
export function TextField({ label, isWide, children, ...input }: TextFieldProps) {
  return (
    <label class={isWide ? "field wide" : "field"}>
      <span>{label}</span>
      <input maxlength={64} autocomplete="off" spellcheck={false} {...input} />
      {children}
    </label>
  );
}

/** The field for the reason of a change, which the audit list shows. */
export function ReasonField({ name = "why" }: { name?: "why" | "reason" }) {
  return (
    <label class="field wide">
      <span>Reason</span>
      <input name={name} required maxlength={500} placeholder="such as a ticket number" />
    </label>
  );
}

const EXPIRIES = [
  { value: "15m", label: "15 minutes" },
  { value: "1h", label: "1 hour" },
  { value: "8h", label: "8 hours" },
  { value: "1d", label: "1 day" },
  { value: "7d", label: "7 days" },
  { value: "30d", label: "30 days" },
] as const;

/** The field for the time after which an override ends. */
export function ExpiryField() {
  return (
    <label class="field">
      <span>Ends after</span>
      <select name="expiresIn">
        {EXPIRIES.map(({ value, label }) => (
          <option value={value} selected={value === "1h"}>
            {label}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Whether the operator may make changes. A read-only operator sees no forms. */
export function mayChange(c: DashboardContext): boolean {
  return c.var.role === "admin";
}

/** The fields of a form. */
export interface FormFields {
  readonly all: Readonly<Record<string, string>>;
  /** Returns the value of a field without spaces around it; an empty text if it is missing. */
  text(name: string): string;
}

/**
 * Reads the fields of the form that a request has sent. Files are left out.
 *
 * @throws {OperationError} if the body is not the form that its Content-Type says
 */
export async function readFields(c: DashboardContext): Promise<FormFields> {
  const all: Record<string, string> = Object.create(null);
  for (const [name, value] of Object.entries(await readForm(c))) {
    if (typeof value === "string") all[name] = value.trim();
  }
  return { all, text: (name) => all[name] ?? "" };
}

/**
 * Reads the fields of the forms that set overrides.
 *
 * @throws {OperationError} if a field has a value that is not allowed
 */
export function readOverrideChange(
  fields: FormFields,
  rules: readonly Rule[],
  now: number,
): OverrideChange {
  const isForClient = fields.text("target") === "client";
  const input = {
    rule: fields.text("rule"),
    effect: isForClient ? clientEffectIn(fields) : ruleEffectIn(fields),
    expiresIn: fields.text("expiresIn"),
    reason: fields.text("reason"),
  };
  const check = checkOverride(input, { isForClient, rules, now });
  const client = fields.text("client");
  const clientFaults: Fault[] =
    isForClient && !isIdentity(client)
      ? [{ path: "client", message: `must be ${IDENTITY_FORM}.` }]
      : [];
  if (!check.ok) throw invalid([...clientFaults, ...check.faults]);
  if (clientFaults.length > 0) throw invalid(clientFaults);
  const { isForClient: _, ...override } = check.override;
  return (isForClient ? { ...override, client } : override) as OverrideChange;
}

/** Reads the reason of a change. @throws {OperationError} if there is none */
export function whyIn(fields: FormFields): string {
  const faults: Fault[] = [];
  const why = readReason(fields.text("why"), faults, "The reason");
  if (why === undefined) throw invalid(faults);
  return why;
}

function ruleEffectIn(fields: FormFields): object {
  const mode = fields.text("mode");
  const factor = numberIn(fields.text("factor"));
  return { ...(mode !== "" && { mode }), ...(factor !== undefined && { factor }) };
}

const LIMIT_FIELD = "limit:";

function clientEffectIn(fields: FormFields): object {
  const kind = fields.text("kind");
  if (kind === "factor") return { kind, factor: numberIn(fields.text("factor")) };
  if (kind !== "limits") return { kind };
  // A policy without a number keeps its limit.
  const limits = Object.entries(fields.all)
    .filter(([name, text]) => name.startsWith(LIMIT_FIELD) && text !== "")
    .map(([name, text]) => [name.slice(LIMIT_FIELD.length), numberIn(text)]);
  return { kind, limits: Object.fromEntries(limits) };
}

/** @returns undefined for an empty text; the text itself if it is no number, for the message about it */
function numberIn(text: string): number | string | undefined {
  if (text === "") return undefined;
  return /^[+-]?\d+(?:\.\d+)?$/.test(text) ? Number(text) : text;
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

function invalid(faults: readonly Fault[]): OperationError {
  return new OperationError("invalid", describeFaults(faults));
}
