import { countText, shortCount } from "../../src/admin/dashboard/format.ts";
import type { Tone } from "../../src/admin/dashboard/tone.ts";
import { sign } from "./bar.ts";
import { type Html, html } from "./markup.ts";

export interface Tile {
  readonly label: string;
  readonly tone?: Tone;
  /** A number, which the tile shortens, or a text. */
  readonly value: number | string;
  /** Whether the number is an estimate. */
  readonly isEstimate?: boolean;
  readonly note?: string;
  /** Whether the value needs attention. */
  readonly bad?: boolean;
}

/** The most important numbers of a report. */
export function tiles(all: readonly Tile[]): Html {
  return html`<ul class="tiles">${all.map(tile)}</ul>`;
}

function tile({ label, tone, value, isEstimate, note, bad }: Tile): Html {
  const text = typeof value === "number" ? shortCount(value) : value;
  const exact = typeof value === "number" && html` title="${countText(value)}"`;
  return html`<li class="tile card${bad && " bad"}"><span class="tile-label">${tone && sign(tone)}${label}</span><span class="tile-value"${exact}>${isEstimate && "≈ "}${text}</span><span class="tile-note">${note}</span></li>
`;
}
