import type { Context } from "hono";
import type { AdminEnv } from "../admin-problem.ts";
import { readForm } from "../input.ts";
import { type Content, type Html, html } from "./components.ts";

/** Hono's context in the handlers of the dashboard. */
export type DashboardContext = Context<AdminEnv>;

interface FormProps {
  readonly action: string;
  readonly class?: string;
  /** Values that the form sends besides its fields. */
  readonly hidden?: Readonly<Record<string, string | undefined>>;
}

/** A form that sends a POST with the session's CSRF token. */
export function form(c: DashboardContext, props: FormProps, content: Content): Html {
  const { action, class: name = "row", hidden = {} } = props;
  const sent = Object.entries({ csrf: c.var.csrf, ...hidden }).map(
    ([field, value]) =>
      value !== undefined && html`<input type="hidden" name="${field}" value="${value}">`,
  );
  return html`<form method="post" action="${action}" class="${name}">${sent}${content}</form>`;
}

/** A field with its label. */
export function field(label: string, input: Html, width = ""): Html {
  return html`<label class="field ${width}"><span>${label}</span>${input}</label>`;
}

interface TextField {
  readonly label: string;
  readonly name: string;
  readonly value?: string;
  readonly placeholder?: string;
  readonly maxlength?: number;
  /** Other attributes. */
  readonly more?: Html | false;
  readonly width?: string;
}

/** A field for a text that browsers do not keep or correct, because the text may be an address or a key. */
export function textField(props: TextField): Html {
  const { label, name, value = "", placeholder = "", maxlength = 64, more, width } = props;
  const input = html`<input name="${name}" value="${value}" placeholder="${placeholder}" maxlength="${maxlength}" autocomplete="off" spellcheck="false"${more}>`;
  return field(label, input, width);
}

/** The field for the reason of a change, which the audit list shows. */
export function reasonField(name: "why" | "reason" = "why"): Html {
  const input = html`<input name="${name}" required maxlength="500" placeholder="such as a ticket number">`;
  return field("Reason", input, "wide");
}

export function primaryButton(label: string): Html {
  return html`<button type="submit" class="primary">${label}</button>`;
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
 * Reads the fields of the form in a request. Omits files.
 *
 * @throws {OperationError} if the body is not a form of its Content-Type
 */
export async function readFields(c: DashboardContext): Promise<FormFields> {
  const all: Record<string, string> = Object.create(null);
  for (const [name, value] of Object.entries(await readForm(c))) {
    if (typeof value === "string") all[name] = value.trim();
  }
  return { all, text: (name) => all[name] ?? "" };
}
