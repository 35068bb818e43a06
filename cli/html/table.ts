import { type Html, html } from "./markup.ts";

/** A column's heading; with `number`, its cells are aligned to the right. */
export interface Column {
  readonly label: string;
  readonly number?: boolean;
}

interface TableOptions {
  /** Screen readers announce it. */
  readonly caption: string;
  readonly showsCaption?: boolean;
  readonly columns: readonly Column[];
  readonly id?: string;
  /** On narrow screens, each row becomes a card. Cells need `data-label`, because the headings are hidden. */
  readonly cards?: boolean;
  /** Whether each of the rows is a `tbody` with rows that belong together. */
  readonly groups?: boolean;
}

/** A table that scrolls in its own box on narrow screens. */
export function table(options: TableOptions, rows: readonly Html[]): Html {
  const { caption, showsCaption, columns, id, cards, groups } = options;
  const lines = rows.map((row) => html`${row}\n`);
  return html`<div class="scroll" role="group" tabindex="0" aria-label="${caption}"><table${
    id !== undefined && html` id="${id}"`
  }${cards && html` class="cards"`}><caption${!showsCaption && html` class="hidden"`}>${caption}</caption>
<thead><tr>${columns.map(({ label, number }) => html`<th scope="col"${number && html` class="number"`}>${label}</th>`)}</tr></thead>
${
  groups
    ? lines
    : html`<tbody>
${lines}</tbody>`
}</table></div>`;
}
