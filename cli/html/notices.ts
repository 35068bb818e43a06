import { counted } from "../../src/admin/dashboard/format.ts";
import type { ReplayNote } from "../replay/replay-engine.ts";
import { type Html, html } from "./markup.ts";
import { sentence, shown } from "./texts.ts";

const SIGNS = { good: "✓", info: "i", warning: "!", bad: "×" } as const;

/** The number of items that a notice shows without being opened. */
const VISIBLE_ITEMS = 6;

/** A message above the content of a report. */
export function notice(kind: keyof typeof SIGNS, content: Html): Html {
  return html`<div class="notice ${kind}"><span class="notice-sign" aria-hidden="true">${SIGNS[kind]}</span><div>${content}</div></div>
`;
}

/** What a reader must know about the numbers. Nothing without notes. */
export function notes(
  all: readonly ReplayNote[],
  heading = "What these numbers assume",
): Html | undefined {
  if (all.length === 0) return undefined;
  const items = all.map(({ text }) => html`<li>${sentence(text)}</li>`);
  return notice("warning", html`<p><b>${heading}</b></p>${folded(items)}`);
}

/** The rules about which a report says nothing. Nothing without such rules. */
export function leftOutRules(
  all: readonly { readonly rule: string; readonly reason: string }[],
): Html | undefined {
  if (all.length === 0) return undefined;
  const items = all.map(({ rule, reason }) => {
    return html`<li><b>${shown(rule)}:</b> ${sentence(reason)}</li>`;
  });
  const heading = `${counted(all.length, "rule")} could not be replayed`;
  return notice("bad", html`<p><b>${heading}</b></p>${folded(items)}`);
}

function folded(items: readonly Html[]): Html {
  const rest = items.slice(VISIBLE_ITEMS);
  return html`<ul>${items.slice(0, VISIBLE_ITEMS)}</ul>${
    rest.length > 0 &&
    html`<details class="printed"><summary>${counted(rest.length, "more note")}</summary><ul>${rest}</ul></details>`
  }`;
}
