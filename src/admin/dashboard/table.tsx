import type { Child } from "hono/jsx";

/** A column's heading; with `number`, its cells are aligned to the right. */
export interface Column {
  readonly label: Child;
  readonly number?: boolean;
  /** Whether the rows are in the order of this column. */
  readonly sort?: "ascending" | "descending" | undefined;
}

interface TableProps {
  /** Screen readers announce it. */
  readonly caption: string;
  /** Whether the caption is visible, because no heading beside the table says the same. */
  readonly showsCaption?: boolean;
  readonly columns: readonly Column[];
  readonly id?: string;
  /** On narrow screens, each row becomes a card. Cells need `data-label`, because the headings are hidden. */
  readonly cards?: boolean;
  readonly children?: Child;
}

/** A table that scrolls on narrow screens. Its children are its rows. */
export function Table({ caption, showsCaption = false, columns, id, cards, children }: TableProps) {
  return (
    <section class="scroll" tabindex={0} aria-label={caption}>
      <table id={id} class={cards ? "cards" : undefined}>
        <caption class={showsCaption ? undefined : "hidden"}>{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ label, number, sort }) => (
              <th scope="col" class={number ? "number" : undefined} aria-sort={sort}>
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}
