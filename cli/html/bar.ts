import { barWidth, SIGNS, type Tone } from "../../src/admin/dashboard/tone.ts";
import { type Html, html } from "./markup.ts";

/** A horizontal bar. Screen readers skip it, because the same value stands beside it as text. */
export function bar(share: number, tone: Tone): Html {
  return html`<svg class="bar" aria-hidden="true"><rect class="fill-${tone}" width="${barWidth(share)}%" height="100%"/></svg>`;
}

/** The sign of a kind of values: shapes differ as well as colours. */
export function sign(tone: Tone): Html {
  return html`<svg class="sign fill-${tone}" viewBox="0 0 12 12" aria-hidden="true"><path d="${SIGNS[tone]}"/></svg>`;
}
