import type { Child } from "hono/jsx";
import type { DashboardContext } from "./context.ts";

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
