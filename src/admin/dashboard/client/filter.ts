import { counted, countText } from "../format.ts";

/** Filters the rows of tables while the operator types. */
export function filterRows(root: Document): void {
  for (const input of root.querySelectorAll<HTMLInputElement>("input[data-filter]")) {
    // The server has left out the rows without the text of the address. Others can only come from the server.
    const sent = input.value.trim().toLowerCase();
    input.addEventListener("input", () => {
      const sought = input.value.trim().toLowerCase();
      if (!sought.includes(sent)) return;
      const rows = root.querySelectorAll<HTMLElement>(`#${input.dataset.filter} tr[data-text]`);
      let shown = 0;
      for (const row of rows) {
        row.hidden = !row.dataset.text?.includes(sought);
        if (!row.hidden) shown += 1;
      }
      const output = input.form?.querySelector("output");
      if (output) output.textContent = `${countText(shown)} of ${counted(rows.length, "rule")}`;
    });
  }
}
