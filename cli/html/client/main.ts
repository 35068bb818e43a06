import { showValues } from "../../../src/admin/dashboard/client/charts.ts";

/** Opens all folded details while the page is printed. */
function prepareForPrint(window: Window): void {
  let opened: HTMLDetailsElement[] = [];
  window.addEventListener("beforeprint", () => {
    opened = [
      ...window.document.querySelectorAll<HTMLDetailsElement>("details.printed:not([open])"),
    ];
    for (const details of opened) details.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
  });
}

// The script of the reports. A report can be read without it, and the script loads nothing.

showValues(document);
prepareForPrint(window);
